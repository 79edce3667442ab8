"""Train and test xclass once, on the test file or on the last tenth of the training file."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import test_error


def split_train(folder: Path) -> tuple[str, str]:
    """Write the first nine tenths and the last tenth of train.vw to two files; return their names."""
    if not (folder / "last.vw").exists():
        lines = (folder / "train.vw").read_bytes().splitlines(keepends=True)
        cut = len(lines) * 9 // 10
        (folder / "first.vw").write_bytes(b"".join(lines[:cut]))
        (folder / "last.vw").write_bytes(b"".join(lines[cut:]))
    return "first.vw", "last.vw"


def train_and_test(folder: Path, train: str, test: str, words: list[str]) -> tuple[float, float]:
    """Train and test once; return the error, and the CPU seconds of all threads in training."""
    xclass = TOOLS["xclass"]
    few = [*xclass, "-d", "few.vw", *words, "--quiet"]
    measure(few, folder)  # compiles the kernels
    took = measure([*xclass, "-d", train, *words, "-f", "v.model", "--quiet"], folder).cpu
    measure([*xclass, "-d", test, "-t", "-i", "v.model", "-p", "v.predictions", "--quiet"], folder)
    return test_error(folder / test, folder / "v.predictions"), took
