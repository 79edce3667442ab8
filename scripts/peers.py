"""Error against time, xclass beside other tools: each method as a whole process, one after the other.

    python scripts/peers.py DATA_DIR --sets spelling,wordnet --json docs/figures/results.json
    python scripts/peers.py --table docs/figures/results.json --plot docs/figures/results.png

The first measures and adds to the file what it does not hold yet, so that a run cut short goes on; `--methods` takes
some of them. The second prints a Markdown table and draws training time against test error (matplotlib, the extra
`plot`). Data as in bench.py. Needs `pip install vowpalwabbit napkinxc fasttext-wheel`; methods of a package that is not
there are left out, and said to be.

Times are of whole processes, reading included. napkinXC reads the same features as LIBSVM text, made of the VW text
beforehand, fastText the words, for it has no values; their prediction takes the time their own call takes, without
starting. A feature is a word with its namespace.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import TOOLS, BenchError, machine, measure, prepare, test_error
from variants import EXTRA

XCLASS, VW, NAPKIN, FASTTEXT = "xclass", "VW", "napkinXC", "fastText"
PACKAGES = {VW: "vowpalwabbit", NAPKIN: "napkinxc", FASTTEXT: "fasttext"}
CHILDREN = {NAPKIN: "--napkin", FASTTEXT: "--fasttext"}  # first word of a process of this script
BITS = {"ptb": 26, "wiki": 26, "books": 26}
MOST_BITS = 25  # of "xclass", four tables: it stays below 1.5 GB
METHODS: dict[str, tuple[str, str]] = {  # name -> tool and its words; K is the number of classes, B bits
    "xclass": (XCLASS, "--multiclass K -b {B1}"),
    "xclass, 3 passes": (XCLASS, "--multiclass K -b {B1} --passes 3 --holdout_off"),
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
COLOURS = {XCLASS: "tab:red", VW: "tab:blue", NAPKIN: "tab:green", FASTTEXT: "tab:orange"}


# -- napkinXC and fastText, in processes of their own


def lines_of(source: Path) -> Iterator[tuple[int, list[tuple[str, float]]]]:
    """The label and the features, `namespace|name` and value, of every line of VW text."""
    with open(source, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            head, *spaces = line.split("|")
            if not head.split():
                continue
            found = []
            for space in spaces:
                words = space.split()
                name = words.pop(0) if words and not space[:1].isspace() else ""
                for word in words:
                    feature, _, value = word.partition(":")
                    found.append((f"{name}|{feature}", float(value or 1)))
            yield int(head.split()[0]), found


def to_fasttext(source: Path, target: Path) -> None:
    """Write VW text as fastText's: a word for every feature, whatever its value."""
    with open(target, "w", encoding="utf-8", errors="surrogateescape") as out:
        for label, features in lines_of(source):
            out.write(f"__label__{label} {' '.join(name for name, _ in features)}\n")


def to_libsvm(source: Path, target: Path, vocabulary: dict[str, int], grow: bool) -> None:
    """Write VW text as LIBSVM text; features not in the vocabulary are added or, where it may not grow, left out."""
    with open(target, "w", encoding="ascii") as out:
        for label, features in lines_of(source):
            found: dict[int, float] = {}
            for name, value in features:
                j = vocabulary.get(name, -1)
                if j < 0 and grow:
                    j = vocabulary[name] = len(vocabulary) + 1
                if j >= 0:
                    found[j] = found.get(j, 0.0) + value
            cells = " ".join(f"{j}:{value:g}" for j, value in sorted(found.items()))
            out.write(f"{label} {cells}\n")


def napkin(words: list[str]) -> int:
    """Train or test with napkinXC; what this process does is what is timed."""
    from napkinxc import models
    from napkinxc.datasets import load_libsvm_file

    task, file, folder, kind, *options = words
    given = {name: value for name, _, value in (option.partition("=") for option in options)}
    for name, value in given.items():
        given[name] = float(value) if name == "eta" else int(value) if value.isdigit() else value
    model = getattr(models, kind)(folder, threads=2, verbose=0, **given)
    rows, labels = load_libsvm_file(file, labels_format="list")
    if task == "train":
        model.fit(rows, labels if kind == "PLT" else [label[0] for label in labels])
        return 0
    model.load()
    model.predict(rows[:50], top_k=1)
    begin = time.perf_counter()
    answers = model.predict(rows, top_k=1)
    seconds = time.perf_counter() - begin
    wrong = sum(not answer or answer[0] != label[0] for answer, label in zip(answers, labels, strict=True))
    print(json.dumps({"seconds": seconds, "error": wrong / len(labels)}), file=sys.stderr)
    return 0


def fasttext(words: list[str]) -> int:
    """Train or test with fastText."""
    import fasttext

    task, file, folder, *options = words
    if task == "train":
        given = {name: value for name, _, value in (option.partition("=") for option in options)}
        kinds = {"loss": str, "lr": float}
        given = {name: kinds.get(name, int)(value) for name, value in given.items()}
        fasttext.train_supervised(file, thread=2, verbose=0, **given).save_model(folder)
        return 0
    model = fasttext.load_model(folder)
    begin = time.perf_counter()
    _, right, _ = model.test(file)
    print(json.dumps({"seconds": time.perf_counter() - begin, "error": 1 - right}), file=sys.stderr)
    return 0


# -- one method on one set


def words_of(method: str, name: str, classes: int) -> list[str]:
    """The words a method is asked for with."""
    bits = BITS.get(name, 24)
    text = (
        METHODS[method][1].replace("K", str(classes), 1) if METHODS[method][0] in (XCLASS, VW) else METHODS[method][1]
    )
    return shlex.split(text.replace("{B1}", str(min(bits + 1, MOST_BITS))).replace("{B}", str(bits)))


def run(method: str, name: str, folder: Path, classes: int) -> dict:
    """Measure a method; seconds of training and testing, error, bytes."""
    tool = METHODS[method][0]
    words = words_of(method, name, classes)
    n = (folder / "test.vw").read_bytes().count(b"\n")
    if tool in (NAPKIN, FASTTEXT):
        if tool == FASTTEXT and not (folder / "train.words").exists():
            for part in ("train", "test"):
                to_fasttext(folder / f"{part}.vw", folder / f"{part}.words")
        if tool == NAPKIN and not (folder / "train.svm").exists():
            vocabulary: dict[str, int] = {}
            to_libsvm(folder / "train.vw", folder / "train.svm", vocabulary, True)
            to_libsvm(folder / "test.vw", folder / "test.svm", vocabulary, False)
        child = [sys.executable, str(Path(__file__).resolve()), CHILDREN[tool]]
        ending = "svm" if tool == NAPKIN else "words"
        train = measure([*child, "train", f"train.{ending}", f"{ending}.model", *words], folder)
        test = measure([*child, "test", f"test.{ending}", f"{ending}.model", *words], folder)
        told = json.loads(test.said.strip().splitlines()[-1])
        error, seconds = told["error"], told["seconds"]
    else:
        command = TOOLS["xclass" if tool == XCLASS else "vw"]
        words += shlex.split(EXTRA.get(name, ""))
        if tool == XCLASS:
            measure([*command, "-d", "few.vw", *words, "-f", "few.model", "--quiet"], folder)  # compiles
            measure([*command, "-d", "few.vw", "-t", "-i", "few.model", "-p", "p", "--quiet"], folder)
        train = measure([*command, "-d", "train.vw", *words, "-f", "m.model"], folder)
        test = measure([*command, "-d", "test.vw", "-t", "-i", "m.model", "-p", "p"], folder)
        error, seconds = test_error(folder / "test.vw", folder / "p"), test.wall
    return {
        "set": name, "classes": classes, "method": method, "command": f"{tool} {' '.join(words)}",
        "train": train.wall, "train_cpu": train.cpu, "test": seconds, "test_us": seconds / n * 1e6, "error": error,
        "memory": max(train.memory, test.memory), **machine(),
    }  # fmt: skip


def missing(tool: str) -> bool:
    """Whether a tool's package is not installed."""
    return tool != XCLASS and importlib.util.find_spec(PACKAGES[tool]) is None


def say_what_is_missing(methods: list[str]) -> None:
    """Name the tools that are left out."""
    for tool in PACKAGES:
        if missing(tool) and any(METHODS[method][0] == tool for method in methods):
            print(f"peers: {tool} is not installed and left out", file=sys.stderr)


def unknown(words: list[str]) -> bool:
    """Whether this xclass lacks a reduction."""
    from xclass.cli import command as cli
    from xclass.options.declare import options_of

    known = {flag for room in cli.rooms()[0].values() for one in options_of(room).values() for flag in one.flags}
    return words[0] not in known


# -- the report


def table(found: list[dict]) -> list[str]:
    """Lines of Markdown: sets across, methods down, `error (seconds)`."""
    sets = list(dict.fromkeys(one["set"] for one in found))
    classes = {one["set"]: one["classes"] for one in found}
    cells = {(one["set"], one["method"]): one for one in found}
    best = {name: min(one["error"] for one in found if one["set"] == name) for name in sets}
    lines = [
        "| test error % (s of training) | " + " | ".join(f"{name}, {classes[name]:,}" for name in sets) + " |",
        "| --- |" + " --: |" * len(sets),
    ]
    for method in METHODS:
        row = []
        for name in sets:
            one = cells.get((name, method))
            mark = "**" if one and one["error"] == best[name] else ""
            row.append(f"{mark}{100 * one['error']:.1f}{mark} ({one['train']:.1f})" if one else "")
        if any(row):
            lines.append(f"| {method} | " + " | ".join(row) + " |")
    return lines


def draw(found: list[dict], file: Path) -> None:
    """A panel for each set: seconds of training across, error up, a point for each method."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError("--plot needs matplotlib, which is not installed: pip install 'xclass[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    sets = list(dict.fromkeys(one["set"] for one in found))
    across = min(3, len(sets))
    down = -(-len(sets) // across)
    figure, areas = pyplot.subplots(down, across, figsize=(6 * across, 4.5 * down), squeeze=False)
    for area in areas.flat[len(sets) :]:
        area.set_visible(False)
    for name, area in zip(sets, areas.flat, strict=False):
        mine = [one for one in found if one["set"] == name]
        for one in mine:
            tool = METHODS[one["method"]][0]
            area.semilogx(one["train"], 100 * one["error"], "o", color=COLOURS[tool])
            label = one["method"].removeprefix("xclass ") if one["method"] != "xclass" else "xclass"
            area.annotate(
                label, (one["train"], 100 * one["error"]), textcoords="offset points", xytext=(5, 3), fontsize=7
            )
        area.set_title(f"{name}, {mine[0]['classes']:,} classes")
        area.set_xlabel("seconds of training")
        area.set_ylabel("test error %")
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def main() -> int:
    """Measure what is not there yet; print and draw."""
    for tool, job in ((NAPKIN, napkin), (FASTTEXT, fasttext)):
        if sys.argv[1:2] == [CHILDREN[tool]]:
            return job(sys.argv[2:])
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path, nargs="?")
    options.add_argument("--sets", type=lambda text: text.split(","), default=[])
    options.add_argument("--methods", type=lambda text: text.split(";"), help="of those in the table, by semicolons")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--table", type=Path, metavar="FILE", help="print what --json kept and measure nothing")
    options.add_argument("--plot", type=Path, metavar="FILE")
    options.add_argument("--work", type=Path, help="folder for the unpacked data; a temporary one by default")
    given = options.parse_args()
    kept = given.table or given.json
    found = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else []
    if given.table is None:
        if given.data_dir is None or not given.sets:
            raise BenchError("name a folder of data and --sets, or a file with --table")
        methods = given.methods or list(METHODS)
        strange = [method for method in methods if method not in METHODS]
        if strange:
            raise BenchError(f"--methods: {strange[0]!r} is none of {'; '.join(METHODS)}")
        say_what_is_missing(methods)
        with tempfile.TemporaryDirectory() as temporary:
            for name in given.sets:
                work = (given.work or Path(temporary)).absolute()
                folder, classes = work / name, prepare(given.data_dir, name, work)
                for method in methods:
                    tool = METHODS[method][0]
                    if missing(tool) or any((one["set"], one["method"]) == (name, method) for one in found):
                        continue
                    if tool == XCLASS and unknown(words_of(method, name, classes)):
                        continue
                    found.append(run(method, name, folder, classes))
                    one = found[-1]
                    print(
                        f"{name} {method}: error {one['error']:.4f}, training {one['train']:.2f} s, "
                        f"testing {one['test_us']:.1f} us an example",
                        file=sys.stderr,
                        flush=True,
                    )
                    if given.json:
                        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(found)))
    if given.plot:
        draw(found, given.plot)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"peers: {error}")
