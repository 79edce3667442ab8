"""One row of a paper's table: train and test xclass by a method, note what came out beside the paper's figure.

    python -m scripts.paper.row FOLDER METHOD SETTING FIGURES [--small] [--dry_run] [--tuned] [--probes N] [--runs N]
                                [--data FOLDER] -- OPTIONS [-- OPTIONS OF TESTING]
    python -m scripts.paper.row FOLDER SYSTEM SOURCE FIGURES --published      a row of another system, not run
    python -m scripts.paper.row --list           a line of the methods, a line of the options that xclass has

FOLDER holds train.vw, test.vw and labels.txt, plain or .gz, and gets rows.jsonl, which table.py shows. FIGURES are the
paper's, `error=12.2 seconds=571`, and say what is measured; `error=?` measures what the paper does not tell:

    error, top5   share of wrong answers on the test file, and of labels not among the five best, in percent
    progressive   share of wrong answers while training, in percent
    perplexity    of the test file's labels
    p1, p3, p5    precision at 1, 3 and 5 on the test file, in percent, over the examples that have a label
    psp1, psp3, psp5    the same, weighted by propensity
    online_p1, online_p3, online_p5    precision while training, each example predicted before it is learned from
    squared       mean of (1 - p)^2 over the test file, p the probability of the label before it was learned from
    covered       share of the test file's labels that are in the leaf of a softmax tree, in percent
    covered_perplexity    of these labels, of the softmax of the leaf
    train         share of wrong answers on the training file after training, in percent; train_top5, train_perplexity,
                  train_covered and train_covered_perplexity are the measures above, of the training file
    seconds       of training
    milliseconds  of predicting one example of the test file at a time, by one thread of one process
    megabytes     of the model

A figure such as `error=12.5+-0.3` is a mean of several runs and its standard deviation: --runs N makes N runs of the
row, with other seeds. With --data FOLDER, train.vw and test.vw are those of that folder. In OPTIONS, {K} stands for
the number of classes and {K-1} for one less.

A method, or an option, that `xclass --help_all` does not list is left out with a line that says so. What was measured
before, with the same command, data and program, is not measured again. But with --small, nothing is compiled while the
clock runs. --tuned first looks for the best options among --probes random ones, by `xclass tune --method random`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import itertools
import json
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.lib import search
from scripts.lib.data_sets import WARM_UP_LINES, classes_in, file_in
from scripts.lib.papers import CUT_DOWN, METHODS, OF_FILES, WHILE_LEARNING, as_typed, cut, deviations, figures, measured
from scripts.lib.processes import TOOLS, BenchError

# A program that prints the mean seconds of predicting the first lines of a file, one by one.
ONE_BY_ONE = """
import gzip, itertools, sys, time, xclass
model, test, count, *flags = sys.argv[1:]
with gzip.open(test, "rt") if test.endswith(".gz") else open(test) as file:
    lines = [line for line in itertools.islice(file, int(count)) if line.strip()]
with xclass.load(model, **{flag.lstrip("-"): True for flag in flags}) as learner:
    learner.predict(lines[0])
    start = time.perf_counter()
    for line in lines:
        learner.predict(line)
    print((time.perf_counter() - start) / len(lines))
"""
PREDICTED_ONE_BY_ONE = 2000  # examples


def program() -> str:
    """Return a digest of the package's sources."""
    root = Path(importlib.util.find_spec("xclass").origin).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run(words: list[str], folder: Path) -> tuple[str, float]:
    """Run xclass with its progress on this terminal; return its standard error and the seconds it took."""
    print(as_typed(words), flush=True)
    start = time.perf_counter()
    lines = []
    with subprocess.Popen(
        [*TOOLS["xclass"], *words], cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        for line in child.stderr:
            lines.append(line.decode(errors="replace"))
            sys.stderr.write(lines[-1])
            sys.stderr.flush()
    if child.returncode:
        raise BenchError(f"exit status {child.returncode}: {lines[-1].strip() if lines else 'no message'}")
    return "".join(lines), time.perf_counter() - start


def warm_up(learn: list[str], folder: Path) -> None:
    """Learn a few lines by the same command, so that nothing is left to compile; a mistake will show later."""
    train = folder / learn[1]
    with gzip.open(train) if train.suffix == ".gz" else open(train, "rb") as file:
        (folder / "few.vw").write_bytes(b"".join(itertools.islice(file, WARM_UP_LINES)))
    command = [*TOOLS["xclass"], "-d", "few.vw", *learn[2:], "--quiet"]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)


def counted(test: Path, predictions: Path) -> float:
    """Return the share of wrong predictions in percent, where the summary does not have it."""
    wrong = n = 0
    with gzip.open(test) if test.suffix == ".gz" else open(test, "rb") as truth, open(predictions, "rb") as predicted:
        for line, prediction in zip(filter(bytes.strip, truth), predicted, strict=True):
            n += 1
            wrong += int(line.split(None, 1)[0]) != int(prediction.split(None, 1)[0])
    return 100 * wrong / n


def milliseconds(folder: Path, test: str, model: str, flags: Sequence[str]) -> float:
    """Return the mean time of predicting an example of a file."""
    command = [sys.executable, "-c", ONE_BY_ONE, model, test, str(PREDICTED_ONE_BY_ONE), *flags]
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode:
        raise BenchError(f"predicting one by one: {result.stderr.strip()[-500:]}")
    return 1000 * float(result.stdout)


def of_training(wanted: Iterable[str]) -> dict[str, str]:
    """Return the measures of the training file -> their names for the test file."""
    return {name: name.removeprefix("train_") for name in wanted if name.startswith("train")}


def commands(
    folder: Path, method: str, options: list[str], wanted: dict, testing: Sequence[str] = ()
) -> tuple[list[str], list[str] | None, list[str] | None]:
    """Return the commands that train, test, and test with the training file; None for one that no measure needs."""
    train, test = ((file_in(folder, name) or Path(name)).name for name in ("train.vw", "test.vw"))
    model, seen = method + ".model", of_training(wanted)
    learn = ["-d", train, *options, "-f", model]

    def predict(file: str, *more: str, names: set[str]) -> list[str] | None:
        words = ["-d", file, *([] if "squared" in names else ["-t"]), "-i", model, *more, *testing]
        words += ["--top_k", "5"] if "top5" in names else []
        words += ["--perplexity"] if {"perplexity", "squared"} & names else []
        return words if names else None

    of_test = wanted.keys() - {*WHILE_LEARNING, *OF_FILES} - seen.keys()
    return learn, predict(test, "-p", method + ".predictions", names=of_test), predict(train, names=set(seen.values()))


def measure(folder: Path, all_commands: Sequence, wanted: dict, small: bool) -> dict[str, float]:
    """Train, test, and return measure -> figure; taken from done.jsonl where that has it."""
    learn, predict, again = all_commands
    files = [file_in(folder, name).stat() for name in ("train.vw", "test.vw")]
    key = [program(), *all_commands, sorted(wanted), [[path.st_size, path.st_mtime_ns] for path in files]]
    path_of_results = folder / "done.jsonl"
    if path_of_results.exists():
        for line in path_of_results.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n") and (old := json.loads(line))["key"] == key:
                print(as_typed(learn) + "\n  as measured before", flush=True)
                return old["found"]
    if not small:
        warm_up(learn, folder)
    summary, seconds = run(learn, folder)
    values = {"seconds": seconds}
    values |= {name: measured(summary, name) for name in WHILE_LEARNING if name in wanted}
    if predict:
        summary, _ = run(predict, folder)
        for name in [name for name in wanted if name not in (*WHILE_LEARNING, *OF_FILES, *of_training(wanted))]:
            if name == "error" and "average loss = n.a." in summary:  # as after --oaa_subsample
                values[name] = counted(file_in(folder, "test.vw"), folder / predict[predict.index("-p") + 1])
            else:
                values[name] = measured(summary, name)
    model = learn[-1]
    if again:
        summary, _ = run(again, folder)
        values |= {name: measured(summary, name) for name in of_training(wanted)}
    if "megabytes" in wanted:
        values["megabytes"] = (folder / model).stat().st_size / 1e6
    if "milliseconds" in wanted:
        flags = [word for word in predict or () if word == "--exact"]
        values["milliseconds"] = milliseconds(folder, file_in(folder, "test.vw").name, model, flags)
    with open(path_of_results, "a", encoding="utf-8") as file:
        file.write(json.dumps({"key": key, "found": values}) + "\n")
    return values


def repeated(given: argparse.Namespace, data: Path, all_commands: Sequence, wanted: dict) -> dict:
    """Return `found`, the mean figures of the runs that a row needs, and their standard deviations, `deviations`."""
    if given.runs < 2 or not deviations(given.figures):
        return {"found": measure(data, all_commands, wanted, given.small)}
    learn, *tests = all_commands
    seeds = map(str, range(1, given.runs + 1))
    runs = [
        measure(data, [[*learn[:-2], "--random_seed", seed, *learn[-2:]], *tests], wanted, given.small)
        for seed in seeds
    ]
    found = {name: statistics.mean(run[name] for run in runs) for name in runs[0]}
    return {"found": found, "deviations": {name: statistics.stdev(run[name] for run in runs) for name in found}}


def note(folder: Path, **row) -> None:
    """Add a row to those the table shows."""
    with open(folder / "rows.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def tuned(folder: Path, given: argparse.Namespace, words: list[str]) -> list[str]:
    """Return the options of the best of some random settings, after the command's own."""
    train = file_in(folder, "train.vw")
    share = 1.0 if "--passes" in words else 0.1  # small sets are learned in several passes
    key = [words, given.probes, share, train.stat().st_size, train.stat().st_mtime_ns]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]  # other data or options, another search
    state = folder / f"{given.method}.{digest}.tune"
    return [*words, *search.best(train, words, classes_in(folder), given.probes, share, state)]


def main() -> int:
    """Make the row; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("method", metavar="METHOD")
    parser.add_argument("setting", metavar="SETTING")
    parser.add_argument("figures", metavar="FIGURES")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--dry_run", action="store_true")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--known", default="", metavar="WORDS", help="options that xclass has; asked if not given")
    parser.add_argument("--probes", type=int, default=0, metavar="N")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    words = sys.argv[1:]
    if words == ["--list"]:
        print(*METHODS)
        print(*sorted(search.known_options()))
        return 0
    at = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:at])
    between = words.index("--", at + 1) if "--" in words[at + 1 :] else len(words)
    given.options, given.testing = words[at + 1 : between], words[between + 1 :]
    if not given.published and given.method not in METHODS:
        parser.error(f"METHOD {given.method}: must be one of {', '.join(METHODS)}")
    try:
        return make(given)
    except BenchError as error:
        print(f"row: {given.method}, {given.setting}: {error}", file=sys.stderr)
        return 1


def make(given: argparse.Namespace) -> int:
    """Execute what the command line requests."""
    wanted = figures(given.figures)
    row = {"method": given.method, "setting": given.setting, "paper": wanted, "of_paper": deviations(given.figures)}
    if given.published:
        print(f"published: {given.method}, {given.setting}: {given.figures}", flush=True)
        if not given.dry_run:
            note(given.folder, **row, found={}, command="")
        return 0
    data = given.data or given.folder
    k = "K" if given.dry_run and file_in(given.folder, "labels.txt") is None else str(classes_in(given.folder))
    less = str(int(k) - 1) if k.isdigit() else "K-1"
    words = [*METHODS[given.method].split(), *given.options]
    words = [word.replace("{K}", k).replace("{K-1}", less) for word in words]
    if given.small:
        words = cut(words, {**CUT_DOWN, "--leaf_classes": int(k) if k.isdigit() else 1})
    lacking = search.unknown([*words, *given.testing], set(given.known.split()))
    if lacking:
        print(f"left out: {given.method}, {given.setting}: xclass has no {' and no '.join(lacking)}", flush=True)
        return 0
    if given.tuned and not given.probes:
        print(f"left out: {given.method}, {given.setting}: these options are not published; --probes 59 looks for them")
        if not given.dry_run:
            note(given.folder, **row, found={}, command="", left_out=True)
        return 0
    if given.dry_run:
        print(f"{given.method}, {given.setting}; figures of the paper: {given.figures}")
        print(f"$ cd {shlex.quote(str(data))}")
        if not k.isdigit():  # the labels are not there yet
            print("$ K=$(gzip -cdf labels.txt* | wc -l)")
        if given.tuned:
            print(f"  the best of {given.probes} settings, xclass tune --method random, is added to:")
        for command in commands(data, given.method, words, wanted, given.testing):
            if command:
                print(re.sub(r" K(-1)?(?= |$)", lambda found: " $((K-1))" if found[1] else " $K", as_typed(command)))
        return 0
    try:
        if given.tuned:
            words = tuned(data, given, words)
        all_commands = commands(data, given.method, words, wanted, given.testing)
        note(given.folder, **row, **repeated(given, data, all_commands, wanted), command=shlex.join(all_commands[0]))
    except BenchError as error:
        note(given.folder, **row, found={}, command=shlex.join(words), failed=str(error))
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
