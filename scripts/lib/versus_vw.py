"""Compare error, time and memory of xclass and Vowpal Wabbit on several sets, each run in a process of its own."""

from __future__ import annotations

import json
import math
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, BenchError, Run, machine, measure
from scripts.lib.results import geometric_mean, summary_loss, table_row, test_error


@dataclass
class Tool:
    """Describe a program with options, which is compared with others."""

    name: str  # name in the report
    program: str  # key of TOOLS
    short: str  # beginning of the names of its files
    reduction: str
    args: list[str]
    test_args: list[str]


@dataclass
class Result:
    """Hold the measurements of a tool on a set, over all repetitions."""

    set: str
    tool: str
    classes: int
    train_command: str
    train: list[Run]
    test: list[Run]
    progressive_loss: float
    test_error: float
    test_memory: float = 0.0  # bytes, largest peak of all test runs
    differing: int | None = None  # number of test predictions that differ from VW's

    def median(self, phase: str, measure: str) -> float:
        """Return the median over all repetitions of a field of `Run`, for the phase "train" or "test"."""
        return statistics.median(getattr(run, measure) for run in getattr(self, phase))


@dataclass
class Comparison:
    """Hold the options of a comparison.

    Attributes
    ----------
    data_dir, sets : folder of the data sets, and the names of those to use
    reduction, args : reduction and options of both programs
    xclass_reduction, vw_reduction : reduction of one program, if it differs
    xclass_args, vw_args : additional options of one program
    vw_test_args : additional options of VW in testing
    beside : further reductions of xclass with options, without dashes, to measure as well
    repetitions : number of runs of each tool
    only : the only program to run, "xclass" or "vw"; None for both
    reach : whether to measure how long xclass needs to reach VW's progressive loss
    reach_every : number of examples between rows of the progress table, by which `reach` measures
    json : file for the results, or None
    """

    data_dir: Path
    sets: list[str]
    reduction: str = "recall_tree"
    args: str = "-b 24 --loss_function logistic"
    xclass_reduction: str | None = None
    vw_reduction: str | None = None
    xclass_args: str = ""
    vw_args: str = ""
    vw_test_args: str = ""
    beside: list[str] | None = None
    repetitions: int = 3
    only: str | None = None
    reach: bool = False
    reach_every: int = 1000
    json: Path | None = None


# -- one set -----------------------------------------------------------------------------------------------------


def tools_of(options: Comparison) -> list[Tool]:
    """Return the tools that the options select, in the order in which they run."""
    common = shlex.split(options.args)
    tools = []
    for program in [options.only] if options.only else TOOLS:
        reduction = getattr(options, program + "_reduction") or options.reduction
        args = common + shlex.split(getattr(options, program + "_args"))
        test_args = shlex.split(options.vw_test_args) if program == "vw" else []
        tools.append(Tool(program, program, program, reduction, args, test_args))
    for number, words in enumerate(options.beside or [], 1):
        reduction, *more = shlex.split(words)
        tools.append(Tool(f"xclass --{words}", "xclass", f"xclass{number}", reduction, common + more, []))
    return tools


def commands(tool: Tool, classes: int) -> tuple[list[str], list[str]]:
    """Return the commands that train on train.vw and test on test.vw."""
    program, short = TOOLS[tool.program], tool.short
    train = [*program, "-d", "train.vw", "--" + tool.reduction, str(classes), *tool.args, "-f", short + ".model"]
    test = [*program, "-d", "test.vw", "-t", "-i", short + ".model", "-p", short + ".predictions", *tool.test_args]
    return train, test


def run_set(name: str, options: Comparison, work: Path) -> list[Result]:
    """Measure all tools on one set; in each repetition, every tool runs once."""
    folder, classes = prepare(options.data_dir, name, work)
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
            loss = summary_loss(result.train[-1].stderr)
            error = test_error(folder / "test.vw", folder / (tool.short + ".predictions"))
            if repetition and (loss, error) != (result.progressive_loss, result.test_error):
                print(f"{tool.name} on {name} gives another answer than before", file=sys.stderr)
            result.progressive_loss, result.test_error = loss, error
            result.test_memory = max(result.test_memory, result.test[-1].memory)
            print(
                f"{name} {repetition + 1}/{options.repetitions} {tool.name}: train {result.train[-1].wall:.2f} s, "
                f"test {result.test[-1].wall:.2f} s, test error {error:.4f}",
                file=sys.stderr,
                flush=True,
            )
    predictions = {}
    for tool in tools:
        lines = (folder / (tool.short + ".predictions")).read_text().split("\n")
        predictions[tool.name] = [float(line.split()[0]) for line in lines if line]
    for result in results:
        if "vw" in predictions and result.tool != "vw":
            both = zip(predictions[result.tool], predictions["vw"], strict=True)
            result.differing = sum(label != label_vw for label, label_vw in both)
    return results


def reach(name: str, options: Comparison, work: Path, peer: Result) -> dict:
    """Measure the seconds until the average loss of xclass is as low as the final one of VW.

    `peer` is the result of VW. In the record that is returned, `seconds` is None if xclass never reaches this loss.
    """
    folder = work / name
    result = {"set": name, "loss": peer.progressive_loss, "seconds": None, "examples": None}
    times = []
    for _ in range(options.repetitions):
        command = [*commands(tools_of(options)[0], peer.classes)[0], "-P", str(options.reach_every)]
        start = time.perf_counter()
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            reached = None
            lines = []
            for line in child.stderr:
                row = table_row(line.decode(errors="replace"))
                lines.append(line.decode(errors="replace"))
                if row and reached is None and row[0] <= peer.progressive_loss:
                    reached = time.perf_counter() - start
                    result["examples"] = row[1]
        if child.returncode != 0:
            raise BenchError(f"exit status {child.returncode} from: {shlex.join(command)}\n{''.join(lines)[-2000:]}")
        if reached is None and summary_loss("".join(lines)) <= peer.progressive_loss:
            reached, result["examples"] = time.perf_counter() - start, "all"
        if reached is not None:
            times.append(reached)
    if times:
        result["seconds"] = statistics.median(times)
        result["ratio"] = result["seconds"] / peer.median("train", "wall")
    print(f"{name} reaches {peer.progressive_loss:.4f}: {result['seconds']} s", file=sys.stderr, flush=True)
    return result


# -- the report --------------------------------------------------------------------------------------------------


def ratio_to_vw(results: list[Result], of: Result, phase: str) -> float | None:
    """Return the wall time of a result divided by VW's on the same set; None for VW itself, or if VW did not run."""
    peer = next((r for r in results if r.set == of.set and r.tool == "vw"), None)
    return None if peer is None or of is peer else of.median(phase, "wall") / peer.median(phase, "wall")


def report(options: Comparison, results: list[Result], reached: list[dict], where: dict) -> str:
    """Return the report in Markdown: a table of all results, ratios to VW, and the commands."""
    ratios: dict[str, list[tuple[float, float]]] = {}  # tool -> ratios of training and testing on each set
    columns = ["set", "K", "tool", "test error", "progressive loss", "train s", "CPU s", "peak MB", "test s", "peak MB"]
    columns += ["train ratio", "test ratio", "other answers"]
    lines = ["| " + " | ".join(columns) + " |", "| --- | --: | --- " + "| --: " * 10 + "|"]
    for r in results:
        own = ["", "", ""]
        train, test = (ratio_to_vw(results, r, phase) for phase in ("train", "test"))
        if train and test:
            own = [f"{train:.2f}", f"{test:.2f}", str(r.differing)]
            ratios.setdefault(r.tool, []).append((train, test))
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
    for tool, pairs in ratios.items():
        means = [f"{geometric_mean(list(row)):.2f}" for row in zip(*pairs, strict=True)]
        lines.append(f"| geometric mean | | {tool}" + " |" * 8 + " " + " | ".join(means) + " | |")
    if reached:
        lines += [
            "",
            "| set | VW's progressive loss | reached after s | examples | VW's train s | ratio |",
            "| --- | --: | --: | --: | --: | --: |",
        ]
        peers = {r.set: r.median("train", "wall") for r in results if r.tool == "vw"}
        for row in reached:
            if row["seconds"] is None:
                middle = "not reached | | "
            else:
                middle = f"{row['seconds']:.2f} | {row['examples']} | "
            ratio = f"{row['ratio']:.2f}" if row["seconds"] is not None else ""
            lines.append(f"| {row['set']} | {row['loss']:.4f} | {middle}{peers[row['set']]:.2f} | {ratio} |")
        made_it = [row["ratio"] for row in reached if row["seconds"] is not None]
        of = f" of the {len(made_it)} that reached it" if len(made_it) < len(reached) else ""
        lines.append(f"| geometric mean{of} | | | | | {geometric_mean(made_it):.2f} |")
    lines += ["", measured_on(options.repetitions, where)]
    lines += ["", *(f"    {command}" for command in dict.fromkeys(r.train_command for r in results))]
    return "\n".join(lines)


def measured_on(repetitions: int, where: dict) -> str:
    """Return the line about the date, the machine, the versions and the repetitions of the measurements."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"Runs, interleaved: {repetitions}; times are medians, ratios those of xclass over the other's. "
        f"{where['date']}, {where['cpu']}, {where['cores']} cores, {versions}."
    )


def compare(options: Comparison, work: Path) -> None:
    """Measure all sets and print the report."""
    results: list[Result] = []
    reached = []
    for name in options.sets:
        results_of_set = run_set(name, options, work)
        results += results_of_set
        if options.reach:
            peer = next(r for r in results_of_set if r.tool == "vw")
            reached.append(reach(name, options, work, peer))
    where = machine()
    print(report(options, results, reached, where), flush=True)
    if options.json:
        record = {
            **where,
            "repetitions": options.repetitions,
            "results": [asdict(r) for r in results],
            "reach": reached,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
