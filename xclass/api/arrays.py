"""Convert sparse matrices into batches, and listed class probabilities into arrays."""

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
    """Describe a matrix in compressed sparse rows, such as SciPy's CSR matrices.

    Column numbers are hashes of features.

    Attributes
    ----------
    indptr : int array[n + 1], row i has the entries `indptr[i]:indptr[i + 1]`
    indices : int array[nnz], column of each entry, 0..2**32 - 1
    data : float array[nnz], value of each entry
    """

    indptr: ArrayLike
    indices: ArrayLike
    data: ArrayLike


# arrays to batches


def rows_of(examples: Any) -> Rows | None:
    """Return `examples` as a matrix in compressed sparse rows, or None if it is not a matrix.

    Raises
    ------
    UsageError
        if `examples` is a dense array.
    """
    if hasattr(examples, "tocsr"):  # convert first: SciPy's CSC has the attributes of CSR with another meaning
        rows = examples.tocsr()
        return rows if isinstance(rows, Rows) else None
    if isinstance(examples, Rows):
        return examples
    if hasattr(examples, "__array__"):
        raise UsageError("the examples are a dense array; give scipy.sparse.csr_matrix(array) instead")
    return None


def batch_of(rows: Rows, constant: bool) -> Batch:
    """Return the n rows of a matrix as a batch of unlabelled examples with all features in the unnamed namespace.

    Parameters
    ----------
    rows : the matrix; column numbers are hashes of features
    constant : whether the constant feature is added to every example

    Returns
    -------
    batch : n examples with label NaN, weight 1 and line numbers from 1

    Raises
    ------
    DataError
        if the arrays do not describe a matrix.
    """
    start = np.asarray(rows.indptr, np.int64)
    index, value = np.asarray(rows.indices), np.asarray(rows.data, np.float32)
    if start.ndim != 1 or not len(start) or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] > len(index):
        raise DataError(
            f"indptr has to start at 0, never decrease, and end at most at {len(index)}, the length of indices"
        )
    if len(index) != len(value):
        raise DataError(
            f"indices and data have {len(index)} and {len(value)} entries; they have to have the same length"
        )
    if index.size and (index.min() < 0 or index.max() > LARGEST_HASH):
        raise DataError(f"indices contains values from {index.min()} to {index.max()}; allowed are 0 to {LARGEST_HASH}")
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
    """Return the labels or weights of n examples as a contiguous array.

    Parameters
    ----------
    name : name of the argument, for error messages
    values : n numbers
    n : number of examples
    kind : dtype of the result

    Returns
    -------
    array : kind[n]

    Raises
    ------
    DataError
        if `values` are not n numbers.
    """
    array = np.asarray(values)
    if array.shape == (n,) and array.dtype.kind in "UOS":
        raise DataError(
            f"{name} are of type {array.dtype}, and have to be numbers for a matrix; "
            "`names, y = numpy.unique(labels, return_inverse=True)` numbers names from 0 on"
        )
    if array.shape != (n,) or array.dtype.kind not in "iufb":
        raise DataError(
            f"{name} are of type {array.dtype} and shape {array.shape}; give a number for each of the {n} examples"
        )
    return np.ascontiguousarray(array, kind)


def weights_of(values: ArrayLike, n: int) -> np.ndarray:
    """Return the weights of n examples as float32[n].

    Raises
    ------
    DataError
        if `values` are not n finite numbers of at least 0.
    """
    weights = column("weights", values, n, np.float32)
    wrong = ~((weights >= 0) & (weights <= np.finfo(np.float32).max))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"weights[{at}] is {weights[at]:g}; allowed are finite numbers of at least 0")
    return weights


def have_constant(batch: Batch) -> np.ndarray:
    """Return bool[n]: whether the last feature of each example is the constant feature."""
    last = np.maximum(batch.start[1:] - 1, 0)
    return (np.diff(batch.start) > 0) & (batch.index[last] == CONSTANT) if len(batch.index) else np.zeros(batch.n, bool)


def masked(batch: Batch, bits: int) -> Batch:
    """Return a batch whose feature hashes are cut to `bits` bits, except that of the constant feature.

    The parser cuts hashes in the same way for a weight table of 2**bits slots.
    """
    if 1 << bits > LARGEST_HASH:
        return batch
    index = batch.index & np.uint32((1 << bits) - 1)
    index[batch.start[1:][have_constant(batch)] - 1] = CONSTANT
    return batch._replace(index=index)


def copied(batch: Batch) -> Batch:
    """Return a deep copy of a batch, which later changes by the caller to its arrays do not affect."""
    return batch._replace(**{name: array.copy() for name, array in batch._asdict().items()})


# listed probabilities to arrays


def top_k_arrays(listings: Sequence[Listing], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k labels of each example and their probabilities.

    Parameters
    ----------
    listings : listed labels and probabilities of n examples in total, the most probable label first
    k : number of columns of the results

    Returns
    -------
    labels : int64[n, k], -1 beyond the last listed label
    p : float64[n, k], 0 beyond the last listed label
    """
    n = sum(len(listing.start) - 1 for listing in listings)
    labels, p = np.full((n, k), -1), np.zeros((n, k))
    first = 0
    for listing in listings:
        row, single = _single_classes(listing)
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        labels[first + row, rank], p[first + row, rank] = listing.labels[single], listing.scores[single]
        first += len(listing.start) - 1
    return labels, p


def probability_matrix(listings: Sequence[Listing]) -> tuple[np.ndarray, np.ndarray]:
    """Return all labels that are listed for any example, and a matrix of their probabilities.

    Parameters
    ----------
    listings : listed labels and probabilities of n examples in total

    Returns
    -------
    labels : int64[m], in rising order
    p : float64[n, m], 0 where a label is not listed for an example
    """
    n = sum(len(listing.start) - 1 for listing in listings)
    labels_of_listings = [listing.labels[_single_classes(listing)[1]] for listing in listings]
    labels = np.unique(np.concatenate([np.zeros(0, np.int64), *labels_of_listings]))
    p = np.zeros((n, len(labels)))
    first = 0
    for listing in listings:
        row, single = _single_classes(listing)
        p[first + row, np.searchsorted(labels, listing.labels[single])] = listing.scores[single]
        first += len(listing.start) - 1
    return labels, p


def _single_classes(listing: Listing) -> tuple[np.ndarray, np.ndarray]:
    """Select the probabilities of single classes, without those that stand for all other classes together.

    Returns
    -------
    row : int64[m], example of each selected probability
    single : bool[all], whether each probability is that of a single class
    """
    row = np.repeat(np.arange(len(listing.start) - 1), np.diff(listing.start))
    single = np.ones(len(row), bool)
    if listing.others:
        single[listing.start[1:] - 1] = False
    return row[single], single
