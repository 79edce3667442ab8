"""Crafted models: what a learner saved, with a few changes of structure, under right checksums.

A case is a model to start from, changes, and a use. Changes are drawn by hypothesis from what the model holds: its
options and facts by name, its arrays by name, length and type. They are small records that are applied in order, so
that a case can be simplified by leaving one out.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from scripts.fuzzing.draw import drawn, edit, weighted
from scripts.fuzzing.model_bytes import RAW, packed
from scripts.fuzzing.runs import ACCEPTED, Bench, Outcome, Part, wrong
from scripts.fuzzing.seeds import CLASSES, DATA, MODELS, SHRUNK
from xclass.cli import command as cli
from xclass.cli import help_text
from xclass.model import model_file, model_header

MODEL = "evil.model"
FILES = (
    "victim.txt", "new.txt", "sub/new", ".bashrc", "classes.vw", "stdout", "/dev/null", "/dev/full", "out/asked",
    "home/.profile", MODEL,
)  # fmt: skip
USES = {
    "predict": "-t -p out/p", "scores": "-t -r out/r", "top_k": "-t --top_k 3 -p out/p",
    "probabilities": "-t --probabilities -p out/p", "calibration": "-t --calibration out/c --perplexity",
    "print_tree": "-t --no_stdin --print_tree out/t --dot_tree out/d", "readable": "-t --readable_model out/txt",
    "invert": "-t --invert_hash out/txt", "audit": "-t --audit --examples 6", "loud": "-t",
    "explain": "-t --explain 3 --explain_file out/e.json --examples 6",
    "learn": "-f out/m -p out/p", "learn twice": "-f out/m --passes 2 --holdout_period 4",
    "go on": "-f out/m --preserve_performance_counters", "only predict": "-f out/m --predict_only_model",
    "checkpoint": "-f out/m --checkpoint 20", "first": "-f out/m --resume first", "save_tree": "-t --save_tree out/t",
    "oaa scores": "-t --scores -p out/p", "exact": "-t --exact -p out/p",
    "losses": "-t --cpt_report losses -p out/p", "print": "-f out/m --print_tree out/t",
    "readable learn": "-f out/m --readable_model out/txt",
    "shrink": "-f out/m --bits 8", "shrink more": "-f out/m --keep 0.5", "merge": f"-f out/m {MODEL}",
    "report": "--json out/r",
}  # fmt: skip


class Case(NamedTuple):
    """A crafted model and what is done with it."""

    seed: str
    changes: tuple[tuple, ...]
    use: str


class Contents(NamedTuple):
    """A model as a learner saved it."""

    options: dict[str, Any]
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Models(Part):
    """The part `models` of the campaign."""

    name = "models"

    def __init__(self, only: str = "") -> None:
        super().__init__()
        self.originals: dict[str, Contents] = {}
        self._names = [name for name in MODELS if re.search(only, name)]
        self._uses: dict[str, list[str]] = {}

    def prepare(self, bench: Bench) -> None:
        for name in self._names:
            data, options = MODELS[name]
            learn(bench, "-d", data, *options.split(), "-f", "out/m", "--quiet")
            if name.endswith(SHRUNK):
                bench.xclass("shrink", "out/m", "-f", "out/s", "--bits", "8", "--quiet")
            saved = model_file.load("out/s" if name.endswith(SHRUNK) else "out/m")
            self.originals[name] = Contents(saved.options, saved.facts, {n: a.copy() for n, a in saved.arrays.items()})
            bench.put(MODEL, packed(*self.originals[name]))
            reduction = name.split()[0]
            if reduction not in self._uses:
                self._uses[reduction] = [use for use in USES if self._fits(name, use, bench)]
            for use in ("predict", "learn"):  # load what they need
                self._fits(name, use, bench)
        self._cases = {name: self._case(name) for name in self._names}

    def _fits(self, name: str, use: str, bench: Bench) -> bool:
        """Return whether the reduction of a model has a use."""
        bench.reset()
        bench.put(MODEL, packed(*self.originals[name]))
        return bench.xclass(*self.words(Case(name, (), use))).status == 0

    def cases(self, seed: int, n: int) -> list[Case]:
        return drawn(st.sampled_from(self._names).flatmap(self._cases.__getitem__), n, seed)

    def _case(self, name: str) -> st.SearchStrategy[Case]:
        change = changes_of(name, self.originals)
        few = weighted((3, st.lists(change, min_size=1, max_size=1)), (1, st.lists(change, min_size=2, max_size=4)))
        return st.builds(Case, st.just(name), few.map(tuple), st.sampled_from(self._uses[name.split()[0]]))

    def group(self, case: Case) -> str:
        return case.seed.split()[0]

    def run(self, case: Case, bench: Bench) -> Outcome:
        model = self.crafted(case)
        content = packed(*model, next((change[1] for change in case.changes if change[0] == "raw"), ""))
        bench.put(MODEL, content)
        finite = all(np.isfinite(a).all() for a in model.arrays.values() if a.dtype.kind == "f")
        result = bench.xclass(*self.words(case))
        outcome = bench.judge(result, len(content))
        if outcome.kind != ACCEPTED or "-f out/m" not in USES[case.use]:
            return outcome
        if finite and (name := not_finite("out/m")):
            return Outcome("non-finite model", f"{name} is not finite", f"{case.seed.split()[0]} {name.split('.')[-1]}")
        again = bench.xclass("-t", "-i", "out/m", "-d", MODELS[case.seed][0], "--quiet")
        if again.status != 0:
            if again.trace:
                return bench.judge(again)
            return wrong(f"what it saved is refused: {again.err}", "a saved model is refused: " + again.err[:60])
        return outcome

    def words(self, case: Case) -> tuple[str, ...]:
        words = ["-i", MODEL, *USES[case.use].split()]
        subcommand = case.use.split()[0]
        if subcommand in ("shrink", "merge"):
            return (subcommand, MODEL, *words[2:], "--quiet")
        if subcommand == "report":
            return (subcommand, *words, "-d", MODELS[case.seed][0])
        if "--no_stdin" not in words:
            words += ["-d", MODELS[case.seed][0]]
        return (*words, *(() if case.use == "loud" else ("--quiet",)))

    def smaller(self, case: Case) -> Iterator[Case]:
        yield from super().smaller(case)
        for use in ("predict", "learn"):
            if list(USES).index(use) < list(USES).index(case.use):
                yield case._replace(use=use)
        for i, change in enumerate(case.changes):
            for other in _simpler(change):
                yield case._replace(changes=(*case.changes[:i], other, *case.changes[i + 1 :]))

    def crafted(self, case: Case) -> Contents:
        """Return what the case's file holds."""
        model = copy.deepcopy(self.originals[case.seed])
        with np.errstate(all="ignore"):
            for change in case.changes:
                apply(change, model, self.originals)
        return model

    def reproduction(self, case: Case) -> dict[str, bytes]:
        raw = next((change[1] for change in case.changes if change[0] == "raw"), "")
        return {MODEL: packed(*self.crafted(case), raw), MODELS[case.seed][0]: DATA[MODELS[case.seed][0]]}


def learn(bench: Bench, *words: str) -> None:
    """Run a command that has to end well."""
    bench.reset()
    result = bench.xclass(*words)
    if result.status != 0:
        raise RuntimeError(f"xclass {' '.join(words)}: {result.err}{result.trace}")


def not_finite(path: str) -> str:
    """Return the name of an array of a model that has a number that is not finite, empty if there is none."""
    arrays = model_file.load(path).arrays
    return next((n for n, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a).all()), "")


# -- drawing changes ---------------------------------------------------------------------------------------------


DECLARED = {  # every option by name
    name: option for section in help_text.sections(*cli.option_groups()) for name, option in section.options.items()
}
INTEGERS = (
    -1, 0, 1, 2, 3, 7, 8, 9, CLASSES - 1, CLASSES, CLASSES + 1, 63, 64, 65, 255, 256, 1000, 2**15, 2**16, 10**6, 10**9,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2, -7, -(2**31),
    -(2**63), -(2**64), 10**30,
)  # fmt: skip
REALS = (  # as text
    "0", "-0.0", "0.5", "1.5", "1", "-1", "10", "1e-300", "1e-45", "1e-10", "1e10", "1e30", "1e38", "3e38", "3.5e38",
    "1e39", "-1e38", "1e300", "1e400", "nan", "inf", "-inf",
)  # fmt: skip
TEXTS = (
    "", "x", "1", "-1", "1.5", "nan", "inf", "vw", "all", "odd", "\0", "\ud800", "é", "\x1b[31mred", "a,b", ",",
    "name0," * 20, "a" * 3000, "@victim.txt", "%s%n", "|", "a b", "\n", "true", "None", "[]",
)  # fmt: skip
anything = st.one_of(
    st.sampled_from(INTEGERS),
    st.sampled_from(REALS).map(float),
    st.sampled_from(TEXTS),
    st.sampled_from(FILES),
    st.sampled_from(
        [None, True, False, {}, [], [[]], [1], ["a"], ["ab", 5], {"a": 1}, ["x"] * 300, [None], [True, 2.5]]
    ),
    st.integers(-20, 40),
    st.floats(width=32),
    st.text(max_size=6),
)


def values_for(name: str, now: Any) -> st.SearchStrategy[Any]:
    """Return values for an option or fact: some like the one it has, some allowed, some at the bounds, and any."""
    near: list[Any] = [now, [now], str(now)]
    if isinstance(now, bool):
        near += [not now, int(now)]
    elif isinstance(now, (int, float)):
        near += [now + 1, now - 1, now * 2, now * 1000, -now, float(now), now + 0.5]
    elif isinstance(now, str):
        near += [now + "x", now[:-1], now * 2, now.upper()]
    option = DECLARED.get(name)
    if option is not None:
        near += list(option.choices or ())
        for bound in (option.minimum, option.maximum):
            near += [] if bound is None else [bound, bound - 1, bound + 1, int(bound)]
        if option.metavar == "FILE":
            near += list(FILES)
    return st.sampled_from(near) | anything


def paths_of(facts: Any, prefix: tuple = ()) -> list[tuple]:
    """Return the way to every value in nested records."""
    paths = []
    for key, value in facts.items():
        paths.append((*prefix, key))
        if isinstance(value, dict):
            paths += paths_of(value, (*prefix, key))
    return paths


def changes_of(name: str, originals: dict[str, Contents]) -> st.SearchStrategy[tuple]:
    """Return the changes that can be made to a model."""
    options, facts, arrays = originals[name]
    other = ["quiet", "testonly", "unknown", "readable_model", "predictions", "final_regressor", "data", "cache_file"]
    keys = st.sampled_from([*options, *options]) | st.sampled_from(sorted(DECLARED)) | st.sampled_from(other)
    option = keys.flatmap(lambda key: edit("option", st.just(key), values_for(key, options.get(key))))
    ways = paths_of(facts)
    deep = [way for way in ways if way[0] == "learner"] or ways

    def value_at(way):
        value: Any = facts
        for key in way:
            value = value[key]
        return value

    fact = st.sampled_from(deep + ways).flatmap(lambda w: edit("fact", st.just(w), values_for(w[-1], value_at(w))))
    dropped = st.one_of(
        edit("no option", st.sampled_from(sorted(options))),
        edit("no fact", st.sampled_from(ways)),
        edit("more facts", st.sampled_from(deep), anything),
    )
    raw = edit("raw", st.sampled_from(RAW))
    names = sorted(arrays)
    if not names:
        return option | fact | dropped | raw
    some = st.sampled_from(names)
    lengths = sorted({len(a) for a in arrays.values() if a.ndim} | {CLASSES})
    where = st.one_of(
        st.just(("all",)),
        edit("one", st.floats(0, 1)),
        edit("one", st.sampled_from([0.0, 1.0])),
        edit("span", st.floats(0, 1), st.floats(0, 1)),
        edit("some", st.integers(0, 99), st.sampled_from([0.02, 0.1, 0.5])),
        edit("where", st.sampled_from([0, 1, -1, 2, 3, 8])),
    )
    numbers = st.one_of(
        st.sampled_from(INTEGERS),
        st.sampled_from(REALS).map(float),
        st.sampled_from([n + d for n in lengths for d in (-1, 0, 1)]),
        st.integers(0, 2 * max(lengths)),
    )
    seeds = st.integers(0, 9999)
    array = st.one_of(
        edit("set", some, where, numbers),
        edit("set", some, where, numbers),
        edit("add", some, where, st.sampled_from([1, -1, 2, 8, 1000, -1000, 2**31, 2**62])),
        edit("noise", some, where, seeds),
        edit("mix", some, where, seeds),
        edit("bits", some, seeds, st.sampled_from([1, 2, 10])),
        edit("exchange", some, st.floats(0, 1), st.floats(0, 1)),
        edit("row", some, st.floats(0, 1), st.floats(0, 1)),
        edit("order", some, st.sampled_from(["reverse", "sort", "roll", "ramp", "fall", "even"])),
        edit("collide", some, st.sampled_from([1, 4, 10, 16, 20, 32, 48])),
    )
    size = st.one_of(
        edit("cut", some, st.floats(0, 1)),
        edit("cut", some, st.sampled_from([0.0, 1.0])),
        edit("tile", some, st.sampled_from([2, 2, 2, 3, 64, 2000])),
        edit("shape", some, st.sampled_from(["flat", "more", "point", "column", "wide", "turned", "nothing"])),
        edit("type", some, st.sampled_from(sorted(model_header.DTYPES)), st.booleans()),
        edit("cut all", st.sampled_from(lengths), st.floats(0, 1)),
        edit("cut all", st.sampled_from(lengths), st.floats(0, 1)),
        edit("tile all", st.sampled_from(lengths), st.sampled_from([2, 3, 50])),
        edit("mix all", st.sampled_from(lengths), seeds),
        edit("row all", st.sampled_from(lengths), st.floats(0, 1), st.floats(0, 1)),
    )
    whole = st.one_of(
        edit("copy", some, some),
        edit("swap", some, some),
        edit("drop", some),
        edit(
            "rename",
            some,
            st.sampled_from(
                ["x", "weights.x", "tree.9.left", "", "é", "../x", "named_labels", "weights.index", "weights.in_use"]
            ),
        ),
        edit("once", some, st.booleans()),
        edit("graft", some, st.sampled_from(sorted(originals))),
        edit("graft all", st.sampled_from(sorted(originals))),
    )
    return weighted((3, option), (3, fact), (1, dropped), (1, raw), (12, array), (5, size), (2, whole))


def _simpler(change: tuple) -> Iterator[tuple]:
    """Yield simpler changes of the same kind."""
    for i, part in enumerate(change):
        if isinstance(part, tuple) and part and part[0] in ("some", "span", "where", "all"):
            for place in (0.0, 1.0, 0.5):
                yield (*change[:i], ("one", place), *change[i + 1 :])


# -- making changes ----------------------------------------------------------------------------------------------


def apply(change: tuple, model: Contents, others: dict[str, Contents]) -> None:
    """Make one change to a model; what an earlier change has taken away stays as it is."""
    kind, *args = change
    options, facts, arrays = model
    if kind == "option":
        options[args[0]] = copy.deepcopy(args[1])
    elif kind == "no option":
        options.pop(args[0], None)
    elif kind in ("fact", "no fact", "more facts"):
        *way, last = args[0]
        record: Any = facts
        for key in way:
            record = record.get(key) if isinstance(record, dict) else None
        if not isinstance(record, dict):
            return
        if kind == "fact":
            record[last] = copy.deepcopy(args[1])
        elif kind == "no fact":
            record.pop(last, None)
        else:
            record["more"] = args[1]
    elif kind.endswith(" all") and kind != "graft all":
        for name in [n for n, a in arrays.items() if a.ndim and len(a) == args[0]]:
            _change_array(
                (kind.removesuffix(" all"), name, *args[1:]) if kind != "mix all" else ("mix rows", name, *args[1:]),
                arrays,
            )
    elif kind == "graft all":
        for name in set(arrays) & set(others[args[0]].arrays):
            arrays[name] = others[args[0]].arrays[name].copy()
    elif kind == "graft":
        donor = others[args[1]].arrays
        if args[0] in donor:
            arrays[args[0]] = donor[args[0]].copy()
    elif kind in ("copy", "swap"):
        first, second = args
        if first in arrays and second in arrays:
            a, b = arrays[first], arrays[second]
            arrays[first] = b.copy()
            if kind == "swap":
                arrays[second] = a
    elif kind == "rename":
        if args[0] in arrays:
            arrays[args[1]] = arrays.pop(args[0])
    elif kind == "once":
        if args[0] in arrays:
            arrays[f"{args[0]}.each"] = arrays.pop(args[0]).reshape(-1)[:1]
            if args[1]:
                arrays[f"{args[0].rpartition('.')[0]}.in_use"] = np.full(1 << 16, 255, np.uint8)
    elif kind == "drop":
        arrays.pop(args[0], None)
    elif kind != "raw" and args[0] in arrays:
        _change_array(change, arrays)


def _as(value: float | int, dtype: np.dtype) -> Any:
    """Return a number as an array's type holds it."""
    if dtype.kind == "f":
        return np.float64(value).astype(dtype) if abs(value) < 1e300 or value != value else dtype.type(value)
    if dtype.kind == "b":
        return bool(value)
    if value != value or value in (float("inf"), float("-inf")):
        value = -1
    return np.array(int(value) % (1 << (8 * dtype.itemsize)), f"u{dtype.itemsize}").view(dtype)[()]


def _chosen(flat: np.ndarray, where: tuple) -> Any:
    """Return an index of the elements that are meant."""
    n = len(flat)
    if where[0] == "all":
        return slice(None)
    if where[0] == "one":
        return slice(i := min(n - 1, int(where[1] * n)), i + 1)
    if where[0] == "span":
        low, high = sorted((int(where[1] * n), int(where[2] * n)))
        return slice(low, high + 1)
    if where[0] == "some":
        return np.random.default_rng(where[1]).random(n) < where[2]
    return flat == _as(where[1], flat.dtype)


def _change_array(change: tuple, arrays: dict[str, np.ndarray]) -> None:
    """Make one change to one array."""
    kind, name, *args = change
    a = arrays[name] = np.ascontiguousarray(arrays[name])
    flat = a.reshape(-1)
    n = len(flat)
    rows = len(a) if a.ndim else 0
    if kind in ("set", "add", "noise", "mix", "bits", "exchange", "order", "collide") and n:
        _change_items(kind, flat, args)
    elif kind in ("row", "mix rows") and rows:
        if kind == "row":
            a[min(rows - 1, int(args[0] * rows))] = a[min(rows - 1, int(args[1] * rows))]
        else:
            arrays[name] = a[np.random.default_rng(args[0]).permutation(rows)]
    elif kind == "cut" and rows:
        arrays[name] = a[: int(args[0] * rows)] if args[0] != 1.0 else a[: rows - 1]
    elif kind == "tile" and rows:
        arrays[name] = np.concatenate([a] * min(args[0], 1 + (4 << 20) // max(1, a.nbytes)))
    elif kind == "shape":
        shapes = {
            "flat": (-1,), "more": (*a.shape, 1), "column": (-1, 1), "wide": (1, -1), "turned": a.shape[::-1],
            "point": (), "nothing": (0, 3),
        }  # fmt: skip
        shape = shapes[args[0]]
        if args[0] in ("point", "nothing"):
            arrays[name] = flat[:1].reshape(()) if args[0] == "point" and n else np.zeros(shape, a.dtype)
        elif n or -1 not in shape:
            arrays[name] = a.T.copy() if args[0] == "turned" else a.reshape(shape)
    elif kind == "type":
        dtype = model_header.DTYPES[args[0]]
        same_bytes = args[1] and a.ndim and (a.shape[-1] * a.itemsize) % dtype.itemsize == 0 and dtype.kind != "b"
        arrays[name] = a.view(dtype) if same_bytes else a.astype(dtype)


def _change_items(kind: str, flat: np.ndarray, args: list) -> None:
    n, dtype = len(flat), flat.dtype
    if kind == "set":
        flat[_chosen(flat, args[0])] = _as(args[1], dtype)
    elif kind == "add" and dtype.kind != "b":
        flat[_chosen(flat, args[0])] += _as(args[1], dtype)
    elif kind == "noise":
        rng, at = np.random.default_rng(args[1]), _chosen(flat, args[0])
        low, high = (0, 1) if dtype.kind == "b" else (flat.min(), flat.max())
        if dtype.kind == "f":
            flat[at] = rng.normal(size=n)[at]
        else:
            flat[at] = np.array(
                [_as(v, dtype) for v in rng.integers(min(int(low), 2**62), min(int(high), 2**62) + 2, n)]
            )[at]
    elif kind == "mix":
        at = _chosen(flat, args[0])
        flat[at] = np.random.default_rng(args[1]).permutation(flat[at])
    elif kind == "bits" and dtype.kind != "b":
        rng = np.random.default_rng(args[0])
        raw = flat.view(np.uint8)
        raw[rng.integers(0, len(raw), args[1])] ^= (1 << rng.integers(0, 8, args[1])).astype(np.uint8)
    elif kind == "exchange":
        i, j = (min(n - 1, int(share * n)) for share in args)
        flat[[i, j]] = flat[[j, i]]
    elif kind == "order":
        made = {
            "reverse": lambda: flat[::-1], "sort": lambda: np.sort(flat), "roll": lambda: np.roll(flat, 1),
            "ramp": lambda: np.arange(n).astype(dtype), "fall": lambda: np.arange(n)[::-1].astype(dtype),
            "even": lambda: np.full(n, flat[0]),
        }  # fmt: skip
        flat[:] = made[args[0]]().copy()
    elif kind == "collide" and dtype.kind in "iu":
        flat[:] = np.array([_as(int(flat[0]) + (i << args[0]), dtype) for i in range(n)])
