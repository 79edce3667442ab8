"""Features that are columns of numbers, each divided by its root mean square so far.

What for  AdaGrad makes the steps of a weight small where its feature is often large, but what a weight says is still
          w * x: of columns in different units the largest decides alone, more so once an example has length 1. VW's
          rule keeps a scale per weight for that; here one per feature, kept before any regressor sees it.
Which     Values of text (term weights) say how much a word tells and are left as they are. Columns are told by how
          often a feature comes back: in at least one of RARE examples, and FEW times, on the average over all features
          of the first LOOKED examples. Features that are 1 wherever they are present are not changed by any of this.
Scale     sqrt(S / N), S the sum of x**2 over the N examples that have the feature, the example at hand included while
          it learns. A feature met for the first time where nothing is learned has the value 1 or -1.
Figures   progressive error % of `--multiclass` on training files, examples of length 1 without and with it: aloi27
          `-q ff` 53.8, 27.5; without `-q` 65.5, 39.7; isolet1 29.5, 28.8; scikit-learn's digits 11.1, 11.0, wine 53.9,
          25.8, breast cancer 21.4, 10.5, iris 39.3, 36.0. reuters, which has term weights, 17.5, 18.3: hence the rule
          above. Divided by the largest |x| so far: aloi27 42.6, by the root of the scale 36.3.
Cost      one pass over the features of an example; none where the first LOOKED examples have no columns.
"""

from __future__ import annotations

import math

import numpy as np

from . import model_file
from .jit import jit

LOOKED = 1000  # examples, after which it is known whether features are columns
RARE, FEW = 16, 4
BITS = 20  # of the table of scales
SHIFT = np.uint64(64 - BITS)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
EXAMPLES, FEATURES, DIFFERENT, COLUMNS, NUMBERS = range(5)  # what `state` holds


def for_option(how: str) -> Scales | None:
    """New scales for a value of --normalize_features, or None where it has none."""
    return Scales(how == "columns") if how in ("auto", "columns") else None


class Scales:
    """The scales of all features, and whether they are used.

    Parameters
    ----------
    always : whether features are columns whatever they look like
    """

    def __init__(self, always: bool):
        self.state = np.zeros(NUMBERS, np.int64)
        self.state[COLUMNS] = always
        self.always = always
        self.sums = np.zeros((2, 1 << BITS))  # S, N

    @property
    def idle(self) -> bool:
        """Whether no value will be changed any more."""
        return self.state[EXAMPLES] >= LOOKED and not self.state[COLUMNS]

    def scaled(self, batch, learns: np.ndarray):
        """The batch with its features scaled; those of examples that `learns` (bool[n]) are taken in."""
        if self.idle:
            return batch
        value = np.empty_like(batch.value)
        scale(batch, learns, self.always, self.state, self.sums, value)
        return batch._replace(value=value)

    def count(self, batch, learns: np.ndarray) -> None:
        """Take in the examples of a batch that `learns` (bool[n])."""
        if not self.idle:
            count(batch, learns, self.always, self.state, self.sums)

    def divide(self, index: np.ndarray, value: np.ndarray) -> None:
        """Scale the values (float32[z], in place) of features (uint32[z], hashes) by what was taken in so far."""
        if self.state[COLUMNS]:
            divide(index, value, self.sums)

    def copy(self) -> Scales:
        """Scales of their own that know the same."""
        found = Scales(self.always)
        found.state[:], found.sums[:] = self.state, self.sums
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """What a model keeps."""
        found = {"scales.state": self.state}
        if not self.idle:
            found.update(model_file.sparse("scales", {"s": self.sums[0], "n": self.sums[1]}))
        return found

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Fill new scales with what `arrays` gave."""
        self.state[:] = model_file.take("scales.state", arrays, np.int64, (NUMBERS,))
        if not self.idle:
            model_file.dense("scales", arrays, {"s": self.sums[0], "n": self.sums[1]})


# -- kernels


@jit
def scale(batch, learns, always, state, sums, value):
    """Fill `value` (float32[z]) with the scaled values of a batch, example by example."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, state, sums)
        for f in range(batch.start[i], batch.start[i + 1]):
            value[f] = divided(batch.index[f], batch.value[f], sums) if state[COLUMNS] else batch.value[f]


@jit
def count(batch, learns, always, state, sums):
    """Take in the examples of a batch that `learns`."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, state, sums)


@jit
def divide(index, value, sums):
    """Scale `value` (float32[z]) in place."""
    for f in range(len(index)):
        value[f] = divided(index[f], value[f], sums)


@jit
def place_of(index):
    """Where in the table a feature's scale is."""
    return np.int64((np.uint64(index) * GOLDEN) >> SHIFT)


@jit
def count_one(batch, i, always, state, sums):
    """Take in one example, and as long as that is asked decide whether features are columns."""
    if state[EXAMPLES] >= LOOKED and not state[COLUMNS]:
        return
    begin, end = batch.start[i], batch.start[i + 1]
    for f in range(begin, end):
        place = place_of(batch.index[f])
        x = np.float64(batch.value[f])
        if sums[1, place] == 0.0:
            state[DIFFERENT] += 1
        sums[0, place] += x * x
        sums[1, place] += 1.0
    state[FEATURES] += end - begin
    state[EXAMPLES] += 1
    if state[EXAMPLES] <= LOOKED and not always:
        often = state[FEATURES] * RARE >= state[DIFFERENT] * state[EXAMPLES]
        state[COLUMNS] = often and 0 < FEW * state[DIFFERENT] <= state[FEATURES]


@jit
def divided(index, x, sums):
    """One feature's value, scaled."""
    if x == 0.0:
        return x
    place = place_of(index)
    square = np.float64(x) * np.float64(x)
    if sums[0, place] > 0.0:
        square = sums[0, place] / sums[1, place]
    return np.float32(np.float64(x) / math.sqrt(square))
