"""Shuffle examples between reader and learner in a buffer of N examples (`--shuffle N`).

Idea      Whenever the buffer holds N examples, it is permuted at random and the first half is yielded; the rest stays.
          At the end of a pass all remaining examples are yielded. Data of at most N examples are shuffled uniformly;
          longer data are shuffled locally: an example moves by about N / 2 positions on average. The order depends
          only on --random_seed, N and the data, not on the sizes of the batches, and differs between passes.
Cost      Two copies of every example, and memory for N examples with their features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..data import batch_ops
from ..data.batch import Batch
from ..kernels import rng
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit

BATCH_FEATURES = 1 << 16  # approximate number of features in a batch that is yielded


@jit
def permute(order: np.ndarray, random: np.ndarray) -> None:
    """Permute an array in place by the Fisher-Yates shuffle with random numbers of splitmix64.

    The state of the random numbers, `random`, uint64[1], is written.
    """
    for i in range(order.shape[0] - 1, 0, -1):
        random[0] += GOLDEN
        j = np.int64(rng.mix(random[0]) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


class Shuffler:
    """Shuffle examples together with a flag for each example, in a buffer of `size` examples.

    The random numbers of `seed` continue from pass to pass. `needs_lines` says whether to keep the lines of text of the
    examples, for names of features.
    """

    def __init__(self, size: int, seed: int, needs_lines: bool = False) -> None:
        self.size = size
        self._needs_lines = needs_lines
        self._random = np.array([seed], np.uint64)

    def pass_through(self, source: Iterable[tuple[Batch, np.ndarray]]) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the examples of `source` in shuffled order, in batches of other sizes, each with bool[n], a flag for
        each example.
        """
        buffered: list[tuple[Batch, np.ndarray]] = []
        count = 0
        for batch, mark in source:
            low = 0
            while low < batch.n:
                high = min(batch.n, low + self.size - count)
                # copy the examples, because a batch keeps all of its text alive and only the tags are needed
                buffered.append((self._pick(batch, np.arange(low, high)), mark[low:high].copy()))
                count += high - low
                low = high
                if count == self.size:
                    joined, marks, order = self._mix(buffered, count)
                    half = count // 2
                    yield from self._batches(joined, marks, order[:half])
                    rest = order[half:]
                    buffered, count = [(self._pick(joined, rest), marks[rest])], len(rest)
        if count:
            yield from self._batches(*self._mix(buffered, count))

    def _mix(self, buffered: Sequence[tuple[Batch, np.ndarray]], count: int) -> tuple[Batch, np.ndarray, np.ndarray]:
        """Join the batches in the buffer; return the joint batch, its flags and a random order of its examples."""
        joined = batch_ops.pick([(batch, np.arange(batch.n)) for batch, _ in buffered], self._needs_lines)
        order = np.arange(count)
        permute(order, self._random)
        return joined, np.concatenate([mark for _, mark in buffered]), order

    def _pick(self, batch: Batch, chosen: np.ndarray) -> Batch:
        """Return a copy of the chosen rows of a batch."""
        return batch_ops.pick([(batch, chosen)], self._needs_lines)

    def _batches(self, joined: Batch, marks: np.ndarray, order: np.ndarray) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the examples in `order` in batches of about BATCH_FEATURES features."""
        ends = np.cumsum(joined.start[order + 1] - joined.start[order])
        low = 0
        while low < len(order):
            before = ends[low - 1] if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + BATCH_FEATURES, side="right")))
            yield self._pick(joined, order[low:high]), marks[order[low:high]]
            low = high
