"""Measure ranked and chosen labels against lists of labels over a run: precision, recall, nDCG, F1 and their like.

Source    Jain, Prabhu, Varma 2016 (propensities); the definitions at k places are those of `napkinxc.metrics`, F1 and
          Hamming loss those of VW's --plt and of scikit-learn.
Cost      O(k + labels of the example) for each example, and 4 sums for each label.
Names     q(y) inverse propensity of label y, 1 + C (N_y + B)^-A, where N_y of N examples that were learned have the
          label and C = (ln N - 1) (B + 1)^A.
Idea      An example is measured by the frequencies of the labels among the examples learned before it, and then counted
          itself if it is learned. So the figures of progressive validation do not depend on the size of the batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float32s, Float64s, Int, Int64s
from ...data.batch import Batch
from ...kernels import top_k
from ...kernels.jit import bare, jit
from . import calibration, label_arrays
from .calibration import ResultFile
from .probabilities import ClassLists

PLACES = (1, 3, 5)  # k of the measures, and --top_k
AT_K = ("precision", "recall", "ndcg", "psp", "best_psp", "psndcg", "best_psndcg")  # rows of `ReportSums.at_k`
# columns of `ReportSums.of_label`: weight of the examples that have a label, to which it is given and that have it too
TRUE, CHOSEN, RIGHT = range(3)
NO_EXAMPLES = np.zeros(0, bool)


class LabelLists(NamedTuple):
    """Hold a list of labels for each of n examples; those of example i are `labels[start[i]:start[i + 1]]`."""

    labels: Int64s  # int64[m], classes as written in the file
    start: Int64s  # int64[n + 1]


class ReportSums(NamedTuple):
    """Hold the sums over examples from which all figures follow; those of two parts of the data can be added."""

    at_k: Float64s  # float64[len(AT_K), places], over the examples that have a true label
    total: Float64s  # float64[4], weight of these, of all labelled examples, of all, and of true labels without a row
    of_label: Float64s  # float64[K, 3], see TRUE
    found: Float64s  # float64[K, places], weight of the examples that have a label and rank it in the first k
    # float64[3, BINS], of the best labels of all labelled examples: weight, weight * probability, weight of true ones
    bins: Float64s


# -- kernels


@bare
def inverse_propensity(count: Int64s, label: Int, constants: tuple[float, float]) -> float:
    """Return the inverse propensity of a label, which may be none of those that are counted.

    `count`, int64[K + 1], has the number of examples with each label, and last the number of all examples; `constants`
    are A and B.
    """
    a, b = constants
    labels = len(count) - 1
    c = max(math.log(max(count[labels], 1)) - 1.0, 0.0) * (b + 1.0) ** a
    return float(1.0 + c * ((count[label] if 0 <= label < labels else 0) + b) ** -a)


@jit
def measure(
    batch: Batch, weights: Float32s, label: Int64s, learned: Bools, ranked: ClassLists, chosen: LabelLists,
    lowest: int, count: Int64s, constants: tuple[float, float], place: Int64s, sums: ReportSums, loss: Float64s,
) -> None:  # fmt: skip
    """Add the examples of a batch to `sums`, and those that are learned to `count`.

    Parameters
    ----------
    weights : float32[n], of the examples in `sums`
    label : see `label_arrays.span`; ascending for each example
    learned : bool[n], whether to count each example, or bool[0] for none
    ranked, chosen : predicted labels, the best first, and those above the threshold; a label occurs once in a list
    lowest : the lowest label, whose sums are in row 0
    count, constants : see `inverse_propensity`
    place : int64[places], ascending, k of each measure
    loss : float64[n], set to the weight of the examples whose best label is wrong, or to which labels are given though
        they have none
    """
    at_k, total, of_label, found, bins = sums
    labels, most = of_label.shape[0], place[len(place) - 1]
    best, term = np.empty(most), np.empty(len(at_k), at_k.dtype)
    for i in range(len(batch.label)):
        weight, importance = np.float64(weights[i]), np.float64(batch.weight[i])
        total[2] += weight
        loss[i] = 0.0
        if np.isnan(batch.label[i]):
            continue
        total[1] += weight
        first, last = label_arrays.span(batch, label, i)
        for j in range(ranked.start[i], min(ranked.start[i + 1], ranked.start[i] + PLACES[-1])):
            forecast = (
                np.float64(ranked.scores[j]) if ranked.scores[j] > 0 else 0.0
            )  # weights of a loaded model may give NaN
            row = min(int(min(forecast, 1.0) * calibration.BINS), calibration.BINS - 1)
            bins[0, row] += weight
            bins[1, row] += weight * forecast
            if place_of(label, first, last, ranked.labels[j]) >= 0:
                bins[2, row] += weight
        for j in range(first, last):
            y = label[j] - lowest
            if 0 <= y < labels:
                of_label[y, TRUE] += weight
            else:
                total[3] += weight
        for j in range(chosen.start[i], chosen.start[i + 1]):
            y = chosen.labels[j] - lowest
            of_label[y, CHOSEN] += weight
            if place_of(label, first, last, chosen.labels[j]) >= 0:
                of_label[y, RIGHT] += weight
        if last == first:
            loss[i] = importance if chosen.start[i] < chosen.start[i + 1] else 0.0
            _count_learned(batch, label, learned, i, lowest, count, 1)
            continue
        total[0] += weight
        is_right = (
            ranked.start[i] < ranked.start[i + 1] and place_of(label, first, last, ranked.labels[ranked.start[i]]) >= 0
        )
        loss[i] = 0.0 if is_right else importance
        size = _largest(label, first, last, lowest, count, constants, best)
        hits, psp, best_psp = 0, 0.0, 0.0
        dcg, best_dcg, psdcg, best_psdcg = 0.0, 0.0, 0.0, 0.0
        column = 0
        for j in range(most):
            gain = 1.0 / math.log2(j + 2.0)
            if j < last - first:
                best_dcg += gain
            if j < size:
                best_psp += best[j]
                best_psdcg += best[j] * gain
            at = ranked.start[i] + j
            if at < ranked.start[i + 1] and place_of(label, first, last, ranked.labels[at]) >= 0:
                y = ranked.labels[at] - lowest
                q = inverse_propensity(count, y, constants)
                hits += 1
                psp += q
                dcg += gain
                psdcg += q * gain
                for c in range(column, len(place)):
                    found[y, c] += weight
            if j + 1 == place[column]:
                term[0] = weight * hits / (j + 1)
                term[1] = weight * hits / (last - first)
                term[2] = weight * dcg / best_dcg
                term[3] = weight * psp / (j + 1)
                term[4] = weight * best_psp / (j + 1)
                term[5] = weight * psdcg / best_dcg
                term[6] = weight * best_psdcg / best_dcg
                for row in range(len(term)):
                    at_k[row, column] += term[row]
                column += 1
        _count_learned(batch, label, learned, i, lowest, count, 1)


@jit
def rank_by_propensity(
    batch: Batch, label: Int64s, learned: Bools, ranked: LabelLists, p: Float32s, lowest: int, count: Int64s,
    constants: tuple[float, float], best: Int64s, start: Int64s,
) -> None:  # fmt: skip
    """Find for each example the labels with the largest products of probability and inverse propensity.

    They are written to `best` as positions in `ranked`, in falling order, those of example i to
    `best[start[i]:start[i + 1]]`. An example is ranked by the frequencies before it, as `measure` measures it, which is
    to follow: `count` is the same afterwards. The parameters are those of `measure`; `p` has the probabilities.
    """
    gain = np.empty(len(ranked.labels))
    for i in range(len(batch.label)):
        for j in range(ranked.start[i], ranked.start[i + 1]):
            gain[j] = np.float64(p[j]) * inverse_propensity(count, ranked.labels[j] - lowest, constants)
        top_k.rank(gain, ranked.start[i], ranked.start[i + 1], best[start[i] : start[i + 1]])
        _count_learned(batch, label, learned, i, lowest, count, 1)
    for i in range(len(batch.label)):
        _count_learned(batch, label, learned, i, lowest, count, -1)


@bare
def _count_learned(batch: Batch, label: Int64s, learned: Bools, i: Int, lowest: int, count: Int64s, times: int) -> None:
    """Count example i if it is learned."""
    if len(learned) > 0 and learned[i]:
        first, last = label_arrays.span(batch, label, i)
        count[len(count) - 1] += times
        for j in range(first, last):
            if 0 <= label[j] - lowest < len(count) - 1:
                count[label[j] - lowest] += times


@jit
def place_of(label: Int64s, first: Int, last: Int, wanted: Int) -> Int:
    """Return where a label is among `label[first:last]`, which ascend, -1 if it is none of them."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if label[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < last and label[low] == wanted else np.int64(-1)


@jit
def _largest(
    label: Int64s, first: Int, last: Int, lowest: int, count: Int64s, constants: tuple[float, float], best: Float64s
) -> int:
    """Write the largest inverse propensities of `label[first:last]` to `best`, in falling order; return how many."""
    size = 0
    for j in range(first, last):
        q = inverse_propensity(count, label[j] - lowest, constants)
        size = top_k.insert(best, best, size, q, q)
    return size


# -- Python


def with_rows(array: AnyArray, rows: int) -> AnyArray:
    """Return an array with at least as many rows as before, the new ones 0.

    It has room for more, which the next call uses: rows that are added one by one are not copied each time.
    """
    room = array.base
    if not (isinstance(room, np.ndarray) and room.shape[1:] == array.shape[1:] and len(room) >= rows):
        room = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
        room[: len(array)] = array
    return room[:rows]


class LabelReport:
    """Accumulate the measures of one run, for its summary; the interface is that of `calibration.LabelStatistics`.

    `labels` is the number of labels, which may grow, `top_k` the value of --top_k, None if it is not given, `lowest`
    the lowest label, and `propensity` A and B. With `as_vw`, the summary has no lines about labels, as that of VW.
    With `grows`, macro F1 is the mean over the labels that examples have or get, otherwise over all. `calibration` is
    the file of the reliability table.
    """

    def __init__(
        self, labels: int, top_k: int | None = None, lowest: int = 0, propensity: tuple[float, float] = (0.55, 1.5),
        as_vw: bool = False, grows: bool = False, calibration: str | None = None,
    ) -> None:  # fmt: skip
        self.top_k = top_k or 1
        self.place = np.array(sorted({*PLACES, self.top_k}), np.int64)
        self.lowest, self.propensity, self.as_vw, self.grows = lowest, propensity, as_vw, grows
        self.calibration = calibration
        # returns figures about the threshold that the learner has chosen, None if it chooses none
        self.choice: Callable[[], dict[str, float]] | None = None
        self._best: ReportSums | None = None  # of the best pass, see `end_pass`
        self._clear(labels)

    def _clear(self, labels: int) -> None:
        self.sums = ReportSums(
            np.zeros((len(AT_K), len(self.place))), np.zeros(4),
            np.zeros((labels, 3)), np.zeros((labels, len(self.place))), np.zeros((3, calibration.BINS)),
        )  # fmt: skip

    def end_pass(self, better: bool) -> None:
        """End a pass of which held-out examples were added; the figures are those of the last pass that was better."""
        self._best = self.sums if better else self._best
        self._clear(len(self.sums.of_label))

    def add(
        self, batch: Batch, ranked: ClassLists, chosen: LabelLists, count: Int64s, learned: Bools = NO_EXAMPLES,
        weights: Float32s | None = None, labels: int | None = None,
    ) -> Float64s:  # fmt: skip
        """Add the examples of a batch, and return the loss of each; the parameters are those of `measure`.

        By default the examples have their own weights. `labels` is the number of labels, None for that of `count`.
        """
        self._grow(len(count) - 1 if labels is None else labels)
        loss = np.empty(batch.n)
        measure(
            batch, batch.weight if weights is None else weights, label_arrays.whole(batch), learned,
            ranked, chosen, self.lowest, count, self.propensity,
            self.place, self.sums, loss,
        )  # fmt: skip
        return loss

    def _grow(self, labels: int) -> None:
        if labels > len(self.sums.of_label):
            grown = {name: with_rows(getattr(self.sums, name), labels) for name in ("of_label", "found")}
            self.sums = self.sums._replace(**grown)

    def tallies(self) -> dict[str, Any]:
        """Return the sums, for `add_tallies` of another report."""
        return {**self.sums._asdict(), "best": None if self._best is None else self._best._asdict()}

    def add_tallies(self, tallies: Mapping[str, Any]) -> None:
        self._grow(len(tallies["of_label"]))
        self._best = self._best or (tallies["best"] and ReportSums(**tallies["best"]))
        for name, own in self.sums._asdict().items():
            own[: len(tallies[name])] += tallies[name]

    def figures(self) -> dict[str, float]:
        """Return the figures of the summary by name, those that are known."""
        at_k, total, of_label, found, bins = self._best or self.sums
        figures: dict[str, float] = {}
        if total[0] > 0:
            mean = dict(zip(AT_K, at_k / total[0], strict=True))
            mean["psp"] /= mean["best_psp"]
            mean["psndcg"] /= mean["best_psndcg"]
            has = of_label[:, TRUE] > 0
            mean["coverage"] = (found[has] > 0).sum(axis=0) / max(has.sum(), 1)
            for name in ("precision", "recall", "ndcg", "psp", "psndcg", "coverage"):
                figures.update((f"{name}_at_{k}", float(p)) for k, p in zip(self.place, mean[name], strict=True))
        if total[1] > 0:
            twice, both = 2 * of_label[:, RIGHT], of_label[:, TRUE] + of_label[:, CHOSEN]
            lost, whole = self._micro(self._best or self.sums)
            figures["micro_f1"] = (whole - lost) / whole if whole else 0.0
            f1 = np.divide(twice, both, out=np.zeros(len(both)), where=both > 0)
            counted = f1[both > 0] if self.grows and whole else f1
            figures["macro_f1"] = float(counted.mean()) if len(counted) else 0.0
            figures["hamming_loss"] = lost / float(total[2])
        if (error := calibration.calibration_error(bins)) is not None:
            figures["calibration_error"] = error
        return figures | (self.choice() if self.choice is not None else {})

    @staticmethod
    def _micro(sums: ReportSums) -> tuple[float, float]:
        """Return by how many labels true and chosen lists differ, and how many they have together."""
        true, chosen, right = sums.of_label.sum(axis=0)
        whole = true + sums.total[3] + chosen
        return float(whole - 2 * right), float(whole)

    def lost(self, metric: str) -> tuple[float, float]:
        """Return what is missing of a measure, and the whole; 1 less their quotient is the measure.

        It is "p1" or another k of `place`, "psp1" or another, or "micro_f1". The results of parts can be added.
        """
        at_k, total = self.sums[:2]
        if metric == "micro_f1":
            return self._micro(self.sums)
        name, k = ("psp", metric[3:]) if metric.startswith("psp") else ("precision", metric[1:])
        of_k = dict(zip(AT_K, at_k[:, np.searchsorted(self.place, int(k))], strict=True))
        whole = of_k["best_psp"] if name == "psp" else total[0]
        return float(whole - of_k[name]), float(whole)

    def lines(self) -> list[str]:
        """Return the lines of the summary, one for each measure; those of held-out examples end in h, as their loss."""
        if self.as_vw:
            return []
        known, mark = self.figures(), " h" if self._best else ""
        lines = []
        for name in ("precision", "recall", "ndcg", "psp", "psndcg", "coverage"):
            if f"{name}_at_1" in known:
                values = ", ".join(f"{known[f'{name}_at_{k}']:.6f}" for k in self.place)
                lines.append(f"{name} at {', '.join(map(str, self.place))} = {values}{mark}")
        names = {"micro_f1": "micro F1", "macro_f1": "macro F1", "hamming_loss": "hamming loss"}
        names["calibration_error"] = "expected calibration error"
        lines += [f"{text} = {known[name]:.6f}{mark}" for name, text in names.items() if name in known]
        for name, text in {"micro_f1": "micro F1", "precision": "precision"}.items():
            if f"threshold_{name}" in known:
                measured = f"{text} {known[f'threshold_{name}']:.6f} in progressive validation"
                lines.append(f"threshold = {known['threshold']:.6g}, with {measured}")
        return lines

    def results(self) -> list[ResultFile]:
        """Return the reliability table if the options ask for it."""
        bins = (self._best or self.sums).bins
        return [] if self.calibration is None else [calibration.reliability_table(self.calibration, bins)]
