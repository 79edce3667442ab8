"""Mutated text in every container, and what is learned from it compared in several ways.

Lines of a grammar with odd words, numbers and names are chosen, changed byte by byte, and read by the command, as a
file, a pipe, compressed, cut short or damaged. What is compared, each with some of the cases:

    oracle      the parser reads what the slow reader of the tests reads
    learned     the model is that of plain text written from what the slow reader has read
    containers  the model, or the message, is the same through a pipe, gzip, zstd and two files
    skipped     `--on_bad_line skip` learns what is learned when each line that `stop` names is taken out
    place       the line that a message names is refused alone too, and the lines before it are not

The mode `format` reads text of the other data formats, with options of tables, and `format containers` compares
containers of them; the part `readers` compares what is read with other readers.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from scripts.fuzzing.data_formats import FORMATS, OPTIONS, in_format
from scripts.fuzzing.draw import drawn, weighted
from scripts.fuzzing.models import learn, not_finite
from scripts.fuzzing.runs import ACCEPTED, REFUSED, Bench, Limits, Outcome, Part, Result, wrong
from scripts.fuzzing.seeds import CLASSES, MODELS
from xclass.model import model_file

TREATMENTS = ("stop", "skip", "vw")
EXTRA = (
    "", "", "", "-q ab", "--ngram 2 --skips 1", "--hash all", "--cubic aab", "-q ::", "--ignore a", "--keep b",
    "--noconstant", "--hash_seed 7", "--ngram a3 -q aa", "--interactions abab --leave_duplicate_interactions",
    "--ignore_linear b -q ab", "--layout vw", "--passes 2", "--passes 3 --holdout_period 4", "--shuffle 20",
    "--initial_pass_length 30", "--examples 50", "--checkpoint 40", "-P 100", "-l 3 --power_t 0.3",
)  # fmt: skip
WHOLE = ("file", "pipe", "gz", "zst", "two", "members", "frames", "bz2", "xz")
DAMAGED = (
    "gz cut", "gz bytes", "gz tail", "zst cut", "zst bytes", "gz as vw", "pipe gz", "not gz", "not zst", "bz2 cut",
    "bz2 bytes", "xz cut", "xz bytes", "xz tail", "not xz",
)  # fmt: skip
MODES = (
    ("learn",) * 12
    + ("test",) * 3
    + ("oracle", "oracle", "learned", "learned", "containers", "skipped", "place", "place")
    + ("format",) * 4
    + ("format containers",) * 2
)
OF_FORMATS = ("format", "format containers")
HUGE = (
    "10 MB name", "10 MB value", "10 MB label", "10 MB tag", "10 MB namespace", "1e5 features", "1e5 namespaces",
    "1e5 anonymous", "1e5 bars", "1e6 newlines", "1 MB of zeros", "10 MB of blanks", "1e5 returns", "10 MB of digits",
    "1e5 lines of one byte", "10 MB word value", "1e5 multipliers",
)  # fmt: skip
ALPHABET = np.frombuffer(b"|||:::  ''\t\r\n\n0123456789.-+eEabcxyznif\xff\x00\x80\xc3\xa9\x1b,_", np.uint8)
NAME = re.compile(r"^xclass: ([^:\n]+):(?:(\d+)(?::\d+)?:)?")

NAMES = re.compile(r"data\.vw(\.\w+)?|stdin")  # of the data, in messages
LISTS = ("lists.vw", "list_names.vw")
ANONYMOUS = re.compile(rb"[ \t]:")
LARGE_LABEL = re.compile(rb"[ \t]*[+-]?[0-9]{10}")

WORDS = (
    "a", "b", "7", "007", "ab", "name1", "longer-name", "é", "ḷi", "\x01", "inf", "'t", "-3", "e", "x9", "w", "z",
    "4294967296", "18446744073709551616", "\N{GRINNING FACE}",
)  # fmt: skip
NUMBERS = (
    "1", "0", "-2", "2.5", ".5", "1e2", "1e-3", "1e", "-", ".", "+3", "1e+2", "0x1f", "inf", "nan", "-0.125",
    "123456789", "1e39", "1e-50", "1e256", "3.4028235e38", "-3e38", "1e30", "1x", "2:3", "00.50", "9" * 30, "1e-45",
    "1e19", "0x1p-149", "-inf",
)  # fmt: skip
LABELS = (
    "", "1 0.5", "2 2 'tag", "'tag", "x", "1 tag", "7 -1", "7 x", "4 1x", "5 nan 't", "1 1e30", "2 3e38", "1 inf",
    "1,5", ",", "1,,2", "5,1,5", "1, 2", "3,", "1,2 x", "x,y", "1,99 2",
    "-1", "+4", "0", "4294967295", "99999999999999999999", "0012", "1 2 3", "1 2 3 4", "1 0", "\t", "3\t", "1.5",
    "1e1", "13", "2147483648", "name,1",
)  # fmt: skip


class Case(NamedTuple):
    """A text, an option set, and what is compared."""

    mode: str
    learner: str  # of MODELS
    extra: str
    treatment: str
    container: str
    seed: int
    lines: int
    odd: float  # share of lines with odd words
    rate: float  # of bytes changed
    text: bytes | None = None  # in place of what the numbers before give

    def __repr__(self) -> str:
        text = "" if self.text is None else f", {self.text[:200]!r}"
        return f"Case({', '.join(map(str, self[:-1]))}{text})"


class Texts(Part):
    """The part `text` of the campaign."""

    name = "text"

    def __init__(self, only: str = "") -> None:
        self.limits = Limits(cpu=30.0)
        self._learners = [name for name in MODELS if re.search(only, name)]
        self._models: dict[str, bytes] = {}

    def prepare(self, bench: Bench) -> None:
        for name in self._learners:
            data, options = MODELS[name]
            learn(bench, "-d", data, *options.split(), "-f", "out/m", "--quiet")
            self._models[name] = Path("out/m").read_bytes()
            crosses = () if "--means" in options else ("-q", "ab")  # which learns dense rows alone
            learn(bench, "-d", data, *options.split(), *crosses, "--on_bad_line", "vw", "-f", "out/m", "--quiet")
        _compare(b"1 |a b\n", "classes", {})

    def cases(self, seed: int, n: int) -> list[Case]:
        rate = st.sampled_from([0.0, 1e-5, 1e-4, 1e-3, 1e-2])
        many = st.builds(
            Case, st.sampled_from(MODES), st.sampled_from(self._learners), st.sampled_from(EXTRA),
            st.sampled_from(TREATMENTS), st.sampled_from(WHOLE + WHOLE + DAMAGED), st.integers(0, 2**32 - 1),
            st.sampled_from([1, 30, 300, 3000, 30_000, 100_000, 100_000]), st.sampled_from([0.0, 0.001, 0.01, 0.3]),
            rate,
        )  # fmt: skip
        huge = st.builds(
            Case, st.sampled_from(HUGE), st.sampled_from(self._learners), st.just(""), st.sampled_from(TREATMENTS),
            st.sampled_from(["file", "pipe", "gz"]), st.integers(0, 9), st.just(2), st.just(0.0), st.just(0.0),
        )  # fmt: skip
        return drawn(weighted((60, many), (1, huge)), n, seed)

    def group(self, case: Case) -> str:
        return "huge" if case.mode in HUGE else case.mode

    def run(self, case: Case, bench: Bench) -> Outcome:
        text = self._text(case)
        compared = {"oracle": self._oracle, "learned": self._learned, "skipped": self._skipped, "place": self._place}
        if case.mode in compared:
            return compared[case.mode](case, text, bench)
        if case.mode in ("containers", "format containers"):
            return self._containers(case, text, bench)
        _, outcome = self._command(case, text, bench, self._words(case))
        if outcome.kind == ACCEPTED and case.mode in ("learn", "format") and (name := not_finite("out/m")):
            return Outcome("non-finite model", f"{name} is not finite", name.split(".")[-1], outcome.lines)
        return outcome

    def _text(self, case: Case) -> bytes:
        """Return a case's text."""
        if case.text is not None:
            return case.text
        if case.mode in HUGE:
            return _huge(case.mode, MODELS[case.learner][0])
        lines = min(case.lines, 150) if case.mode in ("oracle", "learned", "skipped", "place") else case.lines
        if case.mode in OF_FORMATS:
            return changed(in_format(_format_of(case), case.seed, min(lines, 3000), case.odd), case.seed, case.rate)
        treatment = "vw" if case.mode in ("oracle", "learned") else case.treatment
        calm = treatment == "stop" and case.mode != "place"
        text = chosen(MODELS[case.learner][0], case.seed, lines, case.odd / 100 if calm else case.odd)
        return changed(text, case.seed, case.rate / 100 if calm else case.rate)

    def _words(self, case: Case, more: str = "") -> list[str]:
        """Return the options of a case, all but the data."""
        if case.mode == "test":
            return ["-t", "-i", "m.model", "-p", "out/p", "--on_bad_line", case.treatment, "--quiet", "--format", "vw"]
        words = [*MODELS[case.learner][1].split(), "--on_bad_line", case.treatment, "--format", _format_of(case)]
        words += more.split()
        if case.mode in OF_FORMATS:
            words += random.Random(case.seed).choice(OPTIONS.get(_format_of(case), ("",))).split()
        both = {word for word in case.extra.split() if word.startswith("--")} & set(words)
        words += [] if both else case.extra.split()
        return [*words, "-f", "out/m", *([] if case.mode == "learn" and case.seed % 4 == 0 else ["--quiet"])]

    def _command(self, case: Case, text: bytes, bench: Bench, words: list[str]) -> tuple[Result, Outcome]:
        """Run a command on a text in the case's container and judge it."""
        if case.mode == "test":
            bench.put("m.model", self._models[case.learner])
        stdin, files = packed(case.container, text, case.seed)
        for name, content in files.items():
            bench.put(name, content)
        result = bench.xclass(*[word for name in files for word in ("-d", name)], *words, stdin=stdin)
        outcome = bench.judge(result, len(text) + sum(map(len, files.values())))
        if outcome.kind == REFUSED and result.status == 1:
            names = [*files, "stdin"]
            places = [NAME.match(line) for line in result.err.splitlines()]
            place = next((match for match in places if match and match[1] in names), None)
            if place is None:
                return result, Outcome(
                    "bad message", result.err[-1000:], "no place of the data: " + result.err.partition(":")[2][:30]
                )
            return result, outcome._replace(lines=int(place[2] or 0))
        return result, outcome._replace(lines=text.count(b"\n") if outcome.kind == ACCEPTED else 0)

    def _oracle(self, case: Case, text: bytes, bench: Bench) -> Outcome:
        """Compare what the parser reads with what the slow reader reads."""
        bench.last = ("(the parser alone)",)
        options: dict[str, Any] = {}
        for word, name in (("--hash all", "hash"), ("--hash_seed 7", "hash_seed"), ("--noconstant", "noconstant")):
            if word in case.extra:
                options[name] = {"hash": "all", "hash_seed": 7, "noconstant": True}[name]
        try:
            _compare(text, MODELS[case.learner][0], options)
        except AssertionError as error:
            return wrong(
                f"the slow reader reads something else: {error}"[:3000], "read differently from the slow reader"
            )
        return Outcome(ACCEPTED, lines=text.count(b"\n"))

    def _learned(self, case: Case, text: bytes, bench: Bench) -> Outcome:
        """Compare the model with that of plain text that the slow reader's examples make."""
        data, options = MODELS[case.learner]
        if data in LISTS:
            return Outcome(REFUSED, "the slow reader reads one label")
        if data == "names.vw" or any(
            word in options for word in ("-q", "--passes", "--normalize_features", "kmeans", "huffman")
        ):
            data, options = "classes.vw", f"--oaa {CLASSES} -b 9"
        multiclass = data in ("classes.vw", "columns.vw")
        # A feature without a name has an index of more bits than a name can have.
        # A large number as the first label makes all labels names.
        lines = text.split(b"\n")
        text = b"\n".join(line for line in lines if not (ANONYMOUS.search(line) or LARGE_LABEL.match(line)))
        plain, used = plain_text(text, multiclass, int(options.split("-b ")[1].split()[0]), "--noconstant" in options)
        if not plain:
            return Outcome(REFUSED, "nothing to learn")
        words = [*options.split(), "--on_bad_line", "vw", "--number_rules", "vw", "--format", "vw", "--quiet", "-f"]
        bench.put("odd.vw", used)
        bench.put("plain.vw", plain)
        result = bench.xclass("-d", "odd.vw", *words, "out/m")
        outcome = bench.judge(result, len(used))
        if outcome.kind not in (ACCEPTED, REFUSED):
            return outcome
        other = bench.xclass("-d", "plain.vw", *words, "out/n")
        if result.status != other.status:
            return wrong(
                f"odd text: {result.err or 'fine'}; plain text: {other.err or 'fine'}", "plain text ends otherwise"
            )
        if result.status == 0 and (different := unlike("out/m", "out/n")):
            return wrong(f"{different} differs from what plain text gives", "learned otherwise than from plain text")
        return outcome._replace(lines=used.count(b"\n"))

    def _containers(self, case: Case, text: bytes, bench: Bench) -> Outcome:
        """Compare a container with the plain file."""
        container = case.container if case.container in WHOLE else WHOLE[1 + case.seed % (len(WHOLE) - 1)]
        if container == "two" and case.mode == "format containers":  # a file of a table has a header of its own
            container = "members"
        case = case._replace(extra="" if "initial_pass" in case.extra or "--examples" in case.extra else case.extra)
        in_file, outcome = self._command(case._replace(container="file"), text, bench, self._words(case))
        if outcome.kind not in (ACCEPTED, REFUSED):
            return outcome
        words = [word if word != "out/m" else "out/n" for word in self._words(case)]
        in_container, again = self._command(case._replace(container=container), text, bench, words)
        if again.kind not in (ACCEPTED, REFUSED):
            return again
        if container == "two" and in_file.status:
            return outcome
        if in_file.status != in_container.status:
            return wrong(
                f"file: {in_file.err or 'fine'}; {container}: {in_container.err or 'fine'}",
                f"{container} ends otherwise",
            )
        if in_file.status == 0 and (different := unlike("out/m", "out/n")):
            return wrong(f"{different} differs through {container}", f"learned otherwise through {container}")
        messages = [
            NAMES.sub("F", NAME.sub("xclass: F:\\2", run.err.splitlines()[0])) if run.err else ""
            for run in (in_file, in_container)
        ]
        if in_file.status and messages[0] != messages[1]:
            return wrong(f"file: {messages[0]}; {container}: {messages[1]}", f"{container} has another message")
        return outcome

    def _skipped(self, case: Case, text: bytes, bench: Bench) -> Outcome:
        """Compare `skip` with the text less the lines that `stop` names, one after the other."""
        case = case._replace(treatment="stop", container="file", extra="")
        words = [
            word
            for word in self._words(case)
            if word not in ("--passes", "2", "--holdout_period", "5", "--holdout_off")
        ]
        skipping = [{"stop": "skip", "out/m": "out/n"}.get(word, word) for word in words]
        skipped, outcome = self._command(case, text, bench, skipping)
        if outcome.kind not in (ACCEPTED, REFUSED):
            return outcome
        for _ in range(40):
            result, outcome = self._command(case, text, bench, words)
            if outcome.kind != REFUSED or not outcome.lines:
                break
            lines = text.split(b"\n")
            del lines[outcome.lines - 1]
            text = b"\n".join(lines)
        else:
            return Outcome(REFUSED, "too many malformed lines")
        if outcome.kind not in (ACCEPTED, REFUSED):
            return outcome
        if result.status != skipped.status:
            return wrong(
                f"skip: {skipped.err}; stop: {result.err}", "skip ends otherwise than stop without the bad lines"
            )
        if result.status == 0 and (different := unlike("out/m", "out/n")):
            return wrong(f"{different} differs between skip and leaving the lines out", "skip learns otherwise")
        return outcome

    def _place(self, case: Case, text: bytes, bench: Bench) -> Outcome:
        """Check that the line a message names is the malformed one."""
        container = case.container if case.container in WHOLE and case.container != "two" else "zst"
        case = case._replace(treatment="stop", container=container, extra="")
        words = self._words(case)
        result, outcome = self._command(case, text, bench, words)
        if outcome.kind != REFUSED or not outcome.lines:
            return outcome
        lines = text.split(b"\n")
        before, after = b"\n".join(lines[: outcome.lines - 1]), lines[outcome.lines - 1] + b"\n"
        if before.strip():
            _, earlier = self._command(case, before + b"\n", bench, words)
            if earlier.kind == REFUSED and earlier.lines:
                return wrong(
                    f"named line {outcome.lines}, then {earlier.lines}: {result.err}", "a message names a wrong line"
                )
        _, alone = self._command(case, after, bench, words)
        if alone.kind not in (REFUSED, ACCEPTED):
            return alone
        if alone.lines != 1:
            return wrong(f"line {outcome.lines} is fine alone: {result.err}", "a message names a line that is fine")
        return outcome

    def smaller(self, case: Case) -> Iterator[Case]:
        text = self._text(case)
        if case.extra:
            yield case._replace(text=text, extra="")
        if case.container not in ("file", "pipe"):
            yield case._replace(text=text, container="file")
        lines = text.splitlines(keepends=True)
        pieces: list[bytes] = lines if len(lines) > 1 else [text[i : i + 1] for i in range(min(len(text), 3000))]
        count = 2
        while count <= 2 * len(pieces) and len(pieces) > 1:
            step = max(1, len(pieces) // count)
            for i in range(0, len(pieces), step):
                yield case._replace(text=b"".join(pieces[:i] + pieces[i + step :]))
            count *= 4

    def words(self, case: Case) -> tuple[str, ...]:
        _, files = packed(case.container, b"", case.seed)
        return (*[word for name in files for word in ("-d", name)], *self._words(case))

    def reproduction(self, case: Case) -> dict[str, bytes]:
        stdin, files = packed(case.container, self._text(case), case.seed)
        if case.mode == "test":
            files["m.model"] = self._models[case.learner]
        if case.mode == "learned":
            files["odd.vw"] = self._text(case)
        return {**files, **({"stdin": stdin} if stdin is not None else {})}


# -- making text ---------------------------------------------------------------------------------------------------

_pools: dict[str, tuple[list[bytes], list[bytes]]] = {}


def pool(kind: str) -> tuple[list[bytes], list[bytes]]:
    """Return plain lines and odd lines for a kind of data."""
    if kind not in _pools:
        rng = random.Random(kind)
        _pools[kind] = [_line(rng, kind, False) for _ in range(2000)], [_line(rng, kind, True) for _ in range(4000)]
    return _pools[kind]


def _line(rng: random.Random, kind: str, odd: bool) -> bytes:
    c = rng.randrange(CLASSES)
    label = {
        "names.vw": f"name{c}",
        "lists.vw": f"{c},{rng.randrange(CLASSES)}",
        "list_names.vw": f"name{c},name{c // 2}",
        "numbers.vw": f"{rng.gauss(0, 1):.3g}",
        "signs.vw": rng.choice(("1", "-1")),
    }.get(kind, f"{c + 1}")
    if odd and rng.random() < 0.3:
        label = rng.choice(LABELS)
    elif rng.random() < 0.2:
        label += rng.choice((" 2", " 0.5", f" 't{c}", f" 1 'tag{c}"))
    made = [label, rng.choice(("", "  ", "\t")) if odd and rng.random() < 0.1 else " "]
    for group in rng.sample(("a", "b", "", "cd", "a"), rng.randint(1, 3)):
        if odd and rng.random() < 0.2:
            group = rng.choice(
                ("", "é", "5", "a:2", "b:0.5", "f:0", "f:nan", "f:x", ":2", "b:1x", "longer name", "x:1e38", "a:inf")
            )
        made.append("|" + group)
        for _ in range(rng.randint(0, 5)):
            name = (
                rng.choice(WORDS)
                if odd and rng.random() < 0.4
                else f"f{c if rng.random() < 0.6 else rng.randrange(99)}"
            )
            value = ""
            if rng.random() < 0.5:
                value = ":" + (rng.choice(NUMBERS + WORDS) if odd and rng.random() < 0.5 else f"{rng.gauss(0, 2):.3g}")
            made.append(rng.choice((" ", "  ", "\t")) if odd and rng.random() < 0.2 else " ")
            made.append(("" if odd and rng.random() < 0.1 else name) + value)
        if rng.random() < 0.5:
            made.append(" ")
    end = rng.choice(("\n", "\r\n", "\n\n", "\n\r\n", "\n\ufeff")) if odd and rng.random() < 0.3 else "\n"
    return "".join((*made, end)).encode()


def chosen(kind: str, seed: int, n: int, odd: float) -> bytes:
    """Return `n` lines of the pools."""
    rng = np.random.default_rng(seed)
    plain, strange = pool(kind)
    which = rng.integers(0, len(plain), n)
    other = rng.integers(0, len(strange), n)
    text = b"".join(strange[j] if o else plain[i] for i, j, o in zip(which, other, rng.random(n) < odd, strict=True))
    return text[:-1] if seed % 5 == 0 else text


def _format_of(case: Case) -> str:
    """Return the format of the text of a case."""
    return FORMATS[case.seed % len(FORMATS)] if case.mode in OF_FORMATS else "vw"


def changed(text: bytes, seed: int, rate: float) -> bytes:
    """Return a text with bytes replaced, put in and taken out, and pieces moved."""
    rng = np.random.default_rng(seed + 1)
    data = np.frombuffer(text, np.uint8).copy()
    count = rng.poisson(rate * len(data))
    if not count or not len(data):
        return text
    at = rng.integers(0, len(data), count)
    data[at[0::3]] = rng.choice(ALPHABET, len(at[0::3]))
    data = np.insert(data, at[1::3], rng.choice(ALPHABET, len(at[1::3])))
    data = np.delete(data, at[2::3])
    if rng.random() < 0.2 and len(data):
        start, end, to = np.sort(rng.integers(0, len(data), 3))
        data = np.concatenate([data[:start], data[end:to], data[start:end], data[to:]])
    return data.tobytes()


def _huge(name: str, kind: str) -> bytes:
    label = {"names.vw": b"name1", "numbers.vw": b"0.5", "signs.vw": b"1"}.get(kind, b"1")
    size = 10_000_000
    middle = {
        "10 MB name": label + b" |a " + b"x" * size, "10 MB value": label + b" |a x:1" + b"0" * size,
        "10 MB label": b"1" * size + b" |a x", "10 MB tag": label + b" '" + b"t" * size + b" |a x",
        "10 MB namespace": label + b" |" + b"n" * size + b" x", "10 MB of digits": label + b" |a " + b"7" * size,
        "10 MB word value": label + b" |a x:" + b"y" * size,
        "1e5 features": label + b" |a " + b" ".join(b"f%d:%d" % (i, i % 9) for i in range(100_000)),
        "1e5 namespaces": label + b" " + b" ".join(b"|n%d x" % i for i in range(100_000)),
        "1e5 anonymous": label + b" |a" + b" :0.5" * 100_000, "1e5 bars": label + b" " + b"|" * 100_000,
        "1e5 multipliers": label + b" " + b"|a:1.5 x " * 100_000,
        "1e6 newlines": b"\n" * 1_000_000, "1 MB of zeros": b"\0" * 1_000_000, "10 MB of blanks": b" " * size,
        "1e5 returns": label + b" |a x" + b"\r" * 100_000, "1e5 lines of one byte": b"|\n" * 100_000,
    }[name]  # fmt: skip
    line = label + b" |a x y\n"
    return line * 3 + middle + b"\n" + line * 3


def packed(container: str, text: bytes, seed: int) -> tuple[bytes | None, dict[str, bytes]]:
    """Return standard input, if the text goes there, and the files to read."""
    rng = random.Random(seed)
    cut = text.find(b"\n", rng.randrange(len(text) + 1)) + 1
    if container == "pipe":
        return text, {}
    if container == "two":
        return None, {"one.vw": text[:cut], "two.vw": text[cut:]}
    if container.startswith("pipe gz"):
        return gzip.compress(text, 1), {}
    kind, _, form = container.partition(" ")
    if kind in ("gz", "members"):
        body = gzip.compress(text, 1) if kind == "gz" else gzip.compress(text[:cut], 1) + gzip.compress(text[cut:], 1)
        name = "data.vw.gz"
    elif kind in ("zst", "frames"):
        import zstandard

        made = zstandard.ZstdCompressor(1).compress
        body = made(text) if kind == "zst" else made(text[:cut]) + made(text[cut:])
        name = "data.vw.zst"
    elif kind in ("bz2", "xz"):
        body = bz2.compress(text, 1) if kind == "bz2" else lzma.compress(text, preset=0)
        name = f"data.vw.{kind}"
    elif kind == "not":
        return None, {f"data.vw.{form}": text}
    else:
        return None, {"data.vw": text}
    if form == "cut":
        body = body[: rng.randrange(len(body))]
    elif form == "tail":
        body += bytes(rng.randrange(256) for _ in range(20))
    elif form == "bytes":
        damaged = bytearray(body)
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        body = bytes(damaged)
    return None, {"data.vw" if form == "as vw" else name: body}


# -- comparing -----------------------------------------------------------------------------------------------------


def _compare(text: bytes, kind: str, options: dict[str, Any]) -> None:
    """Compare the parser with the slow reader of the tests."""
    from tests.text.test_parser_oracle import check

    if kind not in ("names.vw", *LISTS):
        check(text, kind not in ("numbers.vw", "signs.vw"), **options)


def plain_text(text: bytes, multiclass: bool, bits: int, noconstant: bool) -> tuple[bytes, bytes]:
    """Return what the slow reader has read as plain unambiguous text, and the lines that it comes from."""
    from tests.oracles import reader

    text += b"" if text.endswith(b"\n") else b"\n"
    try:
        examples = reader.read(text, multiclass=multiclass, bits=bits, constant=False)
    except reader.BadLabel as stopped:
        text = b"".join(line + b"\n" for line in text.split(b"\n")[: stopped.line_number - 1])
        examples = reader.read(text, multiclass=multiclass, bits=bits, constant=False)
    lines = []
    for example in examples:
        words = []
        if example.label is not None:
            numbers = (example.weight,) if multiclass else (example.weight, example.initial)
            words = [f"{int(example.label)}" if multiclass else _hex(example.label), *map(_hex, numbers)]
        lines.append(
            " ".join([*words, "|", *(f"{index}:{_hex(float(value))}" for index, value in example.features())]) + "\n"
        )
    return "".join(lines).encode(), text


def _hex(value: float) -> str:
    """Return a number as text that is read without rounding."""
    return value.hex() if np.isfinite(value) else repr(float(value))


def unlike(first: str, second: str) -> str:
    """Return the name of an array or fact that two models do not have in common; empty if there is none."""
    a, b = model_file.load(first), model_file.load(second)
    if set(a.arrays) != set(b.arrays):
        return "the set of arrays"
    for name, array in a.arrays.items():
        if array.dtype != b.arrays[name].dtype or array.tobytes() != b.arrays[name].tobytes():
            return name
    for name in ("learner", "examples", "clock"):
        if a.facts.get(name) != b.facts.get(name):
            return f"the fact {name}"
    return ""
