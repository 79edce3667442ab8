"""`xclass --vw_exact ARGS` against `vw ARGS`, run live on random small data with random options.

Compared are the lines of -p and -r, the rows of the progress table and the summary: classes, tags and counts have
to be the same, numbers within CLOSE.

Left out, because xclass means to differ there: examples of weight 0 under --recall_tree, unlabelled ones under
--scores and --probabilities. Left out, because VW has a quirk there that xclass has not: the clock of a rule that is
not adaptive, once a model was loaded and lines are unlabelled, or with --oaa_subsample; --invariant alone under
--recall_tree.
"""

from __future__ import annotations

import importlib.util
import random
import re
from typing import NamedTuple

import pytest
from command import xclass
from versus import run_vw

if importlib.util.find_spec("vowpalwabbit") is None:
    pytest.skip("vowpalwabbit is not installed: nothing to compare with", allow_module_level=True)

CLOSE = 1e-4  # absolute below 1, relative above
ROW = re.compile(r"(\d+\.\d+|n\.a\.) +(\d+\.\d+|n\.a\.) +\d+ +[\d.]+ ")
OWN = (
    "average squared loss = ", "average log loss = ", "expected calibration error = ", "seconds = ",
    "slots in use = ", "best pass = ", "warning", "nodes = ", "swaps = ",
)  # fmt: skip
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WORDS = ("a", "b", "c", "dog", "cat", "12", "007", "été", "a-b", "x_1", "Q", "-", "3.5")


class Case(NamedTuple):
    """Two texts, the options to learn the first with, and what to do with the second."""

    first: str
    second: str
    args: tuple[str, ...]
    then: str  # "" | "test" | "continue"


# -- data --------------------------------------------------------------------------------------------------------


def features(rng: random.Random, source_class: int) -> str:
    """Namespaces with features, one of them telling `source_class`."""
    parts = []
    for name in rng.sample(("a", "bc", "c", "", "n:0.5"), rng.randint(1, 4)):
        words = [f"t{source_class}" if rng.random() < 0.8 else rng.choice(WORDS)]
        for _ in range(rng.randint(0, 3)):
            word = rng.choice(WORDS)
            word += rng.choice(("", "", ":2", ":-0.5", ":0.25", ":1e-2", ":3", ":0", ":red"))
            words.append(word)
        if rng.random() < 0.1:
            words.append(":0.5")
        parts.append(f"|{name} {' '.join(words)}")
    return " ".join(parts)


def line_of(rng: random.Random, label: str, source_class: int, bad: bool) -> str:
    """One line: label, importance, tag, features; sometimes malformed."""
    if label and rng.random() < 0.3:
        label += f" {rng.choice((2, 0.5, 3, 1.25, 0))}"
    tag = rng.choice((" ", " ", f" 't{source_class} ", f" tag{source_class}"))
    if not label:
        tag = rng.choice((" ", "'t "))
    line = label + tag + features(rng, source_class)
    if bad and rng.random() < 0.1:
        line += rng.choice((" |a x:1:2 y", " |d:x y", " :", " |a x:1y z", " |e f:nan g"))
    return line


def labels_of(rng: random.Random, kind: str, k: int, lowest: int):
    """A label and the class that the features depend on."""
    if kind == "real":
        source_class = rng.randrange(6)
        return f"{source_class * 0.5 - 1 + rng.choice((0, 0.25)):g}", source_class
    if kind == "signs":
        source_class = rng.randrange(6)
        return ("1" if source_class % 2 else "-1"), source_class
    source_class = int(k * rng.random() ** 1.5)
    return str(source_class + lowest), source_class


def text_of(
    rng: random.Random, kind: str, n: int, k: int = 0, lowest: int = 1, bad: bool = False, unlabelled: float = 0.1
) -> str:
    lines = []
    for _ in range(n):
        label, source_class = labels_of(rng, kind, k, lowest)
        if rng.random() < unlabelled:
            label = ""
        lines.append(line_of(rng, label, source_class, bad) + "\n")
    return "".join(lines)


# -- options -------------------------------------------------------------------------------------------------------


def some(rng: random.Random, *choices: str) -> list[str]:
    return rng.choice(choices).split()


def common(rng: random.Random) -> list[str]:
    """Options of any run."""
    return [
        *some(rng, "", "", "-b 12", "-b 20", "-b 10"),
        *some(rng, "", "", "", "--hash all", "--hash_seed 7", "--noconstant"),
        *some(rng, "", "", "", "-q ab", "-q ::", "-q aa", "--cubic abc", "--interactions a:", "-q b: --cubic aac"),
        *some(rng, "", "", "-P 7", "-P 1.5", "-P 1"),
    ]


def update_rule(rng: random.Random) -> list[str]:
    rule = some(
        rng,
        "",
        "",
        "--sgd",
        "--adaptive",
        "--invariant",
        "--normalized",
        "--adaptive --invariant",
        "--adaptive --normalized",
        "--normalized --invariant",
        "--adaptive --normalized --invariant",
    )
    rate = ["-l", rng.choice(("0.1", "0.02"))] if rule else some(rng, "", "", "-l 0.2", "-l 2")
    return [*rule, *rate, *some(rng, "", "", "--power_t 0.3", "--initial_t 3", "--power_t 0")]


def scalar_case(seed: int) -> Case:
    rng = random.Random(f"scalar {seed}")
    loss = rng.choice(("squared", "squared", "logistic", "hinge", "quantile"))
    kind = "signs" if loss in ("logistic", "hinge") else "real"
    args = [*common(rng), *update_rule(rng), "--loss_function", loss]
    if loss == "quantile":
        args += some(rng, "", "--quantile_tau 0.3")
    if loss == "logistic":
        args += some(rng, "", "--link logistic")
    args += some(rng, "", "", "-r raw")
    then = rng.choice(("", "test", "continue"))
    unlabelled = 0 if then == "continue" else 0.1  # VW's clock counts them from then on, unless the rule is adaptive
    texts = (text_of(rng, kind, n, bad=rng.random() < 0.3, unlabelled=unlabelled) for n in (60, 30))
    return Case(*texts, tuple(args), then)


def oaa_case(seed: int) -> Case:
    rng = random.Random(f"oaa {seed}")
    k = rng.choice((2, 3, 5, 8))
    lowest = 1
    args = ["--oaa", str(k), *common(rng), *update_rule(rng)]
    args += some(rng, "", "--loss_function logistic", "--loss_function hinge")
    output = some(rng, "", "", "--scores", "--probabilities", "-r raw")
    if output == ["--probabilities"] and "logistic" not in args:
        output = []
    args += output
    choice = rng.random()
    if choice < 0.25:
        lowest = 0
        args += ["--indexing", "0"]
    elif choice < 0.4:
        args += ["--indexing", "1"]
    elif choice < 0.6 and k > 3 and not output and not {"--sgd", "--invariant", "--normalized"} & set(args):
        args += ["--oaa_subsample", "2"]  # VW's clock, which other rules use, stands still
    then = rng.choice(("", "test", "continue"))
    # VW shows unlabelled examples of --scores and --probabilities as wrong, and see above
    unlabelled = 0 if then == "continue" or output[:1] in (["--scores"], ["--probabilities"]) else 0.1
    texts = (text_of(rng, "class", n, k, lowest, rng.random() < 0.3, unlabelled) for n in (60, 30))
    return Case(*texts, tuple(args), then)


def recall_tree_case(seed: int) -> Case:
    rng = random.Random(f"recall_tree {seed}")
    k = rng.choice((3, 8, 20, 50))
    rule = update_rule(rng)
    while rule[:2] == ["--invariant", "-l"]:  # VW takes the sum of squares from the first router on the path
        rule = update_rule(rng)
    args = ["--recall_tree", str(k), *common(rng), *rule]
    args += some(rng, "", "--loss_function logistic", "--loss_function hinge")
    args += some(rng, "", "--max_candidates 2", "--max_candidates 4", "--max_candidates 3 --max_depth 2")
    args += some(rng, "", "--bern_hyper 0.1", "--bern_hyper 0")
    args += some(rng, "", "", "--node_only", "--randomized_routing")
    then = rng.choice(("", "test", "continue"))
    unlabelled = 0 if then == "continue" else 0.1
    texts = (text_of(rng, "class", n, k, bad=rng.random() < 0.3, unlabelled=unlabelled) for n in (90, 30))
    return Case(*(text.replace(" 0 ", " 2 ") for text in texts), tuple(args), then)  # weight 0: see recall_tree.py


def ect_case(seed: int) -> Case:
    rng = random.Random(f"ect {seed}")
    k = rng.choice((2, 3, 5, 8, 13, 20))  # where there is one class VW makes no crosses to count
    args = ["--ect", str(k), *common(rng), *update_rule(rng)]
    args += some(rng, "", "--error 1", "--error 2", "--error 3", "--error 5")
    args += some(rng, "", "--loss_function logistic", "--loss_function hinge", "--link logistic")
    then = rng.choice(("", "test", "continue"))
    unlabelled = 0 if then == "continue" else 0.1
    texts = (text_of(rng, "class", n, k, 1, rng.random() < 0.3, unlabelled) for n in (90, 30))
    return Case(*texts, tuple(args), then)


def log_multi_case(seed: int) -> Case:
    rng = random.Random(f"log_multi {seed}")
    k = rng.choice((2, 3, 5, 8, 13, 20))
    args = ["--log_multi", str(k), *common(rng), *update_rule(rng)]
    args += some(rng, "", "--swap_resistance 1", "--swap_resistance 2")
    then = rng.choice(("", "test", "continue"))
    if not then:  # xclass reports that a model was trained with quantile loss, whatever the option was
        args += some(rng, "", "--loss_function logistic", "--loss_function hinge")
    unlabelled = 0 if then == "continue" else 0.1
    classes = rng.choice((k, k + 4))  # more classes than leaves, so that some are taken back
    # before there is a router VW makes no crosses to count
    texts = ("1 |\n2 |\n" + text_of(rng, "class", n, classes, 1, rng.random() < 0.3, unlabelled) for n in (150, 30))
    return Case(*texts, tuple(args), then)


MAKE = {
    "scalar": scalar_case,
    "oaa": oaa_case,
    "recall_tree": recall_tree_case,
    "ect": ect_case,
    "log_multi": log_multi_case,
}
SEEDS = {  # between them they meet every option above; none comes so near a tie that an estimate decides it
    "scalar": (0, 1, 4, 5, 7, 11, 17, 22, 54, 65),
    "oaa": (0, 2, 5, 8, 10, 25, 27, 31, 44, 50, 83, 126),
    "recall_tree": (1, 2, 3, 5, 7, 9, 11, 17, 29, 36, 65, 69),
    "ect": (0, 3, 6, 11, 14, 19, 25, 27, 37, 42, 49, 54, 61, 88),
    "log_multi": (*range(13), 14, 15, 16, 17, 18, *range(20, 28)),  # 13, 19: tree lost, from then on no crosses counted
}


# -- comparing -----------------------------------------------------------------------------------------------------


def vw(*args, cwd) -> str:
    return run_vw(*args, cwd=cwd).err


def run_xclass(*args, cwd) -> str:
    result = xclass("--vw_exact", *args, cwd=cwd)
    assert result.status == 0, result.err
    return result.err


def messages(err: str) -> list[str]:
    """The rows of the table and the summary."""
    lines = err.splitlines()
    end = lines.index("finished run")
    summary = [line for line in lines[end:] if line and not line.startswith(OWN)]
    return [line for line in lines[:end] if ROW.match(line)] + summary


def assert_close(actual: list[str], expected: list[str], output: str) -> None:
    """Lines have to be equal but for the size of their numbers with a point."""
    assert len(actual) == len(expected), output
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if a == b:
            continue
        where = f"{output}, line {i + 1}:\nxclass {a}\nvw     {b}"
        words = a.split(), b.split()
        assert len(words[0]) == len(words[1]), where
        for actual_word, expected_word in zip(*words, strict=True):
            assert NUMBER.sub("#", actual_word) == NUMBER.sub("#", expected_word), where
            for x, y in zip(NUMBER.findall(actual_word), NUMBER.findall(expected_word), strict=True):
                if "." not in x + y and "e" not in x + y:
                    assert x == y, where
                assert abs(float(x) - float(y)) <= CLOSE * max(1.0, abs(float(y))), where


def compare(case: Case, place) -> None:
    """Learn with both, then test or learn on with both."""
    (place / "first.vw").write_text(case.first)
    (place / "second.vw").write_text(case.second)
    runs = [("first.vw", list(case.args))]
    if case.then:
        more = ["-i", "MODEL", *case.args, *(["-t"] if case.then == "test" else [])]
        runs.append(("second.vw", more))
    for data, args in runs:
        all_messages, all_outputs = [], []
        for name, run in (("vw", vw), ("xclass", run_xclass)):
            files = {"MODEL": f"{name}.model", "raw": f"{name}.raw"}
            words = [files.get(arg, arg) for arg in args]
            all_messages.append(messages(run("-d", data, *words, "-p", f"{name}.p", "-f", f"{name}.model", cwd=place)))
            outputs = [f"{name}.p"] + ([f"{name}.raw"] if "raw" in args else [])
            all_outputs.append([(place / file).read_text().splitlines() for file in outputs])
        command = f"-d {data} {' '.join(args)}"
        for actual, expected, option in zip(all_outputs[1], all_outputs[0], ("-p", "-r"), strict=False):
            assert_close(actual, expected, f"{option} of {command}")
        assert_close(all_messages[1], all_messages[0], f"talk of {command}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_same_predictions_table_and_summary_as_vw(tmp_path, name, seed):
    compare(MAKE[name](seed), tmp_path)
