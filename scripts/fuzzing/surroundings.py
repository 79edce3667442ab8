"""First runs where something is missing: each compiles its kernels anew, in processes of its own, for a minute."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from scripts.fuzzing.runs import Bench, Limits, Outcome, Result
from scripts.fuzzing.seeds import CLASSES
from scripts.lib.processes import ROOT

WORDS = ("--oaa", str(CLASSES), "-d", "classes.vw")
SURROUNDINGS = (
    "no home",
    "read-only home",
    "home is a file",
    "no environment",
    "no tmp",
    "numba folder is a file",
    "two at once",
)
PATIENCE = 900  # seconds


class Surroundings:
    """The part `surroundings` of the campaign; a case is one of SURROUNDINGS."""

    name = "surroundings"

    def __init__(self, only: str = ""):
        self.limits = Limits(cpu=PATIENCE, idle=PATIENCE + 60)

    def prepare(self, bench: Bench) -> None:
        """Nothing is needed."""

    def cases(self, seed: int, n: int) -> list[str]:
        """Return all of them."""
        return list(SURROUNDINGS)[:n]

    def group(self, case: str) -> str:
        """Count each."""
        return case

    def run(self, case: str, bench: Bench) -> Outcome:
        """Run the real command, compiling anew, where something is missing."""
        home = bench.folder / "out" / "home"
        home.mkdir()
        environment = {n: v for n, v in os.environ.items() if n not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
        environment |= {
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(bench.folder / "tmp"),
        }
        setting = case
        if setting == "no home":
            environment["HOME"] = str(home / "nothing" / "here")
        elif setting == "read-only home":
            environment["HOME"] = "/proc/self"
        elif setting == "home is a file":
            environment["HOME"] = str(bench.folder / "victim.txt")
        elif setting == "no environment":
            environment = {"PYTHONPATH": environment["PYTHONPATH"], "XDG_CACHE_HOME": str(home)}
        elif setting == "no tmp":
            environment["TMPDIR"] = str(home / "nothing")
        elif setting == "numba folder is a file":
            environment["NUMBA_CACHE_DIR"] = str(bench.folder / "victim.txt")
        bench.last = ("xclass", *WORDS)
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "xclass", *WORDS, "-p", f"out/p{i}"], env=environment, cwd=bench.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for i in range(2 if setting == "two at once" else 1)
        ]  # fmt: skip
        bench.files_before = bench._files()
        for process in running:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                for each in running:
                    each.kill()
                return Outcome("hang", f"still running after {PATIENCE} s", f"hang with {setting}")
            err_text = err.decode(errors="replace")
            outcome = bench.judge(
                Result(process.returncode, out, err_text, err_text if "Traceback" in err_text else "")
            )
            if outcome.kind in ("traceback", "bad message", "unasked write"):
                return outcome
            if process.returncode < 0:
                return Outcome("crash", err_text, f"signal {-process.returncode} with {setting}")
        return outcome

    def words(self, case: str) -> tuple[str, ...]:
        """Return the command line of a case."""
        return WORDS

    def smaller(self, case: str) -> Iterator[str]:
        """There is nothing simpler."""
        yield from ()

    def reproduction(self, case: str) -> dict[str, bytes]:
        """Return the files of a case: those of every folder are enough."""
        return {}
