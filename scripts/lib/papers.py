"""Map the methods and measures of the papers to those of xclass, and read the rows of experiments.ini."""

from __future__ import annotations

import fnmatch
import math
import re
import shlex
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scripts.lib.experiments import EXPERIMENTS, PLAIN_STEPS, VW_LOMTREE, VW_TREE
from scripts.lib.processes import BenchError
from xclass.binary import adagrad, update_rule
from xclass.reductions.core import tree_routers
from xclass.reductions.oaa import scorers

METHODS = {  # method of a paper -> options of xclass; {K} stands for the number of classes
    "oaa": "--oaa {K}",
    "recall_tree": "--recall_tree {K}",
    "log_multi": "--log_multi {K}",
    "filter_tree": "--ect {K}",
    "random_tree": "--random_tree {K}",
    "cpt": "--cpt {K}",
    "cpt_balanced": "--cpt {K} --cpt_tree balanced",
    "cpt_random": "--cpt {K} --cpt_tree random",
    "softmax_tree": "--softmax_tree {K}",
    "hsm": "--hsm {K}",
    "mach": "",  # its option does not have the number of classes
    "multilabel": "--multilabel {K}",
    "plt": "--plt {K}",
    "multilabel_oaa": "--multilabel_oaa {K}",
    "multiclass": "--multiclass {K}",
}
RANKS = (1, 3, 5)  # of the measures of lists, which a summary has in one line
NUMBER = r"([-+.\d]+(?:e[-+]\d+)?)"


def _line(title: str) -> str:
    return rf"^{title} = {NUMBER}"


MEASURES = {  # measure -> title, decimals, where a summary has it, and the factor to the unit of the papers
    "error": ("test error, %", 2, _line("average loss"), 100),
    "progressive": ("progressive error, %", 2, _line("average loss"), 100),
    "top5": ("test error of five answers, %", 2, _line("top-5 error"), 100),
    "perplexity": ("perplexity", 0, _line("perplexity"), 1),
    "squared": ("squared loss", 4, _line("average squared loss"), 1),
    "test_squared": ("squared loss without learning", 4, _line("average squared loss"), 1),
    "covered": ("labels in the leaf, %", 1, _line("class is in the leaf"), 100),
    "covered_perplexity": ("perplexity of these", 0, _line("perplexity within the leaf"), 1),
    "leaves": ("leaves", 0, rf"\bleaves = {NUMBER}", 1),
    "depth": ("depth", 0, rf"\bleaves = .*?(?:depth|max) = {NUMBER}", 1),
    "leaf_classes": ("classes of a leaf", 1, rf"classes of a leaf = {NUMBER}", 1),
    "train": ("training error, %", 2, _line("average loss"), 100),
    **{f"p{k}": (f"P@{k}, %", 2, "precision at 1, 3, 5", 100) for k in RANKS},
    **{f"psp{k}": (f"PSP@{k}, %", 2, "psp at 1, 3, 5", 100) for k in RANKS},
    **{f"ndcg{k}": (f"nDCG@{k}, %", 2, "ndcg at 1, 3, 5", 100) for k in RANKS},
    **{f"online_p{k}": (f"P@{k} before learning, %", 2, "precision at 1, 3, 5", 100) for k in RANKS},
    "seconds": ("training, s", 1, _line("seconds"), 1),
    "hyperplanes": ("hyperplanes an example", 1, "", 1),
    "milliseconds": ("ms an example, one core", 3, "", 1),
    "megabytes": ("weights in a file, MB", 1, "", 1),
}
for _name in ("top5", "perplexity", "covered", "covered_perplexity"):  # there are train_top5, ..., too
    _title, *_rest = MEASURES[_name]
    MEASURES["train_" + _name] = (f"{_title.replace('test ', '')}, training", *_rest)
WHILE_LEARNING = ("progressive", "seconds", *(f"online_p{k}" for k in RANKS))  # that the summary of training has
OF_FILES = ("hyperplanes", "milliseconds", "megabytes")  # measures that no summary has
CUT_DOWN = {
    "-b": 22,
    "--passes": 4,
    "--shuffle": 1000,
    "--tao_iterations": 2,
    "--leaf_passes": 4,
}  # option -> its largest value with --small
MOST_BITS, LEAST_BITS = 31, 18


# -- the rows of the table -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Hold a row of a paper's table, as experiments.ini describes it."""

    kind: str
    method: str
    setting: str
    figures: str
    options: tuple[str, ...] = ()
    testing: tuple[str, ...] = ()
    centred: bool = False


KINDS = ("tuned", "tunable", "retrained", "published", "absent")


def rows(script: str, which: str = "", **names: str) -> Iterator[Row]:
    """Yield the rows of a script; `which` is the set of one that has several, `names` replace texts that it names."""
    experiment = EXPERIMENTS[script]
    texts = {"vw_tree": VW_TREE, "vw_lomtree": VW_LOMTREE, "plain": PLAIN_STEPS}
    texts |= {"unscaled": "", "bits": "-b 26", "propensity": ""}
    texts |= {**experiment.names, **experiment.sets.get(which, {}), **names}
    centred = False
    for line in experiment.rows.replace("\\\n", " ").strip().splitlines():
        words = shlex.split(substituted(line, texts))
        if words and words[0].startswith("["):
            patterns = words.pop(0)[1:-1]
            wanted = not patterns.startswith("!")
            if wanted != any(fnmatch.fnmatch(which, pattern) for pattern in patterns.lstrip("!").split(",")):
                continue
        if words == ["centred"]:
            centred = True
        elif words:
            kind = words.pop(0) if words[0] in KINDS else ""
            method, setting, figures, *options = words if kind != "absent" else [*words[:2], "", *words[2:]]
            at = options.index("--") if "--" in options else len(options)
            yield Row(kind, method, setting, figures, tuple(options[:at]), tuple(options[at + 1 :]), centred)


def substituted(text: str, texts: dict[str, str]) -> str:
    """Return a text with each $name replaced, also in what replaces it."""
    while (done := string.Template(text).safe_substitute(texts)) != text:
        text = done
    return text


def figures(text: str) -> dict[str, float | None]:
    """Return measure -> figure of a paper from text such as `error=12.5+-0.3 seconds=?`; `?` becomes None.

    A figure is None if the paper does not give it. `+-` is followed by its standard deviation and `~` by half of its
    interval, see `spreads`.
    """
    values = {}
    for pair in text.split():
        name, _, value = pair.partition("=")
        if name not in MEASURES:
            raise BenchError(f"{pair}: no measure of this name; known are {', '.join(MEASURES)}")
        values[name] = None if value == "?" else float(re.split(r"\+-|~", value)[0])
    return values


def spreads(text: str, mark: str) -> dict[str, float]:
    """Return measure -> what follows `mark` in the figures of a paper that have it."""
    parts = (pair.partition("=")[::2] for pair in text.split())
    return {name: float(value.partition(mark)[2]) for name, value in parts if mark in value}


# -- command lines ---------------------------------------------------------------------------------------------------


def value_of(words: Sequence[str], option: str, otherwise: str) -> str:
    """Return the value of an option on a command line."""
    return words[list(words).index(option) + 1] if option in words else otherwise


def bits_of(method: str, words: Sequence[str], classes: int, features: int) -> int | None:
    """Return the -b that leaves at most one feature a weight; None where weights do not share places."""
    if method not in ("oaa", "multilabel_oaa", "mach", "recall_tree", "log_multi", "filter_tree", "random_tree"):
        return None
    levels = math.ceil(math.log2(max(2, classes)))
    regressors = {
        "recall_tree": classes + (1 << int(value_of(words, "--max_depth", str(levels)))),
        "log_multi": int(value_of(words, "--max_predictors", str(4 * classes))),
        "mach": math.prod(map(int, value_of(words, "--mach", "1,1").split(","))),
    }.get(method, classes)
    enough = math.ceil(math.log2(max(2, features + 1))) + math.ceil(math.log2(max(2, regressors)))
    return min(MOST_BITS, max(LEAST_BITS, enough))


def table_bytes(method: str, words: Sequence[str]) -> int | None:
    """Return the bytes of the table of weights that a command line has, with their sums; None if it has none."""
    if method == "softmax_tree" or "-b" not in words:
        return None
    in_tree = method in ("log_multi", "random_tree") and "--layout" not in words
    slot = {
        **dict.fromkeys(("oaa", "mach", "multilabel_oaa"), scorers.SLOT_BYTES),
        **dict.fromkeys(("cpt", "hsm", "plt"), adagrad.SLOT_BYTES),
    }.get(method.partition("_")[0] if method.startswith("cpt") else method, update_rule.SLOT_BYTES)
    return (tree_routers.SLOT_BYTES if in_tree else slot) << int(value_of(words, "-b", ""))


def cut(words: list[str], most: dict[str, int]) -> list[str]:
    """Return the words of a command with the values of the options in `most` reduced to these maximums."""
    words = list(words)
    for at, word in enumerate(words[:-1]):
        if word in most and words[at + 1].isdigit():
            words[at + 1] = str(min(int(words[at + 1]), most[word]))
    return words


def as_typed(words: list[str]) -> str:
    """Return a command line of xclass as it is typed in a shell, after `$ `."""
    return "$ " + shlex.join(["xclass", *words])


def measured(summary: str, name: str) -> float:
    """Return a measure, in the unit of the papers, from the summary of a run."""
    title, _, pattern, factor = MEASURES[name]
    of_lists = pattern.endswith("1, 3, 5")
    if of_lists:
        pattern = rf"^{pattern} = " + r".*?[, ]*".join([NUMBER] * (1 + RANKS.index(int(name[-1]))))
    found = re.findall(pattern, summary, re.MULTILINE)
    if not found:
        raise BenchError(f"the summary has no figure for {name!r} ({title})")
    return float(found[-1][-1] if isinstance(found[-1], tuple) else found[-1]) * factor
