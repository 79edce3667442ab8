"""Compare `xclass --vw_exact` with VW on random data and command lines, which fuzzing/vw_cases.py generates.

    python -m scripts.compare_vw --runs 1000 --seed 7

A case is a sequence of runs with the same files. For each run, the exit status, the progress table, the summary, the
output of --audit, -p and -r, the model as text, and the existence of the model file are compared. The first difference
of each case is printed with the command lines that reproduce it, and finally a line of counts. The exit status is 1 if
there is any difference. If VW crashes or hangs in a run, the rest of the case cannot be compared; the last line counts
such cases.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.fuzzing import vw_cases
from scripts.fuzzing.vw_process import VW, CompletedRun
from scripts.lib import in_process
from scripts.lib.command_line import new_parser, work_folder

CLOSE = 2e-4  # allowed difference of two numbers: relative, or absolute below 1
HEADER = "average  since "
OWN = (  # beginnings of lines of the summary that only one of the two programs prints
    "[info]", "[warning]", "warning:", "best pass =", "average squared loss =", "average log loss =",
    "expected calibration error =", "slots in use =", "seconds =", "nodes =", "swaps =",
    "no labelled example was held out", "labels that are no class =",
)  # fmt: skip
OWN_HEADER = ("Id", "options:", "Checksum")  # lines of a model as text that depend on the program that wrote it
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")
LOGGED = re.compile(  # messages that VW's log inserts into standard output, even in the middle of lines
    r"\[(?:info|warning|error|critical)\] .*\n|^\[.*\n|^You can use --leave_duplicate_interactions.*\n", re.MULTILINE
)
AUDITED = re.compile(r".*:(?P<value>[^:]+):(?P<weight>[^:@]+)(?:@[^:@]+)?", re.DOTALL)  # a feature in an audit
MALFORMED = re.compile(r"^\[error\] vw example #\d+\(.*Malformed example", re.MULTILINE)

ZERO = re.compile(r"(?<![^ :])-0(?![^ ])")
LABEL = re.compile(r"label = (\d+)\nlabel_count = (\S+)\n")  # in the text of a recall tree
LABELS = re.compile(f"(?:{LABEL.pattern})+")


class Difference(NamedTuple):
    """Describe the first difference of a case: the run, the part of its output, the line, and both texts."""

    step: int
    part: str
    line: int
    expected: str
    actual: str


class Crash(NamedTuple):
    """Describe the run of a case in which VW crashed, or hung and was killed."""

    step: int
    signal: str


def xclass(args: list[str], folder: Path) -> CompletedRun:
    """Execute a command line of xclass in this process; a defect of xclass is a difference."""
    ended = in_process.xclass(args, folder)
    return CompletedRun(ended.status, ended.out.decode("utf-8", "backslashreplace"), ended.err + ended.trace)


def same(expected: str, actual: str, whole: bool = True) -> bool:
    """Return whether two lines are equal except for the last digits of numbers and the sign of NaN.

    With `whole`, numbers without a decimal point have to be equal.
    """
    if expected == actual:
        return True
    expected, actual = (re.sub(" +", " ", line.replace("-nan", "nan")) for line in (expected, actual))
    if NUMBER.sub("#", expected) != NUMBER.sub("#", actual):
        return False
    for a_text, b_text in zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=True):
        if a_text == b_text:
            continue
        if (whole and not re.search(r"[.e]", a_text + b_text)) or "n" in a_text + b_text:
            return False
        a, b = float(a_text), float(b_text)
        if abs(a - b) > CLOSE * max(1.0, abs(a)):
            return False
    return True


def table(err: str) -> list[str]:
    """Return the lines of the progress table and the summary, without those that only one program prints."""
    lines = err.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(HEADER)), len(lines))
    return [line for line in lines[first:] if not line.startswith((*OWN, "xclass:"))]


def in_order(line: str) -> bool:
    """Return whether the features in a line of an audit are in falling order of |weight * value|."""
    features = [AUDITED.fullmatch(word) for word in line.split("\t")[1:]]
    try:
        shares = [abs(float(feature["value"]) * float(feature["weight"])) for feature in features]
    except (TypeError, ValueError):  # not a line of features
        return True
    return all(b <= a * (1 + CLOSE) for a, b in itertools.pairwise(shares))


def same_audit(expected: str, actual: str) -> bool:
    """Return whether two lines of an audit are equal; the order of the features is ignored if VW's is not defined.

    It is not defined if a contribution is infinite or NaN, which C++ cannot sort, or if VW's line is not sorted.
    """
    if same(expected, actual, whole=not expected.startswith("\t")):
        return True
    if not re.search(r"[:@]-?(inf|nan)", expected + actual) and in_order(expected):
        return False
    return same(*("\t".join(sorted(line.split("\t"))) for line in (expected, actual)))


def as_text(path: Path) -> list[str]:
    """Return the lines of a model as text in a form that can be compared.

    Zeros have no sign, and labels with equal counts at a node of a recall tree are sorted by their numbers.
    """
    lines = [ZERO.sub("0", line.rstrip()) for line in _lines(path) if not line.startswith(OWN_HEADER)]
    return LABELS.sub(_by_count, "\n".join(lines)).split("\n")


def _by_count(labels: re.Match) -> str:
    """Return the labels of a node of a recall tree in falling order of their counts; equal counts by label."""
    pairs = sorted(LABEL.findall(labels[0]), key=lambda pair: (-float(pair[1]), int(pair[0])))
    return "".join(f"label = {label}\nlabel_count = {count}\n" for label, count in pairs)


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "backslashreplace").split("\n") if path.exists() else ["(no file)"]


def written(ended: CompletedRun, folder: Path, step: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of what a run has written: the name of each part and its lines."""
    malformed = MALFORMED.search(ended.out) is not None
    # at a class that is not a number, the program vw ends with status 1, but VW's Python module with 0
    yield "exit status", ["1" if malformed else str(ended.status)]
    if malformed or ended.status:
        return
    yield "table and summary", table(ended.err)
    yield "predictions", _lines(folder / f"p{step}")
    yield "raw predictions", _lines(folder / f"r{step}")
    yield "audit", LOGGED.sub("", ended.out).split("\n")
    yield "models", [str((folder / f"model{step}").exists())]
    yield "model as text", as_text(folder / f"text{step}")


def compare(vw: VW, steps: tuple[vw_cases.Step, ...], folder: Path) -> Difference | Crash | None:
    """Execute the runs of a case with both programs; return the first difference or crash of VW, or None."""
    places = folder / "vw", folder / "xclass"
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    for i, step in enumerate(steps):
        for place in places:
            (place / f"data{i}").write_bytes(step.data)
        args = ["-d", f"data{i}", *step.args]
        ended = vw.run(args, places[0]), xclass(["--vw_exact", *args], places[1])
        if ended[0].status < 0:
            return Crash(i, signal.Signals(-ended[0].status).name)
        pairs = zip(*(written(run, place, i) for run, place in zip(ended, places, strict=True)), strict=False)
        for (part, expected), (_, actual) in pairs:
            if part == "exit status" and expected != actual:
                return Difference(
                    i, part, 0, f"{expected[0]} {ended[0].err[-300:]}", f"{actual[0]} {ended[1].err[-300:]}"
                )
            if part == "predictions" and {"--multilabel_oaa", "--probabilities"} <= set(args):
                expected = expected[::2]  # VW writes a blank line after each, which is no prediction
            for number, pair in enumerate(itertools.zip_longest(expected, actual, fillvalue="(nothing)"), 1):
                if not (same_audit if part == "audit" else same)(*pair):
                    return Difference(i, part, number, *pair)
        if ended[0].status or MALFORMED.search(ended[0].out):
            break
    return None


def report(number: int, steps: tuple[vw_cases.Step, ...], failure: Difference | Crash) -> str:
    """Return the message about a difference or a crash."""
    commands = "\n".join(f"    -d data{i} {shlex.join(step.args)}" for i, step in enumerate(steps[: failure.step + 1]))
    if isinstance(failure, Crash):
        return f"case {number}: VW ends with {failure.signal} in run {failure.step}, so nothing is compared\n{commands}"
    return (
        f"case {number}: {failure.part} of run {failure.step}, line {failure.line}\n{commands}\n"
        f"  VW:     {failure.expected}\n  xclass: {failure.actual}"
    )


def main() -> int:
    """Compare the cases that the command line requests; return the exit status."""
    options = new_parser(__doc__)
    options.add_argument("--runs", type=int, default=1000, help="cases to compare")
    options.add_argument("--seed", type=int, default=7, help="of the cases")
    options.add_argument("--lists", action="store_true", help="compare the reductions of lists of labels")
    options.add_argument("--only", type=int, nargs="+", help="numbers of the cases, in place of the first ones")
    options.add_argument("--work", type=Path, help="folder for the files; a temporary one is the default")
    given = options.parse_args()
    numbers = given.only or range(given.runs)
    differing = runs = 0
    crashes: list[int] = []
    began = time.perf_counter()
    with work_folder(given.work) as work, VW() as vw:
        from xclass.kernels import jit

        jit.activate()
        for number in numbers:
            steps = vw_cases.make(given.seed, number, given.lists)
            runs += len(steps)
            failure = compare(vw, steps, work)
            if isinstance(failure, Crash):
                crashes.append(number)
            elif failure is not None:
                differing += 1
                print(report(number, steps, failure), flush=True)
    seconds = time.perf_counter() - began
    where = f" ({', '.join(map(str, crashes))})" if crashes else ""
    print(
        f"{len(numbers)} cases of seed {given.seed}, {runs} runs: {differing} cases differ; VW crashes in "
        f"{len(crashes)}{where}; {seconds:.0f} s"
    )
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
