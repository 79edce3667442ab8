"""The dense block of a batch goes with its examples; arrays become it, or are refused with their place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import xclass
from xclass.binary import finite
from xclass.cache import cache_file
from xclass.data import array_input, batch_ops
from xclass.data.batch import NO_DENSE, Batch, Pool, empty

F = np.float32


def batch_of(dense: np.ndarray) -> Batch:
    """Examples with labels 0, 1, ... and these rows, and without features."""
    n, d = dense.shape
    batch = empty(n, 0, 0, d=d)
    batch.label[:], batch.weight[:], batch.line[:] = np.arange(n), 1, np.arange(1, n + 1)
    batch.dense[:] = dense
    return batch


rows = arrays.arrays(F, st.tuples(st.integers(1, 5), st.integers(0, 4)), elements=st.floats(-9, 9, width=32)).map(
    lambda values: values if values.shape[1] else NO_DENSE
)


@given(rows, st.data())
def test_rows_go_with_their_examples(dense, data):
    batch = batch_of(dense)
    n = batch.n
    low = data.draw(st.integers(0, n))
    high = data.draw(st.integers(low, n))
    order = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=6)) if n else [], np.int64)
    assert np.array_equal(batch_ops.cut(batch, low, high).dense, dense[low:high])
    assert np.array_equal(batch_ops.trimmed(batch, high, 0, 0).dense, dense[:high])
    picked = batch_ops.pick([(batch, order), (batch, order[:1])])
    assert picked.dense.flags.c_contiguous
    assert np.array_equal(picked.dense, np.concatenate([dense[order], dense[order[:1]]]))
    assert np.array_equal(batch_ops.with_features(batch, batch).dense, dense)


@given(rows)
def test_the_cache_holds_the_rows(dense):
    batch = batch_of(dense)
    if not batch.n:
        return
    block = cache_file.pack(batch, 5, True, False)
    data, checksum = np.concatenate([block, np.zeros(8, np.uint8)]), cache_file.block_checksum(block)
    assert cache_file.unpack(data, len(block), checksum ^ 1, True, Pool()) is None
    out, before = cache_file.unpack(data, len(block), checksum, True, Pool())
    assert before == 5
    assert np.array_equal(out.dense, dense) and out.dense.dtype == F and out.columns == batch.columns
    assert out.dense.flags.c_contiguous and out.dense.flags.writeable
    assert out.label.tolist() == batch.label.tolist()


def test_memory_of_the_pool_holds_the_rows():
    pool = Pool()
    for n, d in ((3000, 7), (1, 5000), (2, 3)):
        batch = pool.batch(n, 10, 5, np.zeros(0, np.uint8), None, d)
        batch.dense[:] = np.arange(n * d).reshape(n, d)
        batch.label[:], batch.index[:], batch.group_start[:] = 1, 2, 3
        assert batch.dense.flags.c_contiguous and (batch.label == 1).all()
        assert np.array_equal(batch.dense.reshape(-1), np.arange(n * d, dtype=F))
    assert pool.batch(3000, 10, 5, np.zeros(0, np.uint8)).dense is NO_DENSE


@pytest.mark.parametrize(
    "given_rows",
    [
        np.array([[1, 2], [3, 4]], np.float16),
        np.asfortranarray(np.array([[1, 2], [3, 4]], F)),
        np.array([[1, 2], [3, 4]], ">f4"),
        np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]),
        np.array([[1, 9, 2], [3, 9, 4]])[:, ::2],
        [[1, 2], [3, 4]],
    ],
    ids=lambda given_rows: f"{type(given_rows).__name__} {getattr(given_rows, 'dtype', '')}",
)
def test_arrays_of_any_type_and_order_become_rows(given_rows):
    block = array_input.block("examples", given_rows)
    assert block.dtype == F and block.dtype.isnative and block.flags.c_contiguous and block.flags.writeable
    assert np.array_equal(block, np.ma.filled(np.ma.array(given_rows), 0))


def test_what_is_no_row_of_numbers_is_refused():
    with pytest.raises(xclass.DataError, match=r"X: row 1, column 0: the value is nan"):
        array_input.block("X", np.array([[1, 2], [np.nan, 4]]))
    with pytest.raises(xclass.DataError, match=r"X: row 0, column 1: the value is 1e\+300"):
        array_input.block("X", np.array([[1, 1e300]]))
    with pytest.raises(xclass.DataError, match=r"X is an array float64\[2\]"):
        array_input.block("X", np.zeros(2))
    batch = batch_of(np.ones((3, 2), F))
    with pytest.raises(xclass.DataError, match=r"batch.dense has 2 rows; the batch has 3 examples"):
        array_input.batch(batch._replace(dense=np.ones((2, 2), F)))


def test_rows_that_are_not_finite_are_not_learned():
    batch = batch_of(np.array([[1, 2], [np.inf, 0], [0, np.nan]], F))
    batch.weight[0] = np.nan
    cleaned, replaced = finite.clean(batch)
    assert replaced.tolist() == [True, True, True]
    assert np.isfinite(cleaned.dense).all() and cleaned.dense[0].tolist() == [1, 2]
    assert cleaned.weight.tolist() == [0, 1, 1]
