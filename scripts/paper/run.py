"""Repeat the experiments of a paper on a data set: fetch and convert the data, make the rows, print a table.

    python -m scripts.paper.run SET [options]        or sh scripts/paper/SET.sh, which installs xclass if it has to

The rows are those of scripts/lib/experiments.ini. What was measured before, with the same commands, data and program,
is not measured again. DATA=DIR names a folder with files of the source, which are then not loaded; where it has
train.vw, test.vw and labels.txt, plain or .gz, these are taken as they are. A script for several sets looks for them in
DIR/NAME, DIR/FOLDER and DIR, and leaves out those that are not there.

Errors have binomial intervals of 95 %, squared losses Hoeffding's. "s" is the time of training without the start of the
process. "ms an example" is that of predicting the test file by one thread, without start, reading and parsing.
With --peers, rows run in another implementation, too, where one has the method: Vowpal Wabbit, scikit-learn for
one-vs-rest and softmax with an L2 penalty and, put together in scripts/lib/peer_sklearn.py, softmax trees, napkinXC for
HSM, on a random tree; "p" is that of the N - 1 chi-squared test that both have the same error. Both then get the
examples in the order of the file, without --shuffle.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import importlib.util
import itertools
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from scripts.lib import papers, peers, runner, search
from scripts.lib.command_line import names, run
from scripts.lib.data_sets import WARM_UP_LINES, file_in, lines_in, local_file, unpack
from scripts.lib.experiments import EXPERIMENTS, REPOSITORY, VW_LOMTREE, VW_TREE, Experiment
from scripts.lib.papers import MEASURES, OF_FILES, WHILE_LEARNING, Row, as_typed, figures, measured, spreads
from scripts.lib.processes import ROOT, TOOLS, BenchError, machine, measure
from scripts.lib.results import ResultStore, binomial_interval, chi_squared_test, hoeffding_interval, table, test_error
from xclass.system import memory

HEAD = ("method", "setting", "measure", "paper", "xclass", "difference", "peer", "p", "s", "paper's s")
TIMED = 9  # times over that a test file is predicted, besides once
AUDITED = 200  # examples whose evaluations are counted
SIZES = {"enwik8": 36_445_475, "enwik9": 322_592_222}
OURS = ("--router_weight", "--recall_stop", "--candidate_margin", "--layout", "--shuffle", "--max_predictors")
training_examples = functools.cache(functools.partial(lines_in, name="train.vw"))


@dataclass
class Place:
    """Hold where the data of a set are and what becomes of them."""

    given: argparse.Namespace
    script: str
    work: Path  # whose `folder` has train.vw, test.vw and labels.txt
    data: Path | None  # that the user gave
    which: str = ""  # the set, if the script has several
    prefix: str = ""  # of the names of the source's files, of a set of the repository
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the converted files."""
        return self.work / ("small" if self.given.small else "vw")

    @property
    def counted(self) -> Path:
        """The folder whose classes and examples are counted: with --dry_run, DATA if it will be taken as it is."""
        planned = self.given.dry_run and not self.given.small and not given_files(self.folder)
        return self.data if planned and given_files(self.data) else self.folder

    @property
    def experiment(self) -> Experiment:
        """The experiment of the script."""
        return EXPERIMENTS[self.script]


# -- the data --------------------------------------------------------------------------------------------------------


def command(place: Place, text: str) -> str:
    """Print a command of scripts/ and, without --dry_run, execute it; return what it wrote to standard output."""
    print(f"$ python -m scripts.{text}", flush=True)
    if place.given.dry_run:
        return ""
    words = [sys.executable, "-m", *shlex.split(f"scripts.{text}")]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    errors = []
    with subprocess.Popen(words, cwd=ROOT, text=True, **pipes) as child:
        for line in child.stderr:  # the progress of a download, for example
            errors.append(line)
            print(line, end="", file=sys.stderr, flush=True)
        written = child.stdout.read()
    if child.returncode:
        raise BenchError("".join(errors[-3:]).strip() or f"scripts.{text} failed")
    return written.strip()


def fetch(place: Place, file: str) -> str:
    """Fetch a file of the source, the words of convert.fetch; return its path."""
    raw, name = place.work / "raw", file.split()[0]
    data = f" --data {shlex.quote(str(place.data))}" if place.data else ""
    return command(place, f"convert.fetch {shlex.quote(str(raw))} {file}{data}") or str(raw / name)


def stamp(place: Place) -> str:
    """Return what converted files are made of and by."""
    sources = sorted((ROOT / "scripts" / "convert").glob("*.py"))
    digest = hashlib.sha256(repr((place.experiment.origins, place.environment)).encode())
    for path in sources:
        digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {place.data}"


def given_files(folder: Path | None) -> list[Path]:
    """Return the files of a set of VW text in a folder, or nothing."""
    files = [file_in(folder, name) for name in ("train.vw", "test.vw", "labels.txt")] if folder else [None]
    return [] if None in files else files


def prepare(place: Place) -> None:
    """Make train.vw, test.vw and labels.txt in the folder of a set, unless they are there."""
    folder, small = place.folder, place.given.small
    made_of = folder / "made_of"
    if not place.given.dry_run:
        folder.mkdir(parents=True, exist_ok=True)
        if made_of.exists() and made_of.read_text() == stamp(place):
            return
        for path in folder.glob("*"):
            if path.is_dir():  # files made of these: centred, peers
                shutil.rmtree(path)
            elif path.name.split(".")[0] in ("train", "test", "labels", "made_of"):
                path.unlink()
    limit = f"--limit {place.experiment.small}" if small else ""
    out = f"--out {shlex.quote(str(folder))}"
    files = given_files(place.data)
    if files and not small:
        for path in files:
            print(f"$ ln -s {shlex.quote(str(path))} {shlex.quote(str(folder))}")
            if not place.given.dry_run:
                (folder / path.name).symlink_to(path)
    elif files:
        limit = "--limit 1000" if place.script == "ltcb" else limit  # whose `small` counts articles
        lists = "--lists" if "files" in place.experiment.sets.get(place.which, {}) else ""
        command(place, f"convert.vw --train {files[0]} --test {files[1]} {lists} {limit} {out}")
    elif place.which and place.experiment.sets[place.which].get("files"):
        train, test = (fetch(place, f"{place.prefix}{part}.txt --page {REPOSITORY}") for part in ("train", "test"))
        command(place, f"convert.sparse --train {train} --test {test} --several lists {limit} {out}")
    elif not place.experiment.origins:
        needs = "LSTM=FOLDER, DATA=FOLDER" if place.script == "ptb_lstm" else "DATA=FOLDER"
        print(f"  needs {needs} with train.vw, test.vw and labels.txt")
        if not place.given.dry_run:
            raise BenchError(
                f"{place.script} has no public source; {needs} says where train.vw, test.vw, labels.txt are"
            )
    else:
        convert(place, limit, out)
    if not place.given.dry_run:
        made_of.write_text(stamp(place))


def convert(place: Place, limit: str, out: str) -> None:
    """Fetch the files of the first origin that can be had and convert them."""
    whole = "" if limit else f"--classes {place.experiment.classes}"
    texts = {"limit": limit, "whole": whole, "folder": str(place.folder), **place.environment}
    folders = [folder for folder in (place.data, place.work / "raw") if folder]
    lacking = {
        origin: sum(not any(local_file(folder, file.split()[0]) for folder in folders) for file in origin.files)
        for origin in place.experiment.origins
    }
    origins = sorted(lacking, key=lambda origin: lacking[origin] > 0)
    for origin in origins:
        try:
            paths = [fetch(place, papers.substituted(file, texts)) for file in origin.files]
        except BenchError:
            if origin is origins[-1]:
                raise
            continue
        for text in origin.commands:
            filled = text.replace("$0", shlex.quote(paths[0])).replace("$1", shlex.quote(paths[-1]))
            filled = papers.substituted(filled, texts)
            last = text is origin.commands[-1]
            command(
                place, f"{filled} {limit if last and len(origin.commands) == 1 else ''} {out if last else ''}".strip()
            )
        return


def centred(place: Place) -> Path:
    """Return the folder of the data less the mean of every feature, which is made if it is not there."""
    folder = place.folder / "centred"
    if place.given.dry_run or not given_files(folder):
        train, test = (file_in(place.folder, f"{part}.vw") or place.folder / f"{part}.vw" for part in ("train", "test"))
        command(place, f"convert.vw --train {train} --test {test} --subtract_mean --out {shlex.quote(str(folder))}")
    return folder


def find_set(place: Place) -> bool:
    """Look for the files of a set of several in DATA; set `data` and `prefix`, return whether they exist."""
    files = place.experiment.sets[place.which].get("files", "")
    place.prefix = f"{Path(files).name}_" if files else ""
    if place.data is None:
        return False
    for folder in (place.data / place.which, place.data / Path(files).parent, place.data):
        for prefix in dict.fromkeys((place.prefix, "")):
            named = prefix or folder != place.data  # train.txt of DATA itself might be that of any set
            if files and named and local_file(folder, f"{prefix}train.txt"):
                place.data, place.prefix = folder, prefix
                return True
        if folder != place.data and given_files(folder):
            place.data = folder
            return True
    return False


# -- one row ---------------------------------------------------------------------------------------------------------


@functools.cache
def program() -> str:
    """Return a digest of the package's sources."""
    root = Path(importlib.util.find_spec("xclass").origin).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def words_of(place: Place, row: Row, classes: int) -> list[str]:
    """Return the options by which a row learns."""
    words = [*papers.METHODS[row.method].split(), *row.options]
    words = [word.replace("{K}", str(classes)).replace("{K-1}", str(classes - 1)) for word in words]
    n = training_examples(place.counted) or place.experiment.examples
    words = [word.replace("{1/10N}", f"{1 / (10 * max(1, n)):.3g}") for word in words]
    if place.given.peers and "--shuffle" in words:
        del words[words.index("--shuffle") : words.index("--shuffle") + 2]
    if place.given.bits is not None and row.method != "softmax_tree":
        at = words.index("-b") if "-b" in words else len(words)
        words[at : at + 2] = ["-b", str(place.given.bits)]
    elif "-b" not in words and place.experiment.features:
        bits = papers.bits_of(row.method, words, classes, place.experiment.features)
        words += ["-b", str(bits)] if bits else []
    return papers.cut(words, {**papers.CUT_DOWN, "--leaf_classes": classes}) if place.given.small else words


def commands(folder: Path, row: Row, words: list[str], wanted: dict) -> dict[str, list[str]]:
    """Return the commands of a row by what they are for: learn, test, train, frozen, time; those that are needed."""
    train, test = ((file_in(folder, name) or Path(name)).name for name in ("train.vw", "test.vw"))
    model = row.method + ".model"
    alone = ["--predict_only_model"] if "megabytes" in wanted and "squared" not in wanted else []
    found = {"learn": ["-d", train, *words, *alone, "-f", model]}

    def predict(file: str, measures: set[str], *more: str) -> list[str]:
        of_five = ["--top_k", "5"] if "top5" in measures else []
        losses = ["--perplexity"] if {"perplexity", "squared", "test_squared"} & measures else []
        losses = [] if "--probabilities" in row.testing else losses  # which reports squared losses as well
        learns = [] if "squared" in measures else ["-t"]
        return ["-d", file, *learns, "-i", model, *more, *row.testing, *of_five, *losses]

    of_training = {name.removeprefix("train_") for name in wanted if name.startswith("train")}
    of_test = {name for name in wanted if not name.startswith("train")} - {*WHILE_LEARNING, *OF_FILES, "test_squared"}
    if of_test:
        found["test"] = predict(test, of_test, "-p", row.method + ".predictions")
    if of_training:
        found["train"] = predict(train, of_training)
    if "test_squared" in wanted:
        found["frozen"] = predict(test, {"test_squared"})
    if "milliseconds" in wanted:  # a kernel is loaded when it first runs, which the shorter run tells
        found["time"] = [*predict(test, set()), "--threads", "1", "--summary", row.method + ".json"]
    if "hyperplanes" in wanted:  # --audit has a line of features for each scorer that is asked
        found["hyperplanes"] = [*predict(test, set()), "--audit", "--examples", str(AUDITED), "--quiet"]
    return found


def execute(folder: Path, words: list[str]) -> str:
    """Run xclass and return its summary; its progress is in the file stderr of the folder."""
    print(as_typed(words), flush=True)
    return measure([*TOOLS["xclass"], *words], folder).stderr


def warm_up(folder: Path, learn: list[str]) -> None:
    """Learn a few lines by the same command, so that nothing is left to compile; a mistake will show later."""
    train = folder / learn[1]
    with gzip.open(train) if train.suffix == ".gz" else open(train, "rb") as file:
        (folder / "few.vw").write_bytes(b"".join(itertools.islice(file, WARM_UP_LINES)))
    words = [*TOOLS["xclass"], "-d", "few.vw", *learn[2:], "--quiet"]
    subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)


def measure_row(place: Place, folder: Path, row: Row, all_commands: dict, wanted: dict) -> dict[str, float]:
    """Train, test, and return measure -> figure; `tests` is the number of test examples."""
    learn = all_commands["learn"]
    if not place.given.small:
        warm_up(folder, learn)
    summary = execute(folder, learn)
    if row.kind == "retrained" and (passes := re.search(r"^passes used = (\d+)", summary, re.MULTILINE)):
        best = int(passes[1]) - (3 if int(passes[1]) < int(papers.value_of(learn, "--passes", "0")) else 0)
        at = learn.index("--passes") + 1  # three passes without an improvement end the search
        learn = [*learn[:at], str(max(1, best)), *(["--holdout_off"] if best > 1 else []), *learn[at + 1 :]]
        summary = execute(folder, learn)
    values = {name: measured(summary, name) for name in (*WHILE_LEARNING,) if name in (*wanted, "seconds")}
    if "test" in all_commands:
        summary = execute(folder, all_commands["test"])
        values["tests"] = float(re.search(r"^number of examples = (\d+)", summary, re.MULTILINE)[1])
        for name in wanted:
            if name in (*WHILE_LEARNING, *OF_FILES, "test_squared") or name.startswith("train"):
                continue
            if name == "error" and "average loss = n.a." in summary:  # as after --oaa_subsample
                values[name] = 100 * test_error(folder / all_commands["test"][1], folder / f"{row.method}.predictions")
            else:
                values[name] = measured(summary, name)
    for part, names_of_part in (
        ("train", [name for name in wanted if name.startswith("train")]),
        ("frozen", ["test_squared"]),
    ):
        if part in all_commands:
            summary = execute(folder, all_commands[part])
            values |= {name: measured(summary, name) for name in names_of_part}
    if "time" in all_commands:
        values["milliseconds"] = milliseconds(folder, all_commands["time"])
    if "hyperplanes" in all_commands:
        execute(folder, all_commands["hyperplanes"])
        audit = (folder / "stdout").read_text(encoding="utf-8", errors="replace").splitlines()
        values["hyperplanes"] = sum(line.startswith("\t") for line in audit) / min(AUDITED, values["tests"])
    if "megabytes" in wanted:
        values["megabytes"] = (folder / learn[-1]).stat().st_size / 1e6
    return values


def milliseconds(folder: Path, words: list[str]) -> float:
    """Return the time of predicting an example, by one thread: that of the file TIMED times over less that of one."""
    spent = []
    for times in (1, 1 + TIMED):
        execute(folder, [*["-d", words[1]] * (times - 1), *words])
        record = json.loads((folder / words[-1]).read_text(encoding="utf-8"))
        parts = record["seconds_by_activity"].items()
        spent.append(sum(seconds for name, seconds in parts if name.startswith(("learning", "features"))))
    share = TIMED / (1 + TIMED)  # where other work disturbed the short run, all of the long one counts
    return 1000 / record["examples"] * (spent[1] - spent[0] if spent[1] > spent[0] else spent[1] * share) / share


def repeated(place: Place, store: ResultStore, folder: Path, row: Row, all_commands: dict) -> dict:
    """Return `found`, the mean figures of the runs that a row needs, and their standard deviations, `deviations`."""
    wanted = figures(row.figures)
    files = [file_in(folder, name).stat() for name in ("train.vw", "test.vw")]
    runs = []
    for seed in range(1, place.given.runs + 1) if spreads(row.figures, "+-") and place.given.runs > 1 else [0]:
        learn = all_commands["learn"]
        seeded = {**all_commands, "learn": [*learn[:-2], "--random_seed", str(seed), *learn[-2:]] if seed else learn}
        key = {
            "program": program(), "commands": seeded, "kind": row.kind, "wanted": sorted(wanted),
            "files": [[one.st_size, one.st_mtime_ns] for one in files],
        }  # fmt: skip
        runs.append(store.get(key, lambda c=seeded: measure_row(place, folder, row, c, wanted)))
    found = {name: statistics.mean(one[name] for one in runs) for name in runs[0]}
    spread = {name: statistics.stdev(one[name] for one in runs) for name in found} if len(runs) > 1 else {}
    return {"found": found, "deviations": spread}


def peer_of(row: Row, words: list[str]) -> tuple[str, list[str]] | None:
    """Return another implementation of what a row does, and its words; None if there is none."""
    if row.kind == "retrained":  # no other one learns again with the passes that it found
        return None
    if "--l2" in words or (row.method == "softmax_tree" and papers.value_of(words, "--depth", "") == "0"):
        if row.method != "softmax_tree":
            return peers.SKLEARN, ["rest", "C=10"]
        return peers.SKLEARN, ["multinomial", *([] if "none" in words else ["scaled"]), "C=10"]
    if row.method == "softmax_tree":
        known = {"--depth", "--leaf_classes"} <= {*words} and "remove" not in words
        clusters = 1 if "random" in words else 2 ** int(papers.value_of(words, "--depth", "0"))
        enough = clusters <= int(words[1])  # of classes, whose means k-means clusters
        return (peers.SKLEARN, softmax_tree_of(words)) if known and enough else None
    if row.method == "hsm" and "--hsm_paper" in words and "--beam" not in words:
        passes = papers.value_of(words, "--passes", "1")
        return peers.NAPKIN, ["HSM", "tree_type=completeKaryRandom", "optimizer=adagrad", "eta=1.0", f"epochs={passes}"]
    text = " ".join(words)
    empirical = papers.value_of(words, "--bern_hyper", "") == "0"  # with which VW never ends above a leaf
    routers = f"{int(words[1]) - 1}" if row.method == "log_multi" else ""  # the only number that VW has
    of_vw = {
        "recall_tree": (VW_TREE in text and not empirical) or "--recall_stop never" in text,
        "log_multi": VW_LOMTREE in text and papers.value_of(words, "--max_predictors", routers) == routers,
    }
    if not of_vw.get(row.method, row.method in ("oaa", "filter_tree")) or "--probabilities" in words:
        return None
    kept, at = [], 0
    while at < len(words):
        kept += [] if words[at] in OURS else [words[at]]
        at += 2 if words[at] in OURS else 1
    if row.method == "recall_tree":  # VW's default is squared loss
        kept += [] if "--loss_function" in kept else ["--loss_function", "logistic"]
        kept += ["--bern_hyper", "0"] if "--recall_stop never" in text else []
    return peers.VW, kept


def softmax_tree_of(words: list[str]) -> list[str]:
    """Return the words of peer_sklearn.py for a softmax tree of xclass."""
    names_of = {
        "--depth": "depth", "--leaf_classes": "leaf_classes", "--l1": "alpha", "--tao_iterations": "iterations",
        "--leaf_passes": "passes", "--tree_init": "start", "--beta": "beta",
    }  # fmt: skip
    options = [f"{name}={words[words.index(option) + 1]}" for option, name in names_of.items() if option in words]
    return ["tree", *([] if "none" in words else ["scaled"]), *options]


def peer_error(store: ResultStore, folder: Path, peer: tuple[str, list[str]]) -> dict[str, float]:
    """Return the error in percent of another implementation."""
    tool, words = peer

    def make() -> dict:
        own = folder / "peers"
        unpack(folder, own)
        record = runner.run(tool, words, own)
        return {"error": 100 * record["error"], "seconds": record["train"]}

    size = [file_in(folder, name).stat().st_size for name in ("train.vw", "test.vw")]
    return store.get({"peer": tool, "words": words, "files": size}, make)


def tuned(place: Place, folder: Path, row: Row, words: list[str], classes: int) -> list[str]:
    """Return the options of a row with those that the search finds; replaced are those that a tunable row has."""
    ranges = search.ranges(words, classes, place.experiment.ranges, row.kind == "tunable")
    if row.kind == "tunable":
        for name in {text.split()[0] for text in ranges} & set(words):
            del words[words.index(name) : words.index(name) + 2]
    train = file_in(folder, "train.vw")
    share = 1.0 if "--passes" in words else 0.1  # small sets are learned in several passes
    criterion = "squared" if "squared" in figures(row.figures) else "progressive" if share < 1 else search.HELD_OUT
    share = 1.0 if criterion == "squared" else share
    key = [words, ranges, criterion, place.given.probes, share, train.stat().st_size, train.stat().st_mtime_ns]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]  # other data or options, another search
    state = folder / f"{row.method}.{digest}.tune"
    return [*words, *search.best(train, words, ranges, place.given.probes, share, criterion, state)]


def make_row(place: Place, row: Row, store: ResultStore, peer_store: ResultStore) -> dict | None:
    """Make a row, as the command line requests; return its record, or None for one that is not measured."""
    given = place.given
    title = f"{row.method}, {row.setting}"
    record = {"row": row, "found": {}}
    if row.kind == "absent":
        print(f"left out: {title}: {row.options[0]}")
        return None
    if row.kind == "published":
        print(f"published: {title}: {row.figures}")
        return record
    folder = centred(place) if row.centred else place.folder
    classes = lines_in(place.counted, "labels.txt") or place.experiment.classes or 1000
    words = words_of(place, row, classes)
    if row.kind == "tuned" and not given.probes:
        print(f"left out: {title}: these options are not published; --probes 59 looks for them")
        return record
    search_first = given.probes and row.kind in ("tuned", "tunable")
    if given.dry_run:
        say_row(place, folder, row, words, bool(search_first))
        return None
    try:
        if search_first:
            words = tuned(place, folder, row, words, classes)
        record |= repeated(place, store, folder, row, commands(folder, row, words, figures(row.figures)))
        record["command"] = shlex.join(["xclass", *words])
        peer = peer_of(row, words) if given.peers and "error" in record["found"] else None
        if peer and not peers.missing(peer[0]):
            record["peer"] = {"name": peer[0], **peer_error(peer_store, folder, peer)}
    except BenchError as error:
        print(f"failed: {title}: {error}", file=sys.stderr)
        record["failed"] = str(error)
    return record


def say_row(place: Place, folder: Path, row: Row, words: list[str], search_first: bool) -> None:
    """Print the commands of a row, the paper's figures and the memory of its table."""
    print(f"\n{row.method}, {row.setting}")
    print(f"  in the paper: {row.figures}")
    size = papers.table_bytes(row.method, words)
    if size:
        free = memory.available()
        fits = (
            "" if free is None or size <= free else f", of which {free / 1e9:.1f} GB are free here; --bits B is smaller"
        )
        print(f"  memory: a table of weights of {size / 1e9:,.3g} GB{fits}")
    print(f"$ cd {shlex.quote(str(folder))}")
    if search_first:
        print(f"  the best of {place.given.probes} random settings is added to:")
    all_commands = commands(folder, row, words, figures(row.figures))
    for name, one in all_commands.items():
        again = "  # and again with --holdout_off and the best number of passes" if name == "learn" else ""
        print(as_typed(one) + (again if row.kind == "retrained" else ""))
    peer = peer_of(row, words) if place.given.peers else None
    if peer:
        print(f"$ {shlex.join([peer[0], *peer[1]])}  # the same in another implementation")


# -- the table -------------------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 2, sign: str = "") -> str:
    """Return a figure as the table shows it, nothing for None."""
    return "" if value is None else f"{value:{sign},.{digits}f}"


def interval(name: str, value: float, tests: float | None) -> float | None:
    """Return half of the interval at 95 % of a measure over so many test examples."""
    if not tests:
        return None
    if name in ("error", "top5"):
        return 100 * binomial_interval(value / 100, tests)
    return hoeffding_interval(tests) if name in ("squared", "test_squared") else None


def cells(record: dict) -> list[list[str]]:
    """Return the lines of one row: one for each measure, times in the first."""
    row, values, lines = record["row"], record["found"], []
    paper = figures(row.figures)
    deviations, intervals = spreads(row.figures, "+-"), spreads(row.figures, "~")
    for name in [one for one in paper if one != "seconds"] or ["seconds"]:
        title, digits, *_ = MEASURES[name]
        value, first = values.get(name), not lines
        of_paper, own, peer, p = number(paper[name], digits), number(value, digits), "", ""
        if name in deviations or name in intervals:
            mark = f" (sd {number(deviations[name], digits)})" if name in deviations else ""
            of_paper += mark or f" ± {number(intervals[name], digits)}"
        if value is not None:
            half = interval(name, value, values.get("tests"))
            spread = record.get("deviations", {}).get(name)
            own += f" ± {number(half, digits)}" if half is not None else ""
            own += f" (sd {number(spread, digits)})" if spread is not None else ""
        if name == "error" and "peer" in record:
            other, tests = record["peer"], values["tests"]
            half = 100 * binomial_interval(other["error"] / 100, tests)
            peer = f"{other['name']} {number(other['error'], digits)} ± {number(half, digits)}"
            p = f"{chi_squared_test(value / 100, tests, other['error'] / 100, tests):.2g}"
        both = value is not None and paper[name] is not None
        row_of, times = [row.method, row.setting], [number(values.get("seconds"), 1), number(paper.get("seconds"), 0)]
        difference = number(value - paper[name], digits, "+") if both else ""
        own = own or ("failed" if "failed" in record else "")
        line = [title, of_paper, own, difference, peer, p]
        lines.append([*row_of, *line, *times] if first else ["", "", *line, "", ""])
    return lines


def make_table(place: Place) -> int:
    """Prepare the data of a set, make its rows and print its table; return the exit status."""
    prepare(place)
    keep = None if place.given.dry_run else place.folder
    store, peer_store = (ResultStore(keep and keep / f"{name}.json") for name in ("done", "peers"))
    chosen = [
        row
        for row in papers.rows(place.script, place.which, **place.environment)
        if row.method in (place.given.methods or [row.method])
    ]
    records = [record for row in chosen if (record := make_row(place, row, store, peer_store))]
    if place.given.dry_run:
        return 0
    if not records:
        print("no rows: none of the methods asked for is there")
        return 0
    stored = ResultStore(place.given.json)
    for record in (one for one in records if one["found"]):
        row, classes = record["row"], lines_in(place.folder, "labels.txt")
        found = {"classes": classes, "command": record["command"], **record["found"]}
        for of, percent in (("", found.pop("error", None)), ("peer_", record.get("peer", {}).get("error"))):
            half = None if percent is None else interval("error", percent, found.get("tests"))
            found |= {f"{of}percent": percent, f"{of}interval": half}
        name = row.method if row.setting == "default" else f"{row.method}: {row.setting.replace(';', ',')}"
        key = {"set": place.which or (place.data or place.work).name, "method": name}
        stored.get(key, lambda found=found: {**found, **machine()})
    title = f"{place.experiment.title}{f', {place.which}' if place.which else ''}"
    title += " (--small: a cut, not comparable with the paper)" if place.given.small else ""
    text = f"{title}\n\n{table(HEAD, (line for record in records for line in cells(record)))}"
    (place.folder / "table.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}")
    failed = [record for record in records if "failed" in record]
    for record in failed:
        print(f"\nfailed: {record['row'].method}, {record['row'].setting}: {record['failed']}")
    return 1 if failed else 0


# -- the command line ------------------------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        prog="paper.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("script", metavar="SET", choices=EXPERIMENTS, help=", ".join(EXPERIMENTS))
    parser.add_argument("--small", action="store_true", help="a cut that takes about a minute")
    parser.add_argument("--dry_run", action="store_true", help="print commands and memory, do nothing")
    parser.add_argument("--methods", type=names, metavar="A,B", help=f"these methods only: {', '.join(papers.METHODS)}")
    parser.add_argument("-b", "--bits", type=int, metavar="B", help="size of the tables of weights of all rows")
    parser.add_argument("--peers", action="store_true", help="other implementations beside xclass, where they are")
    parser.add_argument("--probes", type=int, default=0, metavar="N", help="look for tuned options among N random ones "
                        "where the paper does not give them (the Recall Tree paper: 59)")  # fmt: skip
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="runs with other seeds, where the paper has a "
                        "standard deviation (the papers: 3)")  # fmt: skip
    parser.add_argument("--sets", type=names, metavar="A,B", help="these sets only, where a script has several")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where files go (default: paper_data/SET)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    at = next((word for word in sys.argv[1:] if word in EXPERIMENTS), None)
    if at and {"-h", "--help"} & set(sys.argv):
        parser.description = f"{EXPERIMENTS[at].about}\n{__doc__}"
    given = parser.parse_args()
    for option, chosen, known in (
        ("methods", given.methods, papers.METHODS),
        ("sets", given.sets, EXPERIMENTS[given.script].sets),
    ):
        strange = [name for name in chosen or [] if name not in known]
        if strange:
            allowed = f"must be one of {', '.join(known)}" if known else "this script has one set only"
            raise BenchError(f"--{option} {strange[0]}: {allowed}")
    return given


def environment(script: str) -> dict[str, str]:
    """Return the texts of rows and commands that environment variables choose."""
    text, glove = os.environ.get("TEXT", "enwik9"), os.environ.get("GLOVE")
    if script == "ltcb" and text not in SIZES:
        raise BenchError(f"TEXT={text}: must be one of {', '.join(SIZES)}")
    found = {"text": text, "size": str(SIZES.get(text))} if script == "ltcb" else {}
    if script == "ptb":
        found = {"vectors": f"--vectors {shlex.quote(os.path.abspath(glove))}" if glove else ""}
        found |= {"unscaled": "--normalize_features none"} if glove else {}
    return found


def main() -> int:
    """Make the table of a set, or one for each of several."""
    given = parsed()
    texts = environment(given.script)
    own = given.script + (f"_{texts['text']}" if given.script == "ltcb" else "")
    work = (given.work or ROOT / "paper_data" / own).absolute()
    named = os.environ.get("LSTM") if given.script == "ptb_lstm" else None
    name = named or os.environ.get("DATA")
    data = Path(name).absolute() if name else None
    if data and not data.is_dir():
        raise BenchError(f"DATA={name} is no folder")
    experiment = EXPERIMENTS[given.script]
    if not experiment.sets:
        return make_table(Place(given, given.script, work, data, environment=texts))
    made = failed = 0
    for which in given.sets or experiment.sets:
        place = Place(given, given.script, work / which, data, which)
        if not find_set(place) and not given.dry_run:
            print(f"left out: {which}: not in DATA={name or ''}")
            continue
        print(f"{experiment.title}, {which}:")
        made += 1
        failed += make_table(place)
    if not made:
        raise BenchError("none of the sets is there; DATA=FOLDER says where they are, see --help")
    return 1 if failed else 0


if __name__ == "__main__":
    run(main)
