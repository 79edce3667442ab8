"""Time of learning from and predicting single examples in the library, beside VW's `Workspace`.

    python -m scripts.bench.latency
    python -m scripts.bench.latency --reductions recall_tree,log_multi --rounds 30

Every example is generated, has `--features` words, and is one of `--classes` classes (1,000 at most for oaa). A learner
has learned `--trained` examples before. Then each round learns from `--examples` further ones and predicts each of them
once, one call for each: VW text, and for xclass dictionaries, too. Each system has a process of its own, and the
processes take turns, a round each. VW has the same number of bits. Prints a Markdown table of medians, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from scripts.lib.command_line import names, run
from scripts.lib.processes import BenchError
from scripts.lib.streams import write_stream

MOST_OAA_CLASSES = 1000
IN_VW = ("recall_tree", "log_multi", "oaa")
GROWING = ("cpt", "multiclass")  # reductions that need no number of classes
TEXT, DICT = "text", "dict"
Times = tuple[float, float]  # seconds of a call of learn, and of one of predict


class System:
    """A process that measures one system.

    Parameters
    ----------
    arguments : of `--worker`
    """

    def __init__(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "scripts.bench.latency", "--worker", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times: list[Times] = []

    def answer(self) -> Any:
        """Return the next answer of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("a process that measures has ended")
        return json.loads(line)

    def take_turn(self) -> None:
        """Measure a round."""
        assert self._process.stdin is not None
        print("round", file=self._process.stdin, flush=True)
        self.times += self.answer()

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def cells(self) -> list[str]:
        """Medians of learning, of predicting, and of both together."""
        columns = [
            [learn for learn, _ in self.times],
            [predict for _, predict in self.times],
            list(map(sum, self.times)),
        ]
        return [f"{1e6 * median(column):.0f}" for column in columns]


def work(system: str, reduction: str, classes: int, bits: int, stream: Path, trained: int, examples: int) -> None:
    """Measure one system: a round for each line of the standard input."""
    with open(stream, encoding="ascii") as file:
        if system == "vw":
            learn, predict = vw(reduction, classes, bits, islice(file, trained))
        else:
            learn, predict = xclass(system, reduction, classes, islice(file, trained))
        for _ in sys.stdin:
            answer = []
            for line in islice(file, examples):
                example = parsed(line) if system == DICT else (line.rstrip("\n"),)
                begin = time.perf_counter()
                learn(*example)
                middle = time.perf_counter()
                predict(example[0])
                answer.append((middle - begin, time.perf_counter() - middle))
            print(json.dumps(answer), flush=True)


def vw(reduction: str, classes: int, bits: int, lines: Iterator[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `learn` and `predict` of VW after learning from lines."""
    from vowpalwabbit import Workspace

    workspace = Workspace(f"--{reduction} {classes} -b {bits} --quiet")
    for line in lines:
        workspace.learn(line.rstrip("\n"))
    print(json.dumps(bits), flush=True)
    return workspace.learn, workspace.predict


def xclass(
    kind: str, reduction: str, classes: int, lines: Iterator[str]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `learn` and `predict` of xclass after learning from lines."""
    import xclass

    model = xclass.Learner(reduction, **({} if reduction in GROWING else {"classes": classes}))
    model.learn_many([line.rstrip("\n") for line in lines])
    print(json.dumps(model.options["bits"]), flush=True)
    return model.learn, model.predict


def parsed(line: str) -> tuple[dict[str, float], int]:
    """A line of the stream as a dictionary and its label."""
    label, features = line.split("|")
    return dict.fromkeys(features.split(), 1.0), int(label)


def measure(given: argparse.Namespace, reduction: str, folder: Path) -> list[str]:
    """Lines of the table for one reduction."""
    classes = min(given.classes, MOST_OAA_CLASSES) if reduction == "oaa" else given.classes
    stream = folder / f"{reduction}.vw"
    write_stream(stream, 1, classes, given.trained + given.rounds * given.examples, given.features)
    sizes = [str(stream), str(given.trained), str(given.examples)]
    systems = {name: System([name, reduction, str(classes), "0", *sizes]) for name in (TEXT, DICT)}
    bits = max(system.answer() for system in systems.values())
    if reduction in IN_VW and not given.no_vw:
        systems["vw"] = System(["vw", reduction, str(classes), str(bits), *sizes])
        systems["vw"].answer()
    for _ in range(given.rounds):
        for system in systems.values():
            system.take_turn()
    for system in systems.values():
        system.end()
    titles = {TEXT: "xclass, VW text", DICT: "xclass, dict", "vw": "VW, text"}
    return [
        f"| {reduction}, {classes:,} classes | {titles[name]} | {' | '.join(system.cells())} |"
        for name, system in systems.items()
    ]


def main() -> None:
    """Measure and print the table."""
    if sys.argv[1:2] == ["--worker"]:
        system, reduction, classes, bits, stream, trained, examples = sys.argv[2:]
        work(system, reduction, int(classes), int(bits), Path(stream), int(trained), int(examples))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--reductions", type=names, default=["recall_tree", "log_multi", "cpt", "multiclass", "oaa"])
    parser.add_argument("--classes", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--features", type=int, default=20, help="words of an example (default: 20)")
    parser.add_argument("--trained", type=int, default=50_000, help="examples learned before (default: 50000)")
    parser.add_argument("--examples", type=int, default=200, help="examples of a round (default: 200)")
    parser.add_argument("--rounds", type=int, default=20, help="(default: 20)")
    parser.add_argument("--no_vw", action="store_true", help="measure xclass alone")
    given = parser.parse_args()
    print("| reduction | system | learn | predict | both |")
    print("| --- | --- | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        for reduction in given.reductions:
            print("\n".join(measure(given, reduction, Path(folder))), flush=True)


if __name__ == "__main__":
    run(main)
