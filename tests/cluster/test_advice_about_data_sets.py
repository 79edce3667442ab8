"""Advice about a data set of Ray Data is followed as it is shown, and then a program learns from the data set."""

import functools
import re
import sys
from types import SimpleNamespace

import inline_ray
import numpy as np
import pytest

import xclass
import xclass.ray
from xclass.cluster import session


class Lines(list):
    """Stand for a table of pyarrow with one column of text, which may not be installed."""

    num_columns = 1
    num_rows = property(len)

    def column(self, number):
        return SimpleNamespace(to_pylist=lambda: list(self))


class Dataset:
    """Stand for a data set of Ray Data, by its blocks: tables, or the exceptions that are raised in place of them."""

    def __init__(self, *blocks, error=None):
        self.context = SimpleNamespace(execution_options=SimpleNamespace(preserve_order=False))
        self._blocks, self._error = blocks, error

    def to_arrow_refs(self):
        if self._error is not None:
            raise self._error
        failed = [isinstance(block, Exception) for block in self._blocks]
        named = zip(failed, self._blocks, strict=True)
        return [inline_ray.Reference(**{"error" if bad else "value": one}) for bad, one in named]


def fit(*blocks, options=("oaa", 3), error=None, **reading):
    """Return a call that learns on a cluster from a data set with these blocks: lists of lines, or columns."""

    def call():
        tables = [one if isinstance(one, Exception) else table(one) for one in blocks]
        learner = xclass.Learner(*options, bits=12)
        return xclass.ray.fit(Dataset(*tables, error=error), learner, workers=2, **reading)

    return call


def table(block):
    if not isinstance(block, dict):
        return Lines(block)
    pyarrow = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")
    return pyarrow.table(block)


def of_file(data):
    return lambda: xclass.ray.fit(data, xclass.Learner("oaa", 3, bits=12), workers=2)


def alone():
    xclass.Learner("multiclass", bits=12).learn_many(np.array([[1.0, 2.0], [3.0, 4.0]]), ["tea", "rum"])


def of_rows(name):
    """Return a call that learns from the lists of LISTS, which are saved as rows."""
    np.save(name, np.array(LISTS["size"] * 9, np.float32))
    np.save("rows.labels.npy", np.array(LISTS["label"] * 9))
    return lambda: xclass.ray.fit(name, xclass.Learner("multiclass", bits=12), workers=1)


LINES = ["1 | a", "2 | b"]
fit_columns = functools.partial(fit, options=("multiclass",))
TABLE = {"label": ["tea", "rum"], "text": ["hot", "cold"]}
SIZES = {"label": ["tea", "rum"], "size": [1, 2]}
LISTS = {"label": ["tea", "rum"], "size": [[1, 2], [3, 4]]}
WORDS = {"label": ["tea", "rum"], "size": [["a"], ["b", "c"]]}
# a call, and for its message the same call as the message advises, which gets the group of the message
CASES = [
    (fit(LINES, ModuleNotFoundError("No module named 'pyarrow'")), "that every node has (pyarrow) ",
     lambda word: fit(LINES, LINES)),
    (fit(LINES, ValueError("no such row")), "; (check the data set),", lambda word: fit(LINES, LINES)),
    (fit(LINES, ["1 | a\n2 | b"]), "give a (line) in each row", lambda word: fit(LINES, LINES)),
    (fit(LINES, LINES, error=ValueError("no such row")), "check its (functions)$", lambda word: fit(LINES, LINES)),
    (fit([], []), "give one with (examples)$", lambda word: fit(LINES, LINES)),
    (fit(LINES, LINES, columns="text"), "by its own (functions)$", lambda word: fit(LINES, LINES)),
    (of_file([3]), "none of (paths), patterns", lambda word: of_file("part.vw")),
    (of_file([3]), "and a (data set) of Ray Data", lambda word: fit(LINES, LINES)),
    (fit_columns(TABLE, TABLE, label_column="drink"), "its columns are '(label)', 'text'",
     lambda word: fit_columns(TABLE, TABLE, label_column=word)),
    (fit_columns(LISTS, LISTS), "with a (Learner)$", lambda word: alone),
    (fit_columns(LISTS, LISTS), "as (.npy) files", lambda word: of_rows(f"rows{word}")),
    (fit_columns(SIZES, LISTS), "give (numbers) or texts ", lambda word: fit_columns(SIZES, SIZES)),
    (fit_columns(WORDS, WORDS), "to (text), or write lists", lambda word: fit_columns(TABLE, TABLE)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "advice", "followed"), CASES)
def test_advice_about_a_data_set_is_followed(inline, place, monkeypatch, call, advice, followed):
    monkeypatch.setitem(sys.modules, "ray", session.imported())
    (place / "part.vw").write_text("1 | a\n2 | b\n" * 9)
    with pytest.raises(xclass.XclassError) as raised:
        call()
    found = re.search(advice, str(raised.value))
    assert found and "--" not in found.string, str(raised.value)
    followed(found[1])()
