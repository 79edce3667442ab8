"""Damaged, stale and crafted caches, and caches that two processes write at once.

Whatever a cache holds, a run that has the data predicts what it predicts without a cache. Where a crafted cache is read
alone, or its sums are right though its features are not, it may be taken for what it says, and nothing worse.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from scripts.fuzzing.draw import drawn, edit, weighted
from scripts.fuzzing.models import INTEGERS, anything
from scripts.fuzzing.runs import ACCEPTED, REFUSED, Bench, Outcome, Part, wrong
from scripts.fuzzing.seeds import CLASSES, DATA, MODELS
from scripts.fuzzing.texts import EXTRA, chosen
from xclass.cache import cache_file

CACHE = "data.cache"
OF_MODELS = (
    "oaa", "oaa names", "scalar", "recall_tree", "log_multi", "cpt", "cpt names", "cpt passes", "pecoc kmeans", "plt",
    "plt names", "softmax_tree", "ect",
)  # fmt: skip
SETS = {  # name -> kind of labels, options
    **{name: MODELS[name] for name in OF_MODELS},
    "oaa ngram": ("classes.vw", f"--oaa {CLASSES} -b 9 --ngram 2 -q ab --noconstant"),
    "scalar passes": ("numbers.vw", "-b 9 --passes 3 --holdout_period 5"),
    "skip": ("odd.vw", f"--oaa {CLASSES} -b 9 --on_bad_line skip"),
}
USES = ("data", "data", "data", "data", "alone", "test", "passes", "two writers", "key")
CRAFTED = ("fact", "no fact", "head", "how", "body", "no facts", "deep facts", "blocks twice", "no blocks")


class Case(NamedTuple):
    """A cache, changes, and the run that finds it."""

    name: str
    changes: tuple[tuple, ...]
    other: str
    use: str
    data: str = ""  # how the data changed since


class Caches(Part):
    """The part `caches` of the campaign."""

    name = "caches"

    def __init__(self, only: str = "") -> None:
        super().__init__()
        self._sets = [name for name in SETS if re.search(only, name)]
        self._caches: dict[str, bytes] = {}
        self._models: dict[str, bytes] = {}
        self._plain: dict[tuple, bytes] = {}

    def prepare(self, bench: Bench) -> None:
        for name in self._sets:
            bench.reset()
            bench.put("data.vw", _data(name))
            os.utime("data.vw", (1e9, 1e9))
            words = SETS[name][1].split()
            made = bench.xclass("-d", "data.vw", *words, "--cache_file", f"out/{CACHE}", "-f", "out/m", "--quiet")
            if made.status != 0:
                raise RuntimeError(f"{name}: {made.err}{made.trace}")
            self._caches[name] = Path("out", CACHE).read_bytes()
            self._models[name] = Path("out/m").read_bytes()
            for use in dict.fromkeys(USES):
                self.run(Case(name, (), "", use), bench)

    def cases(self, seed: int, n: int) -> list[Case]:
        share, at = st.floats(0, 1), st.integers(0, cache_file.HEADER - 1)
        number = st.sampled_from(INTEGERS) | st.integers(0, 200)
        damage = st.one_of(
            edit("byte", share, st.integers(0, 255)),
            edit("byte", share, st.integers(0, 255)),
            edit("bit", share, st.integers(0, 7)),
            edit("head", at, number, st.just(False)),
            edit("cut", share | st.just(0.0)),
            edit("cut end", st.integers(1, 200)),
            edit("zeros", share, share),
            edit("twice", share, share),
            edit("out", share, share),
            edit("more", st.binary(max_size=60)),
            edit("end byte", st.integers(1, 400), st.integers(0, 255)),
        )
        facts = st.sampled_from(["bad", "skipped", "kept", "told", "lines", "blocks", "key", "names", "unknown"])
        _, known = _parts(next(iter(self._caches.values())))
        keys = st.sampled_from(sorted(known["key"]))
        crafted = st.one_of(
            edit("fact", facts, anything),
            edit("no fact", facts),
            edit("key", keys, anything),
            edit("file", st.sampled_from(["size", "time", "endings"]), anything),
            edit("head", at, number, st.just(True)),
            edit("head", st.integers(2, cache_file.HEADER - 1), st.integers(0, 200), st.just(True)),
            edit("body", share, st.integers(0, 255)),
            edit("body", share, st.integers(0, 255)),
            edit("blocks twice"),
            edit("no blocks"),
            edit("deep facts"),
        )
        damages, craft = (st.lists(strategy, min_size=1, max_size=3).map(tuple) for strategy in (damage, crafted))
        changes = weighted((1, st.just(())), (4, damages), (2, craft))
        stale = st.sampled_from(
            ["", "", "", "", "touched", "other content", "same size", "same size and time", "longer", "other file"]
        )
        case = st.builds(
            Case, st.sampled_from(self._sets), changes, st.sampled_from(EXTRA), st.sampled_from(USES), stale
        )
        return drawn(case, n, seed)

    def group(self, case: Case) -> str:
        if not case.changes:
            return "stale" if case.data else "whole"
        return "crafted" if _is_crafted(case) else "damaged"

    def run(self, case: Case, bench: Bench) -> Outcome:
        data = _changed_data(_data(case.name), case.data)
        bench.put("data.vw", data)
        os.utime("data.vw", (1e9, 1e9) if case.data in ("", "same size and time") else (1.1e9, 1.1e9))
        bench.put("m.model", self._models[case.name])
        words = self.words(case)
        bench.put("out/" + CACHE, self._crafted(case))
        if case.use == "two writers":
            return self._two_writers(case, words, bench)
        result = bench.xclass(*words)
        outcome = bench.judge(result, len(self._caches[case.name]) + len(data))
        if outcome.kind != ACCEPTED:
            if (
                outcome.kind == REFUSED
                and case.use != "alone"
                and not _is_crafted(case)
                and "this is not a cache of xclass" not in result.err  # its first bytes were changed
                and not self._refused_anyway(case, bench)
            ):
                return wrong(
                    f"refused with the cache only: {result.err}", "refused because of a cache: " + result.err[:70]
                )
            return outcome
        if _is_crafted(case):
            return outcome
        predicted = Path("out/p").read_bytes()
        wanted = self._without(case if case.use != "alone" else case._replace(data=""), bench)
        if predicted != wanted:
            return wrong("other predictions than without the cache", "other predictions with a cache")
        if case.use != "alone":
            again = bench.xclass(*words)
            if again.status != 0 or Path("out/p").read_bytes() != wanted:
                return wrong(f"the cache made anew gives something else: {again.err}", "a cache made anew is wrong")
        return outcome

    def words(self, case: Case) -> tuple[str, ...]:
        more = [] if case.other.split()[:1] and case.other.split()[0] in SETS[case.name][1] else case.other.split()
        words = [*SETS[case.name][1].split(), *more, "--cache_file", f"out/{CACHE}", "-p", "out/p", "--quiet"]
        if case.use == "alone":
            return (*words, "--no_stdin")
        if case.use == "test":
            return ("-d", "data.vw", "-t", "-i", "m.model", "--cache_file", f"out/{CACHE}", "-p", "out/p", "--quiet")
        if case.use == "passes" and "--passes" not in words:
            words += ["--passes", "2", "--holdout_off"]
        if case.use == "key":
            words.append("-k")
        return ("-d", "data.vw", *words)

    def _plain_words(self, case: Case) -> list[str]:
        words = [word for word in self.words(case) if word not in ("--no_stdin", "-k", "--cache_file", f"out/{CACHE}")]
        return words if case.use != "alone" else ["-d", "data.vw", *words]

    def _without(self, case: Case, bench: Bench) -> bytes | None:
        """Return the predictions of a run without a cache, None where it is refused."""
        key = (case.name, case.other, case.use, case.data)
        if key not in self._plain:
            bench.put("data.vw", _changed_data(_data(case.name), case.data))
            result = bench.xclass(*self._plain_words(case))
            self._plain[key] = Path("out/p").read_bytes() if result.status == 0 else None
        return self._plain[key]

    def _refused_anyway(self, case: Case, bench: Bench) -> bool:
        return bench.xclass(*self._plain_words(case)).status != 0

    def _two_writers(self, case: Case, words: tuple[str, ...], bench: Bench) -> Outcome:
        """Let two processes make the cache at once; each of them, and who reads it then, predicts what it should."""
        other = os.fork()
        if other == 0:
            status = 1
            try:
                status = bench.xclass(*[{"out/p": "out/q"}.get(word, word) for word in words]).status
            finally:
                os._exit(status & 255)
        result = bench.xclass(*words)
        status = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
        outcome = bench.judge(result)
        if outcome.kind not in (ACCEPTED, REFUSED):
            return outcome
        if status != result.status:
            return wrong(
                f"one writer ends with {result.status}, the other with {status}: {result.err}", "two writers differ"
            )
        if result.status == 0 and not _is_crafted(case):
            bench.xclass(*[{"out/p": "out/r"}.get(word, word) for word in words])
            texts = [Path("out", name).read_bytes() for name in "pqr"]
            if set(texts) != {self._without(case, bench)}:
                return wrong("two writers of one cache", "other predictions with two writers")
        return outcome

    def _crafted(self, case: Case) -> bytes:
        content = self._caches[case.name]
        for change in case.changes:
            content = _damaged(content, change)
        return content

    def smaller(self, case: Case) -> Iterator[Case]:
        yield from super().smaller(case)
        for plainer in (case._replace(other=""), case._replace(data=""), case._replace(use="data")):
            if plainer != case:
                yield plainer

    def reproduction(self, case: Case) -> dict[str, bytes]:
        data = _changed_data(_data(case.name), case.data)
        return {"data.vw": data, "m.model": self._models[case.name], "out/" + CACHE: self._crafted(case)}


def _data(name: str) -> bytes:
    kind = SETS[name][0]
    return chosen("classes.vw", 3, 80, 0.3) if kind == "odd.vw" else DATA[kind]


def _is_crafted(case: Case) -> bool:
    """Whether a change may keep the sums right."""
    return any(change[0] in (*CRAFTED, "key", "file") and change[-1] is not False for change in case.changes)


def _changed_data(data: bytes, kind: str) -> bytes:
    """Return the data as they are when the cache is found."""
    if kind == "other content":
        return data.replace(b"w1", b"v11")
    if kind in ("same size", "same size and time"):
        return data.replace(b" w", b" v")
    if kind == "longer":
        return data + data[: data.find(b"\n") + 1]
    if kind == "other file":
        return data[data.find(b"\n") + 1 :] + b"\n"
    return data


def _parts(content: bytes) -> tuple[list[bytearray], dict[str, Any]] | None:
    """Return the blocks and facts of a whole cache, None where it is none."""
    last = 16 + len(cache_file.END)
    try:
        length, _ = np.frombuffer(content[-last : -len(cache_file.END)], "<i8").tolist()
        facts = json.loads(content[len(content) - last - length : len(content) - last])
        blocks, at = [], len(cache_file.MAGIC)
        for size, _ in facts["blocks"]:
            if size < 8 * cache_file.HEADER or size % 8 or at + size > len(content) - last - length:
                return None
            blocks.append(bytearray(content[at : at + size]))
            at += size
        return blocks, facts
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None


def _whole(blocks: list[bytearray], text: bytes) -> bytes:
    """Return a cache of blocks and facts."""
    end = np.array([len(text), zlib.crc32(text)], "<i8").tobytes()
    return cache_file.MAGIC + b"".join(blocks) + text + end + cache_file.END


def _damaged(content: bytes, change: tuple) -> bytes:
    """Return a cache with one change."""
    kind, *args = change
    n = len(content)
    data = bytearray(content)
    if kind in ("byte", "bit", "end byte") and n:
        at = max(0, n - args[0]) if kind == "end byte" else min(n - 1, int(args[0] * n))
        data[at] = args[1] if kind != "bit" else data[at] ^ (1 << args[1])
    elif kind == "cut":
        del data[int(args[0] * n) :]
    elif kind == "cut end":
        del data[max(0, n - args[0]) :]
    elif kind in ("zeros", "twice", "out"):
        low, high = sorted(int(share * n) for share in args)
        data[low:high] = {"zeros": bytes(high - low), "twice": data[low:high] * 2, "out": b""}[kind]
    elif kind == "more":
        data += args[0]
    else:
        parts = _parts(content)
        return content if parts is None else _crafted(*parts, kind, args)
    return bytes(data)


def _crafted(blocks: list[bytearray], facts: dict[str, Any], kind: str, args: list) -> bytes:
    """Return a cache with one change and valid checksums, or with wrong ones if that is the change."""
    if kind == "fact":
        facts[args[0]] = args[1]
    elif kind == "no fact":
        facts.pop(args[0], None)
    elif kind == "key" and isinstance(facts.get("key"), dict):
        facts["key"][args[0]] = args[1]
    elif kind == "file" and isinstance(facts.get("key"), dict) and isinstance(facts["key"].get("files"), list):
        for file in facts["key"]["files"]:
            if isinstance(file, dict):
                file[args[0]] = args[1]
    elif kind == "head" and blocks:
        head = np.frombuffer(bytes(blocks[0][: 8 * cache_file.HEADER]), "<i8").copy()
        head.view(np.uint64)[args[0]] = args[1] % (1 << 64)
        blocks[0][: 8 * cache_file.HEADER] = head.tobytes()
    elif kind == "body" and blocks:
        size = len(blocks[0]) - 8 * cache_file.HEADER
        blocks[0][8 * cache_file.HEADER + min(size - 1, int(args[0] * size))] = args[1]
    elif kind == "blocks twice":
        blocks = blocks * 2
    elif kind == "no blocks":
        blocks = []
    if kind in ("body", "blocks twice", "no blocks") or (kind == "head" and args[2]):
        facts["blocks"] = [(len(block), cache_file.block_checksum(np.frombuffer(block, np.uint8))) for block in blocks]
    text = b"[" * 50_000 if kind == "deep facts" else json.dumps(facts).encode("utf-8", "surrogatepass")
    return _whole(blocks, text)
