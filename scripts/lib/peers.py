"""Train and test xclass, VW, napkinXC and fastText on one set, each run in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.lib.data_sets import BITS, EXTRA
from scripts.lib.processes import TOOLS, Run, machine, measure
from scripts.lib.results import test_error

XCLASS, VW, NAPKIN, FASTTEXT, SKLEARN = "xclass", "VW", "napkinXC", "fastText", "scikit-learn"
PACKAGES = {VW: "vowpalwabbit", NAPKIN: "napkinxc", FASTTEXT: "fasttext", SKLEARN: "sklearn"}
CHILDREN = {NAPKIN: "napkin", FASTTEXT: "fasttext", SKLEARN: "linear"}  # first argument of peer_process.py
ENDINGS = {NAPKIN: "svm", FASTTEXT: "words", SKLEARN: "svm"}  # of the files that these read
METHODS: dict[str, tuple[str, str]] = {  # name -> tool and its words; K number of classes, {B} bits
    "xclass": (XCLASS, "--multiclass K"),
    "xclass, 3 passes": (XCLASS, "--multiclass K --passes 3 --holdout_off"),
    "xclass --cpt": (XCLASS, "--cpt K -b {B}"),
    "xclass --cpt_tree kmeans": (XCLASS, "--cpt K --cpt_tree kmeans -b {B}"),
    "xclass --hsm": (XCLASS, "--hsm K -b {B}"),
    "xclass --recall_tree": (XCLASS, "--recall_tree K -b 24"),
    "xclass --log_multi": (XCLASS, "--log_multi K -b 24"),
    "xclass --softmax_tree": (XCLASS, "--softmax_tree K"),
    "VW --recall_tree": (VW, "--recall_tree K -b 24 --loss_function logistic"),
    "VW --log_multi": (VW, "--log_multi K -b 24"),
    "VW --ect": (VW, "--ect K -b 24"),
    "napkinXC PLT": (NAPKIN, "PLT"),
    "napkinXC HSM": (NAPKIN, "HSM tree_type=completeKaryRandom optimizer=adagrad eta=1.0 epochs=1"),
    "napkinXC HSM k-means": (NAPKIN, "HSM tree_type=hierarchicalKmeans optimizer=adagrad eta=1.0 epochs=1"),
    "fastText hierarchical": (FASTTEXT, "loss=hs epoch=5 dim=100 lr=0.5 minCount=1"),
    "fastText softmax": (FASTTEXT, "loss=softmax epoch=5 dim=100 lr=0.5 minCount=1"),
}


# -- conversion of the data for other tools


def lines_of(source: Path) -> Iterator[tuple[int, list[tuple[str, float]]]]:
    """Yield the label and the features, as (`namespace|name`, value), of each line of VW text."""
    with open(source, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            head, *spaces = line.split("|")
            if not head.split():
                continue
            features = []
            for space in spaces:
                words = space.split()
                name = words.pop(0) if words and not space[:1].isspace() else ""
                for word in words:
                    feature, _, value = word.partition(":")
                    features.append((f"{name}|{feature}", float(value or 1)))
            yield int(head.split()[0]), features


def to_fasttext(source: Path, target: Path) -> None:
    """Convert VW text to the format of fastText, with a word for each feature; values are lost."""
    with open(target, "w", encoding="utf-8", errors="surrogateescape") as out:
        for label, features in lines_of(source):
            out.write(f"__label__{label} {' '.join(name for name, _ in features)}\n")


def to_libsvm(source: Path, target: Path, vocabulary: dict[str, int], grow: bool) -> None:
    """Convert VW text to LIBSVM text; new features are added to the vocabulary with `grow`, and otherwise dropped."""
    with open(target, "w", encoding="ascii") as out:
        for label, features in lines_of(source):
            values: dict[int, float] = {}
            for name, value in features:
                j = vocabulary.get(name, -1)
                if j < 0 and grow:
                    j = vocabulary[name] = len(vocabulary) + 1
                if j >= 0:
                    values[j] = values.get(j, 0.0) + value
            cells = " ".join(f"{j}:{value:g}" for j, value in sorted(values.items()))
            out.write(f"{label} {cells}\n")


# -- one method on one set


def words_of(method: str, name: str, classes: int) -> list[str]:
    """Return the words of a command line that select a method for a set."""
    bits = BITS.get(name, 24)
    text = (
        METHODS[method][1].replace("K", str(classes), 1) if METHODS[method][0] in (XCLASS, VW) else METHODS[method][1]
    )
    return shlex.split(text.replace("{B}", str(bits)))


def convert(tool: str, folder: Path, parts: Iterable[str]) -> None:
    """Convert parts of a folder, unless they are there, for a tool that does not read VW text.

    Features that are not in the first part are left out.
    """
    vocabulary: dict[str, int] = {}
    for part in parts if tool in CHILDREN else ():
        source, target = folder / f"{part}.vw", folder / f"{part}.{ENDINGS[tool]}"
        if target.exists() and not vocabulary:
            return
        if ENDINGS[tool] == "svm":
            to_libsvm(source, target, vocabulary, not vocabulary)
        else:
            to_fasttext(source, target)


def command(tool: str, task: str, part: str, words: list[str]) -> list[str]:
    """Return the command by which a tool trains ("train") with options or tests ("test") on a part of a folder."""
    if tool in CHILDREN:
        child = [sys.executable, str(Path(__file__).with_name("peer_process.py")), CHILDREN[tool]]
        return [*child, task, f"{part}.{ENDINGS[tool]}", f"{CHILDREN[tool]}.model", *words]
    options = [*words, "-f", "m.model"] if task == "train" else ["-t", "-i", "m.model", "-p", "p"]
    return [*TOOLS["xclass" if tool == XCLASS else "vw"], "-d", f"{part}.vw", *options]


def error_of(tool: str, folder: Path, test: Run) -> float:
    """Return the error of a test on test.vw."""
    return last_record(test)["error"] if tool in CHILDREN else test_error(folder / "test.vw", folder / "p")


def last_record(test: Run) -> dict[str, float]:
    """Return the seconds and the error that peer_process.py writes after a test."""
    return json.loads(test.stderr.strip().splitlines()[-1])


def run(method: str, name: str, folder: Path, classes: int) -> dict:
    """Train and test by a method; return its times in seconds, test error and peak memory in bytes as a record."""
    tool = METHODS[method][0]
    words = words_of(method, name, classes)
    n = (folder / "test.vw").read_bytes().count(b"\n")
    if tool not in CHILDREN:
        words += shlex.split(EXTRA.get(name, ""))
    if tool == XCLASS:
        for task in ("train", "test"):  # compiles
            measure(command(tool, task, "few", words), folder)
    convert(tool, folder, ("train", "test"))
    train = measure(command(tool, "train", "train", words), folder)
    test = measure(command(tool, "test", "test", words), folder)
    error = error_of(tool, folder, test)
    seconds = last_record(test)["seconds"] if tool in CHILDREN else test.wall
    return {
        "set": name, "classes": classes, "method": method, "command": f"{tool} {' '.join(words)}",
        "train": train.wall, "train_cpu": train.cpu, "test": seconds, "test_us": seconds / n * 1e6, "error": error,
        "memory": max(train.memory, test.memory), **machine(),
    }  # fmt: skip


def missing(tool: str) -> bool:
    """Return whether the package of a tool is not installed."""
    return tool != XCLASS and importlib.util.find_spec(PACKAGES[tool]) is None


def say_what_is_missing(tools: Iterable[str]) -> None:
    """Print those of the tools that are not installed."""
    for tool in dict.fromkeys(tools):
        if missing(tool):
            print(f"peers: {tool} is not installed and left out", file=sys.stderr)


def unknown(words: list[str]) -> bool:
    """Return whether this version of xclass lacks the option that is the first word, a reduction."""
    from xclass.cli import command as cli
    from xclass.options.declare import options_of

    known = {
        flag
        for group in cli.option_groups()[0].values()
        for option in options_of(group).values()
        for flag in option.flags
    }
    return words[0] not in known
