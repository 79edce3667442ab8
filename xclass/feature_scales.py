"""Features that are columns of numbers, each divided by its mean size so far.

What for  AdaGrad makes the steps of a weight small where its feature is often large, but what a weight says is still
          w * x: of columns in different units the largest decides alone, more so once an example has length 1. VW's
          rule keeps a scale per weight for that; here one per feature, kept before any regressor sees it.
Which     Values of text (term weights) say how much a word tells and are left as they are. Columns are told by how
          often a feature comes back: features that have values other than 1 are in at least one of RARE examples, and
          seen FEW times, on the average over all such features of the first LOOKED examples. A feature that is 1
          wherever it is present stays 1.
Scale     M, the mean of |x| over the examples that have the feature, 0 left out, the example at hand included while it
          learns: of all examples at first, and from WINDOW on M += (|x| - M) / WINDOW, so that a change of unit is
          forgotten. No value counts for more than MOST times M, nor becomes larger than MOST: an error of measurement
          spoils the example it is in and no other. A feature met for the first time where nothing is learned has the
          value 1 or -1.
Figures   progressive error % of `--multiclass` on training files, examples of length 1 without and with it: aloi27
          `-q ff` 53.8, FIG27; without `-q` 65.5, FIGA; isolet1 29.5, FIGI; scikit-learn's digits 11.1, 10.8, wine 53.9,
          27.0, breast cancer 21.4, 10.4. Divided by the root mean square: aloi27 28.5, and digits with a row of a
          million times its size 25.3 (now 11.0). By the largest |x|: aloi27 42.6. Where words are scaled, too: reuters
          17.5, 18.3, hence the rule above.
Cost      one pass over the features of an example; none where the first LOOKED examples have no columns.
"""

from __future__ import annotations

import numpy as np

from . import model_file
from .jit import jit

LOOKED = 1000  # examples, after which it is known whether features are columns
RARE, FEW = 8, 4
WINDOW = 1000.0
MOST = 10.0
BITS = 20  # of the table of scales
SHIFT = np.uint64(64 - BITS)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
EXAMPLES, VALUES, DIFFERENT, COLUMNS, NUMBERS = range(5)  # what `state` holds; values and features of those not 1


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
        self.size = np.zeros(1 << BITS)  # M
        self.seen = np.zeros(1 << BITS)  # values it is made of, at most WINDOW
        self.valued = np.zeros(1 << BITS, np.uint8)  # whether one of them was not 1

    @property
    def told(self) -> list[str]:
        """A line for the summary, where features are scaled."""
        columns = self.state[COLUMNS] and self.valued.any()
        return ["features are columns of numbers, each divided by its mean size"] if columns else []

    @property
    def idle(self) -> bool:
        """Whether no value will be changed any more."""
        return self.state[EXAMPLES] >= LOOKED and not self.state[COLUMNS]

    def scaled(self, batch, learns: np.ndarray):
        """The batch with its features scaled; those of examples that `learns` (bool[n]) are taken in."""
        if self.idle:
            return batch
        value = np.empty_like(batch.value)
        scale(batch, learns, self.always, self.state, self.size, self.seen, self.valued, value)
        return batch._replace(value=value)

    def count(self, batch, learns: np.ndarray) -> None:
        """Take in the examples of a batch that `learns` (bool[n])."""
        if not self.idle:
            count(batch, learns, self.always, self.state, self.size, self.seen, self.valued)

    def divide(self, index: np.ndarray, value: np.ndarray) -> None:
        """Scale the values (float32[z], in place) of features (uint32[z], hashes) by what was taken in so far."""
        if self.state[COLUMNS]:
            divide(index, value, self.size)

    def copy(self) -> Scales:
        """Scales of their own that know the same."""
        found = Scales(self.always)
        for name in ("state", "size", "seen", "valued"):
            getattr(found, name)[:] = getattr(self, name)
        return found

    def _planes(self) -> dict[str, np.ndarray]:
        return {"size": self.size, "seen": self.seen, "valued": self.valued}

    def arrays(self) -> dict[str, np.ndarray]:
        """What a model keeps."""
        found = {"scales.state": self.state}
        if not self.idle:
            found.update(model_file.sparse("scales", self._planes()))
        return found

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Fill new scales with what `arrays` gave."""
        self.state[:] = model_file.take("scales.state", arrays, np.int64, (NUMBERS,))
        if not self.idle:
            model_file.dense("scales", arrays, self._planes())


# -- kernels


@jit
def scale(batch, learns, always, state, size, seen, valued, value):
    """Fill `value` (float32[z]) with the scaled values of a batch, example by example."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, state, size, seen, valued)
        for f in range(batch.start[i], batch.start[i + 1]):
            value[f] = divided(batch.index[f], batch.value[f], size) if state[COLUMNS] else batch.value[f]


@jit
def count(batch, learns, always, state, size, seen, valued):
    """Take in the examples of a batch that `learns`."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, state, size, seen, valued)


@jit
def divide(index, value, size):
    """Scale `value` (float32[z]) in place."""
    for f in range(len(index)):
        value[f] = divided(index[f], value[f], size)


@jit
def place_of(index):
    """Where in the table a feature's scale is."""
    return np.int64((np.uint64(index) * GOLDEN) >> SHIFT)


@jit
def count_one(batch, i, always, state, size, seen, valued):
    """Take in one example, and as long as that is asked decide whether features are columns."""
    if state[EXAMPLES] >= LOOKED and not state[COLUMNS]:
        return
    for f in range(batch.start[i], batch.start[i + 1]):
        x = abs(np.float64(batch.value[f]))
        if x == 0.0:
            continue
        place = place_of(batch.index[f])
        if seen[place] > 0.0:
            x = min(x, MOST * size[place])
        seen[place] = min(seen[place] + 1.0, WINDOW)
        size[place] += (x - size[place]) / seen[place]
        if valued[place]:
            state[VALUES] += 1
        elif batch.value[f] != 1.0:
            valued[place] = 1
            state[DIFFERENT] += 1
            state[VALUES] += np.int64(seen[place])
    state[EXAMPLES] += 1
    if state[EXAMPLES] <= LOOKED and not always:
        often = state[VALUES] * RARE >= state[DIFFERENT] * state[EXAMPLES]
        state[COLUMNS] = often and 0 < FEW * state[DIFFERENT] <= state[VALUES]


@jit
def divided(index, x, size):
    """One feature's value, scaled."""
    if x == 0.0:
        return x
    mean = size[place_of(index)]
    if mean == 0.0:
        mean = abs(np.float64(x))
    return np.float32(min(max(np.float64(x) / mean, -MOST), MOST))
