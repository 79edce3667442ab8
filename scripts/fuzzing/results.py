"""Damaged and crafted files that commands read beside data and models: results of runs, states, names and trees.

Each case begins with a file that xclass has written, changes values of its JSON or its bytes, and gives it to the
command that reads it. The file is accepted, or refused with a message that names it.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from scripts.fuzzing.draw import drawn
from scripts.fuzzing.models import learn
from scripts.fuzzing.runs import REFUSED, Bench, Limits, Outcome, Part
from scripts.fuzzing.seeds import CLASSES, DATA
from scripts.fuzzing.texts import changed

FILE = "crafted"
OAA, CPT = f"--oaa {CLASSES} -b 8", f"--cpt {CLASSES} -b 9"
READERS = {  # kind of file -> the command that reads it
    "summary": "compare good.json crafted",
    "first summary": "compare crafted good.json --json out/c",
    "state": f"tune -d classes.vw {OAA} --time 1s --quiet --state crafted",
    "texts of classes": "report -i good.model -d classes.vw --json out/r --class_names crafted",
    "predictions": "compare good.predictions crafted -d classes.vw",
    "probabilities": "compare good.predictions crafted -d classes.vw",
    "named labels": f"-d names.vw --oaa {CLASSES} -b 8 --named_labels @crafted --quiet",
    "tree": f"-d classes.vw {CPT} --cpt_tree crafted --quiet",
}
LINES_OF_JSON = ("summary", "first summary", "state")
OTHER: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.5, -0.0, 1e300, -1e300, 2**31, 2**62, 2**63, 2**64, 10**40, "", "x", "\x1b[31m",
    "\u202e", "\udcff", "a\nb", "9" * 300, [], {}, [[]], [1, 2], {"a": 1}, [0] * 1000,
)  # fmt: skip
RAW = (  # JSON that Python's writer does not write
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "9" * 5000, '"\\ud800"', '"\\udc00\\ud800"',
    "[" * 100_000, '{"a":' * 100_000, "[" * 40 + "]" * 40, '{"a":1,"a":2}', "tru", "'x'", "01", "1.", ".5",
    "+1", "\ufeff1",
    '"\t"', "/*x*/1", '"\\u00e9"', "\x00", '"' + "x" * 100_000 + '"', "[" + "0," * 100_000 + "0]",
)  # fmt: skip
HOLE = "a value that raw JSON replaces"
# in messages about how the crafted file fits to the data or to options, which may name those instead
OF_OTHERS = re.compile(r"good\.|classes\.vw|names\.vw|--named_labels|no setting can be used")


class Case(NamedTuple):
    """A kind of file and how it is changed: `seed` chooses the places, `changes` are values, `rate` is of bytes."""

    kind: str
    seed: int
    changes: tuple[Any, ...]
    rate: float


class Results(Part):
    """The part `results` of the campaign."""

    name = "results"

    def __init__(self, only: str = "") -> None:
        self.limits = Limits(cpu=30.0, memory=512 << 20, interrupt=True)
        self._good: dict[str, bytes] = {}
        self._beside: dict[str, bytes] = {}
        self._kinds = list(READERS)

    def prepare(self, bench: Bench) -> None:
        learn(
            bench, "-d", "classes.vw", *OAA.split(), "--loss_function", "logistic", "-f", "out/m", "-p", "out/p",
            "--summary", "out/s", "--quiet",
        )  # fmt: skip
        bench.xclass("-d", "classes.vw", "-t", "-i", "out/m", "--probabilities", "-p", "out/probabilities", "--quiet")
        names = ("m", "p", "s", "probabilities")
        written = {name: (bench.folder / "out" / name).read_bytes() for name in names}
        learn(bench, "-d", "classes.vw", *CPT.split(), "--save_tree", "out/t", "--quiet")
        written["t"] = (bench.folder / "out" / "t").read_bytes()
        words = READERS["state"].replace("crafted", "out/state").split()
        learn(bench, *words)
        written["state"] = (bench.folder / "out" / "state").read_bytes()
        self._beside = {"good.json": written["s"], "good.model": written["m"], "good.predictions": written["p"]}
        self._good = {
            "summary": written["s"], "first summary": written["s"], "state": written["state"],
            "texts of classes": b"".join(b"%d\tname %d\n" % (y, y) for y in range(1, CLASSES + 1)),
            "predictions": written["p"], "probabilities": written["probabilities"],
            "named labels": b"".join(b"name%d\n" % y for y in range(CLASSES)), "tree": written["t"],
        }  # fmt: skip
        for kind in list(self._kinds):
            bench.reset()
            outcome = self.run(Case(kind, 0, (), 0.0), bench)
            if outcome.kind == REFUSED and "matplotlib" in outcome.detail:  # reports need it
                self._kinds.remove(kind)

    def cases(self, seed: int, n: int) -> list[Case]:
        value = st.sampled_from([*OTHER, *map(_Raw, RAW)])
        changes = st.lists(value, min_size=0, max_size=2).map(tuple)
        rates = st.sampled_from([0.0, 0.0, 0.0, 1e-4, 1e-3, 1e-2, 0.3])
        # a search takes half a second, so fewer of the cases are states
        kinds = [kind for kind in self._kinds for _ in range(1 if kind == "state" else 3)]
        return drawn(st.builds(Case, st.sampled_from(kinds), st.integers(0, 2**32 - 1), changes, rates), n, seed)

    def group(self, case: Case) -> str:
        return case.kind

    def run(self, case: Case, bench: Bench) -> Outcome:
        content = self.content(case)
        for name, good in self._beside.items():
            bench.put(name, good)
        bench.put(self._place(case), content)
        result = bench.xclass(*self.words(case))
        outcome = bench.judge(result, len(content))
        if outcome.kind == "bad message" and outcome.detail.startswith("status 3:"):  # of compare: a run is worse
            return Outcome("accepted")
        if outcome.kind == REFUSED and FILE not in result.err and not OF_OTHERS.search(result.err):
            return Outcome("bad message", outcome.detail, f"{case.kind}: the file is not named")
        return outcome

    def content(self, case: Case) -> bytes:
        """Return the file of a case."""
        good = self._good[case.kind]
        if case.changes and case.kind in LINES_OF_JSON:
            good = _with_other_values(good, case)
        elif case.changes:
            good = _with_other_words(good, case)
        return changed(good, case.seed, case.rate)

    def words(self, case: Case) -> tuple[str, ...]:
        # a state is replaced, so it is in the folder that may be written
        return tuple(READERS[case.kind].replace(FILE, self._place(case)).split())

    @staticmethod
    def _place(case: Case) -> str:
        """Return the name of the file of a case."""
        return f"out/{FILE}" if case.kind == "state" else FILE

    def smaller(self, case: Case) -> Iterator[Case]:
        if case.rate and case.changes:
            yield case._replace(rate=0.0)
            yield case._replace(changes=())
        for i in range(len(case.changes)):
            yield case._replace(changes=case.changes[:i] + case.changes[i + 1 :])

    def reproduction(self, case: Case) -> dict[str, bytes]:
        return {**self._beside, **DATA, self._place(case): self.content(case)}


class _Raw(str):
    """JSON that is put in as it is."""


def _with_other_values(good: bytes, case: Case) -> bytes:
    """Return lines of JSON, or one text, in which values are replaced, taken out or put in."""
    rng = random.Random(case.seed)
    whole = case.kind != "state"
    values = [json.loads(good)] if whole else [json.loads(line) for line in good.splitlines()]
    for change in case.changes:
        i = rng.randrange(len(values))
        value = HOLE if isinstance(change, _Raw) else copy.deepcopy(change)
        places = list(_places(values[i]))
        if not places or rng.random() < 0.03:
            values[i] = value
        else:
            holder, key = rng.choice(places)
            if rng.random() < 0.15:
                del holder[key]
            elif rng.random() < 0.15 and isinstance(holder, dict):
                holder[rng.choice(["", "x", "\x1b[2J", "\u202e", str(change)[:9]])] = value
            else:
                holder[key] = value
    raw = next((change for change in case.changes if isinstance(change, _Raw)), "null")
    text = "\n".join(json.dumps(value, indent=1 if whole else None) for value in values)
    return text.replace(json.dumps(HOLE), raw).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a JSON value as its list or dict and its index or key; of long lists only the first three."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(min(len(value), 3)):
            yield value, key
            yield from _places(value[key])


def _with_other_words(good: bytes, case: Case) -> bytes:
    """Return lines in which words or lines are replaced, repeated or taken out."""
    rng = random.Random(case.seed)
    lines = good.split(b"\n")
    for change in case.changes:
        word = str(change).encode("utf-8", "surrogatepass")[:100_000]
        i = rng.randrange(len(lines))
        words = re.split(rb"([ \t,:])", lines[i])
        way = rng.randrange(4)
        if way == 0:
            lines[i] = word
        elif way == 1:
            lines.insert(i, rng.choice(lines))
        elif way == 2:
            del lines[i]
            lines = lines or [b""]
        else:
            words[rng.randrange(len(words))] = word
            lines[i] = b"".join(words)
    return b"\n".join(lines)
