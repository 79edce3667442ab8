"""What a learner saves is loaded, learns on and is saved again, whatever it learned from and with any options."""

import contextlib
import copy
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from command import learn, xclass
from streams import of_kind
from variants import AT_THE_END, BY_NAME, KINDS, VARIANTS, K, every_variant, learner

from xclass import checks, merge
from xclass.api import configuration, model_contents
from xclass.api.learner import Learner, _unpickled, load
from xclass.data import batch
from xclass.errors import ModelError, UsageError
from xclass.model import model_file
from xclass.options.declare import LARGEST_FLOAT, LARGEST_INT, Option, options_of
from xclass.reductions.core import base, label_lists
from xclass.shrinking import shrunk
from xclass.system import memory

HIGHEST_LABEL = {False: batch.HIGHEST_LABEL, True: label_lists.MOST_LABELS}  # whether labels are lists
WEIGHTS = ("1e-45", "1e-38", "1e-31", "1e-30", "1e-20", "1e15", "1.784e18", "1.9e19", "3e29", "3e38")
VALUES = ("1e-45", "1e-38", "1e-20", "1e15", "1e19", "3.4e38", "-3.4e38")
COUNTS = (2**53, 2**54, 2**62, 2.0**200)
EVERY = pytest.mark.parametrize("name", BY_NAME)
ALSO = {"cpt": {"rerank": True, "dense": ("rows:33",)}}  # words with rows of numbers
VARIANT = every_variant(more={name: [options] for name, options in ALSO.items()})

pytestmark = pytest.mark.filterwarnings("ignore::xclass.XclassWarning", "error::RuntimeWarning")


def ordinary(name: str, options: dict, n: int = 30) -> list[str]:
    lines = of_kind(KINDS[name], 1, K - 1, n).splitlines()  # which are classes with --indexing 0, too
    return list(map(checks.with_rows, lines)) if "dense" in options else lines


def with_weight(lines: list[str], weight: str) -> list[str]:
    return [f"{label} {weight} |{rest}" for label, _, rest in (line.partition(" |") for line in lines)]


def with_value(lines: list[str], value: str) -> list[str]:
    """Lines in which a known and a new feature, or every second number of a row, have this value."""
    changed = []
    for line in lines:
        head, bar, row = line.rpartition("|rows ")
        numbers = [word if i % 2 else f"{word.split(':')[0]}:{value}" for i, word in enumerate(row.split())]
        changed.append(f"{head}{bar}{' '.join(numbers)}" if bar else f"{line} |w p0_3:{value} new:{value}")
    return changed


def goes_on(model: Learner, lines: list[str]) -> None:
    """Learn, save, load, learn on, save and load again."""
    for _ in range(2):
        with model:
            model.learn_many(lines)
            model.end_pass()
            model.predict_many(lines)
            data = pickle.dumps(model)
        model = pickle.loads(data)
    model.close()


def in_turn(lines: list[str], changes: Sequence[Callable[[list[str]], list[str]]]) -> list[str]:
    """Lines to which the changes are made in turn."""
    return [changes[i % len(changes)]([line])[0] for i, line in enumerate(lines)]


@pytest.mark.sampled(3)
@VARIANT
def test_any_weights_and_values(name, options):
    lines, odd = ordinary(name, options, 30), ordinary(name, options, 40)
    weights = [partial(with_weight, weight=weight) for weight in WEIGHTS]
    values = [partial(with_value, value=value) for value in VALUES]
    mixed = in_turn(odd, weights)
    with_values = in_turn(in_turn(odd, values), weights[::3])
    small = with_weight(with_value(lines, "1e-20"), "1e-30")
    every = weights if os.environ.get("SLOW") else weights[2::3]
    for text in (*(change(lines) for change in every), mixed, small, lines + with_values, with_values + lines):
        goes_on(learner(name, **options), text)


@pytest.mark.parametrize("seed", [1, 10, 39])
@pytest.mark.parametrize("name", [name for name in BY_NAME if BY_NAME[name].dense != base.UNSUITED or name in ALSO])
def test_columns_rows_and_weights_of_any_size(name, seed):
    """Rows whose columns differ by 44 orders of magnitude, some heavy and far from where the heavy ones were before."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(300, 6)) * 10.0 ** rng.uniform(-30, 14, (1, 6)) * 10.0 ** rng.uniform(-5, 5, (300, 1))
    weights, labels = 10.0 ** rng.uniform(-30, 19, 300), rng.integers(1, 6, 300)
    y = [[label] for label in labels.tolist()] if BY_NAME[name].labels == "multilabel" else labels
    model = Learner(name, None if name == "scalar" else K, bits=12)
    for begin in range(0, 300, 50):
        part = slice(begin, begin + 50)
        model.learn_many(rows[part].astype(np.float32), y[part], sample_weight=weights[part])
        model.end_pass()
        model = pickle.loads(pickle.dumps(model))
        model.predict_many(rows.astype(np.float32))
    model.close()


def bounds(option: Option) -> list:
    """The least, the greatest and some other values of an option, or all of them."""
    if option.kind is bool:
        return [True]
    if option.choices:
        return list(option.choices)
    largest = {int: LARGEST_INT, float: LARGEST_FLOAT}.get(option.kind)
    if largest is None or option.flags[0] in ("-b", "--bit_precision"):
        return []
    low = -largest if option.minimum is None else option.minimum
    high = largest if option.maximum is None else option.maximum
    more = (1e-45, 1e-30, 1e30) if option.kind is float else (low + 1, 2**31, 2**53)
    return [*dict.fromkeys(option.kind(value) for value in (low, *more, high) if low <= value <= high)]


def options_to_try(name: str) -> Iterator[tuple[str, object]]:
    """Options and values; of those that all reductions have, each reduction tries one in four."""
    groups = configuration.option_groups()
    shared = [item for group in ("run", "parser", "features", "learner") for item in options_of(groups[group]).items()]
    if not os.environ.get("SLOW"):
        shared = shared[[*BY_NAME].index(name) % 4 :: 4]
    for field, option in [*shared, *options_of(groups[name]).items()]:
        if field not in (*BY_NAME, "predict_only_model", "vw_exact"):
            yield from ((field, value) for value in bounds(option))


@EVERY
def test_each_option_at_its_bounds(monkeypatch, name):
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)  # what takes more is refused
    lines = ordinary(name, {}, 20)
    for field, value in options_to_try(name):
        for others in [{}, *VARIANTS.get(name, [])]:  # of which some have another option that this one needs
            with contextlib.suppress(UsageError):
                model = learner(name, **{**others, field: value})
                try:
                    goes_on(model, lines)
                except Exception as error:
                    raise AssertionError(f"{others} {field}={value!r}: {type(error).__name__}: {error}") from error
                break


def test_texts_that_no_model_can_hold_are_refused(place):
    with pytest.raises(UsageError, match=r"quadratic: its values take [0-9,]+ bytes in a model, and all options at"):
        learner("oaa", quadratic=["ab"] * 300_000)
    (place / "d.jsonl").write_text('{"label": "a", "\\ud800": 1}\n{"label": "b", "\\ud800": 2}\n')
    result = xclass("-d", "d.jsonl", "-f", "m", "--quiet")
    assert result.status == 1 and not (place / "m").exists()
    assert "d.jsonl: a model cannot hold the names of its 1 columns: the text '\\ud800' has half a" in result.err


@EVERY
def test_classes_at_their_bounds(name):
    option = options_of(BY_NAME[name].options).get(name)
    if option is None or option.kind is not int:
        return
    lists = BY_NAME[name].labels == "multilabel"
    for k in (1, 2, 255, 256, 65536) if option.minimum else (None,):
        highest = (k or HIGHEST_LABEL[lists]) - lists
        rows = " |rows 0:1 5:1" if KINDS[name] == "rows" else ""
        lines = [f"{label} |w a{label}{rows}" for label in (highest, 0 if lists else 1, highest)]
        goes_on(learner(name, k, bits=18), lines)


@EVERY
def test_counts_and_sums_at_their_bounds(name):
    """A model that keeps the largest numbers that are allowed is loaded, or learns on and is loaded."""
    options, lines = ALSO.get(name, {}), ordinary(name, ALSO.get(name, {}), 20)
    with learner(name, **options) as model:
        model.learn_many(lines)
        model.end_pass()
        stored, facts, arrays = model_file.from_bytes(model_contents.to_bytes(model.core.contents()))
    loaded = 0
    for changed_facts, changed_arrays, what in with_counts(facts, arrays):
        try:
            model = _unpickled(model_file.to_bytes(stored, changed_facts, changed_arrays), False, False)
        except (ModelError, UsageError):
            continue
        loaded += 1
        try:
            goes_on(model, lines)
        except Exception as error:
            if "are not finite" not in str(error):  # means of such a model, which it refuses to learn
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert loaded


def with_counts(facts: dict, arrays: dict) -> Iterator[tuple[dict, dict, str]]:
    """The facts and arrays of a model, with a large number in the place of one, or of all of an array."""
    for count in COUNTS:
        for path in paths_of(facts):
            changed: Any = copy.deepcopy(facts)
            record = changed
            for key in path[:-1]:
                record = record[key]
            record[path[-1]] = type(record[path[-1]])(count)
            yield changed, arrays, f"{path}: {count}"
        for key, array in arrays.items():
            if array.size and array.dtype in ((np.int64,) if count == 2**62 else (np.int64, np.float64)):
                if array.dtype == np.int64 and count > 2**62:
                    continue
                for place in (slice(None), slice(-1, None)):
                    other = np.array(array)
                    other.reshape(-1)[place] = count
                    yield facts, {**arrays, key: other}, f"{key}: {count}"


def paths_of(record: dict) -> Iterator[tuple[str, ...]]:
    """The keys that lead to each number in a record of records."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from ((key, *path) for path in paths_of(value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (key,)


@pytest.mark.sampled(3)
@VARIANT
def test_models_are_shrunk_stripped_and_merged(place, name, options):
    lines = ordinary(name, options, 40)
    heavy = with_weight(lines, "1e17")
    for path, begun, part in (("a", "", heavy[:20]), ("b", "a", heavy[20:30]), ("c", "a", heavy[30:])):
        with load(begun) if begun else learner(name, **options) as model:
            model.learn_many(part)
            model.end_pass()
            model.save(path)
    with load("a") as whole:
        expected = whole.predict_many(lines).tolist()
    learn("-i", "a", "-t", "-f", "stripped", "--predict_only_model", "--quiet", stdin="")
    with load("stripped") as stripped:
        assert stripped.predict_many(lines).tolist() == expected
    if name not in AT_THE_END:  # whose models may have nothing to leave out
        small = shrunk("a", bits=16)
        model_contents.save("stripped", lambda: small.contents)
    with load("stripped") as less:
        found = less.predict_many(lines).tolist()
    assert len(found) == len(expected)
    if not BY_NAME[name].not_merged:
        with contextlib.suppress(ModelError):  # trees in which both have put new classes
            goes_on(merge(["b", "c"], base="a"), lines)
