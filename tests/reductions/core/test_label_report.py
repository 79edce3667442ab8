"""Measures of lists of labels: equal to napkinXC's and scikit-learn's functions, and to sums of parts of the data."""

import numpy as np
import pytest

from xclass.data.batch import empty
from xclass.reductions.core.label_report import LabelLists, LabelReport
from xclass.reductions.core.probabilities import ClassLists

A, B = 0.55, 1.5


def lists_of(lists, dtype=np.int64):
    return np.concatenate([*map(np.array, lists), []]).astype(dtype), np.cumsum([0, *map(len, lists)])


def ranked_of(lists, p=0.5):
    labels, start = lists_of(lists)
    return ClassLists(np.broadcast_to(np.float32(p), len(labels)).copy(), labels, start, has_rest=False)


def batch_of(true, weight=None):
    """A batch with lists of labels; None is an example whose labels are not known."""
    labels, start = lists_of([one or [] for one in true], np.float64)
    label = np.array([np.nan if one is None else len(one) for one in true])
    batch = empty(len(true), 0, 0)
    return batch._replace(
        label=label, label_start=start, labels=labels,
        weight=np.ones(len(true), np.float32) if weight is None else np.float32(weight),
    )  # fmt: skip


def sample(seed, n=200, labels=30, low=1):
    """True, ranked and chosen labels, and the frequencies of labels in training."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(labels) / 3)
    true = [sorted(rng.choice(labels, rng.integers(low, 7), False, p=p * 0.99 + 0.01 / labels)) for _ in range(n)]
    ranked = [rng.permutation(labels)[: rng.integers(0, 9)].tolist() for _ in range(n)]
    ranked = [
        list(dict.fromkeys([*map(int, t[:2]), *r])) if rng.random() < 0.6 else r
        for t, r in zip(true, ranked, strict=True)
    ]
    chosen = [r[: rng.integers(0, 4)] for r in ranked]
    return [list(map(int, t)) for t in true], ranked, chosen, rng.integers(0, 40, labels)


def figures(true, ranked, chosen, count, examples, **more):
    report = LabelReport(len(count), more.pop("top_k", None))
    report.add(batch_of(true, **more), ranked_of(ranked), LabelLists(*lists_of(chosen)), np.append(count, examples))
    return report


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_those_of_napkinxc_and_sklearn(seed):
    napkin = pytest.importorskip("napkinxc.metrics")
    sklearn = pytest.importorskip("sklearn.metrics")
    true, ranked, chosen, count = sample(seed)
    known = figures([*true, None, []], [*ranked, [1], [2]], [*chosen, [], []], count, 400, top_k=7).figures()
    inverse = 1 + (np.log(400) - 1) * (B + 1) ** A * (count + B) ** -A
    for k in (1, 3, 5, 7):
        for name, values in {
            "precision": napkin.precision_at_k(true, ranked, k=7),
            "recall": napkin.recall_at_k(true, ranked, k=7),
            "ndcg": napkin.ndcg_at_k(true, ranked, k=7),
            "psp": napkin.psprecision_at_k(true, ranked, inverse, k=7),
            "psndcg": napkin.psndcg_at_k(true, ranked, inverse, k=7),
            "coverage": napkin.coverage_at_k(true, ranked, k=7),
        }.items():
            assert known[f"{name}_at_{k}"] == pytest.approx(values[k - 1], abs=1e-12), (name, k)
    indicator = np.zeros((2, len(true) + 1, len(count)), int)
    for i, (t, c) in enumerate(zip(true, chosen, strict=True)):
        indicator[0, i, t] = indicator[1, i, c] = 1
    for average in ("micro", "macro"):
        wanted = sklearn.f1_score(*indicator, average=average, zero_division=0)
        assert known[f"{average}_f1"] == pytest.approx(wanted, abs=1e-12)
    wanted = sklearn.hamming_loss(*indicator) * len(count) * (len(true) + 1) / (len(true) + 2)
    assert known["hamming_loss"] == pytest.approx(wanted, abs=1e-12)  # VW divides by all lines, and not by labels


def test_measures_follow_their_definitions():
    """The four examples have the ranks 1 2, none, 2, and an unknown label."""
    true, ranked = [[0, 2], [1], [3], [0, 2**32 - 2]], [[2, 0, 1], [], [1, 3], [1]]
    report = figures(true, ranked, ranked, np.array([4, 3, 2, 1]), 10)
    known = report.figures()
    assert known["precision_at_1"] == 1 / 4 and known["precision_at_3"] == pytest.approx((2 / 3 + 1 / 3) / 4)
    assert known["recall_at_3"] == (1 + 0 + 1 + 0) / 4
    assert known["ndcg_at_3"] == pytest.approx((1 + 0 + 1 / np.log2(3) + 0) / 4)
    q = 1 + (np.log(10) - 1) * (B + 1) ** A * (np.array([4, 3, 2, 1, 0]) + B) ** -A
    assert known["psp_at_1"] == pytest.approx(q[2] / (q[2] + q[1] + q[3] + q[4]))
    assert known["micro_f1"] == 2 * 3 / (6 + 6) and known["hamming_loss"] == 6 / 4  # the unknown label counts
    assert report.lost("micro_f1") == (6, 12)
    assert report.lines()[0] == "precision at 1, 3, 5 = 0.250000, 0.250000, 0.150000"


def test_parts_of_the_data_add_up_to_the_whole():
    true, ranked, chosen, count = sample(7, low=0)
    true[::9] = [[*labels, 2**32 - 2] for labels in true[::9]]
    weight = np.random.default_rng(1).integers(0, 4, len(true)) / 2
    whole = figures(true, ranked, chosen, count, 500, weight=weight)
    sum_of = LabelReport(3)
    for part in (slice(0, 50), slice(50, None)):
        sum_of.add_tallies(figures(true[part], ranked[part], chosen[part], count, 500, weight=weight[part]).tallies())
    assert sum_of.figures() == pytest.approx(whole.figures(), abs=1e-12)


def test_labels_are_counted_after_they_are_measured():
    """So figures do not depend on the batches, and an example is not weighed by its own labels."""
    true, ranked, chosen, count = sample(3, low=0)
    learned = np.random.default_rng(3).random(len(true)) < 0.8
    found = []
    for size in (len(true), 17):
        report, counts = LabelReport(len(count)), np.append(count, 300)
        for i in range(0, len(true), size):
            part = slice(i, i + size)
            lists = ranked_of(ranked[part]), LabelLists(*lists_of(chosen[part]))
            loss = report.add(batch_of(true[part]), *lists, counts, learned[part])
            best = [(r or [None])[0] for r in ranked[part]]
            wanted = [b not in t if t else bool(c) for t, b, c in zip(true[part], best, chosen[part], strict=True)]
            assert loss.tolist() == wanted
        found.append((report.figures(), counts.tolist()))
    assert found[0][1] == found[1][1] and found[0][0] == pytest.approx(found[1][0], abs=1e-12)
    seen = [y for y, learns in zip(true, learned, strict=True) if learns]
    assert found[0][1] == [*(count + [sum(y in t for t in seen) for y in range(len(count))]), 300 + len(seen)]


def test_calibration_is_that_of_the_five_best_labels():
    true, ranked = [[0, 2], None, [], [1]], [[2, 1], [3], [0], [1, 2, 3, 4, 5, 6]]
    p = [0.92, 0.32, 0.5, 0.34, 1, 0.92, 0.3, 0.2, 0.1, 0.7]
    report = LabelReport(7, calibration="table")
    lists = ranked_of(ranked, p), LabelLists(*lists_of([[]] * 4))
    report.add(batch_of(true, weight=[1, 1, 1, 2]), *lists, np.zeros(8, np.int64))
    bins = {2: (2, 0.2, 0), 4: (2, 0.4, 0), 6: (4, 0.32 + 0.34 + 0.6, 0), 18: (3, 0.92 * 3, 1), 19: (2, 2.0, 2)}
    np.testing.assert_allclose(report.sums.bins.T, [bins.get(j, (0, 0, 0)) for j in range(20)], rtol=1e-6)
    error = (0.2 + 0.4 + 1.26 + 1.76) / 13
    assert report.figures()["calibration_error"] == pytest.approx(error)
    assert f"expected calibration error = {error:.6f}" in report.lines()
    (table,) = report.results()
    rows = [line.split("\t") for line in table.lines]
    assert table.path == "table" and rows[0] == ["from", "to", "mean_forecast", "observed", "weight"]
    assert rows[-2:] == [["0.9", "0.95", "0.920000", "0.333333", "3"], ["0.95", "1", "1.000000", "1.000000", "2"]]
