"""Compare xclass with Vowpal Wabbit as whole processes: error, time and memory, side by side.

    python scripts/bench.py DATA_DIR --sets panlex,spelling --reduction recall_tree --args '-b 24'
    python scripts/bench.py DATA_DIR --table all --repetitions 5

The second prints every comparison there is, see bench_table.py.

DATA_DIR/SET holds train.vw, test.vw and labels.txt (one line per class), each plain or `.gz`, or the words of a text;
they are unpacked before any clock starts. Every repetition runs one tool after the other, training with `-f` and then
testing with `-t -i`, so that whatever else the machine does meets both. Wall time runs from starting a process to its
end; CPU and peak memory are what the system counted for it. Errors are counted here, from the predictions. xclass
learns a few lines first, unmeasured, so that nothing has to be compiled later.

`--beside "cpt"` (or any other reduction and options of it) has xclass run once more beside the two, with that.

`--reach` also asks how long xclass takes, from the start of its process, until its average progressive loss is down
to what Vowpal Wabbit ends with.

The report is a Markdown table on standard output; `--json FILE` keeps every single measurement.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gzip
import importlib.metadata
import itertools
import json
import math
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

TOOLS = {"xclass": [sys.executable, "-m", "xclass"], "vw": [sys.executable, "-m", "vowpalwabbit"]}
WARM_UP_LINES = 200
FILES = ("train.vw", "test.vw", "labels.txt")


class BenchError(Exception):
    """A measurement that cannot be made; the message is all the user sees."""


@dataclass
class Tool:
    """One of what is compared."""

    name: str  # in the report
    program: str  # a key of TOOLS
    short: str  # in the names of its files
    reduction: str
    args: list[str]
    test_args: list[str]


@dataclass
class Run:
    """One process from start to end."""

    wall: float  # seconds
    cpu: float  # seconds, of all threads
    memory: float  # bytes, the most it held at once
    said: str  # its standard error


@dataclass
class Result:
    """One tool on one set, all repetitions."""

    set: str
    tool: str
    classes: int
    train_command: str
    train: list[Run]
    test: list[Run]
    progressive_loss: float
    test_error: float
    test_memory: float = 0.0  # bytes, the most of all test runs
    differing: int | None = None  # test predictions that are not VW's

    def median(self, phase: str, what: str) -> float:
        """Return the median of a measurement of the phase "train" or "test"."""
        return statistics.median(getattr(run, what) for run in getattr(self, phase))


# -- one process -------------------------------------------------------------------------------------------------


def measure(command: list[str], folder: Path) -> Run:
    """Run a command to its end.

    The system counts the peak memory of a process from before it is replaced by the command, so figures below
    this script's own (some 20 MB) cannot be seen.
    """
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "w+b") as err:
        start = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            raise
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read().decode(errors="replace")
    if child.returncode != 0:
        raise BenchError(f"exit status {child.returncode} from: {shlex.join(command)}\n{said[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, said)


def summary_loss(said: str) -> float:
    """Return the average loss of the summary that ends a run."""
    found = re.findall(r"^average loss = (\S+)", said, re.MULTILINE)
    if not found:
        raise BenchError(f"no average loss in the summary:\n{said[-2000:]}")
    return float(found[-1])


def table_row(line: str) -> tuple[float, int] | None:
    """Return average loss and number of examples of a row of the progress table; None for any other line."""
    words = line.split()
    try:
        return (float(words[0]), int(words[2])) if len(words) == 7 and float(words[1]) >= 0 else None
    except ValueError:
        return None


def test_error(data: Path, predictions: Path) -> float:
    """Return the share of examples whose predicted class is wrong."""
    wrong = n = 0
    with open(data, "rb") as truth, open(predictions, "rb") as answers:
        for line, answer in itertools.zip_longest(truth, answers):
            if line is None or answer is None:
                raise BenchError(f"{data} and {predictions} differ in length")
            if not line.strip():
                continue
            n += 1
            wrong += int(line.split(None, 1)[0]) != float(answer.split(None, 1)[0])
    return wrong / n


# -- one set -----------------------------------------------------------------------------------------------------


def unpack(source: Path, target: Path) -> int:
    """Put a set's files, unpacked, into `target`; return the number of classes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        plain, packed = source / name, source / (name + ".gz")
        if not (target / name).exists():
            if not plain.exists() and not packed.exists():
                raise BenchError(f"there is neither {plain} nor {packed}")
            with open(plain, "rb") if plain.exists() else gzip.open(packed) as f, open(target / "part", "wb") as g:
                shutil.copyfileobj(f, g, 1 << 20)
            (target / "part").rename(target / name)
    with open(target / "train.vw", "rb") as f, open(target / "few.vw", "wb") as g:
        g.writelines(itertools.islice(f, WARM_UP_LINES))
    with open(target / "labels.txt", "rb") as f:
        return sum(1 for line in f if line.strip())


def prepare(data_dir: Path, name: str, work: Path) -> int:
    """Put a set's files into `work / name`, made of the words of a text where it holds them; return the classes."""
    import stand_in_sets  # which imports this room

    return stand_in_sets.prepare(data_dir, name, work)[1]


def tools_of(options: argparse.Namespace) -> list[Tool]:
    """Return what the options ask to compare, in the order it runs."""
    common = shlex.split(options.args)
    found = []
    for program in [options.only] if options.only else TOOLS:
        reduction = getattr(options, program + "_reduction") or options.reduction
        args = common + shlex.split(getattr(options, program + "_args"))
        test_args = shlex.split(options.vw_test_args) if program == "vw" else []
        found.append(Tool(program, program, program, reduction, args, test_args))
    for number, words in enumerate(options.beside or [], 1):
        reduction, *more = shlex.split(words)
        found.append(Tool(f"xclass --{words}", "xclass", f"xclass{number}", reduction, common + more, []))
    return found


def commands(tool: Tool, classes: int) -> tuple[list[str], list[str]]:
    """Return the commands that train on train.vw and test on test.vw."""
    program, short = TOOLS[tool.program], tool.short
    train = [*program, "-d", "train.vw", "--" + tool.reduction, str(classes), *tool.args, "-f", short + ".model"]
    test = [*program, "-d", "test.vw", "-t", "-i", short + ".model", "-p", short + ".predictions", *tool.test_args]
    return train, test


def run_set(name: str, options: argparse.Namespace, work: Path) -> list[Result]:
    """Measure all tools on one set, interleaved."""
    folder = work / name
    classes = prepare(options.data_dir, name, work)
    tools = tools_of(options)
    results = []
    for tool in tools:
        train, test = commands(tool, classes)
        if tool.program == "xclass":
            measure([word.replace("train.vw", "few.vw") for word in train], folder)
            measure([word.replace("test.vw", "few.vw") for word in test], folder)
        results.append(Result(name, tool.name, classes, shlex.join(train[2:]), [], [], math.nan, math.nan))
    for repetition in range(options.repetitions):
        for tool, result in zip(tools, results, strict=True):
            train, test = commands(tool, classes)
            result.train.append(measure(train, folder))
            result.test.append(measure(test, folder))
            loss = summary_loss(result.train[-1].said)
            error = test_error(folder / "test.vw", folder / (tool.short + ".predictions"))
            if repetition and (loss, error) != (result.progressive_loss, result.test_error):
                print(f"bench: {tool.name} on {name} gives another answer than before", file=sys.stderr)
            result.progressive_loss, result.test_error = loss, error
            result.test_memory = max(result.test_memory, result.test[-1].memory)
            print(
                f"{name} {repetition + 1}/{options.repetitions} {tool.name}: train {result.train[-1].wall:.2f} s, "
                f"test {result.test[-1].wall:.2f} s, test error {error:.4f}",
                file=sys.stderr,
                flush=True,
            )
    answers = {}
    for tool in tools:
        lines = (folder / (tool.short + ".predictions")).read_text().split("\n")
        answers[tool.name] = [float(line.split()[0]) for line in lines if line]
    for result in results:
        if "vw" in answers and result.tool != "vw":
            both = zip(answers[result.tool], answers["vw"], strict=True)
            result.differing = sum(ours != theirs for ours, theirs in both)
    return results


def reach(name: str, options: argparse.Namespace, work: Path, peer: Result) -> dict:
    """Time xclass until its average loss is the peer's last; `seconds` is None where it never is."""
    folder = work / name
    found = {"set": name, "loss": peer.progressive_loss, "seconds": None, "examples": None}
    times = []
    for _ in range(options.repetitions):
        command = [*commands(tools_of(options)[0], peer.classes)[0], "-P", str(options.reach_every)]
        start = time.perf_counter()
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            reached = None
            said = []
            for line in child.stderr:
                row = table_row(line.decode(errors="replace"))
                said.append(line.decode(errors="replace"))
                if row and reached is None and row[0] <= peer.progressive_loss:
                    reached = time.perf_counter() - start
                    found["examples"] = row[1]
        if child.returncode != 0:
            raise BenchError(f"exit status {child.returncode} from: {shlex.join(command)}\n{''.join(said)[-2000:]}")
        if reached is None and summary_loss("".join(said)) <= peer.progressive_loss:
            reached, found["examples"] = time.perf_counter() - start, "all"
        if reached is not None:
            times.append(reached)
    if times:
        found["seconds"] = statistics.median(times)
        found["ratio"] = found["seconds"] / peer.median("train", "wall")
    print(f"{name} reaches {peer.progressive_loss:.4f}: {found['seconds']} s", file=sys.stderr, flush=True)
    return found


# -- the report --------------------------------------------------------------------------------------------------


def machine() -> dict[str, str | int]:
    """Return where and with what the measurements were made."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = found.group(1).strip() if found else cpu
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {"python": platform.python_version()}
    for package in ("xclass", "vowpalwabbit", "napkinxc", "fasttext-wheel", "numba", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    root = Path(__file__).resolve().parent.parent
    git = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--exclude=*"]
    with contextlib.suppress(OSError):
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
        versions["commit"] = commit or "unknown"
    return {"date": datetime.date.today().isoformat(), "cpu": cpu, "cores": cores, "versions": versions}


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean; NaN of nothing."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def ratio_to_vw(results: list[Result], of: Result, phase: str) -> float | None:
    """Return the wall time of a result over VW's on the same set; None for VW and where it did not run."""
    peer = next((r for r in results if r.set == of.set and r.tool == "vw"), None)
    return None if peer is None or of is peer else of.median(phase, "wall") / peer.median(phase, "wall")


def report(options: argparse.Namespace, results: list[Result], reached: list[dict], where: dict) -> str:
    """Return the Markdown report."""
    found: dict[str, list[tuple[float, float]]] = {}  # a tool's ratios, set by set
    columns = ["set", "K", "tool", "test error", "progressive loss", "train s", "CPU s", "peak MB", "test s", "peak MB"]
    columns += ["train ratio", "test ratio", "other answers"]
    lines = ["| " + " | ".join(columns) + " |", "| --- | --: | --- " + "| --: " * 10 + "|"]
    for r in results:
        own = ["", "", ""]
        train, test = (ratio_to_vw(results, r, phase) for phase in ("train", "test"))
        if train and test:
            own = [f"{train:.2f}", f"{test:.2f}", str(r.differing)]
            found.setdefault(r.tool, []).append((train, test))
        cells = [
            r.set,
            str(r.classes),
            r.tool,
            f"{r.test_error:.4f}",
            f"{r.progressive_loss:.4f}",
            f"{r.median('train', 'wall'):.2f}",
            f"{r.median('train', 'cpu'):.2f}",
            f"{max(run.memory for run in r.train) / 1e6:.0f}",
            f"{r.median('test', 'wall'):.2f}",
            f"{r.test_memory / 1e6:.0f}",
            *own,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    for tool, pairs in found.items():
        means = [f"{geometric_mean(list(one)):.2f}" for one in zip(*pairs, strict=True)]
        lines.append(f"| geometric mean | | {tool}" + " |" * 8 + " " + " | ".join(means) + " | |")
    if reached:
        lines += [
            "",
            "| set | VW's progressive loss | reached after s | examples | VW's train s | ratio |",
            "| --- | --: | --: | --: | --: | --: |",
        ]
        peers = {r.set: r.median("train", "wall") for r in results if r.tool == "vw"}
        for one in reached:
            if one["seconds"] is None:
                middle = "not reached | | "
            else:
                middle = f"{one['seconds']:.2f} | {one['examples']} | "
            ratio = f"{one['ratio']:.2f}" if one["seconds"] is not None else ""
            lines.append(f"| {one['set']} | {one['loss']:.4f} | {middle}{peers[one['set']]:.2f} | {ratio} |")
        made_it = [one["ratio"] for one in reached if one["seconds"] is not None]
        of = f" of the {len(made_it)} that reached it" if len(made_it) < len(reached) else ""
        lines.append(f"| geometric mean{of} | | | | | {geometric_mean(made_it):.2f} |")
    lines += ["", measured_on(options.repetitions, where)]
    lines += ["", *(f"    {command}" for command in dict.fromkeys(r.train_command for r in results))]
    return "\n".join(lines)


def measured_on(repetitions: int, where: dict) -> str:
    """Return the line that says how, when and with what."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"Runs, interleaved: {repetitions}; times are medians, ratios those of xclass over the other's. "
        f"{where['date']}, {where['cpu']}, {where['cores']} cores, {versions}."
    )


def compare(options: argparse.Namespace, work: Path) -> None:
    """Measure all sets and print the report."""
    results: list[Result] = []
    reached = []
    for name in options.sets.split(","):
        found = run_set(name, options, work)
        results += found
        if options.reach:
            peer = next(r for r in found if r.tool == "vw")
            reached.append(reach(name, options, work, peer))
    where = machine()
    print(report(options, results, reached, where), flush=True)
    if options.json:
        kept = {**where, "repetitions": options.repetitions, "results": [asdict(r) for r in results], "reach": reached}
        options.json.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> int:
    """Measure, report, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR", help="folder of data sets")
    parser.add_argument("--sets", help="names of sets, by commas (panlex,wordnet,wiki,ptb,spelling)")
    parser.add_argument("--table", metavar="PARTS", help="all, or parts by commas: see bench_table.py")
    parser.add_argument("--methods", help="of the part `peers`, by commas (all)")
    parser.add_argument("--reduction", default="recall_tree", help="its option, without dashes")
    parser.add_argument("--args", default="-b 24 --loss_function logistic", help="options of both tools")
    parser.add_argument("--xclass_reduction", help="where it is another one for xclass")
    parser.add_argument("--vw_reduction", help="and for VW")
    parser.add_argument("--xclass_args", default="", help="options of xclass alone")
    parser.add_argument("--vw_args", default="", help="options of VW alone")
    parser.add_argument("--vw_test_args", default="", help="options VW needs again to test")
    parser.add_argument("--beside", action="append", metavar="WORDS", help="one more of xclass: reduction, options")
    parser.add_argument("--repetitions", type=int, default=3, metavar="R", help="runs of each")
    parser.add_argument("--only", choices=list(TOOLS), help="measure one tool")
    parser.add_argument("--reach", action="store_true", help="time xclass until it is as good as VW at its end")
    parser.add_argument("--reach_every", type=int, default=1000, metavar="N", help="examples between looks for --reach")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for unpacked data and models, kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements here")
    options = parser.parse_args()
    if options.reach and options.only:
        parser.error("--reach compares both tools; leave out --only")
    if options.methods and "peers" not in (options.table or "").replace("all", "peers").split(","):
        parser.error("--methods chooses from the part peers; give --table peers")
    if not all(shlex.split(words) for words in options.beside or ()):
        parser.error("--beside: name a reduction, without dashes")
    if options.repetitions < 1:
        parser.error("--repetitions: at least 1")
    try:
        with contextlib.ExitStack() as stack:
            work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            work.mkdir(parents=True, exist_ok=True)
            if options.table:
                import bench_table

                return bench_table.run(options, work)
            options.sets = options.sets or "panlex,wordnet,wiki,ptb,spelling"
            compare(options, work)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    import bench  # one of it, whoever imports it

    sys.exit(bench.main())
