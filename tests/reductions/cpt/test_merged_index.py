"""Merged rows of the index of features against dictionaries, and merged classes."""

import numpy as np
import pytest
from archives import restored, saved
from hypothesis import given
from hypothesis import strategies as st

from xclass.abilities.merge import parts
from xclass.binary import document_frequency, feature_scaling
from xclass.reductions.multiclass import feature_index

SLOTS, LABELS = 4, 9
rows = st.dictionaries(st.integers(1, LABELS), st.integers(1, 12), max_size=SLOTS)  # class -> count


def listed(row: dict[int, int]) -> list[tuple[int, int]]:
    """Return the pairs of a row, the largest count first."""
    return sorted(row.items(), key=lambda pair: -pair[1])


def merged_row(models: list[dict[int, int]], base: dict[int, int]) -> list[tuple[int, float]]:
    """Return the merged row: what each model has added to a count, or all of a count that has begun anew."""
    total: dict[int, float] = {}
    for row in models:
        for y, count in listed(row):
            before = base.get(y, 0)
            total.setdefault(y, before)
            total[y] += count - before if count >= before else count
    return sorted(total.items(), key=lambda pair: -pair[1])[:SLOTS]  # stable: the first listed wins a tie


def products(tables: list[list[dict[int, int]]], y: int) -> float:
    """Return how much more the squares of the merged counts of a class are than those of the models."""
    total = 0.0
    for r, weight in ((0, 1.0), (1, 2.0)):
        before = dict(listed(tables[0][r])).get(y, 0)
        counts = [dict(listed(table[r])).get(y, 0) for table in tables[1:]]
        merged = before + sum(count - before if count >= before else count for count in counts if count)
        own = sum(count**2 - (before**2 if count >= before else 0) for count in counts if count)
        total += max(merged**2 - before**2 - own, 0) * weight**2
    return total


@pytest.mark.bounds
@given(st.lists(st.lists(rows, min_size=2, max_size=2), min_size=2, max_size=4))
def test_rows_agree_with_dictionaries(tables):
    models = len(tables)
    classes, counts = np.zeros((models, 2, SLOTS), np.int64), np.zeros((models, 2, SLOTS))
    for k, table in enumerate(tables):
        for r, row in enumerate(table):
            for j, (y, count) in enumerate(listed(row)):
                classes[k, r, j], counts[k, r, j] = y, count
    pair = np.zeros((2 * SLOTS, 2), np.uint32)
    pair[:, 0] = classes[0].ravel()
    pair.view(np.float32)[:, 1] = counts[0].ravel()
    flat = [(own.ravel(), own_counts.ravel()) for own, own_counts in zip(classes, counts, strict=True)]
    changed = [np.flatnonzero((own != flat[0][0]) | (own_counts != flat[0][1])) for own, own_counts in flat[1:]]
    parts.merge_rows(
        pair.ravel(), pair.view(np.float32).ravel(), SLOTS, np.concatenate(changed).astype(np.uint32),
        np.concatenate([flat[k][0][at] for k, at in enumerate(changed, 1)]).astype(np.uint32),
        np.concatenate([flat[k][1][at] for k, at in enumerate(changed, 1)]).astype(np.float32),
        np.cumsum([0, *map(len, changed)]), np.array([1.0, 2.0]), cross := np.zeros(LABELS),
    )  # fmt: skip
    merged_class = pair[:, 0].reshape(2, SLOTS)
    merged_count = pair.view(np.float32)[:, 1].reshape(2, SLOTS)
    for r in range(2):
        expected = merged_row([table[r] for table in tables[1:]], tables[0][r])
        size = len(expected)
        assert list(zip(merged_class[r, :size], merged_count[r, :size], strict=True)) == expected
        assert not merged_class[r, size:].any() and not merged_count[r, size:].any()
    assert cross.tolist() == pytest.approx([products(tables, y) for y in range(1, LABELS + 1)])


def learned(pairs: list[tuple[int, int]]) -> tuple[feature_index.FeatureIndex, document_frequency.DocumentFrequencies]:
    """Return an index that has learned pairs of a feature and a label, and the counts of the features."""
    index = feature_index.FeatureIndex(8, SLOTS, 2)
    frequencies = document_frequency.DocumentFrequencies(False, True)
    for feature, label in pairs:
        feature_index.learn(
            index.index, np.array([feature], np.uint32), np.full(1, 0.01, np.float32), 0, 1, label, np.float32(1)
        )
        frequencies.count[feature_scaling.slot_of(np.uint32(feature))] += 1
        frequencies.state[[document_frequency.WEIGHT, document_frequency.EXAMPLES]] += 1
    return index, frequencies


def test_classes_are_found_by_their_labels():
    base, _ = learned([])
    one, one_counts = learned([(f, 1) for f in range(0, 300, 3)] + [(f, 2) for f in range(1, 300, 3)] * 2)
    two, two_counts = learned([(f, 7) for f in range(2, 300, 3)] * 3)
    both = document_frequency.DocumentFrequencies(False, True)
    both.count[:] = one_counts.count + two_counts.count
    both.state[:] = one_counts.state + two_counts.state
    target = feature_index.FeatureIndex(8, SLOTS, 2)
    parts.merge(target, [one, two], base, both, False)
    index = target.index
    assert index.classes.label[:3].tolist() == [1, 2, 7]
    assert index.weight[:3].tolist() == [100, 200, 300]
    assert feature_index.class_number(index, 7) == 2
    for number, source in ((0, one), (1, one), (2, two)):
        own = number if number < 2 else 0
        pairs, times = target.index.pair[0::2], target.index.times[1::2]
        assert times[pairs == number + 1].sum() == source.index.times[1::2][source.index.pair[0::2] == own + 1].sum()
        assert index.norm2[number] == source.index.norm2[own]
    again = feature_index.FeatureIndex(8, SLOTS, 2)
    restored(saved(target.serialize), again.serialize)
    assert again.index.pair.tolist() == index.pair.tolist()


def test_the_length_of_a_centroid_grows_with_shared_features():
    pairs = [(f, 1) for f in range(100)]
    base, _ = learned([])
    one, counts = learned(pairs)
    both = document_frequency.DocumentFrequencies(False, True)
    both.count[:], both.state[:] = 2 * counts.count, 2 * counts.state
    target = feature_index.FeatureIndex(8, SLOTS, 2)
    parts.merge(target, [one, one], base, both, False)
    assert target.index.norm2[0] == pytest.approx(4 * one.index.norm2[0], rel=0.1)
