"""Choose classes by error-correcting tournaments: labels meet in matches, which regressors decide.

Source    Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009; E = 0 is its filter tree.
Cost      learn and predict O(s (log2 K + E log2 log2 K)) for an example of s features.
Names     K classes | E errors [m - 1 of m-elimination] | place, entry as in `bracket`.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * a match filters by its regressor after the example, not after all examples
          * matches learn squared loss at the rate .5
          * the regressors of all matches share one table of weights
          From VW's ect.cc, which `--ect_play vw` follows, with E > 0: (1) A prediction that goes back to a match
          through its loser continues with the winner. (2) After the last match of a tournament, the label stays on its
          side in the next match. (3) Tournaments that the label lost before their last match are not counted, so that
          the final learns little but to choose the first one. (4) Importances in the final do not depend on that of the
          example and fall from round to round; the example then counts with the last of them. With E = 0 only scores
          of exactly 0 differ: in a prediction the left side wins; in learning it wins here, but not in VW.
Idea      There is one regressor for each of the (K - 1) (E + 1) matches and each of the E matches of the final; if its
          score is above 0, the right side wins. Learning follows the label through the matches: the regressor of a
          match is updated, then its new score decides whether the label wins, and that determines its next match. So
          a regressor only learns from labels that the matches before it have passed on (filtered). A label that has
          lost E + 1 times is out. The winners of the tournaments meet in a final, where an example's importance is its
          own times the number of tournaments on the label's side [charge], and 0 if both sides are the label's. A
          prediction goes backwards: from the winner of the final to that tournament's last match, to the match before
          it and so on, so that about log2 K regressors are scored.
"""

from __future__ import annotations

import numpy as np

from ...binary import finite, gd, gd_sequential
from ...errors import UsageError
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import OptionGroup, conflict, option, refused
from ..core import label_arrays
from ..core.base import UNSUITED, Reduction, ReductionRecord
from ..core.contract import BatchTask
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec
from . import bracket, matches

MATCH_BYTES = 24  # bytes per match of `bracket.Draw` and of the numbers of subproblems


class EctOptions(OptionGroup):
    ect: int = option("number of classes; labels are 1..K", metavar="K", minimum=1, stored=True)
    error: int = option(
        "number of matches a class may lose and still win; needs E + 1 times as many regressors. 0 is the filter tree",
        default=0,
        minimum=0,
        maximum=1000,
        metavar="E",
        stored=True,
    )
    ect_play: str = option(
        "how the matches after the first tournament are played and learned, with --error above 0: as in the `paper`, "
        "or as `vw` does, which confuses winners and losers",
        aliases=("--ect_rules",),
        choices=("paper", "vw"),
        default="paper",
        stored=True,
    )

    RULES = (
        conflict(
            "--link has no effect with --ect, which looks at the sign of a score only; leave it out",
            ect_play="paper",
            link=lambda link: link != "identity",
        ),
        refused(
            "print_tree dot_tree",
            "shows a tree, but the matches of --error {error} do not form one: drop one of them",
            error=True,
        ),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    o: EctOptions = spec.options
    resolved = gd.resolve_defaults(spec.binary, bracket.matches(o.ect, o.error) + 1, reduction=True)
    return {**resolved, "loss_function": spec.binary.loss_function or "squared"}


def check(spec: LearnerSpec) -> None:
    o: EctOptions = spec.options
    total = bracket.matches(o.ect, o.error)
    if o.ect + 2 * total >= 2**31:
        raise UsageError(f"--ect {o.ect} --error {o.error} needs {total} matches, too many; give a smaller --error")


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Raise ModelError unless a model has sums for every match, before the matches are drawn."""
    o: EctOptions = spec.options
    least = bracket.matches(o.ect, o.error) + o.error if o.ect > 1 else 1
    if "weights.sums" in arrays and len(np.atleast_1d(arrays["weights.sums"])) < least:
        stored_arrays.check_rows("weights.sums", arrays, least)


class Tournament(Reduction):
    """A learner that chooses classes by an error-correcting tournament.

    `most_matches` is an upper bound of the matches of one example, and `drift` is as in `matches.process_batch`.
    """

    def __init__(self, spec: LearnerSpec):
        o: EctOptions = spec.options
        self.classes = o.ect
        self.errors = o.error if o.ect > 1 else 0
        self.rule = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact)
        self.tests_as_vw = spec.vw_exact and spec.testing
        self.learner_options = spec.binary
        bits = spec.binary.bits
        total = bracket.matches(self.classes, self.errors)
        self.memory = gd.SLOT_BYTES << bits, MATCH_BYTES * total
        gd.check_memory(bits, extra_bytes=self.memory[1])
        tournaments = self.draw = bracket.draw(self.classes, self.errors)
        self.most_matches = tournaments.most_matches
        vw_layout = self.vw_layout = spec.binary.layout == "vw"
        if vw_layout:
            sub, subproblems = np.arange(total, dtype=np.int32), total
        else:
            sub, subproblems = bracket.cache_friendly_numbers(tournaments, self.classes)
        sub = np.concatenate([sub, subproblems + np.arange(self.errors, dtype=np.int32)])
        subproblems = max(1, subproblems + self.errors)
        self.bracket = matches.Bracket(
            tournaments.sides, tournaments.entry, tournaments.last, sub, self.classes, o.ect_play == "vw",
            spec.binary.link == "logistic",
        )  # fmt: skip
        width = gd.vw_width(subproblems) if vw_layout else gd.odd_width(subproblems)
        self.tables = [gd.new_table(self.rule, bits, subproblems, width, weights_only=spec.weights_only)]
        self.crowding = gd.crowding_warning(bits, max(1, total), width, spec.binary.layout)
        self.drift = np.zeros(1)
        self.keep_scores = spec.scores
        self.stages = [self._process_batch]

    # stages

    def _process_batch(self, task: BatchTask) -> None:
        batch = task.batch
        n = batch.n
        capacity = n if self.keep_scores else 1
        scored = np.empty(capacity * self.most_matches, np.int64)
        score = np.empty(capacity * self.most_matches, np.float32)
        first = np.zeros(n + 1 if self.keep_scores else 0, np.int64)
        counted = batch.weight.copy()
        learns = task.learns() & ~np.isnan(batch.label) if self.bracket.as_vw else task.learned()
        label = self.classes_of(task, learns, "ect", self.classes)
        task.prediction = np.empty(n)
        results = matches.EctPredictions(task.prediction, counted, scored, score, first)
        matches.process_batch(
            self.bracket, finite.guarded(self.tables[0], task.guard), self.rule, batch, label, task.clock, self.drift,
            results, gd_sequential.new_row(batch), np.empty(self.errors + 2, np.bool_),
        )  # fmt: skip
        if self.bracket.as_vw:
            task.batch = batch = batch._replace(weight=counted)
        task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        if self.keep_scores:
            task.scored = ClassLists(score[: first[-1]], scored[: first[-1]] + 1, first)

    # model

    def serialize(self, archive: Archive) -> None:
        gd.serialize_table(archive, "weights", self.tables[0], self.rule, self.learner_options)
        archive.fill("drift", self.drift)
        self.outside = archive.count("outside", self.outside)


REDUCTION = ReductionRecord(
    name="ect",
    title="Error-correcting tournament",
    summary="classes play a tournament; --error 0 is the filter tree",
    options=EctOptions,
    enabled="gd, scorer-identity, ect",
    build=Tournament,
    check=check,
    resolve_defaults=resolve_defaults,
    check_arrays=check_arrays,
    not_merged="the matches of a later round learn from the winners of earlier ones, which averages would change",
    dense=UNSUITED,
)
