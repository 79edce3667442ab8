"""Check that a reduction keeps what users of every reduction rely on; `check_reduction` is for authors of one.

A check is a function of a `Case`, a reduction with options. It fails by an AssertionError whose text says what the
reduction does and what it should do. The tests of the package call the same checks for each reduction and variant.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import pickle
import random
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .abilities import find
from .api import configuration, model_contents
from .api.learner import Learner
from .api.learner_core import LearnerCore
from .errors import UsageError, XclassError
from .model.stored_arrays import Streamed
from .options.declare import OptionGroup, options_of
from .reductions import registry
from .reductions.core import base
from .reductions.core.base import ReductionRecord
from .reductions.core.contract import BatchTask
from .reductions.core.spec import LearnerUse
from .system import thread_limit
from .system.printable import short_repr

K = 9  # classes of the streams
BITS = 12
ROWS = {"dense": ("rows:33",)}  # option for the rows of numbers that `with_rows` adds
LABELS = ("multiclass", "multilabel", "simple")
HEADINGS = ("Source", "Cost", "Differs")  # of the docstring of a reduction's module
Check = Callable[["Case"], None]
CHECKS: dict[str, Check] = {}


class Problem(NamedTuple):
    """Hold what a reduction does not keep."""

    check: str
    message: str


@dataclass(frozen=True)
class Case:
    """Hold a reduction with options by the names of their fields, and the examples to try it on."""

    record: ReductionRecord
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_simple(self) -> bool:
        return self.record.labels == "simple"

    @property
    def has_lists(self) -> bool:
        return self.record.labels == "multilabel"

    @property
    def takes_rows(self) -> bool:
        return self.record.dense == base.TAKEN

    def arguments(self, classes: int = K, **options: Any) -> tuple[str, int | None, dict[str, Any]]:
        """Return the name of the reduction, the number of classes, and options for a small table."""
        given = {"bits": BITS, **(ROWS if self.takes_rows else {}), **self.options, **options}
        return self.record.name, None if self.is_simple else classes, given

    def learner(self, classes: int = K, **options: Any) -> Learner:
        """Return a new learner with a small table."""
        name, number, given = self.arguments(classes, **options)
        return Learner(name, number, **given)

    def learned(self, lines: Sequence[str], **options: Any) -> Learner:
        """Return a learner that has learned from lines, to the end of the pass."""
        model = self.learner(**options)
        learn(model, lines)
        return model

    def lines(self, seed: int, n: int, **more: Any) -> list[str]:
        lines = stream(seed, n, labels=self.record.labels, **more)
        return list(map(with_rows, lines)) if self.takes_rows else lines


def stream(
    seed: int, n: int, *, labels: str = "multiclass", noise: float = 0.1, weights: Sequence[float] = (1, 0.5, 2, 0),
    unlabelled: float = 0.1,
) -> list[str]:  # fmt: skip
    """Return lines of K classes whose words mostly depend on the class, the same ones for the same seed.

    `labels` are those of the record: "simple" gives -1 and 1, and "multilabel" up to two labels from 0 on. `noise` is
    the probability that a word is that of another class, and `unlabelled` that a line has no label; importance weights
    are drawn from `weights`.
    """
    rng = random.Random(f"{seed} {n}")
    lines = []
    for _ in range(n):
        y = rng.randrange(K)
        own = sorted({y, rng.randrange(K)}) if labels == "multilabel" else [y]
        sources = [rng.randrange(K) if rng.random() < noise else c for c in own for _ in range(3)]
        words = " ".join(f"p{i % 3}_{(c * 7 + i % 3 * 3) % (K + i % 3 * 2)}" for i, c in enumerate(sources))
        label = {"simple": 1 if y % 2 else -1, "multilabel": ",".join(map(str, own))}.get(labels, y + 1)
        head = "" if rng.random() < unlabelled else f"{label} {rng.choice(weights):g} "
        lines.append(f"{head}|w {words} |n size:{rng.choice((0.5, 1, 2, -1.5, 3)):g}")
    return lines


def with_rows(line: str) -> str:
    """Return a line of VW text with a row of 33 numbers, which has a 1 for each word `p0_C`, `p1_C` or `p2_C`."""
    columns = sorted({(9 * int(place) + int(word)) % 33 for place, word in re.findall(r"\bp(\d)_(\d+)", line)})
    return f"{line} |rows {' '.join(f'{column}:1' for column in columns)}"


def learn(model: Learner, lines: Sequence[str]) -> list[float]:
    """Learn from lines and end the pass; return the predictions made before."""
    before = model.learn_many(lines).prediction.tolist() if len(lines) else []
    return [*before, *model.end_pass().prediction.tolist()]


def state(model: Learner) -> bytes:
    """Return the bytes of the model file that the learner would save."""
    return model_contents.to_bytes(model.core.contents())


def same(found: Any, expected: Any, what: str) -> None:
    """Raise AssertionError with a sentence if two results differ."""
    if found != expected:
        raise AssertionError(what)


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


# -- the record


def fault_of(record: ReductionRecord) -> str:
    """Return what is wrong in the fields of a record, so that no learner can be built from it, or nothing."""
    name, group = record.name, record.options
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        return f"the record's 'name' is {short_repr(name)}; give lower-case letters, digits and _, after a letter"
    if not (isinstance(group, type) and issubclass(group, OptionGroup)):
        return f"the record's 'options' is {short_repr(group)}; give a subclass of OptionGroup"
    groups = {of: options_of(one) for of, one in configuration.option_groups(()).items()}
    if name in groups or any(name in known for known in groups.values()):
        return f"the record's 'name' is {name!r}, which is an option of every reduction; give another one"
    own = options_of(group)
    if name not in own and name != "scalar":
        return f"the record's 'options' have no {name!r}, the number of classes; declare `{name}: int = option(...)`"
    for of, known in groups.items():
        for field_name, option in own.items():
            if known.get(field_name, option) != option:
                return f"the option {field_name!r} is one of the group {of!r}, too; give it another name"
    if record.labels not in LABELS:
        return f"the record's 'labels' is {short_repr(record.labels)}; give one of {', '.join(LABELS)}"
    for called in ("build", "resolve_defaults", "label_range", "check", "check_arrays"):
        if not callable(getattr(record, called)):
            return f"the record's {called!r} is {short_repr(getattr(record, called))}; give a function"
    return ""


def builds_a_learner(case: Case) -> None:
    """Raise AssertionError with a sentence if no learner can be built, or it does not give what is used of it."""
    fault = fault_of(case.record)
    assert not fault, fault
    config = configuration.configured(*case.arguments())
    built: object = case.record.build(configuration.spec_of(config))
    assert isinstance(built, base.Reduction), (
        f"the record's 'build' returns {short_repr(built)}; return a Learner of xclass.reductions.core.base"
    )
    with case.learner() as model:
        built = model.core.reduction
        stages = getattr(built, "stages", None)
        assert isinstance(stages, list) and stages, "the learner sets no list `stages` of functions of a BatchTask"
        built.stages = [*stages, _assert_results]
        learn(model, case.lines(1, 40))
        saved = built.saved()
        for name, array in saved.arrays.items():
            assert isinstance(array, (np.ndarray, Streamed)) and array.dtype.kind in "biuf", (
                f"`serialize` saves {short_repr(array)} with the name {name!r}; give arrays of numbers"
            )
        try:
            json.dumps(saved.facts, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"`serialize` saves facts that JSON cannot hold: {error}") from None


def _assert_results(task: BatchTask) -> None:
    for name in ("prediction", "loss"):
        found = getattr(task, name)
        good = isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == (task.batch.n,)
        assert good or (found is None and name == "loss"), (
            f"after the stages, `task.{name}` is {_shape(found)}; set it to float64[{task.batch.n}], a number for each "
            "example"
        )


def _shape(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else short_repr(value)


@check
def is_described(case: Case) -> None:
    record = case.record
    for name in ("title", "enabled") if case.is_simple else ("title", "summary", "enabled"):
        assert getattr(record, name), f"the record's {name!r} is empty"
    for ability in ("describe", "merge"):  # the second unless `not_merged` says why not
        module, found = f"{find.__package__}.{ability}.{record.name}", find.ability(record, ability)
        cure = ", or say in `not_merged` of the record why models cannot be merged" if ability == "merge" else ""
        assert found is not None or (cure and record.not_merged), f"there is no module {module}; write it{cure}"
        assert ability == "merge" or hasattr(found, "explain"), f"the module {module} lacks `explain`"
    text = inspect.getdoc(sys.modules[record.build.__module__]) or ""
    lacking = [heading for heading in HEADINGS if not re.search(rf"^{heading}\s", text, re.MULTILINE)]
    assert not lacking, f"the docstring of {record.build.__module__} has no line {', '.join(lacking)}"


# -- learning


@check
def learns_to_tell_classes_apart(case: Case) -> None:
    lines = case.lines(16, 1500, noise=0, weights=(1,), unlabelled=0)
    with case.learned(lines) as model:
        predictions = model.predict_many([line[line.index("|") :] for line in lines])
    if case.is_simple:
        predictions = np.where(predictions >= (0.5 if "link" in case.options else 0), 1, -1)
    wrong = float(np.mean([line.split()[0] != _written(p) for line, p in zip(lines, predictions, strict=True)]))
    allowed = 0.35 if "randomized_routing" in case.options else 0.1
    assert wrong < allowed, f"{wrong:.0%} of the predictions are wrong after 1500 examples without noise"


def _written(prediction: Any) -> str:
    """Return a prediction as a label in VW text."""
    return ",".join(map(str, prediction)) if isinstance(prediction, list) else str(prediction)


@check
def learns_the_same_again(case: Case) -> None:
    lines = case.lines(4, 100)
    with case.learned(lines) as model, case.learned(lines) as again:
        same(state(again), state(model), "learning the same examples again gives another model: is anything unseeded?")
        config = pickle.loads(pickle.dumps(model.core.config))
        with Learner.of(LearnerCore(config.with_values({}, LearnerUse(scores=True)))) as third:
            learn(third, lines)
            same(state(third), state(model), "a learner whose scores are wanted, as by -r, learns another model")


@check
def size_of_batches_does_not_matter(case: Case) -> None:
    lines = case.lines(1, 90)
    outcomes = []
    for size in (len(lines), 7, 1):
        with case.learner() as model:
            found: list[float] = []
            for first in range(0, len(lines), size):
                found += model.learn_many(lines[first : first + size]).prediction.tolist()
            outcomes.append(([*found, *model.end_pass().prediction.tolist()], state(model)))
    same(outcomes[1:], outcomes[:1] * 2, "batches of 90, 7 and 1 examples give different predictions or models")


@check
def number_of_threads_does_not_matter(case: Case) -> None:
    lines = case.lines(3, 700)
    outcomes = []
    for threads in (1, 3):
        with thread_limit.limited(threads), case.learned(lines) as model:
            outcomes.append((model.predict_many(lines).tolist(), state(model)))
    same(outcomes[1], outcomes[0], "3 threads give another model or other predictions than 1")


@check
def an_empty_batch_changes_nothing(case: Case) -> None:
    lines = case.lines(1, 60)
    with case.learner() as model, case.learned(lines) as expected:
        for compiles in model.core.reduction.warm_ups(True).values() if not model.core.reduction.awaited else ():
            compiles()
        learn(model, lines)
        same(state(model), state(expected), "a batch without examples, as `warm_ups` passes, changes what is learned")


@check
def examples_without_weight_or_label_teach_nothing(case: Case) -> None:
    # as in VW, a weight of 0 draws classes and counts in a tree, and a final has weights of its own
    weights = (1, 2) if {"oaa_subsample", "ect_play", "lom_rules"} & set(case.options) else (1, 0, 2)
    lines = case.lines(12, 150, weights=weights, unlabelled=0.2)
    bare = [line for line in lines if not line.startswith("|") and line.split()[1] != "0"]
    with case.learned(lines) as model, case.learned(bare) as expected:
        found, wanted = model.core.contents(), expected.core.contents()
        assert found.learner == wanted.learner, "examples without a label or weight change `facts`"
        for name, array in wanted.arrays.items():
            assert np.array_equal(array, found.arrays[name], equal_nan=array.dtype.kind == "f"), (
                f"examples without a label or weight change the array {name!r}: learn only where `task.learned()` says"
            )


@check
def examples_without_features_do_no_harm(case: Case) -> None:
    odd = ["1 |", "|", "1 |w", "-1 |" if case.is_simple else "2 |"]
    for noconstant in (False, True):
        with case.learner(noconstant=noconstant) as model:
            found = learn(model, odd)
            assert case.has_lists or np.isfinite(found).all(), f"predictions of {odd} are not finite"
            assert_finite(model)


@check
def numbers_stay_finite(case: Case) -> None:
    rng = random.Random(1)
    lines = case.lines(2, 60)
    for at in range(0, 120, 3):
        value, weight = rng.choice(("3.4e38", "-3.4e38", "1e-45", "1e20", "1e-20")), rng.choice(("1", "1e30", "1e-45"))
        lines.insert(at, f"1 {weight} |w p0_3:{value} new:{rng.choice(('1e15', '-1e30'))}")
    with case.learned(lines) as model:
        found = model.predict_many(lines)
        assert case.has_lists or np.isfinite(found).all(), "predictions are not finite after values of 1e38"
        assert_finite(model)


def assert_finite(model: Learner) -> None:
    """Raise AssertionError if an array of the model holds infinity or NaN."""
    for name, array in model.core.contents().arrays.items():
        if array.dtype.kind == "f":
            assert np.isfinite(np.asarray(array)).all(), f"the array {name!r} holds infinity or NaN"


@check
def classes_that_do_not_occur_are_not_predicted(case: Case) -> None:
    if case.is_simple:
        return
    lines = [
        line for line in case.lines(14, 300, noise=0, unlabelled=0) if not {"4", "7"} & {*line.split()[0].split(",")}
    ]
    with case.learned(lines) as model:
        answers = {label for found in model.predict_many(lines) for label in (found if case.has_lists else [found])}
    assert not answers & {4, 7}, f"the answers {sorted(answers & {4, 7})} were never learned"
    label: Any = 0 if case.has_lists else 1
    one = [f"{label} |w a", f"{label} |w b", f"{label} 2.0 |w a b"]
    if not case.has_lists:  # an example without known features may have no label
        one.append("|w c")
    with case.learner(1) as model:
        learn(model, one * 3)
        found = model.predict_many(one).tolist()
        same(found, [[label] if case.has_lists else label] * len(one), "a learner of one class does not answer it")


# -- models


@check
def a_model_predicts_like_its_learner(case: Case) -> None:
    test = case.lines(9, 60)
    with case.learned(case.lines(8, 100)) as model:
        before, expected = state(model), model.predict_many(test).tolist()
        same(state(model), before, "predicting changes the model")
        blind = [line[line.index("|") :] for line in test]
        same(model.predict_many(blind).tolist(), expected, "predictions depend on the labels of the examples")
        turned = model.predict_many(test[::-1]).tolist()[::-1]
        same(turned, expected, "predictions depend on the order of the examples")
        with pickle.loads(pickle.dumps(model)) as loaded:
            same(state(loaded), before, "a model that is loaded and saved again has other bytes: see `serialize`")
            same(loaded.predict_many(test).tolist(), expected, "a loaded model predicts otherwise: see `serialize`")
    contents = model_contents.from_bytes(before)
    use = LearnerUse(loaded=True, testing=True, weights_only=True)
    config = configuration.of_model("model", contents.options, use=use)
    with Learner.of(LearnerCore(config, contents)) as loaded:
        same(loaded.predict_many(test).tolist(), expected, "with what -t loads of a model, predictions differ")


@check
def a_loaded_model_learns_on(case: Case) -> None:
    first, second = case.lines(6, 70), case.lines(7, 50)
    with case.learner() as whole, case.learner() as part:
        if case.record.learns_at_end:
            return  # it goes on with the new examples alone
        expected = learn(whole, first) + learn(whole, second)
        found = learn(part, first)
        with pickle.loads(pickle.dumps(part)) as loaded:
            same(found + learn(loaded, second), expected, "a loaded model learns otherwise: see `serialize`")
            same(state(loaded), state(whole), "a loaded model that learned on has other bytes than without the break")


@check
def a_model_for_predictions_refuses_to_learn(case: Case) -> None:
    lines = case.lines(3, 60)
    with case.learned(lines) as model:
        expected = model.predict_many(lines).tolist()
    with case.learned(lines, predict_only_model=True) as model, pickle.loads(pickle.dumps(model)) as loaded:
        same(loaded.predict_many(lines).tolist(), expected, "with --predict_only_model predictions differ")
        with contextlib.suppress(UsageError):
            loaded.learn_many(lines)
            raise AssertionError("a model of --predict_only_model learns")


@check
def threads_may_share_a_learner(case: Case) -> None:
    lines = case.lines(1, 80)
    with case.learned(lines) as model, ThreadPoolExecutor(4) as pool:
        expected = model.predict_many(lines).tolist()
        found = [future.result() for future in [pool.submit(model.predict_many, lines) for _ in range(8)]]
    same([part.tolist() for part in found], [expected] * 8, "threads that predict at once get other predictions")


# -- what is said about predictions


@check
def probabilities_sum_to_one(case: Case) -> None:
    if not case.record.probabilities:
        return
    test = case.lines(5, 40)
    with case.learned(case.lines(4, 300)) as model:
        labels, p = model.predict_many(test, k=3)
        best, found = labels[:, 0].tolist(), model.predict_many(test).tolist()
    if case.has_lists:  # whose probabilities have no sum
        found = [y if y in chosen or not chosen else chosen for y, chosen in zip(best, found, strict=True)]
    same(best, found, "the most probable class is not the prediction")
    assert (p >= 0).all() and (p <= 1).all(), "a probability is not between 0 and 1"
    assert case.has_lists or (p.sum(axis=1) < 1 + 1e-5).all(), "probabilities sum to more than 1"


@check
def explanations_sum_to_the_scores(case: Case) -> None:
    with case.learned(case.lines(1, 300)) as model:
        before = state(model)
        for line in case.lines(2, 12):
            line = line[line.index("|") :]
            explained: Any = model.explain(line, k=3)
            prediction: Any = model.predict(line, k=1)[0][0] if case.has_lists else model.predict(line)
            assert np.isclose(explained.prediction, prediction, rtol=1e-5, atol=1e-6), (
                f"the explanation is of {explained.prediction}, but the prediction is {prediction}"
            )
            assert_sums(explained)
        same(state(model), before, "explaining changes the model")


def assert_sums(explained: Any) -> None:
    """Raise AssertionError if shares do not sum to their score, or the formula does not give the probability."""
    for of_class in explained.classes:
        order = [(share.feature < 0, -abs(share.share)) for share in of_class.shares]
        assert order == sorted(order), f"the largest feature of class {of_class.label} is not the first"
        sums = [(turn.score, [share.share for share in turn.shares]) for turn in (of_class, *of_class.path)]
        summed = [(of_class.score, of_class.parts), *((share.share, share.parts) for share in of_class.shares)]
        sums += [(score, [*parts.values()]) for score, parts in summed if parts]
        for score, values in sums:
            total, size = (math.fsum(map(by, values)) for by in (float, abs))
            close = score is None or math.isclose(total, score, rel_tol=1e-5, abs_tol=1e-5 * size + 1e-6)
            assert close, f"the shares of class {of_class.label} sum to {total:g}, but they explain {score:g}"
        if explained.formula and of_class.score is not None:
            names = {"exp": math.exp, "min": min, "max": max, "score": of_class.score, **of_class.parts}
            p = eval(explained.formula, names)
            close = math.isclose(p, of_class.probability, rel_tol=1e-4, abs_tol=1e-6)
            assert close, f"{explained.formula} is {p:g} for class {of_class.label}, not {of_class.probability:g}"


@contextlib.contextmanager
def registered(record: ReductionRecord) -> Iterator[None]:
    """Put a record into the list of reductions, in the place of another of its name, while a block runs."""
    before: Any = registry.REDUCTIONS
    registry.REDUCTIONS = (*(other for other in before if other.name != record.name), record)
    try:
        yield
    finally:
        registry.REDUCTIONS = before


def check_reduction(reduction: str | ReductionRecord, **options: Any) -> list[Problem]:
    """Check whether a reduction keeps what users of every reduction rely on.

    Parameters
    ----------
    reduction : str or Reduction
        Name of a reduction, or the record of one that need not be in the list of the package.
    **options
        Options with which it is checked, as for `Learner`.

    Returns
    -------
    list of Problem
        What it does not keep: pairs of the name of a check and a message. Empty if all is well.

    Examples
    --------
    >>> import xclass
    >>> xclass.check_reduction("oaa")
    []
    """
    if not __debug__:
        raise UsageError("the checks are assert statements, which Python leaves out with -O; start it without -O")
    if not isinstance(reduction, ReductionRecord):
        known = {record.name: record for record in registry.REDUCTIONS}
        if not isinstance(reduction, str) or reduction not in known:
            raise UsageError(
                f"{short_repr(reduction)} is not a reduction; give one of {', '.join(known)}, or the record of one, a "
                "`ReductionRecord`, which its module calls REDUCTION"
            )
        reduction = known[reduction]
    case = Case(reduction, options)
    with registered(reduction), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _problem(builds_a_learner, case)  # without a learner, each other check says the same
        checks = [] if found else CHECKS.values()
        return [problem for problem in (found, *(_problem(one, case) for one in checks)) if problem]


def _problem(function: Check, case: Case) -> Problem | None:
    """Return what a check says about a reduction, which may raise anything, and where; None if all is well."""
    try:
        function(case)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, AssertionError) and frames[-1].filename == __file__:
            return Problem(function.__name__, str(error))
        module = sys.modules.get(getattr(case.record.build, "__module__", ""))
        own = [frame for frame in frames if frame.filename == getattr(module, "__file__", None)]
        own = own or ([] if isinstance(error, XclassError) else frames)
        place = "".join(f", raised in {frame.name} ({frame.filename}:{frame.lineno})" for frame in own[-1:])
        return Problem(function.__name__, f"{type(error).__name__}: {error}{place}")
    return None
