"""Arrays and dense columns reach a reduction that takes them as they are; other reductions hash them."""

import dataclasses
from contextlib import nullcontext

import numpy as np
import pytest
from command import learn
from command import xclass as command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import xclass
from xclass.data.batch import Batch
from xclass.reductions import registry
from xclass.reductions.core import base

F = np.float32
ROWS = np.array([[0.5, -2, 0], [1, 3, 0.25], [0, 0, 0], [4, 0.125, -1]], F)
LABELS = [1, 2, 1, 2]


@pytest.fixture
def taken(monkeypatch):
    """Let --oaa take the dense block, which it does not look at, and return what it gets."""
    records = [dataclasses.replace(one, dense=base.TAKEN) if one.name == "oaa" else one for one in registry.REDUCTIONS]
    monkeypatch.setattr(registry, "REDUCTIONS", tuple(records))


def learner(**options) -> tuple[xclass.Learner, list[Batch]]:
    """A learner, and the batches that it has learned."""
    model, learned = xclass.Learner("oaa", 2, bits=8, **options), []
    model.core.on_learned = lambda task: learned.append(task.batch)
    return model, learned


def block_of(examples, **options) -> np.ndarray:
    """The rows that a new learner gets from examples."""
    model, learned = learner(**options)
    model.learn_many(examples, [1, 2] * (len(examples) // 2) + [1] * (len(examples) % 2))
    return np.concatenate([batch.dense for batch in learned])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(arrays.arrays(F, st.tuples(st.integers(1, 4), st.integers(1, 3)), elements=st.floats(-9, 9, width=16)))
def test_the_same_rows_come_through_every_door(taken, rows):
    pandas = pytest.importorskip("pandas")
    names = [f"c{j}" for j in range(rows.shape[1])]
    objects = np.empty(len(rows), object)
    objects[:] = [*rows]
    doors = {
        "array": block_of(rows),
        "float16": block_of(rows.astype(np.float16)),
        "Fortran": block_of(np.asfortranarray(rows.astype(np.float64))),
        "masked": block_of(np.ma.array(np.where(rows == 0, 7, rows), mask=rows == 0)),
        "lists": block_of(rows.tolist()),
        "arrays": block_of(objects),
        "columns": block_of(pandas.DataFrame(rows, columns=names), dense=names),
        "cells": block_of(pandas.DataFrame({"e": [*rows]})),
        "dictionaries": block_of(pandas.DataFrame({"e": rows.tolist()})),
    }
    for name, block in doors.items():
        assert block.dtype == F and np.array_equal(block, rows), name


def test_arrow_columns_of_lists_are_rows(taken):
    pyarrow = pytest.importorskip("pyarrow")
    fixed = pyarrow.array(ROWS.tolist(), pyarrow.list_(pyarrow.float32(), 3))
    assert np.array_equal(block_of(fixed), ROWS)
    assert np.array_equal(block_of(pyarrow.table({"e": fixed})), ROWS)


@pytest.mark.parametrize("missing", ["None", "NaN", "NA"])
def test_a_missing_list_is_a_row_of_zeros(taken, missing):
    pandas = pytest.importorskip("pandas")
    empty = {"None": None, "NaN": float("nan"), "NA": pandas.NA}[missing]
    many = [empty] * 5000  # so that the first piece has no list
    cells = [*many, [1, 2.5], empty, [0, 3]]
    assert np.array_equal(block_of(pandas.DataFrame({"e": cells}))[4999:], [[0, 0], [1, 2.5], [0, 0], [0, 3]])
    model, learned = learner()
    model.learn_many(pandas.DataFrame({"t": ["a", "b"], "e": [[1, 2], empty]}), [1, 2])
    model.learn({"t": "a", "e": empty}, 1)
    model.learn({"t": "a"}, 1)
    assert [batch.dense.any() for batch in learned] == [True, False, False]
    assert model.core.schema.width == 2


def test_columns_that_are_not_dense_stay_hashed(taken):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "t": ["x y", "z"], "e": [[1, 2, 3.0], [4, 5, 6]]})
    model, learned = learner(dense=["b"])
    model.learn_many(frame, [1, 2])
    (batch,) = learned
    assert batch.dense.tolist() == [[3, 1, 2, 3], [4, 4, 5, 6]]
    assert np.diff(batch.start).tolist() == [5, 3]  # a, two words and their gram, or one, and the constant
    assert model.core.schema.record()["width"] == 4
    assert model.predict({"a": 1, "b": 2, "t": "x", "e": [1, 2, 3]}) in (1, 2)
    with pytest.raises(xclass.DataError, match="rows of 5 columns, and the model takes rows of 4"):
        model.predict({"a": 1, "b": 2, "t": "x", "e": [1, 2, 3, 4]})
    with pytest.raises(xclass.UsageError, match=r"dense 't': the DataFrame has text in the column 't'"):
        learner(dense=["t"])[0].learn_many(frame, [1, 2])


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        (["a", "b"], "dense a,b: only a DataFrame has several columns of numbers with names; give one name"),
        ("e:4", "the examples are rows of 3 columns, and the model takes rows of 4"),
        ("e:3", ""),
    ],
)
def test_what_dense_says_of_rows_without_names(taken, place, dense, message):
    np.save("rows.npy", ROWS)
    np.save("rows.labels.npy", np.array(LABELS))
    uses = (
        lambda model: model.learn_many(ROWS, LABELS),
        lambda model: model.learn_many(ROWS.tolist(), LABELS),
        lambda model: model.learn_file("rows.npy"),
    )
    for use in uses:
        model, learned = learner(dense=dense)
        with pytest.raises((xclass.UsageError, xclass.DataError), match=message) if message else nullcontext():
            use(model)
        assert bool(learned) == (not message)
    words = ("--oaa", "2", "-b", "8", "--quiet", "--dense", dense if isinstance(dense, str) else ",".join(dense))
    result = command("-d", "rows.npy", *words)
    assert (result.status == 0) == (not message) and message in result.err


def test_the_model_keeps_the_number_of_columns(taken, tmp_path):
    model, _ = learner()
    model.learn_many(ROWS, LABELS)
    model.save(tmp_path / "model")
    again = xclass.load(tmp_path / "model")
    assert np.array_equal(again.predict_many(ROWS), model.predict_many(ROWS))
    for use in (lambda rows: again.predict_many(rows), lambda rows: again.learn_many(rows, [1])):
        with pytest.raises(xclass.DataError, match="rows of 2 columns, and the model takes rows of 3"):
            use(np.ones((1, 2)))
    with pytest.raises(xclass.UsageError, match=r"sparse matrices, and the learner has learned from arrays of 3 col"):
        again.predict_many(sparse.csr_matrix(ROWS))
    with pytest.raises(xclass.DataError, match=r"row 1, column 2: the value is nan"):
        again.predict_many([[1, 2, 3], [4, 5, np.nan]])


def test_a_batch_with_rows_is_learned_or_refused(taken):
    model, learned = learner()
    model.learn_many(ROWS, LABELS)
    (batch,) = learned
    other, again = learner()
    other.learn_many(batch)
    assert np.array_equal(again[0].dense, ROWS)
    hashed, of_array = (xclass.Learner("ect", 2, bits=8) for _ in range(2))
    hashed.learn_many(batch)
    of_array.learn_many(ROWS, LABELS)
    assert np.array_equal(hashed.predict_many(batch), of_array.predict_many(ROWS))
    assert hashed.core.contents().arrays.keys() == of_array.core.contents().arrays.keys()
    for name, array in of_array.core.contents().arrays.items():
        assert np.array_equal(np.asarray(array), np.asarray(hashed.core.contents().arrays[name])), name
    (both,) = other.inputs.batches("1 | a b")
    with pytest.raises(xclass.UsageError, match="the batch has features and a dense block"):
        hashed.learn_many(both._replace(dense=ROWS[:1]))


def test_other_reductions_hash_rows():
    pandas = pytest.importorskip("pandas")
    model, learned = learner()
    model.learn_many(ROWS, LABELS)
    assert learned[0].columns == 0 and np.diff(learned[0].start).tolist() == [3, 4, 1, 4]
    model, learned = learner()
    model.learn_many(pandas.DataFrame({"e": [*ROWS]}), LABELS)
    of_text, lines = learner()
    of_text.learn_many(
        [
            f"{label} |e " + " ".join(f"{k}:{x}" for k, x in enumerate(row))
            for label, row in zip(LABELS, ROWS.tolist(), strict=True)
        ]
    )
    for name in ("start", "index", "value", "group_name"):
        assert np.array_equal(getattr(learned[0], name), getattr(lines[0], name)), name


def test_lists_of_other_lengths_and_what_is_no_number_are_refused():
    pandas = pytest.importorskip("pandas")
    for cells, message in (
        ([[1, 2], [1, 2, 3]], r"row 1, column 'e': the cell has 3 numbers; the first list has 2"),
        ([[1, 2], 3], r"row 1, column 'e': the cell is 3; the first list has 2"),
        ([[1, 2], [1, "x"], ["z", "z"]], r"row 1, column 'e': the cell is \[.*; give lists of numbers"),
        ([[1.0, 2.0], [1.0, None], [3.0, 4.0]], r"row 1, column 'e': the cell is \["),
        ([[1.0, 2.0], [[1], [2]], [3.0, 4.0]], r"row 1, column 'e': the cell is \["),
        ([[1, 2], [1, np.inf]], r"row 1, column 'e', position 1: the value is inf"),
    ):
        with pytest.raises(xclass.DataError, match=message):
            learner()[0].learn_many(pandas.DataFrame({"e": cells}), [1, 2, 1][: len(cells)])


@pytest.mark.parametrize("name", ["recall_tree", "log_multi", "ect", "random_tree", "cpt"])
def test_reductions_that_learn_badly_from_rows_say_so_once(name):
    model = xclass.Learner(name, 2, bits=8)
    with pytest.warns(xclass.XclassWarning, match=f"rows of 64 numbers, from which {name} is known"):
        model.learn_many(np.ones((2, 64)), [1, 2])
    assert not model.learn_many(np.ones((2, 64)), [1, 2]).warnings


# runs of the command


def written(path, rows, labels) -> None:
    """Write rows as VW text with a word for each label."""
    lines = (
        f"{label} |w w{label} |e {' '.join(f':{x}' for x in row)}\n"
        for row, label in zip(rows.tolist(), labels, strict=True)
    )
    path.write_text("".join(lines))


def test_a_model_goes_on_with_rows_of_its_width(taken, place):
    written(place / "first.vw", ROWS, LABELS)
    written(place / "more.vw", ROWS[::-1], LABELS[::-1])
    written(place / "short.vw", ROWS[:, :2], LABELS)
    learn("-d", "first.vw", "--oaa", "2", "--dense", "e", "-b", "8", "-f", "first", "--passes", "2", "-c", "--quiet")
    learn("-d", "more.vw", "-i", "first", "-f", "more", "--quiet")
    assert xclass.load("more").core.schema.width == 3 and xclass.load("more").options["dense"] == ("e",)
    failed = command("-d", "short.vw", "-i", "first", "-t", "--quiet")
    assert failed.status == 1 and "short.vw:1:" in failed.err and "fewer values than the 3 columns" in failed.err
    np.save("rows.npy", ROWS[:, :2])
    failed = command("-d", "rows.npy", "-i", "first", "-t", "--quiet")
    assert failed.status == 1 and "rows of 2 columns, and the model takes rows of 3" in failed.err
    np.save("rows.npy", ROWS)
    assert learn("-d", "rows.npy", "-i", "first", "-t", "-p", "stdout", "--quiet").out.count("\n") == len(ROWS)
    (place / "other.csv").write_text("label,e\n1,2\n")
    failed = command("-d", "other.csv", "-i", "first", "-t", "--quiet")
    assert failed.status == 2 and "and other.csv is csv; write it as one of these" in failed.err
    shown = learn("-d", "first.vw", "-i", "first", "-t", "--audit").out
    assert "w^w1" in shown and "e^" not in shown


def test_an_estimator_passes_on_rows_and_named_columns(taken):
    pandas = pytest.importorskip("pandas")
    sklearn = pytest.importorskip("xclass.sklearn")
    model = sklearn.XClassifier("oaa", bits=8).fit(ROWS, LABELS)
    assert model.learner_.core.schema.width == 3 and len(model.predict(ROWS)) == len(ROWS)
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    model = sklearn.XClassifier("oaa", bits=8, options={"dense": ["a", "c"]}).fit(frame, LABELS)
    assert model.learner_.core.schema.record()["columns"] == {"a": "dense", "b": "number", "c": "dense"}
    assert model.learner_.core.schema.width == 2 and len(model.predict(frame)) == len(ROWS)


def dense_files(folder) -> None:
    draw = np.random.default_rng(0)
    for name, n in (("a", 90), ("b", 30)):
        label = draw.integers(1, 4, n)
        rows = np.eye(3)[label - 1] @ np.ones((3, 8)) * label[:, None] + draw.normal(0, 0.1, (n, 8))
        words = [" ".join(f"{k}:{value:.4f}" for k, value in enumerate(row)) for row in rows]
        for space in ("f", "g"):
            lines = [f"{y} |{space} {one}" for y, one in zip(label, words, strict=True)]
            (folder / f"{name}{space}.vw").write_text("\n".join(lines))
        (folder / f"{name}w.vw").write_text(
            "\n".join(f"{y} |f {one} |w x" for y, one in zip(label, words, strict=True))
        )


@pytest.mark.parametrize("reduction", [[], ["--means"]])
def test_rows_that_are_not_recognised_are_noted(tmp_path, reduction):
    dense_files(tmp_path)
    learned = command("-d", "af.vw", "--dense", "f", "-f", "m", *reduction, cwd=tmp_path)
    assert not learned.status and "warning" not in learned.err
    assert "warning" not in command("-t", "-i", "m", "-d", "bf.vw", cwd=tmp_path).err
    wrong = command("-t", "-i", "m", "-d", "bg.vw", cwd=tmp_path).err
    assert wrong.count("warning") == 1 and "it has learned from rows of 8 numbers" in wrong
    for name in ("zz", "zz:8"):
        failed = command("-d", "af.vw", "--dense", name, *reduction, cwd=tmp_path)
        assert failed.status and "none of the first 90 examples has this namespace or key" in failed.err
    both = command("-d", "aw.vw", "--dense", "f", *reduction, cwd=tmp_path).err
    assert ("besides rows of numbers, and --means learns these rows alone" in both) == bool(reduction)
    continued = command("-i", "m", "-d", "aw.vw", "-f", "m2", cwd=tmp_path)
    assert not continued.status
