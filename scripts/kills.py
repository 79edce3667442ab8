"""Kill runs of xclass with SIGKILL in every phase, and check that no model is harmed and nothing is left behind.

    python -m scripts.kills --kills 200 --seed 1
    python -m scripts.kills --data train.vw.gz --lines 6000 --classes 150 --cases checkpoints best_pass
    python -m scripts.kills --only best_pass os.replace after 2

Before each kill, a folder holds data and the model of an earlier run. A run that will replace the model is started in a
process of its own and killed: after a random delay, or before or after the n-th call of a function, for phases that are
too short to hit by a delay. n is drawn uniformly from all calls, which are counted in a run that is not killed. After
a kill, these conditions are checked:

  * the model is byte for byte the old one, the new one, or one that the run saves in between, and its predictions are
    those of that model;
  * at most one temporary file is left;
  * the same run, now not killed, succeeds, writes the same model as in an empty folder, and leaves no temporary file.

The output is a table of the kills in each phase and the models that they left. If a condition is violated, the exit
status is 1, and a command that repeats this kill is printed.
"""

from __future__ import annotations

import collections
import contextlib
import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from scripts.lib import in_process, streams
from scripts.lib.command_line import new_parser, work_folder
from scripts.lib.processes import environment

MODEL = "m"
SECONDS = 300  # time limit of a run
FEATURES = 8  # of an example that is generated
SAVING = ("xclass.model.model_file._write", "xclass.model.model_file._pieces", "os.fsync", "os.replace")
READING = {
    "xclass.kernels.jit.activate": "start",
    "xclass.text.parser.Scanner.scan": "reading",
    "xclass.text.parser.Parser.take": "reading",
    "xclass.api.learner_core.LearnerCore.note": "learning",
}
PASSES = {"xclass.run.checkpoints.Saver.end_pass": "between passes"}
CACHING = {"xclass.cache.cache_file.Writer.write": "caching", "xclass.cache.cache_file.Writer.finish": "caching"}
TRAINING = {
    "xclass.reductions.softmax_tree.row_store.Store.add": "learning",
    "xclass.reductions.softmax_tree.row_store.Store.finish": "training of the softmax tree",
    "xclass.reductions.softmax_tree.tao.Trainer.run": "training of the softmax tree",
    "xclass.reductions.softmax_tree.reduction.SoftmaxTree._finish": "training of the softmax tree",
}
DELAY = "delay"


@dataclass(frozen=True)
class Case:
    """Define a kind of run by its options, and the phases in which it is killed, as function -> name of the phase."""

    options: str  # {k} stands for the number of classes
    phases: dict[str, str]

    def words(self, classes: int) -> list[str]:
        """Return the command line."""
        return ["data", *self.options.format(k=classes).split(), "-f", MODEL, "--quiet"]


def saving(phase: str) -> dict[str, str]:
    """Return the functions that save a model, each with `phase` as the name of its phase."""
    return dict.fromkeys(SAVING, phase)


CASES = {
    "one_pass": Case("--cpt {k} -b 14", READING | saving("saving")),
    "checkpoints": Case("--oaa {k} -b 12 --checkpoint 1000", READING | saving("checkpoint")),
    "save_per_pass": Case(
        "--oaa {k} -b 12 --passes 3 --holdout_off --save_per_pass", READING | PASSES | saving("save_per_pass")
    ),
    "best_pass": Case("--oaa {k} -b 12 --passes 6 -l 4 -q aa", READING | PASSES | saving("best pass")),
    "cache": Case(
        "--recall_tree {k} -b 14 -c -k --passes 2", READING | PASSES | CACHING | saving("saving with a cache")
    ),
    "softmax_tree": Case("--softmax_tree {k} --depth 2", READING | TRAINING | saving("saving")),
}

CHILD = """
import atexit, json, os, pkgutil, signal, sys

plan = json.loads(sys.argv.pop(1))
from xclass.cli import command as cli

cli.option_groups()
calls, models = dict.fromkeys(plan["targets"], 0), []


def replace(target):
    path, _, name = target.rpartition(".")
    owner = pkgutil.resolve_name(path)
    before = getattr(owner, name)

    def counted(*args, **more):
        calls[target] += 1
        now = plan["call"] == calls[target]
        if now and plan["when"] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = before(*args, **more)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        if plan["call"] == 0 and target == "os.replace" and os.path.exists(plan["model"]):
            with open(plan["model"], "rb") as file:
                models.append(file.read().hex())
        return result

    setattr(owner, name, counted)


for target in plan["targets"]:
    replace(target)
if plan["call"] == 0 and plan["targets"]:
    @atexit.register
    def write():
        with open(plan["report"], "w") as file:
            json.dump({"calls": calls, "models": models}, file)
sys.argv[0] = "xclass"
cli.main()
"""


@dataclass(frozen=True)
class Kill:
    """Describe when a run is killed: at call number `call` of a function, or `call` milliseconds after its start."""

    case: str
    target: str  # the function, or DELAY
    when: str  # "before" or "after" the call
    call: int

    def words(self) -> str:
        """Return the options of this script that repeat the kill."""
        return f"--only {self.case} {self.target} {self.when} {self.call}"


@dataclass
class Known:
    """Hold the results of runs of a case that are not killed."""

    old: bytes
    new: bytes
    models: set[bytes]  # the old model, and all models that the run saves to its path
    passes: dict[str, bytes]  # models of --save_per_pass, by file name
    names: set[str]  # names of all files after the run
    calls: dict[str, int]  # function -> number of calls
    seconds: float  # duration of the run
    predictions: dict[str, bytes] = field(default_factory=dict)  # hash of a model -> its predictions


class Failure(Exception):
    """Report that a condition is violated after a kill."""


class Campaign:
    """Kill runs in an empty folder, and check what they leave."""

    def __init__(self, folder: Path, data: bytes, classes: int):
        self.place, self.temporary, self.scratch = folder / "place", folder / "temporary", folder / "scratch"
        for path in (self.place, self.temporary, self.scratch):
            path.mkdir(parents=True)
        lines = data.splitlines(keepends=True)
        self.data, self.half, self.classes = data, b"".join(lines[: len(lines) // 2]), classes
        self.known: dict[str, Known] = {}

    # the runs

    def run(self, words: list[str]) -> None:
        """Execute a command line in this process; raise Failure if its exit status is not 0."""
        with mock.patch.dict(os.environ, TMPDIR=str(self.temporary)):
            ended = in_process.xclass(words, self.place)
        if ended.status != 0:
            raise Failure(f"xclass {' '.join(words)} ended with status {ended.status}: {ended.err}{ended.trace}")

    def start(self, case: Case, plan: dict) -> subprocess.Popen:
        """Start a run of a case in a new process, which kills itself according to `plan`."""
        plan = {"model": MODEL, "report": str(self.scratch / "report"), **plan}
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, json.dumps(plan), *case.words(self.classes)],
            cwd=self.place, env={**environment(), "TMPDIR": str(self.temporary)},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def learn_known(self, name: str) -> Known:
        """Execute runs of a case without killing them, and return their results."""
        case = CASES[name]
        self.clear()
        (self.place / "data").write_bytes(self.half)
        self.run(case.words(self.classes))
        old = (self.place / MODEL).read_bytes()
        self.clear()
        (self.place / "data").write_bytes(self.data)
        self.run(case.words(self.classes))
        new = (self.place / MODEL).read_bytes()
        names = self.names()
        passes = {file: (self.place / file).read_bytes() for file in names if file.startswith(MODEL + ".")}
        self.reset(old)
        began = time.perf_counter()
        child = self.start(case, {"targets": list(case.phases), "call": 0, "when": ""})
        _, err = child.communicate(timeout=SECONDS)
        seconds = time.perf_counter() - began
        if child.returncode != 0:
            raise Failure(f"a run of {name} that was not killed ended with status {child.returncode}: {err!r}")
        report = json.loads((self.scratch / "report").read_text())
        if (self.place / MODEL).read_bytes() != new or self.names() != names:
            raise Failure(f"two runs of {name} that were not killed differ")
        models = {old, new, *map(bytes.fromhex, report["models"])}
        return Known(old, new, models, passes, names, report["calls"], seconds)

    # one kill

    def carry_out(self, kill: Kill) -> str:
        """Kill a run and check what it leaves; return which model is there: "old", "new" or "other".

        " + 1 file" is appended if a temporary file was left.
        """
        case, known = CASES[kill.case], self.known_of(kill.case)
        self.reset(known.old)
        targets = [] if kill.target == DELAY else [kill.target]
        child = self.start(case, {"targets": targets, "call": kill.call, "when": kill.when})
        if kill.target == DELAY:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(kill.call / 1000)
            child.send_signal(signal.SIGKILL)
        _, err = child.communicate(timeout=SECONDS)
        if child.returncode != -signal.SIGKILL and (kill.target != DELAY or child.returncode != 0):
            raise Failure(f"the run ended with status {child.returncode} and was not killed: {err!r}")
        return self.check(kill.case)

    def check(self, name: str) -> str:
        """Check the folder after a kill, and again after the next run; return as `carry_out`."""
        case, known = CASES[name], self.known_of(name)
        stray = sorted(self.stray(known))
        if len(stray) > 1:
            raise Failure(f"{len(stray)} files were left behind: {', '.join(stray)}")
        models = {MODEL: known.models} | {file: {content} for file, content in known.passes.items()}
        for file, allowed in models.items():
            if (self.place / file).exists() or file == MODEL:
                self.check_model(known, file, allowed)
        model = (self.place / MODEL).read_bytes()
        self.run(case.words(self.classes))
        if (self.place / MODEL).read_bytes() != known.new:
            raise Failure("the next run gave another model than a run in a clean folder")
        leftovers = sorted(self.stray(known))
        if leftovers:
            raise Failure(f"the next run left {', '.join(leftovers)}")
        outcome = "new" if model == known.new else "old" if model == known.old else "other"
        return outcome + (" + 1 file" if stray else "")

    def check_model(self, known: Known, name: str, allowed: set[bytes]) -> None:
        """Check that the contents of a model file are allowed, and that equal models predict the same."""
        path = self.place / name
        if not path.exists():
            raise Failure(f"{name} is gone")
        content = path.read_bytes()
        if content not in allowed:
            raise Failure(f"{name} is none of the {len(allowed)} models that may be there")
        digest = hashlib.sha256(content).hexdigest()
        predicted = self.scratch / "predictions"
        self.run(["data", "-t", "-i", name, "-p", str(predicted), "--quiet"])
        if known.predictions.setdefault(digest, predicted.read_bytes()) != predicted.read_bytes():
            raise Failure(f"{name} does not predict what it has to predict")

    # the folder

    def known_of(self, name: str) -> Known:
        """Return the results of runs of a case that are not killed; they are computed once."""
        if name not in self.known:
            self.known[name] = self.learn_known(name)
        return self.known[name]

    def names(self) -> set[str]:
        """Return the names of all files in the folder of the runs."""
        return {path.name for path in self.place.iterdir()}

    def stray(self, known: Known) -> set[str]:
        """Return the names of all files that a complete run does not leave."""
        temporary = {f"TMPDIR/{path.name}" for path in self.temporary.iterdir()}
        return (self.names() - known.names) | temporary

    def clear(self) -> None:
        """Remove all files."""
        for folder in (self.place, self.temporary):
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def reset(self, old: bytes) -> None:
        """Remove all files and write the data and the old model."""
        self.clear()
        (self.place / "data").write_bytes(self.data)
        (self.place / MODEL).write_bytes(old)


def drawn(campaign: Campaign, cases: list[str], kills: int, seed: int) -> list[Kill]:
    """Draw kills: cases and functions in turn, everything else at random."""
    rng = random.Random(seed)
    turns, chosen = collections.Counter({name: rng.randrange(100) for name in cases}), []
    while len(chosen) < kills:
        name = cases[len(chosen) % len(cases)]
        known = campaign.known_of(name)
        targets = [DELAY, *(function for function, calls in known.calls.items() if calls)]
        target = targets[turns[name] % len(targets)]
        turns[name] += 1
        when = rng.choice(("before", "after"))
        most = int(known.seconds * 1000) if target == DELAY else known.calls[target] + 1
        chosen.append(Kill(name, target, when, rng.randrange(1, most)))
    return chosen


def carry_out_all(campaign: Campaign, kills: list[Kill], print_line=print) -> int:
    """Carry out kills, print the results by `print_line`, and return the number of failures."""
    began = time.perf_counter()
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    failures = []
    for kill in kills:
        phase = CASES[kill.case].phases.get(kill.target, "any time (random delay)")
        try:
            counts[phase][campaign.carry_out(kill)] += 1
        except Failure as failure:
            counts[phase]["FAILED"] += 1
            failures.append(kill)
            print_line(f"FAILED: {kill.words()}: {failure}")
    kinds = ["old", "other", "new", "old + 1 file", "other + 1 file", "new + 1 file", "FAILED"]
    print_line(f"{'phase':30} {'kills':>6} " + " ".join(f"{kind:>14}" for kind in kinds))
    for phase, outcomes in [*sorted(counts.items()), ("all", sum(counts.values(), collections.Counter()))]:
        print_line(f"{phase:30} {outcomes.total():6} " + " ".join(f"{outcomes[kind]:14}" for kind in kinds))
    print_line(f"{len(kills)} kills, {len(failures)} failures, {time.perf_counter() - began:.0f} s")
    for kill in failures[:5]:
        print_line(f"to repeat it: python -m scripts.kills {kill.words()}")
    return len(failures)


def read(path: Path, lines: int) -> bytes:
    """Return the first lines of a file."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return b"".join(line for line, _ in zip(file, range(lines), strict=False))


def main(argv: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="how many runs are killed [200]")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn at random [1]")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="kinds of runs [all]")
    parser.add_argument("--data", type=Path, metavar="FILE", help="data to learn [generated]")
    parser.add_argument("--lines", type=int, default=6000, metavar="N", help="how many lines of data [6000]")
    parser.add_argument("--classes", type=int, default=20, metavar="K", help="highest label of the data [20]")
    parser.add_argument("--folder", type=Path, help="an empty folder to work in, which is kept [a temporary one]")
    parser.add_argument("--only", nargs=4, metavar=("CASE", "FUNCTION", "WHEN", "CALL"), help="carry out a single kill")
    given = parser.parse_args(argv)
    with work_folder(given.folder) as folder:
        data = given.data or folder / "stream"
        if given.data is None:
            streams.write_power_law(data, given.seed, given.classes, given.lines, FEATURES)
        campaign = Campaign(folder.resolve(), read(data, given.lines), given.classes)
        if given.only:
            case, target, when, call = given.only
            kills = [Kill(case, target, when, int(call))]
        else:
            kills = drawn(campaign, given.cases, given.kills, given.seed)
        return 1 if carry_out_all(campaign, kills) else 0


if __name__ == "__main__":
    sys.exit(main())
