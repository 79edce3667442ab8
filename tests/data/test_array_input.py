"""Arrays of a program: whatever they hold, they are converted or refused, and no kernel reads past them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import xclass
from xclass.data import array_input
from xclass.data.batch import DTYPES, Batch
from xclass.kernels import jit

jit.activate(hide_scipy=False)
KINDS = st.sampled_from(["i1", "i4", "i8", "u1", "u4", "u8", "f2", "f8", ">i4", "?", "c8", "O", "U2"])


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Return a batch of three examples with tags and two namespaces."""
    with xclass.Learner("oaa", 3, bits=10) as model:
        (read,) = model.inputs.batches("1 't| a b:2 |c d\n2 'u| a\n3 | e |c f g", learn=False)
    return read


@st.composite
def any_array(draw, length: int):
    """Return an array of some type and about some length, with small and with extreme entries."""
    size = draw(st.just(length) | st.integers(0, length + 2))
    numbers = st.integers(-2, 6) | st.sampled_from([2**31, 2**63 - 1, -(2**40)])
    with np.errstate(all="ignore"):
        values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.int64).astype(draw(KINDS))
    return np.sort(values) if draw(st.booleans()) and values.dtype.kind in "iu" else values


@given(st.data())
def test_a_batch_of_any_arrays_is_whole_or_refused(batch, data):
    place = data.draw(st.integers(0, len(batch) - 2))
    changed = list(batch)
    changed[place] = data.draw(any_array(len(batch[place])))
    try:
        checked = array_input.batch(Batch._make(changed))
    except xclass.DataError:
        return
    assert [values.dtype for values in checked] == list(DTYPES)
    assert all(values.flags.c_contiguous and values.ndim == 1 for values in checked[:-1])
    n, z, groups = checked.n, len(checked.index), len(checked.group_name)
    lengths = [len(checked.start), len(checked.group_first), len(checked.value), len(checked.group_start)]
    assert lengths == [n + 1, n + 1, z, groups + 1]
    for values, last in ((checked.start, z), (checked.group_first, groups), (checked.group_start, z)):
        assert values[0] == 0 and values[-1] == last and (np.diff(values) >= 0).all()
    assert (checked.tag_start >= 0).all() and (checked.tag_end <= len(checked.text)).all()


@given(st.data(), st.integers(0, 4), st.integers(0, 8))
def test_sparse_rows_of_any_arrays_are_whole_or_refused(data, n, z):
    x = SimpleNamespace(
        indptr=data.draw(any_array(n + 1)), indices=data.draw(any_array(z)), data=data.draw(any_array(z))
    )
    try:
        start, column, value = array_input.rows_of(x)
    except xclass.XclassError:
        return
    assert start[0] == 0 and start[-1] == len(column) == len(value) and (np.diff(start) >= 0).all()
    for i in range(len(start) - 1):
        part = column[start[i] : start[i + 1]].tolist()
        assert part == sorted(set(part)) and all(0 <= j <= array_input.LARGEST_COLUMN for j in part)


FORMS = st.sampled_from(["csr", "csc", "coo", "bsr"])


@given(st.data(), FORMS, st.sampled_from(["i1", "i4", "u8", "f4", "f8", "?"]))
def test_sparse_matrices_have_the_entries_that_scipy_shows(data, form, kind):
    entries = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 9)), max_size=9))
    row, column, value = np.array(entries, np.int64).reshape(-1, 3).T
    given_x = sparse.coo_matrix((value.astype(kind), (row, column)), shape=(3, 4)).asformat(form)
    if form == "csr" and given_x.nnz:
        given_x = sparse.csr_matrix((given_x.data, given_x.indices[::-1].copy(), given_x.indptr), shape=(3, 4))
    start, columns, values = array_input.rows_of(given_x)
    shown = np.zeros((3, 4), values.dtype)
    shown[np.repeat(np.arange(3), np.diff(start)), columns] = values
    assert np.array_equal(shown, given_x.toarray())


@given(arrays.arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_dense_matrices_are_as_they_are(values):
    assert np.array_equal(array_input.dense(values), values, equal_nan=True)
    rows = values.tolist()
    if values.size:
        assert np.array_equal(array_input.dense(rows), values, equal_nan=True)
        assert np.array_equal(array_input.dense(np.array(rows, object)), values, equal_nan=True)


def test_columns_of_numbers():
    pandas = pytest.importorskip("pandas")
    for values in ([1, 2.5, None], np.ma.array([1, 2.5, 9], mask=[0, 0, 1]), pandas.array([1, 2.5, None], "Float64")):
        assert np.array_equal(array_input.column("y", values, 3), [1, 2.5, np.nan], equal_nan=True)
    for values, message in (
        (["1", 2, None], r"y\[0\] is str '1'"),
        ([1j, 2, 3], "y is an array complex128"),
        ([1, 2], "give a number for each of the 3"),
        ([[1, 2]] * 3, r"y has the shape \(3, 2\)"),
        ({1, 2, 3}, "y is a set; give a list"),
    ):
        with pytest.raises(xclass.DataError, match=message):
            array_input.column("y", values, 3)
