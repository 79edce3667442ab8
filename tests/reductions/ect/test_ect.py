"""The tournament's kernels against the plain oracle, example by example, and its shape."""

import math

import numpy as np
import pytest
from command import xclass as run
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from library import go_through, state_of, with_scores
from oracles import ect as oracle
from oracles import learner as oracle_learner
from streams import multiclass
from variants import names

import xclass
from xclass.binary import update_rule
from xclass.reductions.ect import bracket
from xclass.reductions.ect import reduction as ect

F = np.float32
K = 13
NOISE = multiclass(1, K, 250, noise=0.9, tags=True, weights=(1, 0.5, 3, 0), unlabelled=0.1, popular=2.0)


pytestmark = pytest.mark.usefixtures("exponential")


def oracle_of(config, learner: ect.Tournament) -> oracle.Tournament:
    """The oracle of a tournament, with the weights where this layout has them."""
    o = config.learner
    named = {name: getattr(o, name) for name in ("sgd", "adaptive", "normalized", "invariant")}
    rule = oracle_learner.resolve_rule(
        **named, learning_rate=o.learning_rate, initial_t=o.initial_t, power_t=o.power_t, loss=o.loss_function
    )
    width, subs, slots = int(learner.tables[0].width), learner.bracket.sub.tolist(), 1 << o.bits
    return oracle.Tournament(
        config.ect.ect, config.ect.error, play=config.ect.ect_play, link=o.link == "logistic",
        slot=lambda index, sub: (index * width + subs[sub]) % slots, tau=o.quantile_tau, label_range=o.label_range,
        **rule,
    )  # fmt: skip


def check(*words, k: int = K, text: str = NOISE) -> int:
    """Run both over a text and compare predictions, counters, every slot and every sum; return how many examples
    taught the final something."""
    config = configure("--ect", k, *words)
    learner = learner_of(config)
    batch = batch_of(config, text)
    task, _ = go_through_stages(learner, batch)
    plain = oracle_of(config, learner)
    clock = 0.0
    finals = 0
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        assert task.prediction[i] == plain.predict(features), f"example {i} of {words}"
        before = plain.drift
        if label is not None:
            plain.learn(features, label, weight, clock)
            clock += weight
            finals += any(sub >= len(plain.matches) for sub, _, _ in plain.route)
        assert task.batch.weight[i] == weight + plain.drift - before
    flat = learner.tables[0].flat.reshape(-1, update_rule.FIELDS)
    expected = np.zeros((len(flat), 3), F)
    for slot, entry in plain.learner.table.items():
        expected[slot] = entry.w, entry.g, entry.n
    np.testing.assert_allclose(flat[:, :3], expected, rtol=2e-3, atol=2e-5)
    for sub, (s, t) in plain.learner.norms.items():
        np.testing.assert_allclose(learner.tables[0].sums[learner.bracket.sub[sub]], (s, t), rtol=1e-4)
    if k > 1:
        assert (flat[:, 0] != 0).any()
    return finals


LAYOUT_WORDS = {"odd": ("-b", 20), "vw": ("--layout", "vw", "-b", 16), "full": ("-b", 7)}
LEARNERS = [
    ("--loss_function", "logistic"),
    ("--label_range", "seen"),
    ("--loss_function", "hinge"),
    ("--loss_function", "quantile", "--quantile_tau", 0.3, "-l", 0.02),
    ("--sgd", "-l", 0.1),
    ("--sgd", "--initial_t", 5, "--power_t", 0.25, "-l", 0.1),
    ("--adaptive", "-l", 0.5),
    ("--normalized", "-l", 0.1),
    ("--noconstant", "-q", "w:"),
]


SIZES = [(K, 0), (K, 1), (K, 2), (K, 3), (8, 4), (16, 7), (1, 2), (2, 0), (2, 3), (3, 1)]  # classes, errors
CASES = [(LAYOUT_WORDS["odd"], play, *size) for play in ("paper", "vw") for size in SIZES]
CASES += [(LAYOUT_WORDS[name], play, K, 2) for name in ("vw", "full") for play in ("paper", "vw")]


@pytest.mark.sampled(3)
@pytest.mark.bounds
@pytest.mark.parametrize(("layout", "play", "k", "errors"), CASES)
def test_kernel_follows_the_oracle(layout, play, k, errors):
    for noise in (0.3, 0.95):  # where labels can be distinguished, they win all matches right after they were learned
        text = multiclass(k + errors, k, 200, noise=noise, weights=(1, 0.5, 3, 0), unlabelled=0.1, popular=2.0)
        finals = check(*layout, "--error", errors, "--ect_play", play, k=k, text=text)
    if errors and k > 3 and play == "paper":
        assert finals > 2, "this stream does not test the final"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("play", ["paper", "vw"])
@pytest.mark.parametrize("words", LEARNERS, ids=names)
def test_kernel_follows_the_oracle_whatever_the_learner(play, words):
    check("-b", 20, "--error", 2, "--ect_play", play, *words)


@pytest.mark.parametrize("errors", [0, 2])
def test_link_moves_the_boundary_of_vw(errors):
    check("-b", 20, "--error", errors, "--ect_play", "vw", "--link", "logistic", "--loss_function", "logistic")


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@pytest.mark.parametrize("play", ["paper", "vw"])
def test_kernel_follows_the_oracle_without_compiling(play):
    text = multiclass(2, 5, 40, weights=(1, 2, 0), unlabelled=0.1, noise=0.9)
    check("-b", 20, "--error", 1, "--ect_play", play, k=5, text=text)


# -- shape ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [0, 1, 2, 5])
def test_draw_is_the_schedule_of_the_oracle(errors):
    for k in (*range(1, 40), 64, 65, 127):
        drawn, wanted = bracket.draw(k, errors), oracle.schedule(k, errors)
        places = [
            [
                index - 1 if state == "label" else k + 2 * index + (state == "lost")
                for state, index in (match.left, match.right)
            ]
            for match in wanted
        ]
        assert drawn.sides.tolist() == places
        assert drawn.last.tolist() == [number for number, match in enumerate(wanted) if match.last]
        entries = {place: 2 * number + side for number, pair in enumerate(places) for side, place in enumerate(pair)}
        assert drawn.entry.tolist() == [entries.get(place, bracket.OUT) for place in range(k + 2 * len(wanted))]


class Decided(oracle.Tournament):
    """A tournament whose matches have given scores, and do not learn."""

    def _score(self, features, sub):
        return self.score[sub]

    def _train(self, features, side, weight, sub, *more):
        self.route.append((sub, side, weight))


@pytest.mark.parametrize("errors", [0, 1, 3, 6])
def test_a_label_is_missed_only_if_matches_worth_a_tournament_each_are_decided_wrongly(errors):
    """What corrects errors, by the charges of the final: another label wins only at a cost of E + 1 or more.

    Matches are decided at random. The cost is the importance of the label's own matches that it loses.
    """
    rng, missed = np.random.default_rng(errors), 0
    for k in (2, 3, 7, 12):
        for _ in range(60):
            plain = Decided(k, errors)
            score = plain.score = rng.choice([-1.0, 1.0], plain.subs, p=[0.2, 0.8])
            answer = plain.predict([])
            for y in range(1, k + 1):
                plain.learn([], y)
                cost = sum(weight for sub, side, weight in plain.route if score[sub] != side)
                assert cost >= (errors + 1 if answer != y else 0)
                missed += answer != y
    assert missed > 500


def test_filter_tree_is_as_deep_as_the_logarithm():
    for k in (2, 3, 4, 5, 1000, 1024, 1025, 100_000):
        assert bracket.draw(k, 0).most_matches == (k - 1).bit_length()
    assert bracket.draw(100_000, 3).most_matches < 40
    for k, errors in ((16, 31), (1000, 15), (1 << 16, 15)):  # the paper's depth, of the order of log2 K + E
        assert bracket.draw(k, errors).round.max() < math.log2(k) + 3.5 * errors


@pytest.mark.parametrize(("k", "errors"), [(2, 0), (3, 0), (37, 0), (64, 0), (1000, 2), (1, 0)])
def test_matches_have_numbers_of_their_own_near_their_neighbours(k, errors):
    drawn = bracket.draw(k, errors)
    numbers, taken = bracket.cache_friendly_numbers(drawn, k)
    assert len(set(numbers.tolist())) == len(numbers) == bracket.matches(k, errors)
    assert numbers.max(initial=-1) < taken <= 2 * len(numbers)
    together = 0
    for match, pair in enumerate(drawn.sides.tolist()):
        for place in pair:
            if drawn.round[match] % 2 == 1 and place >= k and (place - k) % 2 == 0:
                before = (place - k) // 2
                if drawn.round[before] == drawn.round[match] - 1:
                    together += 1
                    assert numbers[before] // 4 == numbers[match] // 4
    assert together >= len(numbers) // 2 - 1 or errors


def test_scores_are_those_of_the_matches_asked():
    """From the last match back to the first one of the predicted class."""
    k = 11
    text = multiclass(3, k, 120, tags=True)
    drawn = bracket.draw(k, 0)
    with with_scores("ect", k) as model:
        results = go_through(model, text)
    for predicted, path in zip(results.predictions, results.scores, strict=True):
        at = k + 2 * drawn.last[0]
        for number, score in path.items():
            assert number == (at - k) // 2 + 1
            at = drawn.sides[number - 1, int(score > 0)]
        assert at == predicted - 1
        assert 0 < len(path) <= drawn.most_matches
    with with_scores("ect", k, error=2) as model:
        paths = go_through(model, text).scores
    assert all(next(iter(path)) == 3 * (k - 1) + 2 for path in paths), "the final's last match is asked first"


# -- messages -------------------------------------------------------------------------------------


def test_squared_loss_is_the_default_and_others_can_be_asked_for():
    for options, name, value in (
        ({}, "loss_function", "squared"),
        ({"loss_function": "logistic"}, "loss_function", "logistic"),
        ({"vw_exact": True}, "ect_play", "vw"),
    ):
        with xclass.Learner("ect", K, **options) as model:
            assert model.options[name] == value


def test_label_outside_the_range_is_reported_once_and_not_learned():
    clean = multiclass(4, 5, 40)
    text = f"9 |w a\n{clean}0 |w b\n"
    states = []
    for given, more in ((clean, {}), (text, {"on_bad_line": "vw"}), (text, {"on_bad_line": "skip"})):
        with xclass.Learner("ect", 5, bits=12, **more) as model:
            results = go_through(model, given)
            count = sum("is outside 1..5 (--ect 5)" in note for note in results.notes)
            assert count == (more == {"on_bad_line": "vw"})
            states.append(state_of(model).arrays)
    assert states[0] == states[1] == states[2]
    with xclass.Learner("ect", 5) as model, pytest.raises(xclass.DataError, match=r"outside 1\.\.5 \(classes 5\)"):
        model.learn_many(text)
    refused = run("--ect", 5, stdin=text)
    assert refused.status == 1
    assert "is outside 1..5 (--ect 5)" in refused.err
