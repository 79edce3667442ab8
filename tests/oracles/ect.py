"""Oracle of the error-correcting tournament; with E = 0 it is the filter tree.

Source   Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009; VW 9.11.9 `--ect` for the pairing.
Idea     E + 1 knock-out tournaments of labels are held round by round. The loser of a match enters the next tournament.
         The winner of a whole tournament enters the next one, too, where it meets the label that it has just beaten
         once more. The E + 1 winners play a final, again a knock-out. Each match has a regressor, and the label on the
         right side wins if its score is positive. A prediction plays all matches; learning follows the true label
         through the matches that it takes part in.
Play     "paper": the importance of a match of the final is the number of tournaments on the side of the true label
         (the charge), times the weight of the example. "vw" repeats what VW does if E > 0, see `_predict_vw` and
         `_learn_vw`.
Names    k labels | E errors | source: where a side of a match comes from, ("label", y) or ("won" | "lost", match).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from .learner import F, Learner, vw_slot


@dataclass
class Match:
    left: tuple
    right: tuple
    tournament: int
    last: bool = False  # whether it is the last match of its tournament


def schedule(k: int, errors: int) -> list[Match]:
    """Return all matches in the order in which they are played: by round, then by tournament.

    In each round, neighbours in the list of a tournament play against each other. If the number is odd, the last one
    waits for the next round, at the end of its list. A tournament ends with the match of its last two labels, once no
    further labels can come from the tournament before it.
    """
    entered: list[list[tuple]] = [[("label", y) for y in range(1, k + 1)]] + [[] for _ in range(errors)]
    matches: list[Match] = []
    while k > 1 and any(entered):
        following: list[list[tuple]] = [[] for _ in entered]
        for t, those in enumerate(entered):
            ends = len(those) == 2 and (t == 0 or not entered[t - 1])
            for left, right in zip(those[0::2], those[1::2], strict=False):
                number = len(matches)
                matches.append(Match(left, right, t, ends))
                if not ends:
                    following[t].append(("won", number))
                if t < errors:
                    following[t + 1] += [("won", number)] if ends else []
                    following[t + 1].append(("lost", number))
            if len(those) % 2 == 1:
                following[t].append(those[-1])
        entered = following
    return matches


class Tournament:
    """Learn and predict the labels 1..k by matches.

    Parameters
    ----------
    k, errors : number of labels, and E, as in VW's options
    play : "paper" or "vw"
    link : whether a logistic function is applied to scores, so that the right side wins above 1/2 ("vw" only)
    bits : log2 of the number of slots in VW's layout
    slot : layout of the weights; subproblems are the matches in the order of `schedule`, then those of the final.
        VW's layout by default
    **rule : keywords of `Learner`, see `resolve_rule`

    Attributes
    ----------
    route : the updates of the last example: [(subproblem, side of the label, weight)]
    drift : sum of the differences between the weights that "vw" has added to the clock and those of the examples
    """

    def __init__(
        self,
        k: int,
        errors: int = 0,
        *,
        play: str = "paper",
        link: bool = False,
        bits: int = 18,
        slot: Callable[[int, int], Hashable] | None = None,
        **rule,
    ):
        self.k, self.errors, self.play, self.link = k, errors, play, link
        self.matches = schedule(k, errors)
        self.lasts = [number for number, match in enumerate(self.matches) if match.last]
        self.enters = {}  # source -> (match, whether it is the right side)
        for number, match in enumerate(self.matches):
            self.enters[match.left] = number, False
            self.enters[match.right] = number, True
        self.subs = len(self.matches) + errors
        self.learner = Learner(slot or vw_slot(self.subs, bits), **rule)
        self.route: list[tuple] = []
        self.drift = 0.0

    def _right(self, score: np.float32) -> np.float32:
        """Return a score after the link function, shifted so that the right side wins if it is above 0."""
        if self.link:
            with np.errstate(over="ignore"):
                return F(1) / (F(1) + np.exp(-score)) - F(0.5)
        return score

    def _score(self, features, sub: int) -> np.float32:
        return self._right(self.learner.predict(features, sub))

    def _train(self, features, side: int, weight: float, sub: int, clock: float, own: float) -> np.float32:
        self.route.append((sub, side, weight))
        return self._right(self.learner.learn(features, side, weight, sub, clock, clock_weight=own))

    # answers

    def predict(self, features: list[tuple]) -> int:
        if self.k == 1:
            return 1
        return self._predict_vw(features) if self.play == "vw" else self._predict_paper(features)

    def _predict_paper(self, features) -> int:
        won, lost, winners = {}, {}, []
        for number, match in enumerate(self.matches):
            sides = []
            for state, index in (match.left, match.right):
                sides.append(index if state == "label" else (won if state == "won" else lost)[index])
            right = bool(self._score(features, number) > 0)
            won[number], lost[number] = sides[right], sides[not right]
            if match.last:
                winners.append(won[number])
        return self._final(features, 0, len(winners), winners)

    def _final(self, features, start: int, end: int, winners: list[int]) -> int:
        """Return the winner of the final among the winners of tournaments begin..end-1.

        The left side has the largest power of two of them that is less than their number, the right side the rest.
        """
        if end - start == 1:
            return winners[start]
        middle = self._middle(start, end)
        left, right = self._final(features, start, middle, winners), self._final(features, middle, end, winners)
        return right if self._score(features, len(self.matches) + middle - 1) > 0 else left

    def _middle(self, start: int, end: int) -> int:
        size = 1
        while 2 * size < end - start:
            size *= 2
        return start + size

    def _predict_vw(self, features) -> int:
        """Return the prediction of VW, which goes back from the last match of a tournament to a label.

        At each match it goes to the match that the predicted winner came from. If the winner came from a match that it
        lost, VW nevertheless continues with the predicted winner of that match.
        """
        start, end = 0, self.errors + 1
        while end - start > 1:
            middle = self._middle(start, end)
            right = self._score(features, len(self.matches) + middle - 1) > 0
            start, end = (middle, end) if right else (start, middle)
        state, index = "won", self.lasts[start]
        while state != "label":
            match = self.matches[index]
            state, index = match.right if self._score(features, index) > 0 else match.left
        return index

    # learning

    def learn(self, features: list[tuple], y: int, weight: float = 1.0, clock: float = 0.0) -> None:
        self.route = []
        if self.k == 1 or not 1 <= y <= self.k:
            return
        if self.play == "vw":
            self._learn_vw(features, y, weight, clock)
        elif weight > 0:
            self._learn(features, y, weight, clock)

    def _learn(self, features, y, weight, clock) -> None:
        source = ("label", y)
        won = [False] * (self.errors + 1)
        while source in self.enters:
            number, right = self.enters[source]
            match = self.matches[number]
            self._train(features, 1 if right else -1, weight, number, clock, weight)
            wins = bool(self._score(features, number) > 0) == right
            won[match.tournament] |= wins and match.last
            source = ("won" if wins else "lost", number)
        self._learn_final(features, 0, len(won), won, weight, clock)

    def _learn_final(self, features, start, end, won, weight, clock) -> bool:
        """Train the matches of the final among tournaments begin..end-1; return whether the true label wins there.

        A match is trained if the label is on exactly one of its sides.
        """
        if end - start == 1:
            return won[start]
        middle = self._middle(start, end)
        left = self._learn_final(features, start, middle, won, weight, clock)
        right = self._learn_final(features, middle, end, won, weight, clock)
        if left == right:
            return left
        sub = len(self.matches) + middle - 1
        charge = end - middle if right else middle - start
        self._train(features, 1 if right else -1, float(F(weight) * F(charge)), sub, clock, weight)
        return bool(self._score(features, sub) > 0) == right

    def _learn_vw(self, features, y, weight, clock) -> None:
        """Learn as VW does, with these deviations from the paper:

        * After the last match of a tournament, the side of the label in its next match is not looked up again.
        * The list of tournaments won has no entry for a tournament that was lost before its last match.
        * Matches of the final are trained with powers of two as weights, and their results are the predictions before
          the update. The list of results is halved after each match instead of each round.
        * The weight of the last match of the final replaces that of the example, also in the clock.
        """
        own, clock = weight, clock + self.drift
        number, right = self.enters["label", y]
        noted = []
        while True:
            match = self.matches[number]
            side = 1 if right else -1
            self._train(features, side, weight, number, clock, weight)
            wins = bool(self._score(features, number) * F(side) > 0)
            source = ("won" if wins else "lost", number)
            following, entry = self.enters.get(source, (None, None))
            if match.last or (not wins and following is None):
                noted.append(wins)
            if following is None:
                break
            if not match.last:
                right = entry
            number = following
        height = self.errors.bit_length()
        for i in range(height):
            j = 0
            while j < len(noted) // 2:
                left, right = noted[2 * j : 2 * j + 2]
                noted[j] = left
                if left != right:
                    own = float(1 << (height - i - 1))
                    sub = len(self.matches) + j * (2 << i) + (1 << i) - 1
                    score = self._train(features, -1 if left else 1, own, sub, clock, own)
                    noted[j] = right if score > 0 else left
                size = len(noted)
                if size % 2 == 1:
                    noted[size // 2] = noted[-1]
                del noted[(1 + size) // 2 :]
                j += 1
        self.drift += own - weight
