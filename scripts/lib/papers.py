"""Map the methods and measures of the papers to those of xclass, and read the papers' figures in scripts/paper/*.sh."""

from __future__ import annotations

import re
import shlex
from functools import cache

from scripts.lib.data_sets import SETS
from scripts.lib.processes import ROOT, BenchError

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
}
MEASURES = {  # measure -> its name in the summary of a run, and the factor that converts it to the unit of the papers
    "error": ("average loss", 100),
    "progressive": ("average loss", 100),
    "top5": ("top-5 error", 100),
    "perplexity": ("perplexity", 1),
    "squared": ("average squared loss", 1),
    "covered": ("class is in the leaf", 100),
    "covered_perplexity": ("perplexity within the leaf", 1),
    "train": ("average loss", 100),
}
OF_TRAINING = ("top5", "perplexity", "covered", "covered_perplexity")  # measures that there are as train_top5, ..., too
MEASURES |= {"train_" + name: MEASURES[name] for name in OF_TRAINING}
RANKS = (1, 3, 5)  # of the measures of lists, which a summary has in one line
OF_LISTS = {f"p{k}": (f"precision at {', '.join(map(str, RANKS))}", 100) for k in RANKS}
OF_LISTS |= {f"psp{k}": (f"psp at {', '.join(map(str, RANKS))}", 100) for k in RANKS}
OF_LISTS |= {f"ndcg{k}": (f"ndcg at {', '.join(map(str, RANKS))}", 100) for k in RANKS}
OF_LISTS |= {f"online_p{k}": OF_LISTS[f"p{k}"] for k in RANKS}
MEASURES |= OF_LISTS
WHILE_LEARNING = ("progressive", *(f"online_p{k}" for k in RANKS))  # measures of predictions before learning
OF_FILES = ("seconds", "milliseconds", "megabytes")  # measures that no summary has
CUT_DOWN = {
    "-b": 18,
    "--passes": 4,
    "--shuffle": 1000,
    "--tao_iterations": 2,
    "--leaf_passes": 4,
}  # option -> its largest value with --small


def figures(text: str) -> dict[str, float | None]:
    """Return measure -> figure of a paper from text such as `error=12.5+-0.3 seconds=?`; `?` becomes None.

    A figure is None if the paper does not give it. What follows `+-` is the standard deviation, see `deviations`.
    """
    values = {}
    for pair in text.split():
        name, _, value = pair.partition("=")
        if name not in (*MEASURES, *OF_FILES):
            raise BenchError(f"{pair}: no measure of this name; known are {', '.join([*MEASURES, *OF_FILES])}")
        values[name] = None if value == "?" else float(value.partition("+-")[0])
    return values


def deviations(text: str) -> dict[str, float]:
    """Return measure -> standard deviation over several runs, of the figures of a paper that have one."""
    parts = (pair.partition("=")[::2] for pair in text.split())
    return {name: float(value.partition("+-")[2]) for name, value in parts if "+-" in value}


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
    title, factor = MEASURES[name]
    values = re.findall(rf"^{re.escape(title)} = (.+)", summary, re.MULTILINE)
    if not values or "n.a." in values[-1]:
        raise BenchError(f"the summary has no `{title}`")
    place = RANKS.index(int(name[-1])) if name in OF_LISTS else 0
    return float(values[-1].replace(",", " ").split()[place]) * factor


# -- the papers' figures ---------------------------------------------------------------------------------------------

MAKERS = (["begin"], ["row"], ["tuned"], ["tunable"])  # first words of these lines


def lines(script: str) -> list[list[str]]:
    """Return the lines of a script in scripts/paper that begin it or make a row, as words; `$name` stays."""
    text = (ROOT / "scripts" / "paper" / f"{script}.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.split()[:1] in MAKERS]


@cache
def paper(script: str) -> tuple[str, dict[tuple[str, str], float]]:
    """Return the title of a script in scripts/paper, and (method, measure) -> smallest figure over all settings."""
    begin, *rows = lines(script)
    values: dict[tuple[str, str], float] = {}
    for _, method, _, published, *_ in rows:
        for measure, value in figures(published).items():
            if value is not None:
                values[method, measure] = min(value, values.get((method, measure), value))
    return begin[2].split(",")[0], values


def titles(name: str) -> str:
    """Return the names of the papers' sets that a set stands in for, separated by commas."""
    return ", ".join(paper(script)[0] for script in SETS[name].papers)


def best(name: str, method: str, measure: str) -> list[float]:
    """Return the best figure of a method on each set of the papers that a set stands in for, if there is one."""
    figures = [paper(script)[1].get((method, measure)) for script in SETS[name].papers]
    return [value for value in figures if value is not None]
