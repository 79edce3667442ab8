"""Make random data and command lines for xclass and VW, the odd ones among them; a case is made of its number alone.

What VW leaves undefined, and what xclass does otherwise on purpose, is not made here. docs/differences_from_vw.md
says why; the places are marked `Not made`.
"""

from __future__ import annotations

import random
from typing import NamedTuple

KINDS = ("", "--oaa", "--recall_tree", "--ect", "--log_multi")
LISTS = "--multilabel_oaa"  # whose examples have lists of labels
GROUPS = ("a", "bc", "c", "", "n:0.5")
WORDS = ("a", "b", "dog", "cat", "12", "007", "été", "a-b", "Q", "3.5", "-", "_x", "x^y")
VALUES = ("", "", "", ":2", ":-0.5", ":0.25", ":1e-2", ":3", ":red")
ODD_VALUES = (
    ":0", ":-0", ":nan", ":inf", ":-inf", ":1e38", ":-1e38", ":3.5e38", ":1e-30", ":1e-46", ":1e10", ":1e20", ":0x10",
    ":+3", ":1e+2", ":.5", ":1e", ":-", ":5.", ":00012", ":123456789012345678901234567890", ":1e400", ":-.5", ":1e-400",
    ":-nan", ":infinity", ":1E2", ":1.5.2", ":e5",
)  # fmt: skip
ODD_ENDS = (
    " |a x:1:2 y", " |d:x y", " :", " |a x:1y z", " |e f:nan g", " ||", "|", " |:2 a", " a:", " ::b", " |f:nan a b",
    " |f:inf a", " |f:0 a b", " |f: a b", "\r", " |a x\ry |b z", " |a\tx\ty:2", " |a x|b y", " |  a", " |a :2 :3 :x",
    " |a x:1e38 y:1e38", " |\xff \xfe", " |a \0 b", " |a x: y", " |a x:y:z", " |f:1e38 a:10", " |é ü",
)  # fmt: skip
ODD_LINES = (
    "", "|", "||", " ", "\t", "1", "'t", "1 |", "2 1 tag", "1|a x", "x\t2 |a y", "\ufeff1 |a x", "\r", "1 |a x\r",
    "  2   |a   y  ", "|a x", "1 'a'b |a x", "2 '|a x", "1 2 |", ":", "1 :2", "'", "1 '' |a y",
)  # fmt: skip
ODD_CLASSES = (
    "0",
    "-1",
    "-2",
    "+2",
    "002",
    "4294967295",
    "4294967294",
    "2147483647",
    "2147483648",
    "99999999999999999999",
)
ODD_LISTS = (
    "3,1", "1,1", "1,1,3", ",1", "1,,2", "1,", ",", "x,y", "1x", "1.7", "1:2", "-1", "0,999", "999,0", "1 2", "1, 2",
    "1 2.5",
)  # fmt: skip
FATAL_CLASSES = ("1.0", "2x", "cat", "1 2 3", "1 1 t u")
ODD_REALS = (
    "nan", "inf", "-inf", "1e38", "-1e38", "1e-40", "x", "1e", "0x10", ".5", "1 2 0.5", "1 2 3 4", "1 1 nan", "1e10",
    "-0", "1 1 1e38", "1 1 x",
)  # fmt: skip
ODD_WEIGHTS = ("0", "-1", "nan", "inf", "1e38", "1e-40", "x", "1e10", "1e-10", "-0", "0.0001", "-inf")


class Step(NamedTuple):
    """A run: data to give with -d, and the options beside them."""

    data: bytes
    args: tuple[str, ...]


class Style(NamedTuple):
    """How often something odd occurs, from 0 to 1."""

    labels: float
    weights: float
    values: float
    ends: float
    lines: float
    fatal: float
    unlabelled: float


def make(seed: int, number: int, lists: bool = False) -> tuple[Step, ...]:
    """Return the runs of a case, one after the other in the same folder; `lists`: of lists of labels."""
    rng = random.Random(f"{seed} {number}")
    if lists:
        return _Maker(rng, LISTS).list_steps()
    kind = KINDS[number % len(KINDS)]
    maker = _Maker(rng, kind)
    return (maker.equal_shares(),) if number % 50 == 46 else maker.steps()


def _some(rng: random.Random, *choices: str) -> list[str]:
    return rng.choice(choices).split()


def _without(args: list[str], *flags: str) -> list[str]:
    """The arguments without some options and their values."""
    return [word for i, word in enumerate(args) if word not in flags and (not i or args[i - 1] not in flags)]


class _Maker:
    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.k = rng.choice({"": (5,), "--recall_tree": (3, 8, 30)}.get(kind, (2, 3, 5, 8)))
        self.loss = rng.choice(("", "", "", "squared", "logistic", "hinge", "quantile"))
        if self.loss == "quantile" and kind:
            self.loss = ""
        often = rng.random() < 0.7
        odd = [rng.choice((0, 0, 0.05, 0.3)) if often else 0 for _ in range(5)]
        self.style = Style(*odd, fatal=0.02 if rng.random() < 0.03 else 0, unlabelled=rng.choice((0, 0.1, 0.1)))

    # -- data

    def label(self, number: int) -> str:
        """A label of an example whose features depend on the class `number`, from 0."""
        rng, style = self.rng, self.style
        if rng.random() < style.unlabelled:
            return ""
        if self.kind == LISTS:
            if rng.random() < style.labels:
                return rng.choice(ODD_LISTS)
            labels = {number, *(int(self.k * rng.random() ** 2) for _ in range(rng.choice((0, 0, 1, 2, 4))))}
            return ",".join(map(str, sorted(labels)))
        if rng.random() < style.fatal and self.kind:
            return rng.choice(FATAL_CLASSES)
        if self.kind:
            label = str(number + self.lowest)
        elif self.loss in ("logistic", "hinge"):
            label = "1" if number % 2 else "-1"
        else:
            label = f"{number * 0.5 - 1:g}"
        # Not made: --recall_tree with labels that are no class, for which VW reads beyond its arrays
        if rng.random() < style.labels and self.kind != "--recall_tree":
            label = rng.choice((*ODD_CLASSES, str(self.k + 1)) if self.kind else ODD_REALS)
            if " " in label:
                return label
        if rng.random() < 0.25:
            label += f" {rng.choice((2, 0.5, 3, 1.25)):g}"
        elif rng.random() < style.weights:
            # Not made: --recall_tree with weight 0, from which VW makes entropies that are no numbers
            label += " " + rng.choice(("1e10", "1e-10", "0.0001") if self.kind == "--recall_tree" else ODD_WEIGHTS)
        return label

    def line(self) -> str:
        """A line of data."""
        rng, style = self.rng, self.style
        if rng.random() < style.lines:
            return rng.choice(ODD_LINES)
        number = int(self.many * rng.random() ** 1.5)
        label = self.label(number)
        tag = rng.choice((" ", " ", f" 't{number} ", f" tag{number}" if label else " 't"))
        groups = []
        for name in rng.sample(GROUPS, rng.randint(1, 4)):
            words = [f"t{number}" if rng.random() < 0.8 else rng.choice(WORDS)]
            for _ in range(rng.randint(0, 3)):
                words.append(rng.choice(WORDS) + rng.choice(ODD_VALUES if rng.random() < style.values else VALUES))
            if rng.random() < 0.05:
                words.append(":0.5")
            groups.append(f"|{name} {' '.join(words)}")
        end = rng.choice(ODD_ENDS) if rng.random() < style.ends else ""
        return label + tag + " ".join(groups) + end

    def data(self, sizes: tuple[int, ...] = (1, 2, 5, 20, 60, 120)) -> bytes:
        """The whole of a file. `sizes` : numbers of lines to choose from"""
        rng = self.rng
        shape = rng.random()
        if shape < 0.04:
            return rng.choice((b"", b"\n", b"\n\n\n", b" \n", b"\r\n"))
        n = rng.choice(sizes)
        lines = [self.line() for _ in range(n)]
        if shape < 0.07:  # not one label
            lines = ["|" + line.partition("|")[2] for line in lines]
        end = "\r\n" if rng.random() < 0.05 else "\n"
        text = end.join(lines) + ("" if rng.random() < 0.1 else end)
        return text.encode("utf-8").replace("\xff".encode(), b"\xff").replace("\xfe".encode(), b"\xfe")

    # -- options

    def features(self) -> list[str]:
        """Options of what becomes of the features."""
        rng, args = self.rng, []
        if rng.random() < 0.25:
            args += _some(rng, "--ngram 2", "--ngram a2", "--ngram 3", "--ngram n2 --ngram b2")
            args += _some(rng, "", "--skips 1", "--skips a2")
        args += _some(rng, *[""] * 6, "--ignore a", "--ignore bc --ignore n", "--keep a --keep c", "--keep abn")
        args += _some(rng, *[""] * 6, "--ignore_linear a", "--ignore_linear bc")
        if rng.random() < 0.5:
            args += _some(
                rng, "-q ab", "-q ::", "-q aa", "--cubic abc", "--interactions abcn", "-q b: --cubic aac",
                "-q ab -q ba", "-q ac -q ca -q aa", "--interactions a:",
            )  # fmt: skip
            args += _some(rng, *[""] * 6, "--permutations", "--leave_duplicate_interactions")
        args += _some(rng, "", "", "", "--noconstant", "--hash all", "--hash_seed 5", "--hash all --hash_seed 7")
        return args + _some(rng, "", "", "-b 10", "-b 12", "-b 20")

    def learning(self) -> list[str]:
        """Options of the learner."""
        rng, kind = self.rng, self.kind
        args = []
        if rng.random() < 0.25:
            args += _some(
                rng, "--sgd", "--adaptive", "--normalized", "--adaptive --invariant", "--adaptive --normalized",
                "--normalized --invariant", *(["--invariant"] if kind != "--recall_tree" else []),
            )  # fmt: skip
            args += ["-l", rng.choice(("0.1", "0.02"))]
        else:
            args += _some(rng, "", "", "", "-l 0.1", "-l 2", "-l 1e10", "-l 0")
        args += _some(rng, *[""] * 8, "--power_t 0.3", "--initial_t 3", "--power_t 0", "--initial_t 1e-10")
        self.adaptive = not {"--sgd", "--normalized", "--invariant"} & set(args) or "--adaptive" in args
        if self.loss:
            args += ["--loss_function", self.loss]
        args += _some(rng, *[""] * 10, "--l1 0.001", "--l2 0.001", "--l1 0.0005 --l2 0.01")
        args += _some(
            rng, *[""] * 10, "--min_prediction -0.5", "--max_prediction 0.6", "--min_prediction -2 --max_prediction 2"
        )
        return args

    def reduction(self) -> list[str]:
        """The reduction and its options."""
        rng, k = self.rng, self.k
        if self.kind == "":
            return _some(rng, "", "", "", "--binary") if self.loss in ("logistic", "hinge") else []
        args = [self.kind, str(k)]
        if self.kind == "--recall_tree":
            args += _some(rng, "", "--max_candidates 2", "--max_candidates 3 --max_depth 2", "--node_only")
            args += _some(rng, "", "", "--randomized_routing", "--bern_hyper 0.1", "--bern_hyper 0")
        elif self.kind == "--ect":
            args += _some(rng, "", "--error 1", "--error 2")
        elif self.kind == "--log_multi":
            args += _some(rng, "", "--swap_resistance 1", "--swap_resistance 2")
        return args

    def equal_shares(self) -> Step:
        """An audit whose order shows the last bits of weights: features of equal shares, and odd labels."""
        self.k, self.lowest, self.many, self.loss = 3, 1, 3, ""
        # no infinite numbers, which make other orders
        self.style = self.style._replace(labels=0.3, weights=0, values=0, ends=0, fatal=0)
        args = "--oaa 3 --hash all --audit -q :: -p p0 -f model0"
        return Step(self.data((120, 240)), tuple(args.split()))

    def list_steps(self) -> tuple[Step, ...]:
        """The runs of a case of lists of labels: learn, perhaps learn on, and test."""
        rng = self.rng
        self.k = self.many = rng.choice((2, 2, 5, 10, 31, 91))
        self.lowest = 0
        args = [self.kind, str(self.k)]
        fixed = [*args, *self.features(), *self.learning()]
        if not self.adaptive:
            # Not made: VW's clock of a model that was loaded counts what has no label; steps with values of 1e38
            self.style = self.style._replace(unlabelled=0.0, labels=0.0, lines=0.0, values=0.0, ends=0.0)
        runs = []
        learned = rng.choice((1, 1, 1, 2))
        for i in range(learned + rng.choice((1, 2))):
            words = [*_without(fixed, "--ngram", "--skips"), "-i", f"model{min(i, learned) - 1}"] if i else [*fixed]
            if i < learned:
                words += ["-f", f"model{i}"]
                if rng.random() < 0.25:
                    words += ["--passes", "2", "-c", *_some(rng, "", "--holdout_off", "--holdout_period 3")]
            else:
                words += ["-t"]
            if self.loss == "logistic":
                words += _some(rng, "", "", "--probabilities")
            runs.append(Step(self.data(), (*words, *_some(rng, "", "-P 1", "-P 3"), "-p", f"p{i}")))
        return tuple(runs)

    def steps(self) -> tuple[Step, ...]:
        """The runs: learn, and perhaps learn on or test with what was saved."""
        rng, kind = self.rng, self.kind
        self.lowest, self.many = 1, self.k
        reduction = self.reduction()
        learning = self.learning()
        learns_on = rng.choice((0, 0, 1, 1, 2))
        tests = rng.random() < 0.4
        if kind == "--log_multi":
            self.many += rng.choice((0, 3))  # so that leaves are taken back
            if learns_on or tests:  # xclass reports that the model has quantile loss
                learning = _without(learning, "--loss_function")
                self.loss = ""
        scores = ""
        if kind == "--oaa":
            if rng.random() < 0.3:
                self.lowest = rng.randrange(2)
                reduction += ["--indexing", str(self.lowest)]
            scores = rng.choice(("", "", "--scores", "--probabilities"))
            if scores == "--probabilities" and self.loss != "logistic":
                scores = ""
            if not scores and self.k > 3 and self.lowest and self.adaptive and rng.random() < 0.2:
                # Not made: with rules that are not adaptive, where VW's clock stands still
                # nor with labels that are no class, which VW reads beyond its arrays for; with --indexing 0 that is 0
                reduction += ["--oaa_subsample", "2"]
                self.style = self.style._replace(labels=0.0, lines=0.0)
        if learns_on and not self.adaptive:
            # Not made: VW's clock of a model that was loaded counts what has no label
            self.style = self.style._replace(unlabelled=0.0, lines=0.0)
        fixed = [*reduction, *self.features(), *learning]
        bounded = {"--min_prediction", "--max_prediction"} & set(fixed)
        if self.loss == "logistic" and not scores and not kind and not bounded and rng.random() < 0.3:
            fixed += ["--link", "logistic"]
        runs = []
        for i in range(1 + learns_on + tests):
            testing = tests and i == learns_on + 1
            args = list(fixed)
            if i:
                args = _without(args, "--ngram", "--skips")  # which VW adds to those of the model
                args += ["-i", f"model{i - 1}"]
            if testing:
                args += ["-t"]
            else:
                args += ["-f", f"model{i}"]
                if i and rng.random() < 0.5:
                    args += ["--preserve_performance_counters"]
                if rng.random() < 0.2:
                    args += ["--passes", str(rng.choice((2, 3))), "-c"]
                    args += _some(rng, "", "--holdout_off", "--holdout_period 3")
                elif rng.random() < 0.1:
                    args += ["--holdout_after", "7"]
                # Not made: text of a tree that VW has lost, and of sums that VW stores but does not use
                unused = {"--error", "--initial_t", "--oaa_subsample"} & set(args)
                readable = kind != "--log_multi" and not unused
                if rng.random() < 0.2 and readable:
                    args += ["--readable_model", f"text{i}"]
            args += ["-p", f"p{i}"]
            args += _some(rng, "", "", "-P 1", "-P 3", "-P 1.5", "-P 7")
            if scores:
                args += [scores]
            elif kind in ("", "--oaa") and rng.random() < 0.4:
                args += ["-r", f"r{i}"]
            # Not made: audits with --oaa_subsample, which show the regressors that VW evaluates while it learns
            if (kind in ("", "--oaa") or testing) and rng.random() < 0.35 and "--oaa_subsample" not in args:
                args += ["--audit"]
            runs.append(Step(self.data(), tuple(args)))
        return tuple(runs)
