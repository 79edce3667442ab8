"""The probabilistic label tree that grows: against its oracle, and beside a tree that is known from the start."""

import random

import numpy as np
import pytest
from command import learn, xclass
from harness import batch_of, configure, go_through_stages, learner_of
from oracles.online_plt import OnlineLabelTree

from xclass import load
from xclass.data import batch_ops
from xclass.reductions.plt import nodes


def lists(k: int, n: int, seed: int = 0, weights: tuple[str, ...] = ("", "", " 2", " 0.5")) -> str:
    """Return n lines with lists of labels, some of them empty or unknown, whose words depend on the labels."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        labels = sorted({int(k * rng.random() ** 2) for _ in range(rng.choice((1, 1, 2, 3, 5)))})
        words = [f"t{y}" for y in labels] + [f"w{rng.randrange(9)}:{rng.choice((1, 2, 0.5))}" for _ in range(3)]
        label = ",".join(map(str, labels)) + rng.choice(weights) if i % 9 else rng.choice((",", ""))
        lines.append(f"{label} |a {' '.join(words[:2])} |b {' '.join(words[2:])}\n")
    return "".join(lines)


def loaded(weighted, i: int):
    """Return hashes and values of the features of an example, as the kernels see them."""
    scratch = nodes.new_scratch(nodes.label_tree.new_tree(), weighted.batch.most_features, 1)
    count = nodes.load(weighted, i, scratch)
    return scratch.h[:count].tolist(), scratch.x[:count].tolist()


@pytest.mark.bounds
@pytest.mark.parametrize(("k", "bits", "alpha"), [(1, 8, 0.75), (12, 12, 0.75), (60, 12, 0.25), (60, 8, 1)])
def test_kernel_follows_the_oracle(k, bits, alpha):
    """Check probabilities, the tree and all words; a table of 8 bits is full."""
    config = configure("--plt", k, "-b", bits, "--plt_alpha", alpha)
    learner = learner_of(config)
    batch = batch_of(config, lists(k, 110))
    task, _ = go_through_stages(learner, batch)
    plain = OnlineLabelTree(bits - 3, alpha)
    for i in range(batch.n):
        h, x = loaded(task.plan, i)
        found = slice(task.label_lists.ranked.start[i], task.label_lists.ranked.start[i + 1])
        best = [p for p, _ in plain.best(h, x, 5)]
        assert np.allclose(task.label_lists.ranked.scores[found][: len(best)], best, atol=1e-5)
        own = [plain.probability(h, x, y + 1) for y in task.label_lists.ranked.labels[found].tolist()]
        assert np.allclose(task.label_lists.ranked.scores[found], own, atol=1e-5)
        if not np.isnan(batch.label[i]):
            labels = (batch.labels[batch.label_start[i] : batch.label_start[i + 1]] + 1).astype(int).tolist()
            plain.learn(h, x, labels, batch.weight[i])
    m = int(learner.tree.size[nodes.NODES])
    assert learner.tree.label[:m].tolist() == [-1 if node.label is None else node.label for node in plain.nodes]
    assert learner.nodes.words.word.tolist() == [word for line in plain.table.words for word in line]
    own = [node for node in range(1, m) if plain.nodes[node].label is not None or plain.nodes[node].block is not None]
    assert learner.nodes.bias[own].tolist() == [plain.nodes[node].bias for node in own]
    assert (learner.nodes.bias[0], learner.nodes.seen[0]) == (plain.root_bias, plain.root_seen)
    assert learner.nodes.regularisation.tolist() == pytest.approx([plain.r.log, plain.r.squares])
    assert k == 1 or plain.r.squares > 1
    learner.close()


@pytest.mark.parametrize("k", [5, 80])
def test_tree_that_grows_learns_what_the_same_tree_known_from_the_start_learns(tmp_path, k):
    """As the paper proves for auxiliary regressors, which AROW regressors that begin sure of 1 or -1 do not need."""
    (tmp_path / "d").write_text(lists(k, 400))
    learn("d", "--plt", k, "--save_tree", "tree", "-f", "grown", "-b", 16, "--quiet", cwd=tmp_path)
    learn("d", "--plt", k, "--plt_tree", "tree", "-f", "known", "-b", 16, "--quiet", cwd=tmp_path)
    grown, known = (load(tmp_path / name).core.reduction for name in ("grown", "known"))
    m = int(grown.tree.size[nodes.NODES])
    assert np.count_nonzero(grown.nodes.words.word) > 100
    assert np.array_equal(grown.nodes.words.word, known.nodes.words.word)
    own = [a for a in range(m) if grown.tree.left[a] == 0 or grown.tree.place[a] & 7 == 1]
    assert np.array_equal(grown.nodes.bias[own], known.nodes.bias[own])
    assert np.array_equal(grown.nodes.seen[own], known.nodes.seen[own])


@pytest.mark.parametrize("tree", ["online", "balanced", "random", "kmeans", "FILE"])
def test_every_kind_of_tree_takes_new_labels(tmp_path, tree):
    text = lists(40, 500).splitlines(keepends=True)
    (tmp_path / "d").write_text("".join(text))
    (tmp_path / "few").write_text("".join(text[:60]))
    words = ("--tree_sample", 40) if tree == "kmeans" else ()
    if tree == "FILE":
        learn("few", "--plt", "--save_tree", "FILE", "--quiet", cwd=tmp_path)
    result = learn("d", "--plt", 3, "--plt_tree", tree, *words, "--save_tree", "t", "-f", "m", cwd=tmp_path)
    labels = {line.split()[2] for line in (tmp_path / "t").read_text().splitlines()[1:] if line.count(" ") == 2}
    assert labels == set(map(str, range(40))) and "nodes = 79, leaves = 40" in result.out + result.err
    learn("d", "-t", "-i", "m", "-p", "p", "--top_k", 3, "--quiet", cwd=tmp_path)
    hits = [
        line.split()[0].split(":")[0] in own.split()[0].split(",")
        for line, own in zip((tmp_path / "p").read_text().splitlines(), text, strict=True)
        if own[0].isdigit()
    ]
    assert np.mean(hits) > 0.9


def test_search_finds_all_labels_above_the_threshold_and_the_best_ones():
    config = configure("--plt", 50, "--threshold", 0.05)
    learner = learner_of(config)
    batch = batch_of(config, lists(50, 300))
    go_through_stages(learner, batch)
    task, _ = go_through_stages(learner, batch, learn=False)
    for i in range(batch.n):
        _, label, p = learner.best_labels(batch_ops.cut(batch, i, i + 1), 50)
        assert len(label) == 50 and np.all(np.diff(p) <= 0)
        ranked = slice(task.label_lists.ranked.start[i], task.label_lists.ranked.start[i + 1])
        count = max(5, int(np.count_nonzero(p > np.float32(0.05))))
        assert task.label_lists.ranked.scores[ranked].tolist() == p[:count].tolist()
    learner.close()


def test_order_and_repeats_of_labels_do_not_matter():
    models = []
    for text in ("1,3,5 | a b\n0,5 | a\n", "5,1,3,1 | a b\n5,0,5 | a\n"):
        learner = learner_of(config := configure("--plt", 7, "-b", 10))
        go_through_stages(learner, batch_of(config, text))
        models.append(learner.nodes.words.word.tobytes())
        learner.close()
    assert models[0] == models[1]


def test_names_are_labels(tmp_path):
    names = ["oak", "elm", "ash"]
    text = "".join(f"{names[i % 3]},{names[(i + 1) % 3]} | w{i % 3}\n" for i in range(60))
    (tmp_path / "d").write_text(text)
    learn("d", "--plt", "--learn_names", "--save_tree", "t", "-f", "m", "--quiet", cwd=tmp_path)
    assert {line.split()[2] for line in (tmp_path / "t").read_text().splitlines() if line.count(" ") == 2} >= set(names)
    out = xclass("-t", "-i", "m", "-p", "stdout", "--quiet", stdin="| w0\n", cwd=tmp_path).out
    assert sorted(out.split()[0].split(",")) == ["elm", "oak"]
