"""Models of tagged words as text: every word in use, whose it is, and the scores and probabilities they give."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import pytest
from command import learn, xclass
from probability_trees import examples
from streams import multiclass

from tests.oracles import tagged_words as oracle
from xclass import load
from xclass.abilities.describe.cpt import word_tables
from xclass.binary import tagged_words, word_owners
from xclass.kernels.constants import GOLDEN

CLASSES = 12


def text(seed: int, n: int, label: bool = True) -> str:
    """Return n lines of three to six words, most of which depend on the class; all values are 1."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        y = rng.randrange(CLASSES)
        words = {f"w{y}_{rng.randrange(4)}" if rng.random() < 0.8 else f"w{rng.randrange(30)}" for _ in range(6)}
        lines.append(f"{y + 1 if label else ''} | {' '.join(sorted(words))}\n")
    return "".join(lines)


class Word(NamedTuple):
    """Hold a line of the text; name and place are empty if they are not known."""

    name: str
    place: str
    table: str
    slot: int
    w: float
    g: float


def words(path) -> list[Word]:
    """Return the words of a model as text."""
    found = []
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"(?:(.*)\[([^\[\]]+)\]:)?(tree\d+|scorers):(\d+):(\S+) (\S+)", line)
        if match:
            name, place, table, slot, w, g = match.groups()
            found.append(Word(name or "", place or "", table, int(slot), float(w), float(g)))
    return found


def nodes(path) -> dict[int, dict[int, dict[str, str]]]:
    """Return the nodes of each tree: tree -> node -> name of a fact -> its text."""
    trees: dict[int, dict[int, dict[str, str]]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        if line.startswith("tree = "):
            facts = dict(re.findall(r"(\w+) = (\S+)", line))
            trees[int(facts.pop("tree"))][int(facts.pop("node"))] = facts
    return trees


MODELS = {
    "tree": "--cpt 12",
    "logistic": "--cpt 12 --loss_function logistic --cpt_tree balanced",
    "trees": "--cpt 12 --trees 3",
    "wide": "--cpt 12 --cpt_arity 4",
    "wider": "--cpt 12 --cpt_arity 16 --trees 2",
    "reranked": "--cpt 12 --rerank --noconstant",
    "multiclass": "--multiclass",
    "no index": "--multiclass --index_slots 0 --passes 2 --holdout_off",
}


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").write_text(text(1, 300))
    (tmp_path / "test").write_text(text(2, 60))
    return tmp_path


def table_words(path) -> dict[str, np.ndarray]:
    """Return the words of each table of a saved model."""
    with load(path) as model:
        return {table.name: table.words.word for table in word_tables(model.core.reduction)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_text_has_every_word_in_use_and_its_numbers(name, data):
    args = ["-d", "data", "-b", 16, *MODELS[name].split(), "-f", "m", "--readable_model", "text", "--quiet"]
    learn(*args, "--invert_hash", "names", cwd=data)
    listed, named = words(data / "text"), words(data / "names")
    assert not any(word.place for word in listed)
    assert [word[2:] for word in listed] == [word[2:] for word in named]
    tables = table_words(data / "m")
    assert sum(np.count_nonzero(table) for table in tables.values()) == len(listed)
    for word in listed:
        value = int(tables[word.table][word.slot])
        assert word.w == pytest.approx(float(oracle.decode_w(value)), rel=1e-5)
        assert word.g == pytest.approx(float(oracle.decode_g(value)), rel=1e-5)
    known = [word for word in named if word.place]
    assert len(known) > 0.999 * len(named)
    assert len({(word.table, word.place, word.name) for word in known}) == len(known)
    header, other = ((data / file).read_text().partition("\ntree0:")[0].splitlines() for file in ("text", "names"))
    assert header[0] == "Version 9.11.9"
    assert header == other[: len(header)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_scores_of_all_regressors_follow_from_the_text(name, data):
    learn("-d", "data", "-b", 16, *MODELS[name].split(), "-f", "m", "--invert_hash", "names", "--quiet", cwd=data)
    weight: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for word in words(data / "names"):
        weight[word.table, word.place][word.name] = word.w
    constant = [] if "--noconstant" in MODELS[name] else ["Constant"]
    lines = (data / "test").read_text()
    compared = 0
    with load(data / "m") as model:
        for line, (features, _, _) in zip(lines.splitlines(), examples(lines, bits=16), strict=True):
            names = [*line.split("|")[1].split(), *constant]
            features = features[: len(names)]
            h = np.array([index for index, _ in features], np.uint64) * GOLDEN
            for number, table in enumerate(word_tables(model.core.reduction)):
                for (owner, place), by_name in weight.items():
                    if owner != table.name or not place:
                        continue
                    got = sum(by_name.get(feature, 0.0) for feature in names)
                    assert got == pytest.approx(score(model, number, place, h), abs=1e-4), (table.name, place)
                    compared += 1
    assert compared >= 900


def score(model, number: int, place: str, h: np.ndarray) -> float:
    """Return the score that a regressor of a learner gives an example whose values are all 1."""
    table = word_tables(model.core.reduction)[number]
    count = len(h)
    facts = place.split()
    if facts[0] == "class":
        pairs = tagged_words.new_pairs(count)
        for f in range(count):
            pairs.at[f], pairs.tag[f] = tagged_words.locate(table.words, h[f], int(facts[1]))
        tagged_words.read_words(table.words, pairs, 0, count)
        return float(pairs.w.sum())
    member = model.core.reduction.members[number]
    node = int(facts[1].rpartition(".")[2])
    assert int(facts[3]) == member.tree.depth[node]
    wide = facts[4:5] == ["regressor"]
    where = (1 << member.levels) * (node + 1) + int(facts[5]) if wide else int(member.tree.place[node])
    scores = np.empty(8, np.float32)
    scratch = np.empty(count, np.int64)
    tagged_words.score_block(table.words, h, np.ones(count, np.float32), count, where >> 3, scratch, scores, 0)
    return float(scores[where & 7])


@pytest.mark.parametrize("name", ["tree", "logistic", "trees"])
def test_probabilities_follow_from_the_text_alone(name, data):
    """Without the learner: each node's score from the weights, and each class's probability from its path."""
    args = MODELS[name].split()
    learn("-d", "data", "-b", 16, *args, "-f", "m", "--invert_hash", "names", "--quiet", cwd=data)
    shown = learn("-d", "test", "-i", "m", "-t", "--probabilities", "-p", "stdout", "--quiet", cwd=data).out
    trees = nodes(data / "names")
    weight: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for word in words(data / "names"):
        node = int(word.place.split()[1].rpartition(".")[2])
        weight[int(word.table.removeprefix("tree")), node][word.name] = word.w
    for line, answer in zip((data / "test").read_text().splitlines(), shown.splitlines(), strict=True):
        names = [*line.split("|")[1].split(), "Constant"]
        mean: dict[str, float] = defaultdict(float)
        for t, tree in trees.items():
            for facts in tree.values():
                if "label" not in facts:
                    continue
                label, p = facts["label"], 1.0
                while facts["parent"] != "-1":
                    a = int(facts["parent"])
                    went_right = tree[a]["right"] == next(str(n) for n, other in tree.items() if other is facts)
                    s = sum(weight[t, a].get(feature, 0.0) for feature in names) / math.sqrt(len(names))
                    right = 1 / (1 + math.exp(-s)) if name == "logistic" else min(max(0.5 + 0.5 * s, 0.01), 0.99)
                    p *= right if went_right else 1 - right
                    facts = tree[a]
                mean[label] += p / len(trees)
        listed = dict(pair.split(":") for pair in answer.split())
        for label, p in mean.items():
            assert float(listed[label]) == pytest.approx(p, abs=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_names_are_found_for_a_saved_model(name, data):
    learn("-d", "data", "-b", 16, *MODELS[name].split(), "-f", "m", "--invert_hash", "then", "--quiet", cwd=data)
    learn("-d", "data", "-t", "-i", "m", "--invert_hash", "later", "--quiet", cwd=data)
    then, later = words(data / "then"), words(data / "later")
    assert [word[2:] for word in then] == [word[2:] for word in later]
    named = [word for word in later if word.place]
    trees = [word for word in later if word.table != "scorers"]
    assert all(word.place for word in trees)
    assert len(named) > 0.8 * len(later)
    differ = [a for a, b in zip(then, later, strict=True) if b.place and a[:2] != b[:2]]
    assert len(differ) <= 0.002 * len(later)


def test_features_that_do_not_occur_have_no_names(data):
    learn("-d", "data", "-b", 16, "--cpt", 12, "-f", "m", "--quiet", cwd=data)
    learn("-t", "-i", "m", "--invert_hash", "names", "--quiet", stdin="3 | w2_0\n", cwd=data)
    named = [word for word in words(data / "names") if word.place]
    assert {word.name for word in named} == {"w2_0", "Constant"}
    learn("-t", "-i", "m", "--no_stdin", "--invert_hash", "none", "--readable_model", "text", "--quiet", cwd=data)
    assert (data / "none").read_text() == (data / "text").read_text()


def test_lines_without_labels_follow_the_prediction(data):
    learn("-d", "data", "-b", 16, "--multiclass", "-f", "m", "--quiet", cwd=data)
    learn("-t", "-i", "m", "--invert_hash", "names", "--quiet", stdin=text(1, 300, label=False), cwd=data)
    listed = words(data / "names")
    for table in ("tree0", "tree3", "scorers"):
        of_table = [word for word in listed if word.table == table]
        assert len([word for word in of_table if word.place]) > 0.5 * len(of_table)


@pytest.mark.parametrize("name", ["tree", "wide", "multiclass"])
def test_tables_that_grow_keep_the_names(name, data):
    args = ["-d", "data", "-b", 6, "--max_doublings", 6, *MODELS[name].split(), "-q", "::", "--quiet"]
    learn(*args, "-f", "m", "--invert_hash", "names", cwd=data)
    with load(data / "m") as model:
        assert all(tagged_words.doublings(table.words) > 0 for table in word_tables(model.core.reduction)[:1])
    listed = words(data / "names")
    known = [word for word in listed if word.place]
    assert len(known) > 0.97 * len(listed)
    assert any("*" in word.name for word in known)
    assert {word.name.count("_") for word in known if "*" not in word.name} <= {0, 1}


def test_looking_changes_nothing(tmp_path):
    (tmp_path / "data").write_text(multiclass(4, 20, 400, weights=(1, 0, 2), unlabelled=0.1, tags=True))
    for args in (["--cpt", "20"], ["--multiclass", "--passes", "3"], ["--multiclass", "--passes", "2", "--cache"]):
        results, made = [], []
        for looking in ([], ["--readable_model", "text", "--invert_hash", "names"]):
            results.append(learn("-d", "data", *args, "-b", 10, "-p", "p", "-f", "m", *looking, cwd=tmp_path))
            made.append([(tmp_path / "p").read_text(), (tmp_path / "m").read_bytes()])
        assert made[0] == made[1]
        assert results[0].err.splitlines()[4:-1] == results[1].err.splitlines()[4:-1]


def test_text_is_that_of_the_best_pass(tmp_path):
    (tmp_path / "data").write_text(multiclass(7, 30, 300, noise=0.7))
    args = ["-d", "data", "--multiclass", "-b", 12, "--passes", 4, "-f", "m", "--quiet"]
    learn(*args, "--readable_model", "text", "--invert_hash", "names", cwd=tmp_path)
    learn("-t", "-i", "m", "--no_stdin", "--readable_model", "wanted", "--quiet", cwd=tmp_path)
    assert words(tmp_path / "text") == words(tmp_path / "wanted")
    named = words(tmp_path / "names")
    assert [word[2:] for word in named] == [word[2:] for word in words(tmp_path / "wanted")]
    assert sum(bool(word.place) for word in named) > 0.98 * len(named)


def test_classes_have_their_names(data):
    lines = re.sub(r"(?m)^(\d+)", r"animal\1", (data / "data").read_text())
    learn("--multiclass", "--learn_names", "-b", 16, "--invert_hash", "names", "--quiet", stdin=lines, cwd=data)
    places = {word.place for word in words(data / "names") if word.table == "scorers"}
    assert places == {f"class animal{y}" for y in range(1, CLASSES + 1)}
    assert {facts.get("label", "animal1") for facts in nodes(data / "names")[0].values()} == {
        f"animal{y}" for y in range(1, CLASSES + 1)
    }


def test_nodes_are_those_of_the_printed_tree(data):
    for trees in ("1", "2"):
        args = ["--cpt", 12, "--trees", trees, "-b", 16, "--tree_levels", 60, "--print_tree", "tree", "--quiet"]
        learn("-d", "data", *args, "--invert_hash", "names", cwd=data)
        lines = (data / "tree").read_text().splitlines()
        printed = {line.split(":")[0].split()[-1]: (len(line) - len(line.lstrip())) // 2 for line in lines}
        shown = {word.place for word in words(data / "names")}
        assert shown == {f"node {name} depth {depth}" for name, depth in printed.items()}


def test_other_namespaces_and_values(tmp_path):
    line = "3 |s size:2.5 |t blue\n"
    learn("--cpt", 3, "-b", 12, "-q", "st", "--invert_hash", "names", "--quiet", stdin=line * 3, cwd=tmp_path)
    assert {word.name for word in words(tmp_path / "names")} == {"s^size", "t^blue", "s^size*t^blue", "Constant"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("--multiclass", "--audit", "--invert_hash", "x"),
            "--audit and --invert_hash cannot be combined with --multiclass: drop one of them",
        ),
    ],
)
def test_refusals_name_what_is_allowed(args, message, tmp_path):
    done = xclass(*args, stdin="1 | a\n", cwd=tmp_path)
    assert (done.status, done.err) == (2, f"xclass: {message}\n")


# -- owners


@pytest.mark.plain
@pytest.mark.bounds
@pytest.mark.parametrize("by_block", [False, True])
def test_owners_are_found_kept_and_forgotten(by_block):
    words = tagged_words.new_words(3, doublings=2)
    index, key = np.arange(5, dtype=np.uint32) * 7 + 1, 4
    mask = word_owners.compared(by_block)
    for i in index:
        with np.errstate(over="ignore"):
            position, tag = tagged_words.locate(words, np.uint64(i) * GOLDEN, key)
        lane = int(np.flatnonzero(words.word[position : position + 16] == 0)[0])
        words.word[position + lane] = (int(tag) ^ 3 if by_block else int(tag)) | 1 << 13
    owners = word_owners.new_owners(words)
    with np.errstate(over="ignore"):
        word_owners.note(
            words, owners, mask, index, np.array([0, 2, 5]), np.array([1, 0]), np.array([[key, -1], [-1, key]])
        )
        used = np.flatnonzero(words.word)
        assert sorted(owners.feature[used].tolist()) == index.tolist()
        assert np.all(owners.after_key[used] == key + 1)
        assert not owners.after_key[words.word == 0].any()
        larger = tagged_words.doubled(words)
        moved = word_owners.fitted(larger, owners, by_block)
        assert sorted(moved.feature[larger.word > 0].tolist()) == index.tolist()
        larger.word[np.flatnonzero(larger.word)[0]] ^= 1 << 8
        assert np.count_nonzero(word_owners.fitted(larger, moved, by_block).after_key) == len(index) - 1
