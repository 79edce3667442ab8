"""Train and test a method on a set, each step in a process of its own, and return what was measured as a record.

A method is a text: a tool and its words, such as `xclass --cpt {K} -b {B}`. {K} stands for the number of classes, {B}
for the bits of a set's table, {set}, {passes} and {crossed} for what [stand_ins] of experiments.ini says of a set. The
tools are

    xclass, VW      command lines without -d and -f, `xclass tune ...` among them
    merged          a number of parts, perhaps `base`, and options of xclass: the models of the parts of the data are
                    merged; with `base`, each continues from a model of the first fifth of the data
    napkinXC, fastText, estimator, reading, calls      see scripts/lib/peer_process.py

Options behind ` -- ` are those of testing.

A record has the seconds of training and testing (`train`, `test`, and with `_cpu` those of all threads), the CPU
seconds of the same for a few lines (`start_cpu`, `test_start_cpu`), the share of errors, or `precision` at RANKS for
lists of labels, bytes (`memory` at the peak, `model`), numbers of examples, and the figures of summaries (`learned`,
`tested`).
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from scripts.lib import peers
from scripts.lib.data_sets import WARM_UP_LINES
from scripts.lib.experiments import EXPERIMENTS
from scripts.lib.peers import FASTTEXT, IN_ONE_STEP, READING, VW, XCLASS
from scripts.lib.processes import TOOLS, BenchError, Run, measure
from scripts.lib.results import table_row, test_error

MERGED = "merged"
FORMATS = ("vw", "csv", "npy")  # of the files of a set
RANKS = (1, 3, 5)
READ_AS = {"fasttext": "words", "libsvm": "svm", "sklearn": "svm", "csv": "csv", "jsonl": "jsonl"}  # format -> ending
ROOMY = ((25_000, "30"), (5_000, "28"))  # classes above which --oaa gets a larger table, and its bits
EXTRA = {"aloi27": "-q ff"}  # options without which a set cannot be learned well, according to its description
VW_PART = 250  # lines; VW's --multilabel_oaa --probabilities repeats answers after 258
Record = dict[str, Any]


def words_of(method: str, name: str, classes: int) -> list[str]:
    """Return the tool and the words of a method on a set."""
    own = EXPERIMENTS["stand_ins"].sets.get(name, {})
    bits = own.get("bits", "-b 24").removeprefix("-b ")
    if "--oaa " in method:
        bits = next((more for above, more in ROOMY if classes > above), bits)
    texts = {"K": classes, "K-1": classes - 1, "B": bits}
    texts |= {key: own.get(of_row, "") for key, of_row in (("set", "options"), ("passes",) * 2, ("crossed", "crosses"))}
    found = shlex.split(re.sub(r"\{(K-1|K|B|set|passes|crossed)\}", lambda match: str(texts[match[1]]), method))
    wants_more = found[0] in (XCLASS, VW, MERGED) and "{set}" not in method
    return found + (shlex.split(EXTRA.get(name, "")) if wants_more else [])


def run(tool: str, words: list[str], folder: Path, limit: int | None = None) -> Record:
    """Train and test a method in the folder of a set, which has train.vw and test.vw, or the same as .csv or .npy.

    Tool and words are what `words_of` returns. A process is stopped after `limit` CPU seconds; the record then has
    only `stopped`.
    """
    kind = next(kind for kind in FORMATS if (folder / f"train.{kind}").exists())
    record: Record = {f"{part}_examples": count(folder / f"{part}.{kind}") for part in ("train", "test")}
    cut(folder, kind, "train", "few", min(WARM_UP_LINES, max(1, record["train_examples"] // 2)))
    try:
        if tool in (XCLASS, VW):
            record |= _command(tool, words, folder, kind, limit)
        elif tool == MERGED:
            record |= _merged(words, folder, kind)
        else:
            record |= _child(tool, words, folder, kind, limit)
    except BenchError as error:
        if limit and str(error).startswith("exit status -"):  # the signal by which a process ends at its limit
            return {"stopped": limit}
        raise
    return record


# -- files ------------------------------------------------------------------------------------------------------------


def count(path: Path) -> int:
    """Return the number of examples in a file."""
    if path.suffix == ".npy":
        return len(np.load(path, mmap_mode="r"))
    with open(path, "rb") as file:
        return sum(1 for _ in file) - (path.suffix == ".csv")


def cut(folder: Path, kind: str, part: str, target: str, end: int, begin: int = 0) -> None:
    """Write the examples of a part of a set from `begin` to `end` to another file of its folder."""
    if kind == "npy":
        for ending in (".npy", ".labels.npy"):
            np.save(folder / f"{target}{ending}", np.load(folder / f"{part}{ending}")[begin:end])
        return
    with open(folder / f"{part}.{kind}", "rb") as whole, open(folder / f"{target}.{kind}", "wb") as out:
        out.writelines([next(whole)] if kind == "csv" else [])
        out.writelines(itertools.islice(whole, begin, end))


def has_lists(folder: Path, kind: str) -> bool:
    """Return whether an example of the first lines of a set has several labels."""
    if kind != "vw":
        return False
    with open(folder / "train.vw", "rb") as file:
        return any(len(labels_of(line)) > 1 for line in itertools.islice(file, 1000))


def labels_of(line: bytes) -> set[bytes]:
    """Return the labels of a line of VW text."""
    words = line.partition(b"|")[0].split()
    return set(words[0].split(b",")) if words else set()


# -- command lines of xclass and VW -----------------------------------------------------------------------------------


def _command(tool: str, words: list[str], folder: Path, kind: str, limit: int | None) -> Record:
    program, lists = TOOLS["xclass" if tool == XCLASS else "vw"], has_lists(folder, kind)
    at = words.index("--") if "--" in words else len(words)
    words, asked = words[:at], words[at + 1 :]
    learning = [*words, "-f", "m.model"]
    (folder / "m.model").unlink(missing_ok=True)  # of another tool, which none of them would replace
    own = words.index("--bern_hyper") if tool == VW and "--bern_hyper" in words else len(words)
    predicting = ["-t", "-i", "m.model", "-p", "p", *asked, *words[own : own + 2]]  # which VW's models do not keep
    if tool == XCLASS:
        predicting += ["--summary", "tested.json"]
        predicting += ["--top_k", str(RANKS[-1]), "--threshold", "0"] if lists else []
    else:
        learning += ["-k", "--cache_file", "vw.cache"] if "--passes" in words else []
        predicting += ["--loss_function", "logistic", "--probabilities"] if lists else []
        predicting += ["--top_k", str(RANKS[-1])] if "--plt" in words else []
    if tool == XCLASS and words[:1] == ["tune"]:
        steps = {"train": measure([*program, "tune", "-d", f"train.{kind}", *learning[1:], "--quiet"], folder, limit)}
        found = {"options": (folder / "stdout").read_text(encoding="utf-8").splitlines()[-1]}
    elif "--workers" in words:
        steps = {"train": measure([*program, *learning, "-d", f"train.{kind}"], folder, limit)}
        found = {"learned": _costs(steps["train"].stderr)}
    else:
        told = ["--summary", "learned.json"] if tool == XCLASS else []
        steps = _timed([*program, *learning, *told], "train", folder, kind, tool, limit)
        found = {"curve": curve(steps["train"].stderr)}
        found |= {"learned": _figures(folder / "learned.json")} if tool == XCLASS else {}
    steps |= _timed([*program, *predicting], "test", folder, kind, tool, limit)
    found |= _seconds(steps) | {"model": (folder / "m.model").stat().st_size}
    found |= {"tested": _figures(folder / "tested.json")} if tool == XCLASS else {}
    if lists:
        true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
        best = _ranked([*program, *predicting], folder, "--multilabel_oaa" in words and tool == VW)
        return found | {"precision": precision(true, best)}
    if kind == "vw" and not asked:
        return found | {"error": test_error(folder / "test.vw", folder / "p")}
    return found | {"error": found["tested"]["average_loss"]}


def _timed(command: list[str], task: str, folder: Path, kind: str, tool: str, limit: int | None) -> dict[str, Run]:
    """Run a command on a few lines, after all is compiled, and on all lines of a part."""
    if tool == XCLASS:
        measure([*command, "-d", f"few.{kind}"], folder)
    few = measure([*command, "-d", f"few.{kind}"], folder)
    return {f"{task}_few": few, task: measure([*command, "-d", f"{task}.{kind}"], folder, limit)}


def _seconds(steps: dict[str, Run]) -> Record:
    """Return times and the peak memory."""
    found: Record = {"memory": max(one.memory for name, one in steps.items() if not name.endswith("_few"))}
    for task, start in (("train", "start_cpu"), ("test", "test_start_cpu")):
        if task in steps:
            found |= {task: steps[task].wall, f"{task}_cpu": steps[task].cpu}
        if f"{task}_few" in steps:
            found[start] = steps[f"{task}_few"].cpu
    return found


def _figures(path: Path) -> Record:
    """Return the numbers of a summary of xclass; of lists of numbers, as for RANKS, the last one."""
    summary = json.loads(path.read_text(encoding="utf-8"))
    every = {"average_loss": summary["average_loss"], **summary["figures"]}
    every = {name: value[-1] if isinstance(value, list) and value else value for name, value in every.items()}
    return {name: value for name, value in every.items() if isinstance(value, int | float)}


def _costs(printed: str) -> Record:
    """Return the mean costs of the workers of a run on a cluster, `bytes_sent` and so on."""
    costs = [
        {name.replace(" ", "_"): float(value) for name, value in re.findall(r"([A-Za-z][A-Za-z ]*) = ([\d.]+)", line)}
        for line in printed.splitlines()
        if line.startswith("worker ")
    ]
    return {name: statistics.mean(one[name] for one in costs) for name in (costs[0] if costs else ())}


def curve(printed: str) -> list[tuple[int, float]]:
    """Return the rows of a progress table as numbers of examples and average losses, the last one of all examples."""
    rows = [row for row in map(table_row, printed.splitlines()) if row]
    last = re.search(r"^number of examples = (\d+)\n(?:.*\n)*?average loss = ([\d.]+)", printed, re.MULTILINE)
    return [(n, loss) for loss, n in rows] + ([(int(last[1]), float(last[2]))] if last else [])


# -- lists of labels --------------------------------------------------------------------------------------------------


def _ranked(command: list[str], folder: Path, in_parts: bool) -> list[list[bytes]]:
    """Return the labels of each test example, best first, by the predictions that are there, or in parts."""
    if not in_parts:
        return ranked((folder / "p").read_bytes(), count(folder / "test.vw"))
    found, n = [], count(folder / "test.vw")
    for begin in range(0, n, VW_PART):
        cut(folder, "vw", "test", "part", min(n, begin + VW_PART), begin)
        measure([*command, "-d", "part.vw"], folder)
        found += ranked((folder / "p").read_bytes(), min(n, begin + VW_PART) - begin)
    return found


def ranked(written: bytes, examples: int) -> list[list[bytes]]:
    """Return the labels of each line `label:score,label:score`, best first; VW writes a blank line after each."""
    lines = written.splitlines()
    pairs = (
        [pair.rsplit(b":", 1) for pair in re.split(rb"[ ,]+", line) if pair]
        for line in lines[:: 2 if len(lines) == 2 * examples else 1]
    )
    return [[label for label, _ in sorted(of_line, key=lambda pair: -float(pair[1]))] for of_line in pairs]


def precision(true: list[set[bytes]], ranked: list[list[bytes]]) -> list[float]:
    """Return the precision at each of RANKS, over the examples that have a label."""
    pairs = [pair for pair in zip(true, ranked, strict=True) if pair[0]]
    return [sum(len(labels & set(best[:k])) for labels, best in pairs) / (k * len(pairs)) for k in RANKS]


# -- other tools ------------------------------------------------------------------------------------------------------


def _child(tool: str, words: list[str], folder: Path, kind: str, limit: int | None) -> Record:
    """Train and test by peer_process.py, whose last lines have the error and seconds."""
    ending = peers.ENDINGS.get(tool, kind) if kind == "vw" or tool == FASTTEXT else kind
    if tool == READING and kind == "vw":
        ending = READ_AS.get(words[0] if words else "vw", "vw")
    peers.convert(tool, folder, ("train", "test"), ending)
    files = [f"{part}.{ending}" for part in ("train", "test")]
    if tool in IN_ONE_STEP:
        steps = {"train": measure(peers.child(tool, *files, *words), folder, limit)}
    else:
        steps = {
            task: measure(peers.child(tool, task, file, f"{tool}.model", *words), folder, limit)
            for task, file in zip(("train", "test"), files, strict=True)
        }
    record = _seconds(steps)
    for one in steps.values():
        record |= json.loads(one.stderr.strip().splitlines()[-1])  # the seconds and the error of a test
    return record


def _merged(words: list[str], folder: Path, kind: str) -> Record:
    """Merge the models of parts of the data."""
    parts, options = int(words[0]), words[1:]
    begin, first = 0, options
    n = count(folder / f"train.{kind}")
    xclass = TOOLS["xclass"]
    merge = [*xclass, "merge", *(f"{i}.model" for i in range(parts)), "-f", "m.model", "--quiet"]
    if options[0] == "base":
        begin, options = n // 5, options[1:]
        cut(folder, kind, "train", "part", begin)
        measure([*xclass, "-d", f"part.{kind}", *options, "-f", "base.model", "--quiet"], folder)
        first, merge = ["-i", "base.model"], [*merge, "--base", "base.model"]
    for i in range(parts):
        low, high = (begin + j * (n - begin) // parts for j in (i, i + 1))
        cut(folder, kind, "train", "part", high, low)
        measure([*xclass, "-d", f"part.{kind}", *first, "-f", f"{i}.model", "--quiet"], folder)
    predict = [*xclass, "-d", f"test.{kind}", "-t", "-i", "m.model", "-p", "p", "--quiet"]
    record = _seconds({"train": measure(merge, folder), "test": measure(predict, folder)})
    return record | {"error": test_error(folder / f"test.{kind}", folder / "p")}
