"""Count the files and functions of the package that nine uses pass, and the generators between bytes and a kernel.

    python -m scripts.flows             a table of all of them
    python -m scripts.flows NAME        and the functions that one of them calls, by file

A use is executed twice, and the second execution is counted, in all threads. Generators are counted where most of them
wait at the same time for a function of the package.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import sys
import tempfile
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import xclass
from scripts.lib import command_line
from xclass import serve
from xclass.cli import command
from xclass.sklearn import XClassifier

PACKAGE = str(Path(xclass.__file__).parent)
LINES = [f"{i % 3 + 1} |n word{i % 5} more:{i}" for i in range(60)]
LISTS = [f"{i % 3},{i % 4} |n word{i % 5} more:{i}" for i in range(60)]


def run(*words: str) -> None:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        command.run(words)


def recall_tree(folder: Path) -> Iterator[Callable[[], object]]:
    """A line of VW's format becomes weights of the recall tree."""
    yield lambda: run("-d", f"{folder}/data", "--recall_tree", "3", "-b", "12", "-f", f"{folder}/model")


def multiclass(folder: Path) -> Iterator[Callable[[], object]]:
    """The library predicts an example by the default learner."""
    with xclass.Learner("multiclass", bits=12) as learner:
        learner.learn_many(LINES)
        yield lambda: learner.predict(LINES[0])


def listing(folder: Path) -> Iterator[Callable[[], object]]:
    """The command lists the most probable classes of each line."""
    yield lambda: run("-d", f"{folder}/data", "--multiclass", "--top_k", "5", "-b", "12", "-p", f"{folder}/predictions")


def multilabel(folder: Path) -> Iterator[Callable[[], object]]:
    """The library learns a list of labels."""
    with xclass.Learner("multilabel", bits=12) as learner:
        learner.learn_many(LISTS)
        yield lambda: learner.learn_many(LISTS[:1])


def served(operation: str, content: Mapping[str, object]) -> Iterator[Callable[[], object]]:
    ready: SimpleQueue[Any] = SimpleQueue()
    learner = xclass.Learner("multiclass", bits=12)
    learner.learn_many(LINES)
    serving = threading.Thread(target=partial(serve.run, learner, port=0, http="0", ready=ready.put), daemon=True)
    serving.start()
    server = ready.get()
    address = f"http://127.0.0.1:{server.http.port}/v1/{operation}"
    request = urllib.request.Request(address, json.dumps(content).encode(), {"Content-Type": "application/json"})
    yield lambda: urllib.request.urlopen(request).read()
    server.stop_soon()
    serving.join()


def http(folder: Path) -> Iterator[Callable[[], object]]:
    """A server answers a request by HTTP."""
    yield from served("predict", {"lines": ["|n word1 more:2"]})


def http_learn(folder: Path) -> Iterator[Callable[[], object]]:
    """A server learns from a request by HTTP."""
    yield from served("learn", {"texts": ["word1 more"], "labels": [2]})


def tune(folder: Path) -> Iterator[Callable[[], object]]:
    """A search finds options."""
    yield lambda: run("tune", "--oaa", "3", "-d", f"{folder}/data", "--settings", "2", "-b", "12")


def estimator(folder: Path) -> Iterator[Callable[[], object]]:
    """An estimator of scikit-learn learns rows."""
    rows = np.arange(240.0).reshape(60, 4)
    yield lambda: XClassifier(bits=12).fit(rows, ["a", "b", "c"] * 20)


def estimator_of_table(folder: Path) -> Iterator[Callable[[], object]]:
    """An estimator of scikit-learn learns a table with a column of numbers and one of categories."""
    table = pd.DataFrame({"size": range(60), "colour": ["red", "green", "blue"] * 20})
    yield lambda: XClassifier(bits=12).fit(table, ["a", "b", "c"] * 20)


FLOWS = {
    flow.__name__: contextlib.contextmanager(flow)
    for flow in (recall_tree, multiclass, listing, multilabel, http, http_learn, tune, estimator, estimator_of_table)
}


class Tracer:
    """Note the functions of the package that are called while `counts` is set, in this thread and later ones."""

    def __init__(self) -> None:
        self.counts = False
        self.called: set[CodeType] = set()
        self.generators = 0  # the most that waited at the same time in one thread

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.counts or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        self.called.add(frame.f_code)
        waiting, above = 0, frame.f_back
        while above is not None:
            code = above.f_code
            waiting += bool(code.co_flags & inspect.CO_GENERATOR) and code.co_filename.startswith(PACKAGE)
            above = above.f_back
        self.generators = max(self.generators, waiting)


def traced(name: str) -> Tracer:
    """Execute a use twice, and return what the second execution called."""
    tracer = Tracer()
    threading.setprofile(tracer.note)
    sys.setprofile(tracer.note)
    try:
        # otherwise a thread that no profiler sees would learn
        alone = mock.patch("xclass.system.exclusive.to_its_end", lambda job, stop=None: job())
        with tempfile.TemporaryDirectory() as folder, alone, contextlib.redirect_stderr(io.StringIO()):
            Path(folder, "data").write_text("\n".join([*LINES, ""]))
            with FLOWS[name](Path(folder)) as flow:
                flow()
                tracer.counts = True
                flow()
                tracer.counts = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return tracer


def main() -> None:
    parser = command_line.new_parser(__doc__)
    parser.add_argument("name", nargs="?", choices=FLOWS)
    name = parser.parse_args().name
    print("| use | files | functions | generators |\n| --- | --: | --: | --: |")
    for flow in FLOWS if name is None else [name]:
        tracer = traced(flow)
        by_file: dict[str, list[str]] = defaultdict(list)
        for code in tracer.called:
            by_file[code.co_filename[len(PACKAGE) + 1 :]].append(f"{code.co_firstlineno} {code.co_name}")
        meaning = (FLOWS[flow].__doc__ or "").rstrip(".")
        print(f"| `{flow}`: {meaning} | {len(by_file)} | {len(tracer.called)} | {tracer.generators} |")
        if name is not None:
            for path, functions in sorted(by_file.items()):
                print(f"\n{path}")
                for function in sorted(functions, key=lambda text: int(text.split()[0])):
                    print(f"    {function}")


if __name__ == "__main__":
    command_line.run(main)
