"""No number in a model is infinite or NaN, whatever values, weights, labels and options come; see `finite`."""

import os
import re

import numpy as np
import pytest
from command import learn, xclass, xclass_process
from hypothesis import given, settings
from hypothesis import strategies as st
from library import Results, go_through, summary_of
from streams import multiclass, of_kind
from variants import BITS, BY_NAME, KINDS, K, chosen, every_variant, learner

from xclass.abilities.find import described
from xclass.api.learner import Learner, load
from xclass.binary import finite, gd
from xclass.data.batch import Batch
from xclass.errors import UsageError, XclassWarning
from xclass.model import model_file

F = np.float32
VALUES = ("3.4e38", "-3.4e38", "1e-45", "1e30", "-1e30", "1e20", "1e15", "1e-20")
WEIGHTS = ("", " 3e38", " 1e30", " 1e-30", " 1e-45", " 1e15")
RATES = [{"learning_rate": rate} for rate in (1e10, 1e-10)]
LOSSES = [{"loss_function": loss} for loss in ("squared", "logistic", "hinge", "quantile", "classic")]
RULES = [
    {"sgd": True}, {"adaptive": True}, {"normalized": True}, {"invariant": True},
    {"adaptive": True, "normalized": True}, {"power_t": 0.3}, {"l1": 0.1, "l2": 0.1}, {"l2": 1e20},
    {"initial_weight": 1e30},
]  # fmt: skip
CROSSED = {"quadratic": ["wn"]}
MORE = {
    "scalar": [*RATES, *LOSSES, *RULES, {"noconstant": True, **CROSSED}],
    "oaa": [*RATES, *LOSSES, *RULES, CROSSED, {"oaa_subsample": 2, **CROSSED}, {"probabilities": True}],
    "recall_tree": [*RATES, CROSSED, {"layout": "vw", "sgd": True, "learning_rate": 1e10}],
    "log_multi": [*RATES, *LOSSES, {"layout": "vw", "sgd": True, "learning_rate": 1e10}],
    "random_tree": [*RATES, *LOSSES, {"layout": "vw", "adaptive": True, "learning_rate": 1e10}],
    "ect": [*RATES, *LOSSES, CROSSED],
    "cpt": [
        *RATES, *LOSSES[:2], {"normalize_features": "none", "learning_rate": 1e10}, {"rerank": True, **CROSSED},
        {"normalize_features": "none", "rerank": True}, {"noconstant": True},
        {"cpt_arity": 4, "learning_rate": 1e10},
    ],
    "softmax_tree": [CROSSED, {"noconstant": True}],
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("place")


def ordinary(name: str, seed: int, n: int) -> list[str]:
    """Lines a reduction can learn from."""
    return of_kind(KINDS[name], seed, K, n).splitlines(keepends=True)


def extreme(name: str, seed: int, n: int) -> list[str]:
    """Lines of which nothing is of an ordinary size; the classes are ordinary ones."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        features = [f" |{space}" for space in "wn"]
        for k, word in enumerate(rng.choice(["p0_3", "p1_5", "size", "red", "new"], 4)):
            features[k % 2] += f" {word}:{rng.choice(VALUES)}"
        kind = BY_NAME[name].labels
        numbers = ["1", "-1", "3e38", "1e20", "1e-40"]
        label = rng.choice(numbers) if kind == "simple" else i % K + (kind == "multiclass")
        lines.append(f"{label}{rng.choice(WEIGHTS)}{''.join(features)}\n")
    return lines


def mixed(name: str, seed: int) -> str:
    """Ordinary lines and extreme ones in turn, the ordinary first and last."""
    plain, odd = ordinary(name, seed, 60), extreme(name, seed, 40)
    return "".join([*plain[:10], *(line for pair in zip(odd, plain[10:50], strict=True) for line in pair), *plain[50:]])


def learn_to_the_end(model: Learner, text: str) -> Results:
    """What came of a text, all of which the learner sees before it learns where it wants to."""
    results = go_through(model, text)
    model.end_pass()
    return results._replace(summary=summary_of(model))


def floats_of(model: Learner) -> dict[str, np.ndarray]:
    """The arrays of numbers with a fraction that a model of the learner would hold."""
    arrays = {name: np.array(array) for name, array in model.core.contents().arrays.items()}
    return {name: array for name, array in arrays.items() if array.dtype.kind == "f"}


def assert_finite(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        assert np.isfinite(array).all(), name


@pytest.mark.sampled(2)
@every_variant(more=MORE)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_models_and_messages_hold_only_finite_numbers(name, options):
    text = mixed(name, len(options))
    with learner(name, **options) as model:
        results = learn_to_the_end(model, text)
        assert_finite(floats_of(model))
        text_output = " ".join(
            [
                results.summary,
                *results.notes,
                *described(model.core.config.reduction, "banner", model.core.reduction, []),
            ]
        )
    predicted = np.isfinite(results.predictions)
    if BY_NAME[name].labels == "multilabel":  # before the first label there may be none to predict
        predicted = predicted[np.argmax(predicted) :]
        assert len(predicted) >= len(results.predictions) - 1
    assert predicted.all() and np.isfinite(results.loss)
    assert all(np.isfinite([*listing.values()]).all() for listing in results.lists)
    assert not re.search(r"\b(nan|inf)\b", text_output)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_a_run_writes_is_finite(name, place):
    result = learn(*chosen(name), *BITS, "-p", "p", "-f", "m", stdin=mixed(name, 1))
    arrays = {key: np.array(array) for key, array in model_file.load("m").arrays.items()}
    assert_finite({key: array for key, array in arrays.items() if array.dtype.kind == "f"})
    assert not re.search(r"\b(nan|inf)\b", (place / "p").read_text())
    assert not re.search(r"\b(nan|inf|Traceback)\b", result.err)


@pytest.mark.parametrize(
    ("name", "options", "lines"),
    [
        ("oaa", {}, "2 | zz:3e38 b\n"),
        ("oaa", {"loss_function": "squared"}, "2 | zz:3e38 b\n"),
        (
            "oaa",
            {"sgd": True, "power_t": 0, "loss_function": "hinge", "learning_rate": 1e3},
            "3 | zz:3e38 b\n2 | zz:3e38\n",
        ),
        ("oaa", {"l2": 0.01}, "1 | zz:3e38 b\n"),
        ("ect", {}, "3 | zz:1e20\n2 | zz:3e38\n"),
        ("cpt", {"exact": True}, "3 1e35 | a\n"),
        ("cpt", {"exact": True, "normalize_features": "none"}, "1 | a:1e20\n4 | a:3e38\n"),
        ("log_multi", {}, "3 1e35 | a:3e38\n"),
        ("random_tree", {}, "3 1e35 | a:3e38\n"),
        ("sparse_experts", {}, "3 1e35 | a:3e38\n"),
        ("softmax_tree", {"smooth": 0.01}, "3 1e35 | a:3e38\n"),
        ("scalar", {}, "1 | a:3e38\n-3e38 | a\n1 1e30 | a:1e15\n3e38 | zz\n"),
    ],
)
def test_a_model_is_as_if_examples_that_are_too_large_were_not_there(name, options, lines):
    """The examples are counted, the first is named, and nothing of their steps is left."""
    plain = [*("1 | a b\n", "2 | b c\n", "1 | a\n", "2 | c\n") * 3, "3 | d\n"]
    large = lines.splitlines(keepends=True)
    with learner(name, 3, bits=8, **options) as model:
        learn_to_the_end(model, "".join(plain))
        none = floats_of(model)
    with learner(name, 3, bits=8, **options) as model:
        results = learn_to_the_end(model, "".join([*plain[:5], *large, *plain[5:]]))
        some = floats_of(model)
    assert some.keys() == none.keys()
    for key in some:
        assert np.array_equal(some[key], none[key]), key
    assert results.skipped_steps == list(range(6, 6 + len(large)))


def test_the_summary_of_a_run_counts_the_examples_that_are_too_large():
    result = learn("--ect", 3, "-b", 8, stdin="1 | a\n3 | zz:1e20\n2 | zz:3e38\n")
    assert (
        "warning: stdin:2: the update of this example is skipped, as it would make a weight or a sum infinite"
        in result.err
    )
    assert result.err.count("infinite (values") == 1
    assert "infinite = 2\n" in result.err
    result = learn("--ect", 3, "-b", 8, stdin="1 | a\n3 | zz:1e20\n")
    assert "infinite (values" in result.err and "infinite = " not in result.err
    assert "infinite" not in learn("--ect", 3, "-b", 8, stdin="1 | a\n").err


@pytest.mark.parametrize(
    ("weight", "reason"),
    [("1e-31", "its weight 1e-31 is below 1e-30"), ("1e20", "(values from 1 to 2, weight 1e+20, label 1)")],
)
def test_a_run_that_learned_nothing_says_that_all_updates_were_skipped(place, weight, reason):
    (place / "d.vw").write_text(f"1 {weight} |x 0:1 1:2\n2 {weight} |x 0:2 1:1\n")
    result = xclass("-d", "d.vw", "--means", "--dense", "x", "-f", "m", "--quiet")
    assert result.status == 1 and not (place / "m").exists()
    assert "xclass: d.vw: no example was learned from; d.vw:1: the update of this example is skipped" in result.err
    assert reason in result.err


def test_two_files_are_not_mixed_up(place):
    (place / "a.vw").write_text("1 | a\n2 | b\n")
    (place / "b.vw").write_text("1 | zz:3e38\n")
    assert "warning: b.vw:1: the update" in learn("-d", "a.vw", "-d", "b.vw", "--oaa", 2).err
    of_caches = learn("-d", "a.vw", "-d", "b.vw", "--oaa", 2, "-c", "--cache_file", "c", "-k")
    assert "warning: b.vw:1: the update" in of_caches.err
    again = learn("-d", "a.vw", "-d", "b.vw", "--oaa", 2, "--cache_file", "c")
    assert "warning: one of 2 files:1: the update" in again.err
    (place / "a.vw").write_text("1 | a\n2 | zz:3e38\n")
    assert "warning: a.vw:2: the update" in learn("-d", "a.vw", "--oaa", 2).err


def test_values_that_crosses_make_infinite_are_not_learned_from():
    text = "1 |a x |b y\n2 |a z |b y\n" * 4 + "1 |a x:3e38 |b y:3e38\n" + "1 |a x |b y\n"
    with learner("oaa", 2, bits=8, quadratic=["ab"]) as model:
        with pytest.warns(XclassWarning, match="batch:9: the update"):
            outcome = model.learn_many(text)
        assert_finite(floats_of(model))
    assert outcome.prediction[-1] == 1


@pytest.mark.parametrize("weight", ["inf", "1e39"])
@pytest.mark.parametrize("name", ["scalar", "oaa", "recall_tree", "cpt"])
def test_weights_that_are_no_numbers_count_for_nothing(name, weight):
    lines = ordinary(name, 4, 20)
    with learner(name, on_bad_line="vw", number_rules="vw") as model:
        with pytest.warns(XclassWarning, match="batch:21: the update.*weight that is not finite"):
            model.learn_many([*lines, f"1 {weight} | p0_3\n", *lines])
        with_it = floats_of(model)
    with learner(name) as model:
        model.learn_many([*lines, *lines])
        without = floats_of(model)
    assert all(np.array_equal(with_it[key], without[key]) for key in without)


def test_vw_exact_does_what_vw_does(place):
    text = "1 | a:3e38 b\n2 | c\n"
    with Learner("oaa", 2, vw_exact=True, sgd=True, bits=8, indexing=1) as model:
        assert model.learn_many(text).warnings == ()
        assert not all(np.isfinite(array).all() for array in floats_of(model).values())
        model.save("m")
    with load("m") as model:
        assert model.learn_many(text).warnings == ()
        assert len(model.predict_many(text)) == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to processors")
def test_one_processor_gives_the_same_model_and_the_same_warning(tmp_path):
    lines = multiclass(3, 140, 60).splitlines(keepends=True)
    lines[20:20] = extreme("oaa", 1, 20)
    (tmp_path / "d.vw").write_text("".join(lines))
    run = ("-d", "d.vw", "--oaa", 140, "-b", 14, "-f")
    every = learn(*run, "all", cwd=tmp_path)
    processor = min(os.sched_getaffinity(0))
    single = xclass_process(*run, "one", cwd=tmp_path, preexec_fn=lambda: os.sched_setaffinity(0, {processor}))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()
    warnings = [[line for line in run_result.err.splitlines() if "infinite" in line] for run_result in (every, single)]
    assert warnings[0] == warnings[1] and len(warnings[0]) == 2


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, 3]),
            st.floats(min_value=0, width=32, allow_infinity=False),
            st.lists(st.floats(width=32, allow_infinity=False, allow_nan=False), max_size=3),
        ),
        max_size=8,
    ),
    st.sampled_from(["oaa", "recall_tree", "ect", "scalar"]),
    st.sampled_from(
        [{}, {"sgd": True}, {"loss_function": "squared"}, {"learning_rate": 1e10}, {"l2": 0.5}, {"adaptive": True}]
    ),
)
def test_any_numbers_leave_a_finite_model(lines, name, options):
    text = "1 | a b\n2 | c\n"
    for label, weight, values in lines:
        features = " ".join(f"{'abc'[k]}:{value!r}" for k, value in enumerate(values))
        text += f"{label} {weight!r} | {features}\n1 | a b\n"
    if "l2" in options and name in ("recall_tree", "ect"):
        options = options | {"layout": "vw"} if name == "ect" else {}
    with learner(name, 3, bits=6, **options) as model:
        learn_to_the_end(model, text)
        assert_finite(floats_of(model))


@pytest.mark.parametrize(
    ("option", "value"),
    [("initial_weight", 1e39), ("learning_rate", 1e31), ("power_t", -1e99), ("initial_t", 4e38), ("l1", 1e31)],
)
def test_options_are_numbers_that_the_learner_can_hold(option, value):
    with pytest.raises(UsageError, match=rf"{option}: .* is not a number from .* to 1e\+30"):
        Learner("oaa", 2, **{option: value})


# the bounds of `finite`


def batch_of_one(place, x, weight) -> Batch:
    """One labelled example."""
    ones = np.array([0, len(x)], np.int64)
    return Batch(
        ones, place.astype(np.uint32), x, np.ones(1), np.array([weight], F), np.zeros(1, F), np.array([0, 1]),
        np.zeros(1, np.uint8), ones, np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64),
        np.zeros(1, np.uint8),
    )  # fmt: skip


def any_size(rng, low: int, high: int, count: int) -> np.ndarray:
    """Numbers of either sign between these powers of 2."""
    return (rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(low, high, count)).astype(F)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge", "quantile", "classic"])
@pytest.mark.parametrize(
    "rule", [{}, {"adaptive": True, "normalized": True}, {"adaptive": True}, {"adaptive": True, "invariant": True},
             {"normalized": True}, {"normalized": True, "invariant": True}, {"sgd": True}, {"invariant": True},
             {"l2": 0.5, "l1": 1e-3}, {"power_t": 0.8}],
    ids=str,
)  # fmt: skip
def test_steps_are_finite_or_undone(rule, loss):
    """Whatever a table holds, every step leaves it finite; one that is not taken leaves it as it was."""
    rng = np.random.default_rng(len(str(rule)) + len(loss))
    rate = float(rng.choice([0.5, 10, 1024, 1e10]))
    options = {"bits": 4, "learning_rate": rate, "initial_t": 1.0, "loss_function": loss, **rule}
    gd_rule = gd.make_rule(gd.BinaryOptions(**options), reduction=True)
    safe = skipped = 0
    for _ in range(150):
        wild = rng.random() < 0.5
        x = any_size(rng, -60, 50, 3) if wild else any_size(rng, -8, 8, 3)
        if wild and rng.random() < 0.3:
            x = any_size(rng, -149, 127.9, 3)
        weight = F(2.0 ** rng.uniform(-60, 40 if rng.random() < 0.7 else 127)) if wild else F(1)
        table = gd.new_table(gd_rule, 4, 1, 1)
        slots = table.flat.reshape(-1, 4)
        slots[:, 0] = any_size(rng, -100, 127.9, 16) if wild else any_size(rng, -4, 4, 16)
        slots[:, 1] = np.abs(any_size(rng, -140, 127.9, 16)) * (rng.random(16) < 0.7)
        slots[:, 2] = np.abs(any_size(rng, -63, 60, 16)) * (rng.random(16) < 0.7)
        table.sums[0] = np.abs(any_size(rng, -40, 100, 2)) * (rng.random(2) < 0.6)
        place = np.array([1, 5, 9], np.uint64)
        guard = table.guard
        batch = batch_of_one(place, x, weight)
        finite.survey(batch, np.ones(1, bool), False, np.inf, True, guard.skipped, guard.value_range)
        y = F(rng.choice([-1, 1]))
        p = gd.clip(F(gd.score(table, place, x, 3, np.uint64(0), F(0))), table.range)
        before = [table.flat.reshape(-1, 4)[:, :3].copy(), table.sums.copy(), table.shrunk.copy()]
        gd.learn(table, gd_rule, place, x, 3, np.uint64(0), F(p), y, weight, 3.0)
        after = [table.flat.reshape(-1, 4)[:, :3], table.sums, table.shrunk]
        assert all(np.isfinite(array).all() for array in after)
        assert np.abs(table.sums).max() <= finite.LARGEST
        if guard.skipped[0]:
            skipped += 1
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        else:
            safe += 1
    assert safe > 20 and (skipped > 0 or not gd_rule.adaptive)


@pytest.mark.plain
def test_sums_of_bounded_numbers_stop_growing():
    largest = F(np.finfo(F).max)
    assert largest + F(2.0**102) == largest
    assert F(2.0**127) + F(2.0**102) == F(2.0**127)


@pytest.mark.plain
def test_what_is_not_finite_is_replaced_and_found():
    batch = batch_of_one(np.arange(2), np.array([1, np.inf], F), 1)
    cleaned, odd = finite.clean(batch)
    assert odd.tolist() == [True] and cleaned.value.tolist() == [1, float(finite.LARGEST)]
    cleaned, odd = finite.clean(batch_of_one(np.arange(2), np.array([1, 2], F), np.nan))
    assert odd.tolist() == [True] and cleaned.weight.tolist() == [0]
    plain = batch_of_one(np.arange(2), np.array([1, 2], F), 1)
    assert finite.clean(plain)[0] is plain


@pytest.mark.parametrize("name", ["scalar", "oaa", "recall_tree", "log_multi", "cpt"])
def test_examples_without_features_are_no_reason_to_warn(name):
    with learner(name, noconstant=True) as model:
        assert model.learn_many("1 |\n2 | a\n1 |\n").warnings == ()
