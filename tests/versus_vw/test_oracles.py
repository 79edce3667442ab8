"""The oracles against Vowpal Wabbit itself, run live on small random data.

Every test prints its seed; a failure shows it. Real-valued predictions agree within 1e-4, classes exactly.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from versus import needs_vw, run_vw

from tests.oracles import learner as base
from tests.oracles import reader
from tests.oracles.ect import Tournament, schedule
from tests.oracles.log_multi import LomTree
from tests.oracles.oaa import OneAgainstAll
from tests.oracles.recall_tree import RecallTree

CLOSE = 1e-4
TABLE = b"""\
1 ex1|w apple red |s size:2 weight:0.5
2 'ex2 |w banana yellow |s size:1.5 weight:0.25
3 2.0 ex3|w apple green |s size:1
1 |w apple red
 | w?
2 |w banana
3 0.5 |w green |s size:4
"""


class Vw:
    """Runs VW on bytes and reads what it wrote."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, data: bytes, *args: str, check: bool = True) -> subprocess.CompletedProcess:
        (self.folder / "data").write_bytes(data)
        command = [sys.executable, "-m", "vowpalwabbit", "-d", str(self.folder / "data"), *args]
        result = subprocess.run(command, capture_output=True)
        if check:
            assert result.returncode == 0, (args, result.stdout[-500:], result.stderr[-500:])
        return result

    def predictions(self, data: bytes, *args: str, option: str = "-p") -> list[str]:
        (self.folder / "data").write_bytes(data)
        run_vw("-d", self.folder / "data", "--quiet", option, self.folder / "out", *args, cwd=self.folder)
        return (self.folder / "out").read_text().splitlines()

    def weights(self) -> dict[int, float]:
        """Weights that are not 0 of the readable model in `out.txt`, by slot."""
        lines = (self.folder / "out.txt").read_text().splitlines()
        pairs = (line.split(":") for line in lines[lines.index(":0") + 1 :])
        return {int(slot): float(weight) for slot, weight in pairs}


@pytest.fixture
def vw(tmp_path):
    return Vw(tmp_path)


def generator(seed: int) -> random.Random:
    print(f"seed {seed}")
    return random.Random(seed)


def some_features(rng: random.Random, most: int = 5, tiny: str = ":1e-20") -> str:
    """Fewer than `most` features in each of some groups; duplicates, zeros and a very small value included."""
    text = ""
    for _ in range(rng.randrange(1, 4)):
        text += "|" + rng.choice(["a", "b", "abc", "", "b:0.5"])
        for _ in range(rng.randrange(most)):
            value = rng.choice(["", "", f":{rng.uniform(-2, 3):.3f}", ":0", tiny, ":red"])
            text += f" w{rng.randrange(25)}{value}"
        text += " "
    return text


def real_data(rng: random.Random, n: int, signs: bool) -> bytes:
    """Simple labels with weights and initial offsets, some lines unlabelled."""
    lines = []
    for _ in range(n):
        label = rng.choice(["-1", "1"]) if signs else f"{rng.uniform(-2, 2):.2f}"
        head = f"{label} {rng.choice([1, 1, 1, 2, 0.5, 0, 3.25])} {rng.choice([0, 0, 0.25])} "
        lines.append((head if rng.random() < 0.9 else "") + some_features(rng))
    return ("\n".join(lines) + "\n").encode()


def class_data(rng: random.Random, n: int, k: int, first: int = 1, zero_weights: bool = True) -> bytes:
    """Class labels, small ones more often, with a feature that depends on the class."""
    lines = []
    for _ in range(n):
        number = min(int(rng.expovariate(3 / k)), k - 1)
        weight = rng.choice([1, 1, 1, 2, 0.5, 3.25, 0 if zero_weights else 1])
        head = f"{number + first} {weight} " if rng.random() < 0.9 else ""
        hint = f"|c h{(number * 7 + rng.randrange(3)) % 23} "
        lines.append(head + hint + some_features(rng, 3, tiny=":0.05"))
    return ("\n".join(lines) + "\n").encode()


def class_examples(data: bytes, bits: int = 18) -> list[tuple]:
    """(features, label, weight) as `run` takes them."""
    examples = reader.read(data, multiclass=True, bits=bits)
    labels = [None if e.label is None else int(e.label) for e in examples]
    return list(zip(reader.features_of(examples), labels, [e.weight for e in examples], strict=True))


def rule_of(flags: list[str]) -> dict:
    """`resolve_rule` from VW's flags."""

    def value(flag):
        return float(flags[flags.index(flag) + 1]) if flag in flags else None

    loss = flags[flags.index("--loss_function") + 1] if "--loss_function" in flags else "squared"
    names = ("sgd", "adaptive", "normalized", "invariant")
    rule = base.resolve_rule(
        **{name: f"--{name}" in flags for name in names},
        learning_rate=value("-l"),
        initial_t=value("--initial_t"),
        power_t=0.5 if value("--power_t") is None else value("--power_t"),
        loss=loss,
    )
    return rule | {"tau": value("--quantile_tau") or 0.5}


def check_base(vw, data: bytes, flags: list[str], interactions: list[str]) -> None:
    examples = reader.read(data, multiclass=False)
    rows = reader.features_of(examples, interactions)
    fed = [(row, e.label, e.weight, e.initial) for row, e in zip(rows, examples, strict=True)]
    want = base.run_base(fed, base.Learner(base.vw_slot(1), **rule_of(flags)))
    options = [part for text in interactions for part in ("--interactions", text)]
    got = [float(line) for line in vw.predictions(data, *flags, *options)]
    np.testing.assert_allclose(got, want, rtol=CLOSE, atol=CLOSE)


# -- base learner


RULES = [
    "",
    "-l 0.05",
    "--power_t 0.7",
    "--initial_t 3",
    "--sgd -l 0.3",
    "--sgd -l 0.3 --power_t 0.2",
    "--sgd -l 0.3 --initial_t 3",
    "--sgd",
    "--sgd --invariant -l 0.3",
    "--invariant -l 0.3",
    "--adaptive",
    "--adaptive --invariant --initial_t 2",
    "--normalized",
    "--normalized --invariant",
    "--normalized --power_t 0.4",
    "--adaptive --normalized",
    "--adaptive --normalized --invariant --power_t 0.3",
]
LOSSES = ["squared", "logistic", "hinge", "quantile", "quantile --quantile_tau 0.2"]


@needs_vw
@pytest.mark.parametrize("rule", RULES)
def test_base_learner_agrees_under_every_update_rule(vw, rule):
    rng = generator(RULES.index(rule) + 100)
    n = 20 if rule == "--sgd" else 60  # its rate of 10 makes one bit of difference grow
    check_base(vw, real_data(rng, n, signs=False), rule.split(), [])
    check_base(vw, real_data(rng, n, signs=True), [*rule.split(), "--loss_function", "logistic"], [])


@needs_vw
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", ["", "--sgd -l 0.3", "--sgd --invariant -l 0.3", "--normalized --invariant"])
def test_base_learner_agrees_for_every_loss(vw, rule, loss):
    rng = generator(RULES.index(rule) + 200 + 20 * LOSSES.index(loss))
    signs = loss in ("logistic", "hinge")
    check_base(vw, real_data(rng, 60, signs), [*rule.split(), "--loss_function", *loss.split()], [])


@needs_vw
@pytest.mark.parametrize("interactions", [["ab"], ["aa", "ba", "ab"], ["::"], ["aab", ":b"], ["b:a", r"a\x62a"]])
def test_base_learner_agrees_with_interactions(vw, interactions):
    rng = generator(300 + len(interactions))
    check_base(vw, real_data(rng, 60, signs=False), [], interactions)


def test_lambert_shift_is_close_to_the_solution():
    for x in np.linspace(-8, 12, 81):
        w = np.exp(x) if x < 1 else x  # W(exp(x)) solves w + log w = x
        for _ in range(40):
            w = w * (1 + x - np.log(w)) / (1 + w)  # Newton's step
        assert abs(float(base.lambert_shift(np.float32(x))) - (w - x)) < 1e-4


def test_learner_with_another_layout_only_differs_by_collisions():
    rng = generator(310)
    examples = class_examples(class_data(rng, 80, 6))
    wide = OneAgainstAll(6, slot=lambda index, sub: (index, sub))
    narrow = OneAgainstAll(6, bits=30)
    assert base.run(examples, wide) == base.run(examples, narrow)


def test_known_label_range_clips_from_the_start():
    known, seen = (base.Learner(base.vw_slot(1), label_range=name) for name in ("known", "seen"))
    assert known.clip(np.float32(-2)) == -1 and seen.clip(np.float32(-2)) == 0
    seen.widen(-1)
    assert seen.clip(np.float32(-2)) == -1 and seen.clip(np.float32(2)) == 0
    assert known.clip(np.float32(np.nan)) == 0


# -- one-against-all


OAA = [
    ("--oaa 5", {}, 1),
    ("--oaa 5", {}, 0),
    ("--oaa 5 --indexing 0", {"indexing": 0}, 0),
    ("--oaa 7 --indexing 1 --loss_function logistic", {"indexing": 1}, 1),
    ("--oaa 7 --sgd -l 0.3", {}, 1),
    ("--oaa 7 --sgd --invariant -l 0.3", {}, 1),
    ("--oaa 7 --adaptive -l 0.3 --loss_function hinge", {}, 1),
    ("--oaa 9 --oaa_subsample 3", {"subsample": 3}, 1),
    ("--oaa 9 --oaa_subsample 4 --random_seed 5", {"subsample": 4, "seed": 5}, 1),
    ("--oaa 9 --oaa_subsample 3 --sgd -l 0.2", {"subsample": 3}, 1),
    ("--oaa 9 --oaa_subsample 3 --indexing 0", {"subsample": 3, "indexing": 0}, 0),
]


@needs_vw
@pytest.mark.parametrize("case", range(len(OAA)))
def test_oaa_agrees(vw, case):
    args, options, first = OAA[case]
    rng = generator(400 + case)
    flags = args.split()
    k = int(flags[1])
    data = class_data(rng, 150, k, first)
    oracle = OneAgainstAll(k, **options, **rule_of(flags))
    assert base.run(class_examples(data), oracle) == [int(line) for line in vw.predictions(data, *flags)]


@needs_vw
def test_oaa_scores_agree(vw):
    rng = generator(420)
    data = class_data(rng, 80, 4)
    got = [line.split() for line in vw.predictions(data, "--oaa", "4", option="-r")]
    oracle = OneAgainstAll(4)
    for (features, label, weight), line in zip(class_examples(data), got, strict=True):
        oracle.predict(features)
        np.testing.assert_allclose([float(part.split(":")[1]) for part in line], oracle.scores, rtol=CLOSE, atol=CLOSE)
        if label is not None:
            oracle.learn(features, label, weight)


# -- recall tree


TREES = [
    ("--recall_tree 6", {}),
    ("--recall_tree 30", {}),
    ("--recall_tree 30 --max_candidates 4", {"max_candidates": 4}),
    ("--recall_tree 30 --max_candidates 3 --bern_hyper 0", {"max_candidates": 3, "bern_hyper": 0}),
    ("--recall_tree 30 --max_candidates 3 --bern_hyper 0.1", {"max_candidates": 3, "bern_hyper": 0.1}),
    ("--recall_tree 30 --max_candidates 2 --max_depth 2", {"max_candidates": 2, "max_depth": 2}),
    (
        "--recall_tree 30 --max_candidates 3 --bern_hyper 0.1 --max_depth 3 --node_only",
        {"max_candidates": 3, "bern_hyper": 0.1, "max_depth": 3, "node_only": True},
    ),
    (
        "--recall_tree 30 --max_candidates 3 --bern_hyper 0.01 --randomized_routing --random_seed 3",
        {"max_candidates": 3, "bern_hyper": 0.01, "randomized_routing": True, "seed": 3},
    ),
    (
        "--recall_tree 30 --max_candidates 3 --bern_hyper 0 --loss_function logistic",
        {"max_candidates": 3, "bern_hyper": 0},
    ),
    ("--recall_tree 30 --max_candidates 3 --bern_hyper 0 --sgd -l 0.2", {"max_candidates": 3, "bern_hyper": 0}),
    (
        "--recall_tree 30 --max_candidates 3 --bern_hyper 0 --sgd --invariant -l 0.2",
        {"max_candidates": 3, "bern_hyper": 0},
    ),
    ("--recall_tree 30 --max_candidates 3 --max_depth 0", {"max_candidates": 3, "max_depth": 0}),
    ("--recall_tree 30 --max_candidates 3 --bern_hyper 0 -b 14", {"max_candidates": 3, "bern_hyper": 0, "bits": 14}),
]


@pytest.mark.sampled(2)
@needs_vw
@pytest.mark.parametrize(
    ("case", "zero_weights"), [(i, False) for i in range(len(TREES))] + [(i, True) for i in range(0, len(TREES), 4)]
)
def test_recall_tree_agrees_in_answers_and_weights(vw, case, zero_weights):
    args, options = TREES[case]
    rng = generator(500 + case)
    flags = args.split()
    data = class_data(rng, 200, int(flags[1]), zero_weights=zero_weights)
    oracle = RecallTree(int(flags[1]), **options, **rule_of(flags))
    want = base.run(class_examples(data, options.get("bits", 18)), oracle)
    model = ["--predict_only_model", "--readable_model", str(vw.folder / "out.txt")]
    assert want == [int(line) for line in vw.predictions(data, *flags, *model)]
    got, weights = vw.weights(), oracle.scorer_learner.weights()
    assert len(weights) > 100
    slots = sorted(got.keys() | weights.keys())
    np.testing.assert_allclose(
        [got.get(slot, 0) for slot in slots], [weights.get(slot, 0) for slot in slots], rtol=CLOSE, atol=CLOSE
    )


def entropy_bits(counts: dict) -> float:
    total = sum(counts.values())
    return -sum(c / total * np.log2(c / total) for c in counts.values() if c) if total else 0.0


@pytest.mark.parametrize("router_weight", ["example", "mean_entropy", "entropy"])
def test_recall_tree_router_label_and_weight_follow_the_expected_entropy(router_weight):
    """Entropies from the counts anew; every step of the routes is checked before the example is counted."""
    rng = generator(600)
    tree = RecallTree(12, max_candidates=2, bern_hyper=0.01, router_weight=router_weight)
    counts = [{} for _ in tree.nodes]
    for features, label, weight in class_examples(class_data(rng, 150, 12, zero_weights=False)):
        if label is None:
            continue
        tree.learn(features, label, weight)
        for at, side, importance, _ in tree.route:
            left, right = counts[tree.nodes[at].left], counts[tree.nodes[at].right]

            def after(grown, other, label=label, weight=weight):
                grown = grown | {label: grown.get(label, 0) + weight}
                n, m = sum(grown.values()), sum(other.values())
                return (n * entropy_bits(grown) + m * entropy_bits(other)) / (n + m)

            gain = after(left, right) - after(right, left)
            if abs(gain) > 1e-9:
                assert side == (-1 if gain < 0 else 1)
            total = sum(left.values()) + sum(right.values()) + weight
            expected = {"example": weight, "mean_entropy": abs(gain), "entropy": total * abs(gain)}[router_weight]
            assert importance == pytest.approx(expected, rel=1e-5, abs=1e-7)
            counts[at][label] = counts[at].get(label, 0) + weight
        last = tree.route[-1][3]
        counts[last][label] = counts[last].get(label, 0) + weight
    for node, seen in zip(tree.nodes, counts, strict=True):
        assert {y: c for y, c in node.labels} == pytest.approx(seen)
        assert node.entropy / np.log(2) == pytest.approx(entropy_bits(seen), abs=1e-9)


def test_recall_tree_keeps_its_answers_with_separate_learners_and_another_layout():
    """Apart from the shared clip range, routers and scorers do not touch each other's weights."""
    rng = generator(610)
    examples = class_examples(class_data(rng, 150, 20, zero_weights=False), bits=30)
    options = {"max_candidates": 3, "bern_hyper": 0.1}

    def learner():
        return base.Learner(lambda i, sub: (i, sub), unscaled=lambda i, sub: ("path", i, sub), label_range="known")

    apart = RecallTree(20, **options, router_learner=learner(), scorer_learner=learner(), path_index=lambda a: a)
    joint = RecallTree(20, **options, bits=30, label_range="known")
    assert base.run(examples, apart) == base.run(examples, joint)
    assert [node.labels for node in apart.nodes] == [node.labels for node in joint.nodes]
    assert apart.candidates == joint.candidates and apart.node == joint.node
    assert any(apart.path_value(y, a) for y in range(1, 21) for a in range(1, len(apart.nodes)))
    bare = RecallTree(20, **options, path_features=False, router_learner=learner(), scorer_learner=learner())
    base.run(examples, bare)
    assert not any(key[0] == "path" for key in bare.scorer_learner.table)


def test_recall_tree_skips_weight_zero_when_told():
    tree, plain = RecallTree(8, skip_zero_weight=True), RecallTree(8)
    features = [(1, np.float32(1))]
    for each in (tree, plain):
        each.learn(features, 3, 0.0)
    assert all(node.labels == [] for node in tree.nodes) and np.isnan(plain.nodes[0].entropy)


# -- error-correcting tournament


TOURNAMENTS = [
    ("--ect 2 --error 2", {"errors": 2}),
    ("--ect 7", {}),
    ("--ect 8 --error 1", {"errors": 1}),
    ("--ect 11 --error 3 --loss_function logistic", {"errors": 3}),
    ("--ect 23 --error 7 -l 2", {"errors": 7}),
    ("--ect 6 --error 2 --loss_function logistic --link logistic", {"errors": 2, "link": True}),
    ("--ect 16 --link logistic --adaptive -l 0.3", {"link": True}),
    ("--ect 9 --error 4 --normalized --invariant -l 0.2", {"errors": 4}),
    ("--ect 12 --error 2 --sgd -l 0.05", {"errors": 2}),
    ("--ect 20 --error 1 -b 10", {"errors": 1, "bits": 10}),
]


@needs_vw
@pytest.mark.parametrize("case", range(len(TOURNAMENTS)))
def test_tournament_agrees_in_answers_and_weights(vw, case):
    args, options = TOURNAMENTS[case]
    rng = generator(650 + case)
    flags = args.split()
    data = class_data(rng, 200, int(flags[1]))
    oracle = Tournament(int(flags[1]), **options, play="vw", **rule_of(flags))
    want = base.run(class_examples(data, options.get("bits", 18)), oracle)
    model = ["--predict_only_model", "--readable_model", str(vw.folder / "out.txt")]
    assert want == [int(line) for line in vw.predictions(data, *flags, *model)]
    got, weights = vw.weights(), oracle.learner.weights()
    assert len(weights) > 40
    slots = sorted(got.keys() | weights.keys())
    np.testing.assert_allclose(
        [got.get(slot, 0) for slot in slots], [weights.get(slot, 0) for slot in slots], rtol=CLOSE, atol=CLOSE
    )


@pytest.mark.parametrize(("k", "errors"), [(2, 1), (3, 1), (6, 1), (5, 2), (8, 2), (13, 2), (7, 3), (16, 5)])
def test_label_that_loses_no_more_than_e_times_wins_a_tournament(k, errors):
    rng = generator(670 + k)
    matches = schedule(k, errors)
    assert len(matches) == (k - 1) * (errors + 1)
    for _ in range(100):
        label = rng.randrange(1, k + 1)
        lost_times = rng.randrange(errors + 1)
        won, lost, winners = {}, {}, []
        for number, match in enumerate(matches):
            sides = [
                index if state == "label" else (won if state == "won" else lost)[index]
                for state, index in (match.left, match.right)
            ]
            right = int(rng.random() < 0.5)
            if label in sides:
                loses = lost_times > 0 and rng.random() < 0.5
                lost_times -= loses
                right = sides.index(label) ^ int(loses)
            won[number], lost[number] = sides[right], sides[1 - right]
            if match.last:
                winners.append(won[number])
        assert label in winners and len(winners) == errors + 1


# -- LOMTree


LOM_TREES = [
    ("--log_multi 2", {}),
    ("--log_multi 7", {}),
    ("--log_multi 8 --swap_resistance 1", {"resistance": 1}),
    ("--log_multi 4 --swap_resistance 2 -l 2", {"resistance": 2}),
    ("--log_multi 23 --sgd -l 0.05", {}),
    ("--log_multi 6 --adaptive -l 0.3", {}),
    ("--log_multi 3 --swap_resistance 1 --normalized --invariant -l 0.2", {"resistance": 1}),
    ("--log_multi 20 -b 10", {"bits": 10}),
    ("--log_multi 3 --swap_resistance 1", {"resistance": 1}),
]


@pytest.mark.sampled(2)
@needs_vw
@pytest.mark.parametrize("case", range(len(LOM_TREES)))
def test_lom_tree_agrees_in_answers_and_weights(vw, case):
    args, options = LOM_TREES[case]
    flags = args.split()
    k = int(flags[1])
    swaps = 0
    for seed in range(3):
        rng = generator(690 + 10 * case + seed)
        data = class_data(rng, 300, k + 3)
        oracle = LomTree(k, **options, **rule_of(flags))
        want = base.run(class_examples(data, options.get("bits", 18)), oracle)
        model = ["--predict_only_model", "--readable_model", str(vw.folder / "out.txt")]
        assert want == [int(line) for line in vw.predictions(data, *flags, *model)]
        got, weights = vw.weights(), oracle.learner.weights()
        assert len(weights) > 5
        slots = sorted(got.keys() | weights.keys())
        np.testing.assert_allclose(
            [got.get(slot, 0) for slot in slots], [weights.get(slot, 0) for slot in slots], rtol=CLOSE, atol=CLOSE
        )
        swaps += oracle.swaps
    assert swaps > 0 or "--swap_resistance" not in flags


@needs_vw
def test_vw_loses_its_tree_where_the_smallest_leaf_is_right_below_the_root(vw):
    trees_lost = 0
    for seed in range(60):
        rng = generator(800 + seed)
        lines = []
        for i in range(300):
            y = rng.randrange(1, 4)
            source_class = y if rng.random() < 0.7 else rng.randrange(3)
            word = "z" if rng.random() < max(0.02, 0.5 - i / 60) else f"q{source_class}"
            lines.append(f"{y} |a {word} n{rng.randrange(4)}\n")
        data = "".join(lines).encode()
        oracle, sibling_tree = (LomTree(3, resistance=1, at_root=at_root) for at_root in ("vw", "sibling"))
        want = base.run(class_examples(data), oracle)
        if oracle.tree_lost:
            trees_lost += 1
            assert want == [int(line) for line in vw.predictions(data, "--log_multi", "3", "--swap_resistance", "1")]
            assert want != base.run(class_examples(data), sibling_tree)
            assert len(set(want[-20:])) == 1
        if trees_lost > 2:
            return
    pytest.fail("no stream lost its tree")


# -- reader


# parts of broken lines, each between two ~
PIECES = (
    b" ~ ~ ~  ~\t~|~|~|f~|f ~|far ~|g ~| ~|f:2 ~|g:.5~|12 ~|:~:~:~:1~:2.5~:-3e2~:1e-3~:0~:-~: ~a~b~cat~12~007~-3~.5"
    b"~1e~+3~0x1f~'~'tag~\r~\xc3\xa9~\x01~\x0b~x:y~a:1x~a: b~a: 5~0.1~9999999999999~.~e~E5~nan~inf~\xef\xbb\xbf"
).split(b"~")
HEADS = [b"", b"1", b"2 ", b"3 2 ", b"1 0.5 ", b"1 'tg", b"2 tg", b"x\t1 ", b"1 2 3 ", b" 1  ", b"1 2 3 4 ", b"-1 -2 "]


def wild_line(rng: random.Random) -> bytes:
    """A line that is proper in half of the cases and anything in the others."""
    line = rng.choice(HEADS)
    if rng.random() < 0.5:
        for _ in range(rng.randrange(1, 4)):
            line += b"|" + rng.choice([b"f", b"g", b"far", b"a", b"", b"\xc3\xa9", b"12"]) + rng.choice([b"", b":2"])
            for _ in range(rng.randrange(4)):
                line += rng.choice([b" ", b" ", b"\t"]) + rng.choice([b"x", b"y", b"12", b"cat", b""])
                line += rng.choice([b"", b"", b":2", b":0.3", b":red", b": 5", b":-1.25e-1"])
        return line
    return line + b"|" + b"".join(rng.choices(PIECES, k=rng.randrange(14)))


def audited(result: subprocess.CompletedProcess) -> list[tuple[bytes, list[tuple[int, str]]]]:
    """(tag, [(index, value as printed)]) of each example; with all weights 0 the order is the true one."""
    lines = result.stdout.split(b"\n")
    examples = []
    for head, row in zip(lines[0::2], lines[1::2], strict=False):
        parts = [cell.rsplit(b":", 3) for cell in row.split(b"\t")[1:]]
        features = [(int(index), value.decode().replace("-nan", "nan")) for _, index, value, _ in parts]
        examples.append((head.partition(b" ")[2], features))
    return examples


READINGS = [
    ([], {}),
    (["--hash", "all"], {"hash": "all"}),
    (["--hash_seed", "7", "-b", "24"], {"hash_seed": 7, "bits": 24}),
    (["--noconstant"], {"constant": False}),
    (["-q", "::"], {}),
    (["-q", "fg", "-q", "gf", "--interactions", "fgff", "--interactions", "gfa"], {}),
    (["--cubic", "::f", "-q", r"f\x67"], {}),
    (["--cubic", ":::", "-q", "ff", "--permutations"], {}),
    (["--cubic", ":::", "-q", "a:", "--leave_duplicate_interactions"], {}),
]


@needs_vw
@pytest.mark.parametrize("case", range(len(READINGS)))
def test_reader_agrees_on_features_tags_and_order(vw, case):
    args, options = READINGS[case]
    rng = generator(700 + case)
    data = b"".join(wild_line(rng) + rng.choice([b"\n", b"\n", b"\r\n", b"\n\n"]) for _ in range(300))
    examples = reader.read(data, multiclass=False, **options)
    rows = reader.features_of(
        examples,
        [text for flag, text in itertools.pairwise(args) if flag in ("-q", "--cubic", "--interactions")],
        permutations="--permutations" in args,
        leave_duplicates="--leave_duplicate_interactions" in args,
    )
    got = audited(vw(data, "--audit", "--quiet", "-l", "0", *args))
    assert len(got) == len(examples)
    for example, row, (tag, features) in zip(examples, rows, got, strict=True):
        line = data.split(b"\n")[example.line - 1]
        want = [(index % (1 << options.get("bits", 18)), f"{float(value):g}") for index, value in row]
        if not all(np.isfinite(value) for _, value in row):  # the audit sorts by weight times value, here NaN
            want, features = sorted(want), sorted(features)
        assert features == want, line
        assert tag == example.tag, line


@needs_vw
def test_reader_agrees_on_numbers_to_the_last_bit(vw):
    """An unclipped prediction without features is the initial offset; above 16, six decimals show every bit."""
    rng = generator(720)
    words = ["inf", "-infinity", "0x10", "0x1.8p9", "1e39", "+1e39", "16777217", "+16777217", "3.4028236e38", "12abc"]
    while len(words) < 300:
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randrange(2, 14)))
        point = rng.randrange(1, len(digits))
        word = rng.choice(["", "-", "+"]) + rng.choice([digits, digits[:point] + "." + digits[point:]])
        exponents = ["", "", f"e{rng.randrange(9)}", f"E-{rng.randrange(1, 5)}", "e+3", "e256", "x"]
        words.append(word + rng.choice(exponents))
    data = "".join(f"0 0 {word} |f\n" for word in words).encode()
    want = [example.initial for example in reader.read(data, multiclass=False)]
    got = vw.predictions(data, "--noconstant", option="-r")
    for word, expected, printed in zip(words, want, got, strict=True):
        if abs(expected) >= 16:
            assert np.float32(printed) == np.float32(expected), word
        else:
            assert float(printed) == pytest.approx(expected, abs=1e-6), word


@needs_vw
def test_reader_agrees_on_class_labels_and_weights(vw):
    heads = ["1 ", "2 3.5 ", "+3 2 ", "4294967297 ", "-1 ", "007 ", "0 ", "3 'tag", "99999999999999999999 ", "1tg", ""]
    heads += ["x\t2 ", "2 1.5 'tg", "2 1e0 ", "2 +3 ", "\ufeff5 ", "2 4x ", "  6  2  "]
    data = "".join(f"{head}|f a\n" for head in heads).encode()
    table = vw(data, "--oaa", "9", "-P", "1").stderr.decode().splitlines()
    rows = [line.split() for line in table if line[:1].isdigit() or line.startswith("n.a.")]
    examples = reader.read(data, multiclass=True)
    assert len(rows) == len(examples) == len(heads)
    total = 0.0
    for head, example, row in zip(heads, examples, rows, strict=True):
        total += example.weight
        label = "unknown" if example.label is None else str(int(example.label))
        assert (row[3], row[4]) == (f"{total:.1f}", label), head


@needs_vw
@pytest.mark.parametrize("line", [b"1.0 |f a", b"2x |f a", b"cat |f a", b"1 2 3 |f a", b"- |f a", b"1\t2\t3 |f a"])
def test_reader_rejects_the_class_labels_vw_stops_at(vw, line):
    result = vw(b"1 |f a\n\n" + line + b"\n", "--oaa", "3", check=False)
    assert b"Malformed example" in result.stdout + result.stderr
    with pytest.raises(reader.BadLabel) as caught:
        reader.read(b"1 |f a\n\n" + line + b"\n", multiclass=True)
    assert caught.value.line_number == 3


def test_reader_knows_vw_hashes():
    data = b"| a 12\n|f a 12 b x:y x:z -3\n|foo x y 7\n|f :5 :6\n"
    groups = [example.groups[0][1] for example in reader.read(data, multiclass=False)]
    assert [[index % (1 << 18) for index, _ in group] for group in groups] == [
        [92594, 12],
        [14355, 34887, 146788, 234998, 80879, 12089],
        [80604, 167248, 115751],
        [34875, 34876],
    ]
    example = reader.read(b"1 |a x y |b z", multiclass=False)[0]
    for terms, want in [("ab", [80151, 171394]), ("aa", [1680, 31047, 253394]), ("aba", [242623, 200138, 251545])]:
        made = reader.interact(example, reader.normalise([terms]))
        assert [index % (1 << 18) for index, _ in made] == want


# -- the printed vectors, which need no VW


def test_oracles_give_the_known_answers_of_a_small_file():
    examples = class_examples(TABLE)
    assert base.run(examples, OneAgainstAll(3)) == [1, 1, 1, 3, 1, 2, 3]
    assert base.run(examples, RecallTree(3)) == [0, 1, 2, 3, 3, 3, 3]
    assert base.run(examples, Tournament(3, play="vw")) == [1, 1, 1, 1, 1, 2, 3]
    plain = reader.read(TABLE, multiclass=False)
    fed = [(e.features(), e.label, e.weight, e.initial) for e in plain]
    want = [0, 0.302885, 0.568549, 1.089164, 0.538772, 0.723680, 1.881338]
    np.testing.assert_allclose(base.run_base(fed, base.Learner(base.vw_slot(1))), want, atol=1e-5)
