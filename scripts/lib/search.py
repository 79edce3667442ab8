"""Search for good options of xclass by random search.

A range defines the values that an option may have. Each probe draws a value from every range, trains, and measures the
loss. All probes are stored in a file, so that a search can be continued.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import summary_loss, test_error

KINDS = {"log": 2, "linear": 2, "int": 2, "one": None, "flag": 0}  # kind of range -> number of values; None for any
STEPS = "-l one 0.25 0.5 0.75 1 2 4 8"  # the learning rates that the LOMTree paper tries


@dataclass(frozen=True)
class Search:
    """Define a search.

    Attributes
    ----------
    data : file of the training examples
    options : options of every probe
    ranges : texts such as `-l log 0.05 5`: option, kind, values
    probes : number of probes
    share : part of the data to use, from its beginning
    seed : seed of the random values
    validate : file of examples to measure the loss on; None for the progressive loss
    tail : part of the used examples that is held out at their end to measure the loss on; 0 for none
    """

    data: Path
    options: list[str]
    ranges: list[str]
    probes: int = 59
    share: float = 0.1
    seed: int = 1
    validate: Path | None = None
    tail: float = 0.0

    def key(self) -> dict:
        """Return the facts that must not change when a search is continued; the number of probes may."""
        files = [path for path in (self.data, self.validate) if path]
        settings = {k: v for k, v in asdict(self).items() if k in ("options", "ranges", "share", "seed", "tail")}
        return {**settings, "files": [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in files]}


# -- ranges ------------------------------------------------------------------------------------------------------


def defaults(options: list[str], k: int | None) -> list[str]:
    """Return the default ranges for the reduction that a command line chooses.

    Options that are given, or that this version of xclass lacks, are left out.
    """
    words = {word: after for word, after in zip(options, [*options[1:], ""], strict=True)}
    reduction = next((name for name in RANGES if "--" + name in words), None)
    if reduction is None:
        raise BenchError(f"no ranges are known for this command line; give --range, or one of --{', --'.join(RANGES)}")
    k = k or int(words["--" + reduction])
    candidates = [text for text in RANGES[reduction](max(2, k)) if text.split()[0] not in words]
    lacking = unknown([text.split()[0] for text in candidates])
    candidates = [text for text in candidates if text.split()[0] not in lacking]
    if not candidates:
        raise BenchError(f"nothing is left to search for --{reduction}; give --range")
    return candidates


def _recall_tree(k: int) -> list[str]:
    levels = math.ceil(math.log2(k))
    return [
        "-l linear 0.1 4",
        f"--max_depth int {max(1, levels - 5)} {levels + 2}",
        f"--max_candidates int {min(20, k)} {min(100, k)}",
        "--bern_hyper log 0.01 10",
        "--randomized_routing flag",
        "--node_only flag",
    ]


def _log_multi(k: int) -> list[str]:
    sizes = " ".join(str((k << i) - 1) for i in range(7))
    return [STEPS, "--swap_resistance one 4 8 16 32 64 128 256", f"--max_predictors one {sizes}"]


RANGES = {
    "oaa": lambda k: ["-l linear 0.1 4"],
    "recall_tree": _recall_tree,
    "log_multi": _log_multi,
    "ect": lambda k: [STEPS],
    "random_tree": lambda k: [STEPS],
    "cpt": lambda k: ["-l log 0.05 5", "--cpt_alpha linear 0.1 1"],
    "softmax_tree": lambda k: ["--l1 log 0.01 10"],
    "hsm": lambda k: ["-l log 0.005 5"],
}


@cache
def known_options() -> set[str]:
    """Return the options that `xclass --help_all` lists."""
    here = Path(__file__).parent  # the current folder might contain another xclass
    text = subprocess.run([*TOOLS["xclass"], "--help_all"], capture_output=True, text=True, check=True, cwd=here).stdout
    return set(re.findall(r"(?<![\w-])--?[a-z]\w*", text, re.IGNORECASE))


def unknown(words: list[str], known: set[str] | None = None) -> list[str]:
    """Return the options among the words that xclass does not have."""
    known = known or known_options()
    return [word for word in words if re.fullmatch(r"--?[a-zA-Z]\w*", word) and word not in known]


def check(text: str) -> None:
    """Raise BenchError if a text is not a valid range."""
    words = text.split()
    if len(words) < 2 or not words[0].startswith("-") or words[1] not in KINDS:
        raise BenchError(f"--range '{text}': must be OPTION KIND VALUES, KIND one of {', '.join(KINDS)}")
    kind, values = words[1], words[2:]
    needed = KINDS[kind]
    if len(values) != needed if needed is not None else not values:
        raise BenchError(f"--range '{text}': {kind} takes {'some' if needed is None else needed} values")
    if kind in ("log", "linear", "int"):
        try:
            low, high = (int(value) if kind == "int" else float(value) for value in values)
        except ValueError:
            raise BenchError(f"--range '{text}': {' and '.join(values)} are not numbers of this kind") from None
        if not low <= high or (kind == "log" and low <= 0):
            raise BenchError(f"--range '{text}': must rise{', from above 0' if kind == 'log' else ''}")


def draw(text: str, rng: random.Random) -> list[str]:
    """Return an option with a random value from its range; a flag is returned, or nothing, with equal probability."""
    option, kind, *values = text.split()
    if kind == "flag":
        return [option] if rng.random() < 0.5 else []
    if kind == "one":
        return [option, rng.choice(values)]
    if kind == "int":
        return [option, str(rng.randint(int(values[0]), int(values[1])))]
    low, high = map(float, values)
    value = math.exp(rng.uniform(math.log(low), math.log(high))) if kind == "log" else rng.uniform(low, high)
    return [option, f"{min(max(value, low), high):.4g}"]


def drawn(search: Search, number: int) -> list[str]:
    """Return the options of a probe, which depend only on the seed and its number."""
    rng = random.Random(f"{search.seed} {number}")
    return [word for text in search.ranges for word in draw(text, rng)]


# -- the search --------------------------------------------------------------------------------------------------


def write_beginning(data: Path, share: float, path: Path, tail: float, rest: Path) -> None:
    """Write the beginning of a file of examples to two files.

    Parameters
    ----------
    data : the file, plain or .gz
    share : part of the lines to use, from the beginning; empty lines are dropped
    path : written: the lines used, except the tail
    tail : part of the lines used that goes to `rest`
    rest : written: the tail, the last of the lines used
    """
    if data.suffix == ".zst":
        raise BenchError(f"{data}: unpack it first, or make it .gz")
    unpack = gzip.open if data.suffix == ".gz" else open
    with unpack(data, "rb") as file:
        n = sum(1 for line in file if line.strip())
    n = math.ceil(n * share)
    after = n - math.ceil(n * tail)
    if not after:
        raise BenchError(f"{data} has no examples" + (", or none but the tail" if tail else ""))
    with unpack(data, "rb") as file, open(path, "wb") as out, open(rest, "wb") as end:
        for place, line in enumerate(itertools.islice(filter(bytes.strip, file), n)):
            (out if place < after else end).write(line)


def read_results(path: Path, key: dict) -> dict[int, dict]:
    """Return number of a probe -> its result; an incomplete last line is removed from the file."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    rows = [json.loads(line) for line in whole.splitlines()]
    if rows and rows[0] != {"search": key}:
        raise BenchError(
            f"{path} is of another search (data, options, ranges, share, seed or tail); name another --results"
        )
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return {row["probe"]: row for row in rows[1:]}


def loss_of(summary: str, otherwise: Callable[[], float] | None = None) -> float:
    """Return the average loss in a summary, or the result of `otherwise()` if it has none."""
    if "average loss = n.a." not in summary:
        return summary_loss(summary)
    if otherwise is None:
        raise BenchError("there is no progressive loss; give --tail or --validate")
    return otherwise()


def make(search: Search, number: int, folder: Path, learned: Path, validate: Path | None, cache: Path) -> dict:
    """Carry out one probe and return its record.

    Parameters
    ----------
    search : the search
    number : number of the probe
    folder : folder to run in
    learned : file to train on
    validate : file to measure the loss on; None for the progressive loss
    cache : file of the cache
    """
    options = drawn(search, number)
    model = ["-f", "model"] if validate else []
    learn = [*TOOLS["xclass"], "-d", str(learned), "--cache_file", str(cache), *search.options, *options, *model]
    row = {"probe": number, "options": options, "loss": None, "seconds": None}
    try:
        result = measure(learn, folder)
        row["seconds"] = round(result.wall, 2)
        if validate:
            test = ["-d", str(validate), "-t", "-i", "model", "-p", "answers", "--cache_file", f"{cache}.validate"]
            summary = measure([*TOOLS["xclass"], *test], folder).stderr
            row["loss"] = loss_of(summary, lambda: test_error(validate, folder / "answers"))
        else:
            row["loss"] = loss_of(result.stderr)
        if not math.isfinite(row["loss"]):
            row["loss"] = None
    except BenchError as error:
        row["failed"] = str(error).strip().splitlines()[-1]
    return row


def carry_out(search: Search, results: Path) -> list[dict]:
    """Carry out the probes that are not yet in the file `results`; return all probes in order."""
    for text in search.ranges:
        check(text)
    results = results.resolve()
    results.parent.mkdir(parents=True, exist_ok=True)
    key = search.key()
    rows = read_results(results, key)
    cut, tail, cache = (Path(f"{results}.{end}") for end in ("cut.vw", "tail.vw", "cache"))
    learned = cut if search.share < 1 or search.tail else search.data.resolve()
    validate = tail if search.tail else search.validate and search.validate.resolve()
    lacking = [number for number in range(1, search.probes + 1) if number not in rows]
    for text in search.ranges:
        print(f"range {text}", file=sys.stderr)
    if rows:
        print(f"{len(rows)} probes are in {results}", file=sys.stderr)
    else:
        results.write_text(json.dumps({"search": key}) + "\n", encoding="utf-8")
    if lacking and learned == cut and not (rows and cut.exists()):
        write_beginning(search.data, search.share, cut, search.tail, tail)
    with tempfile.TemporaryDirectory() as folder:
        for number in lacking:
            row = rows[number] = make(search, number, Path(folder), learned, validate, cache)
            with open(results, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            loss = row.get("failed") or f"{row['loss']:.6f} in {row['seconds']:.1f} s"
            print(
                f"probe {number} of {search.probes}: {loss}: {shlex.join(row['options'])}", file=sys.stderr, flush=True
            )
    for path in (cut, tail, cache, Path(f"{cache}.validate")):
        path.unlink(missing_ok=True)
    return [rows[number] for number in range(1, search.probes + 1)]


def best(rows: list[dict]) -> dict:
    """Return the probe with the smallest loss, the first one of several."""
    whole = [row for row in rows if row["loss"] is not None]
    if not whole:
        raise BenchError(f"all probes failed, the first one so: {rows[0].get('failed', 'its loss is no number')}")
    return min(whole, key=lambda row: (row["loss"], row["probe"]))


def report(search: Search, rows: list[dict]) -> str:
    """Return a table of the probes in rising order of loss, and the command line of the best one."""
    lines = ["| probe | loss | s | options |", "| --: | --: | --: | --- |"]
    for row in sorted(rows, key=lambda row: (row["loss"] is None, row["loss"], row["probe"])):
        loss = "failed" if row["loss"] is None else f"{row['loss']:.4f}"
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}"
        lines.append(f"| {row['probe']} | {loss} | {seconds} | `{shlex.join(row['options'])}` |")
    command = ["xclass", "-d", str(search.data), *search.options, *best(rows)["options"], "-f", "model.bin"]
    return "\n".join([*lines, "", "The best:", "", "    " + shlex.join(command)])
