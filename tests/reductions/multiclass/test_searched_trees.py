"""Which trees are searched: decisions by what trees add to the proposals of the index, whatever the batches are."""

import numpy as np
import pytest
from archives import restored, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from library import summary_of

import xclass
from xclass.reductions.multiclass import reduction, searched_trees
from xclass.reductions.multiclass.searched_trees import SearchedTrees


def decided(examples: int, adds: list[float], sizes: list[int], seed: int = 0) -> tuple[list[int], list[int], object]:
    """Return how many trees are searched for each example, the examples that are tried, and the end.

    Tree t is the first to propose the label of a share adds[t] of the examples; every 10th example is not learned.
    Trees are up to six batches ahead of what counts the proposals.
    """
    rng = np.random.default_rng(seed)
    learns = np.arange(examples) % 10 != 3
    by_tree = rng.random((examples, len(adds))) < adds
    by_index = rng.random(examples) < 0.1
    trees, found, waiting = SearchedTrees(len(adds)), ([], []), []
    cuts = np.minimum(np.cumsum(np.resize(sizes, examples)), examples)
    begin = 0

    def count(rows: slice, searched: np.ndarray, tried: np.ndarray) -> None:
        seen = by_tree[rows].T.copy()
        asleep = np.arange(len(adds))[:, None] >= searched
        seen &= ~asleep | np.isin(np.arange(len(searched)), tried)
        trees.count(learns[rows], by_index[rows], seen, searched)

    for end in dict.fromkeys(cuts.tolist()):
        searched, tried = trees.begin(learns[begin:end])
        found[0].extend(searched.tolist())
        found[1].extend((begin + tried).tolist())
        waiting.append((slice(begin, end), searched, tried))
        if len(waiting) > 6:
            count(*waiting.pop(0))
        begin = end
    for item in waiting:
        count(*item)
    return *found, trees


def plain(examples: int, adds: list[float], seed: int = 0) -> list[int]:
    """Return how many trees are searched for each example, by the words of the docstring."""
    rng = np.random.default_rng(seed)
    by_tree = rng.random((examples, len(adds))) < adds
    by_index = rng.random(examples) < 0.1
    now, number, window, added, due, result = len(adds), 0, 0, np.zeros(len(adds)), {}, []
    for i in range(examples):
        result.append(now)
        if i % 10 == 3:
            continue
        number += 1
        window += 1
        for t in range(len(adds)):
            if t >= now and number % searched_trees.TRIED:
                break
            if by_tree[i, t] and not by_index[i]:
                added[t] += 1 if t < now else searched_trees.TRIED
                break
        if number & (number - 1) == 0:
            if number >= searched_trees.FIRST:
                enough = [t + 1 for t in range(len(adds)) if added[t] >= searched_trees.LEAST_SHARE * window]
                due[2 * number] = max([1, *enough])
            window, added = 0, np.zeros(len(adds))
            now = due.pop(number, now)
    return result


@settings(max_examples=8)
@given(
    st.lists(st.sampled_from([0.0, 0.0003, 0.01, 0.3]), min_size=2, max_size=4),
    st.lists(st.integers(1, 40), min_size=1),
    st.integers(0, 5),
)  # fmt: skip
def test_decisions_are_those_of_the_words_whatever_the_batches_are(adds, sizes, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched_trees, "FIRST", 256)
        searched, tried, trees = decided(3000, adds, sizes, seed)
        assert searched == plain(3000, adds, seed)
        again = SearchedTrees(len(adds))
        restored(saved(trees.serialize), again.serialize)
        rest = np.ones(4000, bool)
        assert again.begin(rest)[0].tolist() == trees.begin(rest)[0].tolist()
    numbers = np.cumsum(np.arange(3000) % 10 != 3)
    assert all(numbers[i] % searched_trees.TRIED == 0 and i % 10 != 3 for i in tried)


def text(n: int, seed: int, own: bool) -> str:
    """Return lines whose class has a word of its own, or 6 words, each of half of the classes and often wrong."""
    rng = np.random.default_rng(seed)
    label = rng.integers(1, 65, n)
    if own:
        return "".join(f"{y} | w{y} z{rng.integers(5)}\n" for y in label)
    bits = (label[:, None] >> np.arange(6) & 1) ^ (rng.random((n, 6)) < 0.15)
    return "".join(
        f"{y} | {' '.join(f'b{k}{b}' for k, b in enumerate(row))}\n" for y, row in zip(label, bits, strict=True)
    )


def test_trees_that_add_nothing_are_searched_no_more_and_return(monkeypatch, tmp_path):
    monkeypatch.setattr(searched_trees, "FIRST", 256)
    monkeypatch.setattr(reduction, "MOST_ROWS", 64)
    models, counted = [], []
    for pieces in (1, 5):
        with xclass.Learner("multiclass", bits=14) as model:
            lines = text(1500, 0, True).splitlines(keepends=True)
            for k in range(pieces):
                model.learn_many("".join(lines[k * 1500 // pieces : (k + 1) * 1500 // pieces]))
            assert model.core.reduction.searched.now == 1
            counted.append(int(model.core.reduction.report.opened_counts.sum()))
            assert "trees searched = 1 of 4" in summary_of(model)
            outcome = model.predict_many(text(100, 1, True))
            assert (outcome == [int(line.split()[0]) for line in text(100, 1, True).splitlines()]).mean() > 0.95
            model.save(tmp_path / f"m{pieces}")
            models.append((tmp_path / f"m{pieces}").read_bytes())
    assert models[0] == models[1] and counted[0] == counted[1]
    with xclass.load(tmp_path / "m1") as model:
        assert model.core.reduction.searched.now == 1
        model.learn("| w65", 65)
        assert model.core.reduction.can_learn(np.array([65])).all()  # trees that are not searched lack the class
        for seed in range(4):
            model.learn_many(text(4000, seed, False))
        assert model.core.reduction.searched.now > 1
