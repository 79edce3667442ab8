"""Turn arrays of a program into batches, and listed probabilities into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch
from ..errors import DataError, UsageError
from ..reductions.core.probabilities import Listing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

LARGEST_HASH = 2**32 - 1


@runtime_checkable
class Rows(Protocol):
    """A matrix in compressed sparse rows, such as SciPy's CSR matrices; column numbers are hashes of features."""

    indptr: ArrayLike
    indices: ArrayLike
    data: ArrayLike


# arrays to batches


def rows_of(given: Any) -> Rows | None:
    """Return a matrix in compressed sparse rows; None for what is no matrix.

    Raises
    ------
    UsageError
        where it is a dense array or another sparse format than can be turned into rows.
    """
    if hasattr(given, "tocsr"):  # any of SciPy's formats; CSC has the attributes of CSR with another meaning
        rows = given.tocsr()
        return rows if isinstance(rows, Rows) else None
    if isinstance(given, Rows):
        return given
    if hasattr(given, "__array__"):
        raise UsageError("examples are a dense array; give scipy.sparse.csr_matrix(...) of it")
    return None


def batch_of(rows: Rows, constant: bool) -> Batch:
    """Return the rows of a matrix as a batch, all features in one namespace without a name.

    Parameters
    ----------
    constant : whether every example gets the constant feature

    Raises
    ------
    DataError
        where the arrays do not describe a matrix.
    """
    start = np.asarray(rows.indptr, np.int64)
    index, value = np.asarray(rows.indices), np.asarray(rows.data, np.float32)
    if start.ndim != 1 or not len(start) or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] > len(index):
        raise DataError("indptr: has to rise from 0 to at most the length of indices")
    if len(index) != len(value):
        raise DataError(f"indices and data have {len(index)} and {len(value)} entries; they have to be equally long")
    if index.size and (index.min() < 0 or index.max() > LARGEST_HASH):
        raise DataError(f"indices: holds {index.min()}..{index.max()}; allowed are 0..{LARGEST_HASH}")
    n, end = len(start) - 1, int(start[-1])
    index, value = index[:end].astype(np.uint32), value[:end]
    group_first = np.arange(n + 1, dtype=np.int64) * (2 if constant else 1)
    group_name = np.full(group_first[-1], ord(" "), np.uint8)
    group_start = np.empty(group_first[-1] + 1, np.int64)
    if constant:
        at = start[1:]
        index, value = np.insert(index, at, np.uint32(CONSTANT)), np.insert(value, at, np.float32(1))
        start = start + np.arange(n + 1)
        group_name[1::2] = CONSTANT_GROUP
        group_start[:-1:2], group_start[1:-1:2] = start[:-1], start[1:] - 1
    else:
        group_start[:-1] = start[:-1]
    group_start[-1] = start[-1]
    none = np.zeros(n, np.int64)
    return Batch(
        start, index, value, np.full(n, np.nan), np.ones(n, np.float32), np.zeros(n, np.float32), group_first,
        group_name, group_start, none, none, np.arange(1, n + 1), np.zeros(0, np.uint8),
    )  # fmt: skip


def column(name: str, values: ArrayLike, n: int, kind: DTypeLike) -> np.ndarray:
    """Return the labels or weights of n examples: kind[n]; `name` : what messages call them."""
    found = np.asarray(values)
    if found.shape != (n,) or found.dtype.kind not in "iufb":
        raise DataError(f"{name}: {found.dtype}{list(found.shape)}; allowed are {n} numbers, one for each example")
    return np.ascontiguousarray(found, kind)


def weights_of(values: ArrayLike, n: int) -> np.ndarray:
    """Return the weights of n examples: float32[n]."""
    found = column("weights", values, n, np.float32)
    wrong = ~((found >= 0) & (found <= np.finfo(np.float32).max))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"weights[{at}] is {found[at]:g}; allowed are finite numbers of at least 0")
    return found


def have_constant(batch: Batch) -> np.ndarray:
    """Tell whether each example ends with the constant feature: bool[n]."""
    last = np.maximum(batch.start[1:] - 1, 0)
    return (np.diff(batch.start) > 0) & (batch.index[last] == CONSTANT) if len(batch.index) else np.zeros(batch.n, bool)


def masked(batch: Batch, bits: int) -> Batch:
    """Return a batch with hashes of so many bits, as the parser makes them for a table; the constant stays as it is."""
    if 1 << bits > LARGEST_HASH:
        return batch
    index = batch.index & np.uint32((1 << bits) - 1)
    index[batch.start[1:][have_constant(batch)] - 1] = CONSTANT
    return batch._replace(index=index)


def copied(batch: Batch) -> Batch:
    """Return a copy to keep: a program may change the arrays that it has given."""
    return batch._replace(**{name: array.copy() for name, array in batch._asdict().items()})


# listed probabilities to arrays


def top_of(listings: Sequence[Listing], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k labels of each of n examples and their probabilities: int64[n, k], float64[n, k].

    Behind the last label of an example there are -1 and 0.
    """
    n = sum(len(listing.start) - 1 for listing in listings)
    labels, p = np.full((n, k), -1), np.zeros((n, k))
    first = 0
    for listing in listings:
        row, real = _classes_of(listing)
        place = np.arange(len(row)) - np.searchsorted(row, row)
        labels[first + row, place], p[first + row, place] = listing.labels[real], listing.scores[real]
        first += len(listing.start) - 1
    return labels, p


def matrix_of(listings: Sequence[Listing]) -> tuple[np.ndarray, np.ndarray]:
    """Return the m labels listed for any of n examples, rising, and their probabilities: int64[m], float64[n, m]."""
    n = sum(len(listing.start) - 1 for listing in listings)
    listed = [listing.labels[_classes_of(listing)[1]] for listing in listings]
    labels = np.unique(np.concatenate([np.zeros(0, np.int64), *listed]))
    p = np.zeros((n, len(labels)))
    first = 0
    for listing in listings:
        row, real = _classes_of(listing)
        p[first + row, np.searchsorted(labels, listing.labels[real])] = listing.scores[real]
        first += len(listing.start) - 1
    return labels, p


def _classes_of(listing: Listing) -> tuple[np.ndarray, np.ndarray]:
    """Return the examples of the pairs that are of one class, not of all others, and which pairs these are: bool."""
    row = np.repeat(np.arange(len(listing.start) - 1), np.diff(listing.start))
    real = np.ones(len(row), bool)
    if listing.others:
        real[listing.start[1:] - 1] = False
    return row[real], real
