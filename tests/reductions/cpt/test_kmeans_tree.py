"""`--cpt_tree kmeans` through the command: what is looked at, what is learned, and that the search stays exact."""

from __future__ import annotations

import random

import numpy as np
import pytest
from command import learn, xclass
from streams import multiclass

from xclass.model import model_file
from xclass.reductions.cpt import label_tree
from xclass.text import reader

KMEANS = ("--cpt", 30, "-b", 20, "--cpt_tree", "kmeans")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fact(text: str, name: str) -> float:
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))


def tree_of(path: str, t: int = 0) -> label_tree.Tree:
    return label_tree.restored(f"tree.{t}", model_file.load(path).arrays)


def pairs(line: str) -> dict[int, float]:
    return {int(word.split(":")[0]): float(word.split(":")[1]) for word in line.split(" ") if ":" in word}


def topics(seed: int, n: int, k: int = 64, noise: float = 0.2) -> str:
    """Classes in groups that share words, in an order that tells nothing."""
    rng = random.Random(f"topics {seed}")
    name = random.Random(0).sample(range(1, k + 1), k)
    lines = []
    for _ in range(n):
        y = rng.randrange(k)
        told = [y if rng.random() >= noise else rng.randrange(k) for _ in range(5)]
        words = [f"g{level}_{one >> level}" for level, one in enumerate(told)]
        lines.append(f"{name[y]} | {' '.join(words)} w{rng.randrange(200)}\n")
    return "".join(lines)


def test_alike_classes_together_make_fewer_errors():
    text, test = topics(1, 2000, 256, 0.5), topics(2, 1000, 256, 0.5)
    errors = {}
    for tree in ("kmeans", "general", "random"):
        learn("--cpt", 256, "-b", 20, "--cpt_tree", tree, "-l", 0.5, "-f", "m", "--quiet", stdin=text)
        errors[tree] = fact(learn("-i", "m", "-t", stdin=test).err, "average loss")
    assert errors["kmeans"] < min(errors["general"], errors["random"]) - 0.01


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("trees", [1, 3])
def test_top_k_is_the_top_of_all_labels(loss, trees):
    text = multiclass(3, 30, 700, noise=0.3)
    learn(*KMEANS, "--tree_sample", 150, "--loss_function", loss, "-f", "m", "--trees", trees, "--quiet", stdin=text)
    test = multiclass(4, 30, 80, noise=0.5)
    every = learn("-i", "m", "-t", "--quiet", "--top_k", 1000, "-p", "stdout", stdin=test).lines
    for few in (1, 3, 10):
        best = learn("-i", "m", "-t", "--quiet", "--top_k", few, "-p", "stdout", stdin=test).lines
        for one, whole in zip(best, every, strict=True):
            got, want = pairs(one), pairs(whole)
            got.pop(0)
            assert want.pop(0) < 1e-6
            assert sum(want.values()) == pytest.approx(1, abs=1e-4)
            if trees == 1:
                assert list(got.values()) == sorted(want.values(), reverse=True)[:few]
            assert all(want[label] == p for label, p in got.items())


def test_every_label_of_the_sample_is_placed_and_no_deeper_than_need_be():
    text = multiclass(5, 30, 800)
    done = learn(*KMEANS, "-f", "m", stdin=text)
    seen = {int(line.split()[0]) for line in text.splitlines()}
    tree = tree_of("m")
    assert set(tree.label[tree.label > 0].tolist()) == seen
    assert tree.size[label_tree.DEEPEST] == 5
    assert f"classes in the tree = {len(seen)}, {len(seen)} of them placed after a look at 800 examples" in done.err
    assert "labels seen for the first time" not in done.err


def test_later_labels_are_inserted():
    first = multiclass(6, 10, 100)
    more = "".join(f"{y} | n{y}\n" for y in (2**31, 500, 77)) * 40
    done = learn(*KMEANS, "--tree_sample", 100, "-p", "p", "-f", "m", stdin=first + more)
    assert "labels seen for the first time = 3," in done.err
    assert "classes in the tree = 13, 10 of them placed after a look at 100 examples" in done.err
    with open("p") as file:
        assert [line.split()[0] for line in file.read().splitlines()[-3:]] == ["2147483648", "500", "77"]


def test_examples_that_are_not_learned_from_are_not_looked_at(place):
    lines = multiclass(7, 10, 300).splitlines(True)
    lines[9::10] = [f"{1000 + j} | held{j}\n" for j in range(30)]  # --passes holds every tenth line out
    lines[4] = "2000 0 | weightless\n"
    text = "".join(lines)
    learn(*KMEANS, "--passes", 2, "-f", "m", "--quiet", stdin=text)
    tree = tree_of("m")
    assert tree.label.max() <= 10
    (place / "d").write_text(text)
    learn(*KMEANS, "--tree_sample", 0, "--passes", 2, "-f", "m", "--quiet", "-d", "d")
    assert tree_of("m").label.max() <= 10


def test_files_pipes_caches_and_blocks_give_the_same_model(place, monkeypatch):
    text = multiclass(8, 30, 900, noise=0.3)
    (place / "d").write_text(text)
    for sample in (0, 200):
        for more in ((), ("--passes", 3), ("-q", "::", "--passes", 2), ("--shuffle", 50)):
            run = (*KMEANS, "--tree_sample", sample, *more, "-p", "p", "--quiet")
            found = []
            for source in (("-d", "d"), ("-d", "d", "-c"), ("-d", "d", "-c"), ()):
                learn(*run, *source, "-f", "m", stdin=None if source else text)
                found.append(((place / "m").read_bytes(), (place / "p").read_bytes()))
            (place / "d.cache").unlink()
            monkeypatch.setattr(reader, "FIRST_BLOCK", 700)
            monkeypatch.setattr(reader, "LARGEST_BLOCK", 700)
            learn(*run, "-f", "m", stdin=text)
            found.append(((place / "m").read_bytes(), (place / "p").read_bytes()))
            monkeypatch.undo()
            monkeypatch.chdir(place)
            assert all(one == found[0] for one in found[1:]), (sample, more)


def test_sample_as_large_as_the_data_is_all_of_the_data(place):
    text = multiclass(9, 30, 500)
    learn(*KMEANS, "--tree_sample", 0, "-f", "m", "--quiet", "--save_tree", "t", stdin=text)
    learn(*KMEANS, "--tree_sample", 500, "-f", "n", "--quiet", "--save_tree", "u", stdin=text)
    assert (place / "t").read_text() == (place / "u").read_text()
    first, second = model_file.load("m").arrays, model_file.load("n").arrays
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_threads_change_nothing_and_seeds_do(place, monkeypatch):
    text = topics(10, 800)
    run = ("--cpt", 64, "-b", 18, "--cpt_tree", "kmeans", "--trees", 3, "--quiet", "--save_tree", "t")
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        learn(*run, "-f", "m", stdin=text)
        found.append((place / "m").read_bytes())
    assert found[0] == found[1] == found[2]
    trees = (place / "t").read_text().split("0 -\n")[1:]
    assert len(set(trees)) == 3
    learn(*run, "--random_seed", 9, stdin=text)
    assert (place / "t").read_text().split("0 -\n")[1] not in trees


def test_model_that_goes_on_keeps_its_tree(place):
    first, second = multiclass(11, 20, 300), multiclass(12, 30, 300)
    run = (*KMEANS, "--tree_sample", 250, "--quiet")
    learn(*run, "-f", "whole", stdin=first + second)
    learn(*run, "-f", "part", stdin=first)
    learn("-i", "part", "-f", "m", "--quiet", stdin=second)
    assert (place / "m").read_bytes() == (place / "whole").read_bytes()
    learn("-i", "part", "-f", "n", "--quiet", "--passes", 2, "--holdout_off", "--save_tree", "t", stdin=first)
    before, after = tree_of("part"), tree_of("n")
    nodes = int(before.size[label_tree.NODES])
    assert np.array_equal(before.left[:nodes], after.left[:nodes])


def test_bad_line_ends_the_look_and_what_came_before_is_learned():
    text = multiclass(13, 10, 120) + "nothing | a\n" + multiclass(14, 10, 50)
    done = xclass(*KMEANS, "-f", "m", stdin=text)
    assert done.status == 1
    assert "stdin:121" in done.err
    assert "number of examples = 120\n" in done.err
    assert "m.interrupted" in done.err
    kept = tree_of("m.interrupted")
    learn(*KMEANS, "-f", "n", stdin=multiclass(13, 10, 120))
    assert np.array_equal(kept.label, tree_of("n").label)
    done = xclass(*KMEANS, "--tree_sample", 0, "-f", "m", stdin=text)
    assert done.status == 1
    assert "nothing was learned yet" in done.err


def test_data_without_labels_leaves_the_tree_empty():
    done = xclass(*KMEANS, "-p", "stdout", stdin=" | a\n | b\n")
    assert done.status == 1
    assert "not one example was learned from" in done.err
    done = learn(*KMEANS, "-f", "m", stdin="5 |\n5 |\n", cwd=None)
    assert "classes in the tree = 1" in done.err
    done = learn(*KMEANS, "--noconstant", "-f", "m", stdin="5 |\n5 |\n6 |\n")
    assert "classes in the tree = 2," in done.err


def test_checkpoints_of_the_look_are_kept_in_order():
    text = multiclass(15, 10, 100)
    learn(*KMEANS, "--checkpoint", 30, "-f", "m", "--quiet", stdin=text)
    done = learn(*KMEANS, "--checkpoint", 30, "-f", "m", stdin=text)
    assert [word for word in done.err.split() if word in ("30", "60", "90")] == ["30", "60", "90"]


def test_rate_depends_on_tree_and_passes():
    text = multiclass(16, 10, 50)
    for tree, words, rate in (
        ("kmeans", (), 0.5), ("kmeans", ("--passes", 2), 0.25), ("general", ("--passes", 2), 0.35),
        ("kmeans", ("-l", 0.7), 0.7), ("kmeans", ("--loss_function", "logistic"), 1.0),
    ):  # fmt: skip
        done = learn("--cpt", 30, "-b", 20, "--cpt_tree", tree, *words, stdin=text)
        assert f"learning rate = {rate:g}\n" in done.err.lower(), (tree, words)


def test_options_without_effect_are_refused():
    for words in (("--tree_sample", 5), ("--cpt_tree", "random", "--tree_sample", 5)):
        done = xclass("--cpt", 3, "-b", 12, *words, stdin="1 | a\n")
        assert done.status == 2, words
        assert "--tree_sample has no effect" in done.err
