"""A shuffle buffer between reader and learner (`--shuffle N`): Batch in, Batch out, in bounded memory.

Whenever N examples are held, they are put in a random order, the first half is given out and the rest stays;
at the end of a pass all that is left is given out. Data of at most N examples is thus shuffled uniformly; longer
data is shuffled locally, an example moving on by N on average. The seed is --random_seed. The order depends on the
seed, N and the data alone, not on how the data came in batches; every pass has an order of its own.

Cost      two copies of every example, memory for N of them and as many of their features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data import batch_ops
from ..data.batch import Batch
from ..kernels import rng
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit
from ..options.declare import option

GIVEN = 1 << 16  # features of a batch given out, about


@dataclass(frozen=True)
class Options:
    """Shuffling."""

    shuffle: int = option("hold N examples in memory and learn them in random order", kind=int, minimum=2, metavar="N")


@jit
def permute(order: np.ndarray, random: np.ndarray) -> None:
    """Fisher and Yates, with numbers of splitmix64; `random` : uint64[1], its state."""
    for i in range(order.shape[0] - 1, 0, -1):
        random[0] += GOLDEN
        j = np.int64(rng.mix(random[0]) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


class Shuffler:
    """Shuffles examples, each with one more byte that goes along with it.

    Parameters
    ----------
    size : examples held
    seed : of the random numbers, which go on from pass to pass
    lines : whether examples keep the lines they were read from, for names of features
    """

    def __init__(self, size: int, seed: int, lines: bool = False) -> None:
        self.size = size
        self._lines = lines
        self._random = np.array([seed], np.uint64)

    def pass_through(self, source: Iterable[tuple[Batch, np.ndarray]]) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield what `source` yields, batches and bool[n], in another order and other batches."""
        held: list[tuple[Batch, np.ndarray]] = []
        count = 0
        for batch, mark in source:
            low = 0
            while low < batch.n:
                high = min(batch.n, low + self.size - count)
                # a copy, for the text of a batch is much larger than its tags
                held.append((self._pick(batch, np.arange(low, high)), mark[low:high].copy()))
                count += high - low
                low = high
                if count == self.size:
                    joined, marks, order = self._mix(held, count)
                    half = count // 2
                    yield from self._give(joined, marks, order[:half])
                    kept = order[half:]
                    held, count = [(self._pick(joined, kept), marks[kept])], len(kept)
        if count:
            yield from self._give(*self._mix(held, count))

    def _mix(self, held: Sequence[tuple[Batch, np.ndarray]], count: int) -> tuple[Batch, np.ndarray, np.ndarray]:
        joined = batch_ops.pick([(batch, np.arange(batch.n)) for batch, _ in held], self._lines)
        order = np.arange(count)
        permute(order, self._random)
        return joined, np.concatenate([mark for _, mark in held]), order

    def _pick(self, batch: Batch, chosen: np.ndarray) -> Batch:
        return batch_ops.pick([(batch, chosen)], self._lines)

    def _give(self, joined: Batch, marks: np.ndarray, order: np.ndarray) -> Iterator[tuple[Batch, np.ndarray]]:
        ends = np.cumsum(joined.start[order + 1] - joined.start[order])
        low = 0
        while low < len(order):
            before = ends[low - 1] if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + GIVEN, side="right")))
            yield self._pick(joined, order[low:high]), marks[order[low:high]]
            low = high
