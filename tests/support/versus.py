"""Run the same command line with xclass and with VW, and compare their output line by line."""

import atexit
import functools
import importlib.util
import itertools
import os
import random
from pathlib import Path

import pytest
from command import learn

from scripts.fuzzing import vw_process

needs_vw = pytest.mark.skipif(
    importlib.util.find_spec("vowpalwabbit") is None, reason="vowpalwabbit is not installed: nothing to compare with"
)
HEADER = "average  since "


def run_vw(*args, cwd: str | os.PathLike) -> vw_process.CompletedRun:
    """Run VW as `python -m vowpalwabbit ARGS` does, and check that it ends with status 0.

    One process, which loads VW once, executes all runs.
    """
    result = _server().run([str(arg) for arg in args], Path(cwd).absolute())
    assert result.status == 0, f"vw {' '.join(map(str, args))}\n{result.out}{result.err}"
    return result


@functools.cache
def _server() -> vw_process.VW:
    server = vw_process.VW().__enter__()
    atexit.register(server.__exit__)
    return server


def small(rng: random.Random, n: int, k: int, real: bool = False, weights=(1, 1, 2, 0.5, 0)) -> str:
    """Return n lines; some of them are empty, unlabelled, weighted or have a tag."""
    lines = []
    for i in range(n):
        y = rng.randrange(1, k + 1)
        if rng.random() < 0.06:
            lines.append("")
            continue
        label = f"{y / 4:g}" if real else str(y)
        if rng.random() < 0.5:
            label += f" {rng.choice(weights):g}"
        if rng.random() < 0.1:
            label = ""
        tag = f" 't{i}" if rng.random() < 0.3 else ""
        words = " ".join(f"w{(y * 3 + rng.randrange(4)) % 17}" for _ in range(3))
        lines.append(f"{label}{tag} |a {words} |b x:{rng.choice((1, 2, 0.5))}")
    return "".join(line + "\n" for line in lines)


def table(printed: str) -> list[str]:
    """Return the printed lines from the table on, without lines that only one of the two programs prints."""
    lines = printed.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(HEADER))
    own = (
        "[info]",
        "[warning]",
        "warning:",
        "best pass =",
        "average squared loss =",
        "average log loss =",
        "expected calibration error =",
        "slots in use =",
        "seconds =",
        "nodes =",
        "swaps =",
        "no labelled example was held out",
    )
    return [line for line in lines[first:] if not line.startswith(own)]


def agree(folder: Path, data: str, *args: str, vw_args: tuple[str, ...] = ("-c", "-k")) -> str:
    """Run both on `data`, check that predictions and tables agree, and return what xclass wrote to standard error."""
    pytest.importorskip("vowpalwabbit")
    (folder / "data.vw").write_text(data)
    apart = folder / "vw"  # for the files VW writes
    apart.mkdir(exist_ok=True)
    result = run_vw("-d", "../data.vw", "-p", "theirs", *vw_args, *args, cwd=apart)
    result_here = learn("data.vw", "-p", "ours", "--vw_exact", *args, cwd=folder)
    pairs = [
        ((apart / "theirs").read_text().splitlines(), (folder / "ours").read_text().splitlines()),
        (table(result.err), table(result_here.err)),
    ]
    for expected, actual in pairs:
        for want, got in itertools.zip_longest(expected, actual, fillvalue="(nothing)"):
            assert close(want, got), f"VW: {want}\nxclass: {got}\n\n{result.err}\n{result_here.err}"
    return result_here.err


def close(want: str, got: str) -> bool:
    """Return whether two lines are equal except for the last digits of numbers with a decimal point."""
    a, b = want.replace(":", " ").split(), got.replace(":", " ").split()
    if len(a) != len(b):
        return False
    for a_word, b_word in zip(a, b, strict=True):
        if a_word == b_word:
            continue
        try:
            if "." not in a_word or abs(float(a_word) - float(b_word)) > 2e-4 * max(1, abs(float(a_word))):
                return False
        except ValueError:
            return False
    return True
