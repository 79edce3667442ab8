"""Keep the means of classes in a space that follows the data, and the correction that learns from errors.

`ClassMeans` is the whole learner apart from labels and options: rows and numbers of classes come in, and the nearest
classes with their scores go out, whose exp is proportional to the probabilities.

Idea      Rows are collected in blocks, and predicted by what the finished blocks have taught, so that the result does
          not depend on the batches in which they come. A block has an eighth of the rows before it, at least 1 and at
          most MOST_ROWS. The space is estimated again when the rows have doubled, up to d rows, and then when they have
          grown by sqrt(2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...array_types import AnyArray, Float32s, Float64s, Int32s
from ...binary.finite import LARGEST_VALUE, LEAST_WEIGHT
from ...errors import OTHER_MODEL, ModelError
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from . import kernels, space
from .kernels import LANES, Classes, Packed, Ring, ScoreFactors

MOST_ROWS = 256  # rows of a block
FIRST_SPACE = 4  # rows after which the space is estimated first
LEAST_COMPARED, MOST_COMPARED = 16, 64  # C, classes that are compared in a step
COMPARED_NUMBERS = 1 << 13  # C d, unless C is at its limits
RING = 1 << 14  # rows that are kept for it
FIRST_TAU, TAU_RATE = 3.0, 0.2
FIRST_OMEGA, OMEGA_RATE = 1.0, 0.1
LEAST_LOG_TAU, MOST_LOG_TAU = -3.0, 10.0
LEAST_SQUARE = 1e-4  # added to the squared slopes by log tau and omega, so that slopes near 0 move neither
FADING = 0.98  # factor of earlier hits, for each block
LEAST_WORK = 1 << 20  # multiplications above which a product is divided among threads
FEW_CLASSES = 1 << 13  # above this, the first COARSE columns choose CHOSEN classes, which are scored by all columns
COARSE = 64
CHOSEN = 128
MOST_NUMBER = 1e30  # of a stored array, which no step changes any more
MOST_OMEGA = 1e6

Share = Callable[[Callable[..., object], Iterable[tuple[Any, ...]]], None]  # as `Reduction.share`
Ranges = Callable[[int], list[tuple[int, int]]]  # ranges of n rows for it


class NearestClasses(NamedTuple):
    """Hold the best classes of n rows."""

    z: Float32s  # float32[n, d], the rows in the current space
    near: Int32s  # int32[n, k], classes in descending order of their scores, -1 beyond the last
    score: Float32s  # float32[n, k], their scores
    own_score: Float32s  # float32[n], score of the class that was asked for, LEAST_SCORE if it is not known
    log_sum: Float64s  # float64[n], logarithm of the sum of exp(score) over the classes that were compared


class WaitingRows(NamedTuple):
    """Hold rows that were predicted and wait for their block to be full."""

    x: Float32s  # float32[MOST_ROWS, d], as they came
    z: Float32s  # float32[MOST_ROWS, d], in the current space
    own: Int32s  # int32[MOST_ROWS]
    weight: Float32s  # float32[MOST_ROWS]
    near: Int32s  # int32[MOST_ROWS, C]


class ClassMeans:
    """Learn classes, numbered from 0, from rows of d numbers.

    Attributes
    ----------
    size : number of classes with an example in a finished block
    rows, weight : rows of the finished blocks, and their weight
    uses_means : whether the means alone predict, because they had more hits of late
    """

    def __init__(self, d: int, capacity: int, share: Share, ranges: Ranges) -> None:
        self.d, self._share, self._ranges = d, share, ranges
        self.space = space.raw(d)
        self.size = self.rows = self.draws = self.ring_at = self.filled = self.pending_rows = 0
        self.weight = self.tau_square = self.omega_square = self.means_tau_square = self.log_means_tau = 0.0
        self.log_tau, self.omega = math.log(FIRST_TAU), FIRST_OMEGA
        self.hits = np.zeros(2)  # float64[2], of the means alone and of the whole, faded
        self.next_space = FIRST_SPACE
        self.scatter = np.zeros((d, d))  # about the centre of the space
        self.compared = compared_classes(d)
        self.ring = Ring(_rows(RING, d), np.zeros(RING, np.int32), np.zeros((RING, self.compared), np.int32))
        self.pending = WaitingRows(
            _rows(MOST_ROWS, d), _rows(MOST_ROWS, d), np.zeros(MOST_ROWS, np.int32), np.zeros(MOST_ROWS, np.float32),
            np.zeros((MOST_ROWS, self.compared), np.int32),
        )  # fmt: skip
        self.classes = _classes(d, capacity)
        self._best = DirectCall(kernels, "best")
        self.pack()

    # prediction

    @property
    def uses_means(self) -> bool:
        return bool(self.hits[0] > self.hits[1])

    @property
    def is_coarse(self) -> bool:
        """Return whether the first columns choose the classes that are scored by all."""
        return self.size > FEW_CLASSES and self.d > COARSE

    def settings(self) -> ScoreFactors:
        return self._settings(self.uses_means)

    def _settings(self, means_alone: bool) -> ScoreFactors:
        alone = math.exp(-self.log_means_tau)
        factors = (alone, 0.0, alone) if means_alone else (math.exp(-self.log_tau), self.omega, 1.0)
        return ScoreFactors._make(map(np.float32, (*factors, alone)))

    def transformed(self, x: Float32s) -> Float32s:
        """Return rows of float32[n, d] in the current space."""
        z = self.product(x - self.space.centre.astype(np.float32), self.space.into)
        kernels.limit(z, LARGEST_VALUE)
        return z

    def best(self, x: Float32s, own: Int32s, k: int, sums: bool) -> NearestClasses:
        """Find the k best classes of rows, float32[n, d]; `own` (int32[n]) are the classes whose scores are wanted."""
        n, z = len(x), self.transformed(x)
        chosen = max(k, CHOSEN) if self.is_coarse else k
        found = NearestClasses(
            z, _none(n, chosen), np.empty((n, chosen), np.float32), np.empty(n, np.float32), np.zeros(n)
        )
        packed, settings = self.packed, self.settings()

        def search(begin: int, end: int) -> None:
            self._best(z, own, packed, begin, end, sums and not self.is_coarse, *found[1:])
            if self.is_coarse:
                kernels.rescore(z, own, self.classes, self.size, settings, begin, end, *found[1:])

        self._share(search, self._ranges(n))
        return found._replace(near=found.near[:, :k], score=found.score[:, :k])

    def scores(self, z: Float32s) -> Float32s:
        """Return the scores of all classes, float32[n, K]; not if `is_coarse`."""
        scores = np.empty((len(z), self.size), np.float32)
        packed = self.packed
        self._share(lambda b, e: kernels.all_scores(z, packed, b, e, scores), self._ranges(len(z)))
        return scores

    def pack(self) -> None:
        """Prepare the scores of all classes; called when something was learned."""
        count = self.classes.weight[: self.size]
        self.classes.prior[:] = math.log(0.1 / (self.weight + 1))
        self.classes.prior[: self.size] = np.log((count + 0.1) / (self.weight + 1))
        blocks, columns = -(-max(self.size, 1) // LANES), COARSE if self.is_coarse else self.d
        packed = Packed(np.empty((blocks, columns, LANES), np.float32), np.empty(blocks * LANES, np.float32))
        settings = self.settings()
        self._over(blocks, LANES * self.d, lambda b, e: kernels.pack(self.classes, self.size, settings, b, e, packed))
        self.packed = packed

    # learning

    @property
    def missing(self) -> int:
        """Return how many rows the block lacks."""
        return min(MOST_ROWS, max(1, self.rows // 8)) - self.pending_rows

    def learn(self, x: Float32s, own: Int32s, weight: Float32s, found: NearestClasses) -> None:
        """Learn from rows that were predicted, at most `missing`; the block is finished when it is full.

        `x` is float32[n, d], `own` int32[n], `weight` float32[n], and `found` what `best` returned for k >= C.
        """
        at = slice(self.pending_rows, self.pending_rows + len(x))
        given = (x, found.z, own, weight, found.near[:, : self.compared])
        for kept, new in zip(self.pending, given, strict=True):
            kept[at] = new
        self.pending_rows = at.stop
        if self.missing <= 0:
            self.finish_block()

    def finish_block(self) -> None:
        """Learn from the pending rows, even if the block is not full."""
        if not self.pending_rows:
            return
        x, z, own, weight, near = WaitingRows._make(array[: self.pending_rows] for array in self.pending)
        self.reserve(int(own.max()) + 1)
        sums = np.zeros(5)
        kernels.learn(
            z, own, weight, near, self.classes, self._settings(False), self.ring, self.filled, self.draws, sums
        )
        self.draws += kernels.REPLAYS * len(own) if self.filled else 0
        self._step_factors(*(sums[[0, 1, 4]] / len(own)).tolist())
        self.hits = FADING * self.hits + sums[2:4]
        for kept, new in zip(self.ring, (z, own, near), strict=True):
            kept[(self.ring_at + np.arange(len(own))) % RING] = new
        self.ring_at, self.filled = (self.ring_at + len(own)) % RING, min(RING, self.filled + len(own))
        kernels.count(z, own, weight, self.space.psi, self.classes)
        root: AnyArray = (x - self.space.centre.astype(np.float32)) * np.sqrt(weight)[:, None]
        scatter: AnyArray = self.product(root.T, root)
        if not np.isfinite(scatter).all():  # heavy rows far from the centre
            root = (x - self.space.centre) * np.sqrt(weight.astype(np.float64))[:, None]
            scatter = self.product(root.T, root)
        self.scatter += scatter
        self.size = max(self.size, int(own.max()) + 1)
        self.rows += len(own)
        self.weight += float(weight.sum(dtype=np.float64))
        self.pending_rows = 0
        if self.rows >= self.next_space:
            self.use(self.class_sums(), self.classes.weight[: self.size].copy(), self.scatter)
        self.pack()

    def _step_factors(self, by_log_tau: float, by_omega: float, by_log_means_tau: float) -> None:
        """Take a step for log tau, omega and the log tau of the means alone by AdaGrad, whose sums fade."""
        self.tau_square = FADING * self.tau_square + by_log_tau**2
        self.omega_square = FADING * self.omega_square + by_omega**2
        self.means_tau_square = FADING * self.means_tau_square + by_log_means_tau**2
        log_tau = self.log_tau - TAU_RATE * by_log_tau / math.sqrt(self.tau_square + LEAST_SQUARE)
        self.log_tau = min(max(log_tau, LEAST_LOG_TAU), MOST_LOG_TAU)
        omega = self.omega - OMEGA_RATE * by_omega / math.sqrt(self.omega_square + LEAST_SQUARE)
        self.omega = min(max(omega, 0.0), MOST_OMEGA)
        log_tau = self.log_means_tau - TAU_RATE * by_log_means_tau / math.sqrt(self.means_tau_square + LEAST_SQUARE)
        self.log_means_tau = min(max(log_tau, LEAST_LOG_TAU), MOST_LOG_TAU)

    def reserve(self, size: int) -> None:
        """Make room for classes."""
        capacity = len(self.classes.weight)
        if size > capacity:
            grown = _classes(self.d, max(size, 2 * capacity))
            pairs: Iterable[tuple[AnyArray, AnyArray]] = zip(self.classes, grown, strict=True)
            for old, new in pairs:
                new[:capacity] = old
            grown.prior[capacity:] = self.classes.prior[capacity - 1 :][:1]
            self.classes = grown

    def class_sums(self) -> Float64s:
        """Return the weighted sums of the rows of each class about the centre of the space, float64[K, d]."""
        n, psi = self.classes.weight[: self.size, None], self.space.psi.astype(np.float64)
        mean = (self.classes.mean[: self.size] * (1 + 1 / (psi * n))).astype(np.float32)
        return n * self.product(mean, self.space.back).astype(np.float64)

    def use(self, sums: Float64s, n: Float64s, scatter: Float64s) -> None:
        """Take other sums, about the centre of the space, and estimate the space, to which the correction is moved."""
        if not (np.isfinite(sums).all() and np.isfinite(scatter).all()):  # only if a model file was made so
            raise ModelError(f"the sums of --means are not finite; {OTHER_MODEL}")
        old, size = self.space, len(n)
        new = space.estimate(old.centre, sums, n, scatter, self.rows, self.product)
        self.move(new)
        mean = self.product((sums / n[:, None] + (old.centre - new.centre)).astype(np.float32), new.into)
        kernels.limit(mean, LARGEST_VALUE)
        psi = new.psi.astype(np.float64)
        self.classes.weight[:size] = n
        self.classes.mean[:size] = mean * (psi * n[:, None] / (psi * n[:, None] + 1))
        kernels.set_biases(self.classes, size)
        shift, total = new.centre - old.centre, sums.sum(axis=0)
        cross = np.outer(total, shift)
        self.scatter = scatter - cross - cross.T + float(n.sum()) * np.outer(shift, shift)
        self.size = size
        while self.next_space <= self.rows:
            factor = 2.0 if self.next_space < self.d else math.sqrt(2)
            self.next_space = math.ceil(self.next_space * factor)

    def move(self, new: space.WhitenedSpace) -> None:
        """Move the correction and the ring to another space; means and scatter are left to the caller."""
        moved = self.moved(new)
        self.classes.step[: self.size], self.classes.offset[: self.size] = moved[:2]
        self.ring.z[: self.filled] = moved[2]
        self.space = new

    def moved(self, new: space.WhitenedSpace) -> tuple[Float32s, Float32s, Float32s]:
        """Return weights and constants of the correction, and the rows of the ring, in another space."""
        rows, row_shift, weights, weight_shift = space.between_spaces(self.space, new, self.product)
        step = self.classes.step[: self.size]
        offset = self.classes.offset[: self.size, None] + self.product(step, weight_shift[:, None])
        step = self.product(step, weights)
        z = self.product(self.ring.z[: self.filled], rows) + row_shift
        for moved, most in ((step, MOST_NUMBER), (offset, MOST_NUMBER), (z, LARGEST_VALUE)):
            kernels.limit(moved, np.float32(most))
        return step, offset[:, 0], z

    # threads

    def product(self, a: AnyArray, b: AnyArray) -> AnyArray:
        """Return the product of two matrices of the same type, whose bytes do not depend on threads."""
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)  # the kernel would be compiled for each layout
        result = np.zeros((a.shape[0], b.shape[1]), a.dtype)
        self._over(a.shape[0], a.shape[1] * b.shape[1], lambda begin, end: kernels.product(a, b, begin, end, result))
        return result

    def _over(self, items: int, work: int, job: Callable[[int, int], object]) -> None:
        """Call `job` for ranges of items, on several threads if there are many multiplications, `work` for each."""
        if items * work < LEAST_WORK or items < 2:
            job(0, items)
        else:
            self._share(job, self._ranges(items))

    # model

    def serialize(self, archive: Archive, labels: int) -> None:
        """Save or restore the learner, for a number of labels.

        Numbers of classes are checked, which kernels use as indices, and all other numbers are finite.
        """
        for name, (low, high) in FACTS.items():
            setattr(self, name, archive.fact(name, getattr(self, name), low, high))
        for name in COUNTS:
            setattr(self, name, archive.count(name, getattr(self, name)))
        if archive.saves:
            archive.facts["hits"] = [float(hit) for hit in self.hits]
        else:
            self.hits = _hits(archive.facts)
        count = archive.take(
            "count", self.classes.weight[: self.size], None, float(LEAST_WEIGHT), stored_arrays.MAX_SUM
        )
        size = len(count)
        if size > labels:
            raise stored_arrays.unfit("count", f"it has {size} classes, but there are {labels} labels")
        if not archive.saves:
            self.size = size
            self.reserve(max(size, 1))
            self.classes.weight[:size] = count
        for name in ("centre", "into"):
            archive.fill(name, getattr(self.space, name), -MOST_NUMBER, MOST_NUMBER)
        for name in ("mean", "step", "offset"):
            archive.fill(name, getattr(self.classes, name)[:size], -MOST_NUMBER, MOST_NUMBER)
        if archive.has("back"):
            self._serialize_learning(archive, labels)
        if not archive.saves:
            kernels.set_biases(self.classes, size)
            self.pack()

    def _serialize_learning(self, archive: Archive, labels: int) -> None:
        most_sum = stored_arrays.MAX_SUM
        archive.fill("psi", self.space.psi, 1e-12, MOST_NUMBER)
        archive.fill("back", self.space.back, -MOST_NUMBER, MOST_NUMBER)
        archive.fill("scatter", self.scatter, -most_sum, most_sum)
        archive.fill("squares", self.classes.squares[: self.size], 0, float(kernels.LARGEST_SQUARES))
        self.filled = self._serialize_rows(archive, "ring", self.ring, self.filled, RING, self.size)
        rows = self._serialize_rows(archive, "pending", self.pending, self.pending_rows, MOST_ROWS - 1, labels)
        self.pending_rows = rows
        if self.filled < RING and self.ring_at != self.filled:
            raise stored_arrays.unfit("ring.own", f"it has {self.filled} rows, but the next place is {self.ring_at}")
        if self.pending_rows and self.missing <= 0:
            raise stored_arrays.unfit("pending.own", "its rows fill a block")

    def _serialize_rows(
        self, archive: Archive, place: str, kept: Ring | WaitingRows, rows: int, most: int, known: int
    ) -> int:
        if not archive.saves:
            rows = math.prod(archive.shape(f"{place}.own") or (0,))
        if rows > most:
            raise stored_arrays.unfit(f"{place}.own", f"it has {rows} rows, but at most {most} are kept")
        limits = {"own": (0, known - 1), "near": (-1, self.size - 1), "weight": (0, MOST_NUMBER)}
        for name, array in kept._asdict().items():
            archive.fill(f"{place}.{name}", array[:rows], *limits.get(name, (-MOST_NUMBER, MOST_NUMBER)))
        return rows


COUNTS = ("rows", "draws")  # attributes in the model
FACTS: dict[str, tuple[float, float]] = {  # others: least and largest value
    "weight": (0, stored_arrays.MAX_SUM), "omega": (0, MOST_OMEGA),
    "ring_at": (0, RING - 1), "next_space": (FIRST_SPACE, 2 * stored_arrays.MAX_COUNT),
    "log_tau": (LEAST_LOG_TAU, MOST_LOG_TAU), "log_means_tau": (LEAST_LOG_TAU, MOST_LOG_TAU),
    "tau_square": (0, 1e300), "omega_square": (0, 1e300), "means_tau_square": (0, 1e300),
}  # fmt: skip


def compared_classes(d: int) -> int:
    """Return C for rows of d numbers."""
    return min(MOST_COMPARED, max(LEAST_COMPARED, COMPARED_NUMBERS // d))


def _hits(facts: Mapping[str, Any]) -> Float64s:
    """Return the sums of weights of a model."""
    hits = facts["hits"] if "hits" in facts else None  # noqa: SIM401 (the access is noted)
    if not (
        isinstance(hits, list)
        and len(hits) == 2
        and all(type(hit) in (int, float) and 0 <= hit <= stored_arrays.MAX_SUM for hit in hits)
    ):
        raise stored_arrays.unfit("hits", "two sums of weights are required")
    return np.array(hits, np.float64)


def _rows(n: int, d: int) -> Float32s:
    return np.zeros((n, d), np.float32)


def _none(n: int, k: int) -> Int32s:
    return np.full((n, k), -1, np.int32)


def _classes(d: int, capacity: int) -> Classes:
    """Return classes without examples."""
    one = np.zeros(capacity, np.float32)
    return Classes(
        np.zeros((capacity, d), np.float32), one, np.zeros((capacity, d), np.float32), one.copy(), one.copy(),
        np.zeros(capacity), one.copy(),
    )  # fmt: skip
