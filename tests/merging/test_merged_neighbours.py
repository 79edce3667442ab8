"""Merging of the examples that near examples are found among, against a plain computation."""

import numpy as np
import pytest

import xclass as library
from xclass import Learner, ModelError
from xclass.abilities.merge.multilabel import merged_neighbours
from xclass.kernels.jit import activate
from xclass.reductions.multilabel import neighbours
from xclass.reductions.multilabel.neighbours import EXAMPLES, KEPT, LABEL_MASK, LABELS, SLOTS


def filled(base: neighbours.Neighbours | None, seed: int, n: int) -> neighbours.Neighbours:
    """Return a copy of rows that has kept n more examples of a few features and labels."""
    activate()
    rng = np.random.default_rng(seed)
    rows = neighbours.new_neighbours()
    if base is not None:
        for to, own in zip(rows, base, strict=True):
            to[:] = own
    scratch = neighbours.new_scratch(8, 100)
    for i in range(n):
        count = int(rng.integers(1, 6))
        scratch.feature[:count] = rng.choice(40, count, replace=False)
        scratch.x[:count] = 1000 * seed + i  # says which example it is
        label = np.sort(rng.choice(np.arange(1, 100), int(rng.integers(1, 5)), replace=False)).astype(np.int64)
        neighbours.keep(rows, scratch, count, label, 0, len(label))
    return rows


def examples_of(rows: neighbours.Neighbours) -> dict[int, tuple[float, list[int]]]:
    """Return value and labels of the examples in the rows by their numbers."""
    pair = rows.pair.reshape(-1, SLOTS, 2)
    found = {}
    for row in np.flatnonzero(rows.used):
        for k in range(min(rows.used[row], SLOTS)):
            number = int(pair[row, k, 0])
            e = number & KEPT - 1
            at = rows.place[e] + np.arange(rows.size[e]) & LABEL_MASK
            found[number] = float(pair[row, k, 1:].view(np.float32)[0]), rows.label[at].tolist()
    return found


@pytest.mark.parametrize("start", [0, 30, 900])
def test_rows_keep_the_newest_examples_of_all_models(start):
    base = filled(None, 1, start)
    models = [filled(base, seed, n) for seed, n in ((2, 400), (3, 800), (4, 1))]
    merged = merged_neighbours(neighbours.new_neighbours(), models, base)
    assert merged.state[EXAMPLES] == start + 1201
    assert merged.state[LABELS] == base.state[LABELS] + sum(one.state[LABELS] - base.state[LABELS] for one in models)
    labels = {value: own for one in (base, *models) for value, own in examples_of(one).values()}
    got = examples_of(merged)
    assert len({value for value, _ in got.values()}) == len(got)
    assert all(labels[value] == own for value, own in got.values())
    order = [value for _, (value, _) in sorted(got.items())]
    for seed in (1, 2, 3):  # examples of a model stay in their order, those of the base first
        own = [value for value in order if value // 1000 == seed]
        assert own == sorted(own)
    assert max([at for at, value in enumerate(order) if value < 2000], default=-1) < min(
        at for at, value in enumerate(order) if value >= 2000
    )
    newest = order[-100:]
    assert 25 <= sum(value < 3000 for value in newest) <= 40  # a third of what was added is the second model's
    pair = merged.pair.reshape(-1, SLOTS, 2)
    for row in np.flatnonzero(merged.used):
        number = pair[row, : merged.used[row], 0]
        assert (np.diff(number.astype(np.int64)) > 0).all()
        total = sum(int(min(one.used[row], SLOTS)) for one in models)
        assert merged.used[row] == SLOTS or merged.used[row] <= total
    again = filled(merged, 9, 300)  # they can be learned on
    assert max(examples_of(again)) == start + 1501


def test_a_single_change_is_taken_as_it_is():
    base = filled(None, 1, 500)
    model = filled(base, 2, 100)
    assert merged_neighbours(neighbours.new_neighbours(), [base, model], base) is model
    assert merged_neighbours(neighbours.new_neighbours(), [base, base], base) is base


def test_names_in_another_order_are_refused():
    first, second = (Learner("multilabel", learn_names=True, bits=12) for _ in "ab")
    first.learn_many(["a,b | u", "c | v"])
    second.learn_many(["c,b | u", "a | v"])
    with pytest.raises(ModelError, match=r"class 1 is . in model \d and . in model \d, and weights of"):
        library.merge([first, second])


def test_more_labels_than_the_number_given_are_merged():
    models = [Learner("multilabel", 2, bits=12) for _ in "ab"]
    for label, model in enumerate(models):
        model.learn_many([f"{3 * label},{3 * label + 1} | w{label} v"] * 5)
    merged = library.merge(models)
    assert len(merged.core.reduction.counts) == 6
    assert merged.core.reduction.counts.tolist() == [5, 5, 0, 5, 5, 10]
