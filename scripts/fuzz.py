"""Run xclass with crafted models and results, mutated text, damaged caches and random options; count the outcomes.

    python -m scripts.fuzz all --seconds 600
    python -m scripts.fuzz models --runs 100000 --seconds 7200 --seed 1
    python -m scripts.fuzz text --lines 10000000
    python -m scripts.fuzz results                      # summaries, states, names, trees, predictions
    python -m scripts.fuzz numbers --lines 1000000

Every case has to be accepted, or refused with a message. Anything else is a failure: an uncaught exception, a crash, a
hang, a write to a file that no option names, a file left behind, too much memory, a model that is not finite, a wrong
result, or a message without content. For each kind and place of failure, the first case is reduced to a simpler one,
repeated by the real command in a process of its own, and kept as a command with its files. The exit status is 1 if
there was any failure.

The same seed and number of runs give the same cases. The very first run compiles all kernels, which takes minutes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.fuzzing import caches, decimals, models, options, results, runs, seeds, texts
from scripts.lib.command_line import new_parser
from scripts.lib.processes import environment
from xclass.kernels import jit
from xclass.run import warm_up

BATCH = 200  # number of cases of a worker process, unless one of them ends it
PARTS = {
    "models": models.Models,
    "text": texts.Texts,
    "caches": caches.Caches,
    "options": options.OptionSets,
    "results": results.Results,
    "numbers": decimals.Decimals,
}
SHORT = {"models": 20, "text": 8, "caches": 8, "options": 8, "results": 10, "numbers": 13}
SHORT_ONLY = (  # names of the models of --short, one of each kind
    "^(scalar|oaa names|recall_tree names|log_multi|ect error|cpt rerank names|pecoc|softmax_tree names|oaa ngram|"
    "skip|means|mach|multiclass table|plt growing)$"
)
PRECIOUS = ("victim.txt", ".bashrc", "home/.profile", "sub/keep.txt", "precious.model")
MOST_KEPT = 25  # failures of a part that are made simpler and kept
SIMPLIFY_SECONDS = 30.0  # to make a failing case simpler
NEW_PROCESS_SECONDS = 120  # time limit in seconds of a case that is repeated in a new process


class Campaign:
    """Run the cases of one part, count the outcomes, and keep the files that reproduce each failure."""

    def __init__(self, part: Any, place: Path, folder: Path, print_line: Callable[[str], None]):
        self.part, self.place, self._folder, self._print_line = part, place, folder, print_line
        self.counts: Counter[str] = Counter()
        self.groups: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: Counter[tuple[str, str]] = Counter()
        self.descriptions: dict[tuple[str, str], list[str]] = {}
        self.lines = 0
        self._new: list[tuple] = []
        self._places = 0

    def run(self, seed: int, number: int | None, seconds: float | None, lines: int | None) -> None:
        """Run batches of cases until the number of cases, the seconds or the lines reach their limit."""
        began, batch = time.monotonic(), 0
        jit.activate()
        jit.note_compiled(warm_up.READING)  # otherwise the first case would start a process that compiles kernels
        bench = runs.Bench(self._folder / "run", self.part.limits)
        bench.reset()
        self.part.prepare(bench)
        self._print_line(f"{self.part.name}: ready after {time.monotonic() - began:.0f} s")
        last_report = began = time.monotonic()
        while True:
            so_far = sum(self.counts.values())
            remaining = BATCH if number is None else min(BATCH, number - so_far)
            if remaining <= 0 or (lines is not None and self.lines >= lines):
                return
            cases = self.part.cases(seed * 1_000_003 + batch, remaining)
            batch += 1
            running = runs.outcomes(self.part, cases, self._folder)
            for i, outcome, last in running:
                self._count(cases[i], outcome, last)
                now = time.monotonic()
                if seconds is not None and now - began > seconds:
                    break
                if now - last_report > 60:
                    last_report = now
                    self._print_line(f"{self.part.name}: {self._totals()} in {now - began:.0f} s")
            running.close()
            self._keep_new()
            if seconds is not None and time.monotonic() - began > seconds:
                return

    def _count(self, case: Any, outcome: runs.Outcome, last: tuple[str, ...]) -> None:
        self.counts[outcome.kind] += 1
        self.groups[self.part.group(case)][outcome.kind] += 1
        self.lines += outcome.lines
        if outcome.kind not in runs.FAILURES:
            return
        about = self.part.group(case) + " " if outcome.kind in ("crash", "hang") else ""
        key = (outcome.kind, about + outcome.signature)
        self.failures[key] += 1
        if key not in self.descriptions:
            self.descriptions[key] = []
            self._print_line(f"{self.part.name}: {outcome.kind}: {outcome.signature}: {case}"[:300])
            if len(self.descriptions) <= MOST_KEPT:
                self._new.append((key, case, outcome, last))

    def _keep_new(self) -> None:
        """Keep the new failures; called when no worker uses the folder."""
        for key, case, outcome, last in self._new:
            self.descriptions[key] = self._keep(case, outcome, last)
        self._new.clear()

    def _keep(self, case: Any, outcome: runs.Outcome, last: tuple[str, ...]) -> list[str]:
        """Simplify a failing case, repeat it anew, and write files that reproduce it; return what describes it."""
        case = runs.smallest(self.part, case, outcome, self._folder, SIMPLIFY_SECONDS, self._print_line)
        for _, new_outcome, words in runs.outcomes(self.part, [case], self._folder):
            outcome, last = (new_outcome, words) if new_outcome.kind in runs.FAILURES else (outcome, last)
        last = last or self.part.words(case)
        self._places += 1
        place = self.place / f"{self.part.name}-{self._places:02d}-{outcome.kind.replace(' ', '-')}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        self.fill(place)
        for name, content in self.part.reproduction(case).items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content)
        stdin = next((name for name in ("stdin",) if (place / name).exists()), os.devnull)
        command = f"xclass {shlex.join(last)}" + (f" < {stdin}" if stdin != os.devnull else "")
        alone = self._in_new_process(last, place, stdin)
        description = [
            f"case      {case}"[:2000],
            f"command   cd {place}; {command}",
            f"detail    {outcome.detail.strip()[-1500:]}",
            f"alone     {alone}",
        ]
        (place / "README").write_text("\n".join([f"{outcome.kind}: {outcome.signature}", *description]) + "\n")
        return description

    @staticmethod
    def fill(place: Path) -> None:
        """Write the data of the cases and the files that no case may change."""
        for name, content in seeds.DATA.items():
            (place / name).write_bytes(content)
        for name in PRECIOUS:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text("precious\n")
        for name in ("out", "tmp"):
            (place / name).mkdir(exist_ok=True)

    def _in_new_process(self, words: tuple[str, ...], place: Path, stdin: str) -> str:
        """Run the real command in a new process and return a description of how it ended."""
        with open(place / stdin, "rb") as source:
            try:
                result = subprocess.run(
                    [sys.executable, "-m", "xclass", *words], cwd=place, stdin=source, capture_output=True,
                    timeout=NEW_PROCESS_SECONDS, env=environment(),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"still running after {NEW_PROCESS_SECONDS} s"
        err = result.stderr.decode(errors="replace")
        changed = [name for name in PRECIOUS if (place / name).read_text() != "precious\n"]
        note = f", overwritten: {', '.join(changed)}" if changed else ""
        return f"status {result.returncode}{note}: {err.strip()[-300:]!r}"

    def _totals(self) -> str:
        lines = f", {self.lines:,} lines" if self.lines else ""
        return f"{sum(self.counts.values()):,} cases{lines}: " + ", ".join(
            f"{n:,} {kind}" for kind, n in self.counts.most_common()
        )

    def report(self, seconds: float) -> bool:
        """Print the counts and the failures; return whether there were none."""
        kinds = [kind for kind in (runs.ACCEPTED, runs.REFUSED, runs.INTERRUPTED, *runs.FAILURES) if self.counts[kind]]
        print(f"\n{self.part.name}: {self._totals()}; {seconds:.0f} s")
        wide = max((len(name) for name in self.groups), default=0)
        print("  " + "".ljust(wide) + "".join(kind.rjust(max(9, len(kind) + 2)) for kind in kinds))
        for name, counts in sorted(self.groups.items()):
            print("  " + name.ljust(wide) + "".join(f"{counts[kind]:,}".rjust(max(9, len(kind) + 2)) for kind in kinds))
        for (kind, signature), n in self.failures.most_common():
            print(f"\n  {n} x {kind}: {signature}")
            for line in self.descriptions[kind, signature]:
                print("    " + line.replace("\n", "\n    "))
        return not self.failures


def main() -> int:
    """Run the campaigns that the command line requests and return the exit status."""
    parser = new_parser(__doc__)
    parser.add_argument("part", choices=[*PARTS, "all"], help="what to feed it")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn (default: 1)")
    parser.add_argument("--runs", type=int, help="cases of each part (default: no bound, or 300 if nothing is bounded)")
    parser.add_argument("--seconds", type=float, help="for each part, less its preparation")
    parser.add_argument("--lines", type=int, help="of text read, after which the parts `text` and `numbers` end")
    parser.add_argument("--short", action="store_true", help="the few cases of every part that the tests run")
    parser.add_argument(
        "--only", default="", help="start from models and option sets whose name this regular expression finds"
    )
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for what reproduces failures")
    args = parser.parse_args()
    sys.dont_write_bytecode = True  # a module that a case imports first would be a write that no option names
    if args.short:
        args.only = args.only or SHORT_ONLY
    elif args.runs is None and args.seconds is None and args.lines is None:
        args.runs = 300
    place = args.keep.resolve()
    home = os.getcwd()
    fine = True
    folder = Path(tempfile.mkdtemp(prefix="xclass-fuzz-"))
    try:
        (folder / "run").mkdir()
        Campaign.fill(folder / "run")
        for name in PARTS if args.part == "all" else [args.part]:
            began = time.monotonic()
            part = PARTS[name](args.only)
            number = SHORT.get(name) if args.short else args.runs
            campaign = Campaign(part, place, folder, lambda text: print(text, flush=True))
            with contextlib.suppress(KeyboardInterrupt):  # the counts so far are reported
                campaign.run(args.seed, number, args.seconds, args.lines if name in ("text", "numbers") else None)
            os.chdir(home)
            fine &= campaign.report(time.monotonic() - began)
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
