"""One-against-all: the kernels against the plain oracle, example by example: scores, predictions, weights."""

import math

import numpy as np
import pytest
from harness import batch_of, configure, examples_of, go_through_stages, learned, learner_of
from oracles import learner as oracle_learner
from oracles import oaa as oracle
from streams import multiclass
from variants import names

from xclass.binary import update_rule
from xclass.reductions.oaa import class_rows
from xclass.reductions.oaa import reduction as oaa

F = np.float32
K = 7
CLOSE = {"rtol": 2e-4, "atol": 2e-6}  # the oracle's exponentials are rounded once more


pytestmark = pytest.mark.usefixtures("exponential")


class Linked(oracle.OneAgainstAll):
    """The oracle with `--link logistic`: the linked score is what is compared, and what an update starts from."""

    def predict(self, features):
        super().predict(features)
        self.scores = [F(1) / (F(1) + oracle_learner._exp(-score)) for score in self.scores]
        return int(np.argmax(self.scores)) + self.base


def oracle_of(config) -> oracle.OneAgainstAll:
    """The oracle for these options, with the weights where this layout has them."""
    o, k, bits = config.learner, config.oaa.oaa, config.learner.bits
    named = {name: getattr(o, name) for name in ("sgd", "adaptive", "normalized", "invariant")}
    rule = oracle_learner.resolve_rule(
        **named, learning_rate=o.learning_rate, initial_t=o.initial_t, power_t=o.power_t, loss=o.loss_function
    )
    rows = (1 << bits) // k

    def row_slot(index, c):
        return index % rows * k + c

    return (Linked if o.link == "logistic" and not config.listing_options.probabilities else oracle.OneAgainstAll)(
        k,
        bits=bits,
        slot=row_slot if o.layout == "odd" else None,
        indexing=config.oaa.indexing,
        subsample=config.oaa.oaa_subsample or 0,
        own_class="true",
        seed=config.run.random_seed,
        **{**rule, "tau": o.quantile_tau, "label_range": o.label_range},
    )


def check(*words, text: str, k: int = K) -> oaa.OneAgainstAll:
    """Run both over a text and compare all there is to compare."""
    config = configure("--oaa", k, *words)
    many, batch, task, _ = learned(config, text)
    plain = oracle_of(config)
    clock = 0.0
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        where = f"example {i} of {words}"
        predicted = plain.predict(features)
        scores = np.array(plain.scores, F)
        if config.listing_options.probabilities:
            if config.learner.loss_function == "squared":
                least = F(0.02 / k)
                scores = least + (1 - least) * (1 + scores) / 2
            else:
                scores = F(1) / (F(1) + np.exp(-scores))
            scores /= scores.sum()
            assert (scores > 0).all(), where
        lists = task.scored if task.class_lists is None else task.class_lists
        if lists is not None:
            listed = lists[0][lists[2][i] : lists[2][i + 1]]
            np.testing.assert_allclose(listed, scores, err_msg=where, **CLOSE)
        if task.prediction[i] != predicted:  # only where both scores are as good
            best = np.sort(scores)[-2:]
            assert best[1] - best[0] < 1e-5, where
        if label is not None:
            if task.loss is not None:
                assert task.loss[i] == (weight if task.prediction[i] != label else 0.0)
            if task.log_loss is not None:
                assert task.log_loss[i] == pytest.approx(-weight * math.log(scores[label - 1]), rel=1e-3)
            plain.learn(features, label, weight, clock)
            clock += weight
        elif task.loss is not None:
            assert task.loss[i] == 0
    compare_weights(many, plain)
    return many


def compare_weights(many, plain) -> None:
    """Every slot: weight, G and N; and the sums and the label range."""
    slots = int(many.table.mask) + 1
    actual = many.table.flat.reshape(-1, slots)[:3].T
    expected = np.zeros((slots, 3), F)
    if plain.learner.adaptive:
        expected[:, 1] = plain.learner.initial_t
    for slot, entry in plain.learner.table.items():
        expected[slot] = entry.w, entry.g, entry.n
    assert np.isfinite(actual).all()
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2e-5)
    assert (actual[:, 0] != 0).any()
    norms = np.array([plain.learner.norms.get(c, [0.0, 0.0]) for c in range(many.classes)])
    np.testing.assert_allclose(many.table.sums, norms, rtol=1e-5)
    assert many.table.range.tolist() == [plain.learner.low, plain.learner.high]


TEXT = multiclass(1, K, 120, noise=0.3, tags=True, weights=(1, 0.5, 3, 0), unlabelled=0.1)
LOGISTIC_WAYS = [
    (),
    ("--scores",),
    ("--probabilities",),
    ("--link", "logistic", "-r", "raw"),
    ("--link", "logistic", "--probabilities"),
    ("--oaa_subsample", 1, "--random_seed", 3),
    ("--oaa_subsample", 4),
    ("--oaa_subsample", 7),
    ("--indexing", 1),
    ("--loss_function", "squared"),
    ("--loss_function", "squared", "--label_range", "seen"),
    ("--loss_function", "squared", "--label_range", "seen", "--oaa_subsample", 2),
    ("--loss_function", "squared", "--link", "logistic"),
    ("--loss_function", "hinge", "--label_range", "seen"),
    ("--loss_function", "quantile", "--quantile_tau", 0.3, "-l", 0.02),  # small steps: its slope jumps at the label
    ("--sgd", "-l", 0.1),
    ("--sgd", "--initial_t", 5, "--power_t", 0.25, "-l", 0.5),
    ("--adaptive", "-l", 0.5),
    ("--normalized", "-l", 0.5),
    ("--adaptive", "--normalized", "--invariant", "-l", 0.3, "--power_t", 0.4),
    ("--adaptive", "--normalized", "-l", 0.3),
    ("--initial_t", 2),
    ("--noconstant", "-q", "w:"),
    ("-l", 10000),  # margins beyond which the loss is 0, so that some classes do not learn
]
LOGISTIC = ("--loss_function", "logistic")
WAYS = [
    *(words if "--loss_function" in words else (*LOGISTIC, *words) for words in LOGISTIC_WAYS),
    (), ("--probabilities",), ("--scores",), ("--oaa_subsample", 4), ("--initial_t", 2), ("--noconstant", "-q", "w:"),
]  # fmt: skip
LAYOUTS = pytest.mark.parametrize("layout", ["odd", "vw"])


def with_scores(words) -> tuple:
    """Ask for raw scores where nothing else keeps the scores."""
    return words if {"--scores", "--probabilities", "-r"} & set(words) else (*words, "-r", "raw")


@pytest.mark.sampled(3)
@pytest.mark.bounds
@LAYOUTS
@pytest.mark.parametrize("words", WAYS, ids=names)
def test_kernel_follows_the_oracle(layout, words):
    check("--layout", layout, "-b", 14, *with_scores(words), text=TEXT)


@pytest.mark.parametrize(
    "words",
    [(), ("--min_prediction", -5, "--max_prediction", 5), ("--loss_function", "classic", "-l", 0.05)],
    ids=names,
)
@pytest.mark.parametrize("listing", [("--probabilities",), ("--probabilities", "raw")], ids=names)
def test_probabilities_of_squared_loss_follow_from_clipped_scores(words, listing):
    config = configure("--oaa", K, "-b", 14, *listing, *words)
    many = learner_of(config)
    raw = learner_of(configure("--oaa", K, "-b", 14, "-r", "raw", *words))
    try:
        task, _ = go_through_stages(many, batch_of(config, TEXT))
        scored, _ = go_through_stages(raw, batch_of(config, TEXT))
    finally:
        many.close()
        raw.close()
    p, scores = task.class_lists.scores.reshape(-1, K), scored.scored.scores.reshape(-1, K)
    expected = (1 + np.clip(scores, -1, 1)) / 2
    if "raw" not in listing:
        expected = 0.02 / K + (1 - 0.02 / K) * expected
        expected /= expected.sum(axis=1, keepdims=True)
        assert (p > 0).all()
    np.testing.assert_allclose(p, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.bounds
@LAYOUTS
@pytest.mark.parametrize("bits", [3, 4, 6, 7])
def test_features_that_share_a_row_are_learned_one_after_the_other(layout, bits):
    """So few rows that most features meet others, and some meet themselves in another example."""
    check(*LOGISTIC, "--layout", layout, "-b", bits, "-r", "raw", text=TEXT)


@LAYOUTS
def test_labels_from_0(layout):
    text = multiclass(2, K, 80, lowest=0, noise=0.2, unlabelled=0.1)
    many = check(*LOGISTIC, "--layout", layout, "-b", 14, "--indexing", 0, "-r", "raw", text=text)
    assert many.saved().facts["indexing"] == 0


@LAYOUTS
@pytest.mark.parametrize(("first", "base"), [(0, 0), (K, 1)])
def test_base_of_the_labels_is_found_out(layout, first, base):
    """Labels below K may be 0-based or 1-based, until a label 0 or K occurs: then both know."""
    lines = multiclass(3, K - 2, 30, lowest=1, noise=0.2).splitlines(keepends=True)
    later = multiclass(4, K - 1, 30, lowest=1, noise=0.2)
    text = "".join(lines) + f"{first} |w p0_0 x\n" + later
    many = check(*LOGISTIC, "--layout", layout, "-b", 14, "--on_bad_line", "vw", text=text)
    assert many.saved().facts["indexing"] == base


def test_blocks_of_classes_join_without_a_seam():
    """More classes than are handled at a time, one of them alone in the last block."""
    k = class_rows.BLOCK + 1
    lines = [
        f"{y} |w a{y % 2} b c:{x}\n" for y, x in zip((1, k, k - 1, 2, 1, k, 1), (1, 2, 0.5, 3, 1, 2, 2), strict=True)
    ]
    check(*LOGISTIC, "-b", 16, "-r", "raw", text="".join(lines), k=k)


def test_norms_of_a_feature_differ_once_some_classes_do_not_learn():
    """N of a feature is the same for all classes until it grows for those alone that learn."""
    k = class_rows.BLOCK + 2
    unsure = "1 1e4 |w a b\n2 1e4 |w a b\n" * 3  # between 1 and 2; the others lose nothing any more, their N stays
    text = f"{unsure}1 |w a:5 b\n3 |w a b\n4 |w a:2 b:3 c\n1 |w a:5 b:.5 c:.1\n{k} |w a:9 b c:2\n2 |w a b c\n"
    many = check(*LOGISTIC, "-b", 16, "-l", 20, text=text, k=k)
    norms = many.table.flat[2 << 16 : 3 << 16][: int(many.rows) * k].reshape(-1, k)
    kinds = [len(set(row)) for row in norms[:, : k // 2] if row.any()]  # half of the classes, which one thread has
    assert 1 in kinds and max(kinds) > 1


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow", "ignore:invalid value")  # of the oracle
def test_classes_with_an_infinite_rate_do_not_move():
    """A tiny first value of a feature, whose square underflows where a class loses next to nothing: as VW has it."""
    sure = "1 1e4 |w a b\n" * 3
    words = ("--vw_exact", "--layout", "odd", "--loss_function", "logistic", "--label_range", "known")
    check(
        *LOGISTIC,
        *words,
        "-b",
        10,
        "-l",
        20,
        text=f"{sure}1 |w a:2 b\n2 |w a b:3\n3 |w a:4 c:1e-30\n1 |w c\n2 |w a c\n",
    )


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # of the oracle
def test_norms_that_grow_class_by_class_are_read_again():
    """Where a value is very large, examples take another path; the sums determine the N of the next ones."""
    config = configure("--oaa", K, "-b", 10)
    batch = batch_of(config, "1 |w a b\n2 |w a:1e17 b\n1 |w a b\n3 |w a:2 b\n")
    many, plain = learner_of(config), oracle_of(config)
    go_through_stages(many, batch)
    many.close()
    for clock, (features, label, weight) in enumerate(examples_of(batch)):
        plain.predict(features)
        plain.learn(features, label, weight, float(clock))
    np.testing.assert_allclose(many.table.sums, [plain.learner.norms[c] for c in range(K)], rtol=1e-5)


@pytest.mark.bounds
def test_long_example_is_learned_class_by_class_with_the_same_result():
    """Beyond some thousand features rates are not stored for a block of classes, which would take much memory."""
    long = " ".join(f"x{j}" for j in range(class_rows.MOST_FEATURES_IN_BLOCKS + 1))
    text = f"2 |w {long}\n1 |w x1 x2:2\n"
    words = ("--layout", "odd", "-b", 17, "-r", "raw")
    check(*LOGISTIC, *words, text=text, k=3)
    less = (
        text.replace(f" x{class_rows.MOST_FEATURES_IN_BLOCKS} ", " ")
        .replace(f" x{class_rows.MOST_FEATURES_IN_BLOCKS}\n", "\n")
        .replace(" x0 ", " ")
    )
    check(*LOGISTIC, *words, text=less, k=3)


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@LAYOUTS
def test_kernel_follows_the_oracle_without_compiling(layout):
    text = multiclass(5, K, 12, weights=(1, 2, 0), unlabelled=0.1)
    check(*LOGISTIC, "--layout", layout, "-b", 8, "-r", "raw", text=text)
    check("--layout", layout, "-b", 8, "--oaa_subsample", 2, text=text)


@pytest.mark.parametrize("words", [(), ("--loss_function", "squared", "--label_range", "seen")], ids=names)
def test_untrained_model_predicts_the_lowest_class(words):
    """All scores are equal, and the lowest class is predicted."""
    config = configure("--oaa", K, "-b", 10, "--scores", *words)
    many = learner_of(config, testing=True)
    task, _ = go_through_stages(many, batch_of(config, TEXT), learn=False)
    many.close()
    assert set(task.prediction) == {1}
    assert not task.class_lists.scores.any()
    assert not many.table.flat.any()


def test_errors_are_counted_while_classes_are_sampled():
    config = configure("--oaa", K, "-b", 10, "--oaa_subsample", 2)
    many = learner_of(config)
    task, _ = go_through_stages(many, batch_of(config, TEXT))
    many.close()
    label = task.batch.label
    wrong = (task.prediction != label) & ~np.isnan(label)
    assert wrong.any() and task.loss.tolist() == np.where(wrong, task.batch.weight, 0.0).tolist()


def test_classes_of_subsampling_are_drawn_evenly():
    config = configure("--oaa", 50, "-b", 12, "--oaa_subsample", 7)
    many = learner_of(config)
    many.close()
    assert sorted(many.order.tolist()) == list(range(50))
    assert many.order.tolist() != list(range(50))
    sampled = np.empty((100, 7), np.int32)
    label = np.arange(100) % 50
    end = class_rows.draw_negatives(many.order, 0, label, np.ones(100, bool), sampled)
    assert all(len(set(row)) == 7 and own not in row for row, own in zip(sampled.tolist(), label.tolist(), strict=True))
    counts = np.bincount(sampled.ravel(), minlength=50)
    assert counts.min() >= 11
    assert counts.max() <= 16
    assert 0 <= end < 50


def test_planes_of_a_table_are_not_interleaved():
    """The sweep reads neighbouring classes of one plane: `stride` 1 and `field` all slots."""
    config = configure("--oaa", K, "-b", 10)
    many = learner_of(config)
    many.close()
    assert (int(many.table.stride), int(many.table.field)) == (1, 1 << 10)
    assert len(many.table.flat) == update_rule.FIELDS << 10
