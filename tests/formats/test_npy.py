"""Arrays of NumPy as data: rows and labels are those of the files, and damaged or hostile files are refused."""

import gzip
import io

import numpy as np
import pytest
from command import learn, xclass
from hypothesis import given, settings
from hypothesis import strategies as st

import xclass as library
from xclass.cli import command as cli_command
from xclass.cli import declared
from xclass.cluster import shards
from xclass.errors import DataError, UsageError
from xclass.formats import detect
from xclass.text import parser, reader

F = np.float32
ROWS = np.random.default_rng(2).normal(size=(700, 60)).astype(F)
LABELS = np.arange(700) % 3 + 1


def read(path, names=False, on_bad_line="stop", block_bytes=None, **options):
    """The rows, labels and lines of a file, and the reader."""
    given_options = reader.ReaderOptions(data=(str(path),), **options)
    text = reader.Reader(
        given_options,
        parser.Parser(parser.ParserOptions(learn_names=names, on_bad_line=on_bad_line), 18, "multiclass"),
        block_bytes=block_bytes, choose=detect.chooser(given_options),
    )  # fmt: skip
    batches = [(batch.dense.copy(), batch.label.copy(), batch.line.copy()) for batch in text]
    empty = np.zeros((0, 0), F), np.zeros(0), np.zeros(0, np.int64)
    return *(np.concatenate(parts) for parts in zip(*batches or [empty], strict=True)), text


def saved(array: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4", "i1", "u2", "?"])
@pytest.mark.parametrize("block_bytes", [None, 1 << 12])
def test_rows_of_every_type_are_read(tmp_path, kind, block_bytes):
    rows = (ROWS * 9).astype(kind)
    np.save(tmp_path / "rows.npy", rows)
    dense, label, line, text = read(tmp_path / "rows.npy", block_bytes=block_bytes)
    assert np.array_equal(dense, rows.astype(F)) and np.isnan(label).all()
    assert line.tolist() == list(range(1, 701)) and text.format.name == "npy"


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 1), (1, 9)])
def test_small_arrays_are_read(tmp_path, shape):
    rows = np.full(shape, 10, np.int8)  # a newline
    np.save(tmp_path / "rows.npy", rows)
    dense, *_ = read(tmp_path / "rows.npy")
    assert dense.size == rows.size and (dense == 10).all()


def test_labels_are_beside_the_rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, ROWS)
    names = np.array(["", "ant", "bee", "cat dog"])[LABELS]
    for labels, expected in (
        (LABELS, LABELS), (LABELS.astype(np.uint8), LABELS), (LABELS.astype(float), LABELS), (names, LABELS),
        (names.astype("S"), LABELS), (np.where(LABELS == 3, np.nan, LABELS), np.where(LABELS == 3, np.nan, LABELS)),
    ):  # fmt: skip
        np.save(tmp_path / "rows.labels.npy", labels)
        _, label, *_ = read(path, names=labels.dtype.kind in "US")
        assert np.array_equal(label, expected, equal_nan=True)
    assert read(path, names=True)[3].parser.names.names[:2] == ["1", "2"]
    with pytest.raises(UsageError, match="two files of labels"):
        (tmp_path / "rows.labels.txt").write_text("1\n")
        read(path)
    (tmp_path / "rows.labels.npy").unlink()
    (tmp_path / "rows.labels.txt").write_text("".join(f"{label}\n" if label < 3 else "\n" for label in LABELS))
    assert np.array_equal(read(path)[1], np.where(LABELS == 3, np.nan, LABELS), equal_nan=True)
    np.save(tmp_path / "other.npy", LABELS[::-1])
    assert read(path, label_file=str(tmp_path / "other.npy"))[1].tolist() == LABELS[::-1].tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:-1], "699 labels for 700 rows"),
        (np.append(LABELS, 1), "701 labels for 700 rows"),
        (LABELS.astype(complex), "complex128"),
        (LABELS.astype("M8[D]"), "datetime64"),
        (saved(LABELS)[:-9], "the label of row 699 is cut off; get a complete copy"),
        (saved(LABELS)[:60], "no array that NumPy's `save` has written"),
        (saved(LABELS.astype("U1")).replace(b"3\0\0\0", b"\0\0\0\xff"), "the names of the labels are damaged"),
        (gzip.compress(b"1\n" * 700, mtime=0), "the data are compressed, but the name does not end in .gz"),
        ("1\n" * 699, "699 labels for 700 rows"),
        ("1\n" * 702, "702 labels for 700 rows; give one for each row$"),
        (
            "1\n" * 600 + "\n" + "2\n" * 100,
            "701 labels for 700 rows.*; line 601 is empty: remove it",
        ),
        ("label\n" + "1\n" * 700, "the first line, 'label', is a header: remove it"),
        ("cat\n" + "dog\n" * 700, "701 labels for 700 rows; give one for each row$"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path, labels, message):
    np.save(tmp_path / "rows.npy", ROWS)
    if isinstance(labels, (str, bytes)):
        (tmp_path / "rows.labels.txt").write_bytes(labels if isinstance(labels, bytes) else labels.encode())
    else:
        np.save(tmp_path / "rows.labels.npy", labels, allow_pickle=True)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "rows.npy", names=True)


def test_a_label_that_is_no_class_is_named_in_its_own_file(tmp_path):
    np.save(tmp_path / "x.npy", ROWS[:6])
    for name, write in (("x.labels.npy", np.save), ("x.labels.txt", lambda path, y: path.write_text("0\n1\n2\n" * 2))):
        write(tmp_path / name, np.arange(6) % 3)
        result = xclass("--oaa", "3", "-d", tmp_path / "x.npy")
        assert f"{name}:1:1: label 0 is outside 1..3" in result.err and "--on_bad_line" not in result.err
        followed = xclass("--oaa", "3", "--learn_names", "-d", tmp_path / "x.npy")
        assert followed.status == 0, followed.err
        (tmp_path / name).unlink()


def test_labels_may_be_compressed_and_begin_with_a_mark(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    text = b"\xef\xbb\xbf" + "".join(f"{label}\r\n" for label in LABELS).encode() + b"\n\n"
    for name, content in (("y.txt.gz", text), ("y.npy.gz", saved(LABELS)), ("y.gz", saved(LABELS.astype("f2")))):
        (tmp_path / name).write_bytes(gzip.compress(content))
        assert read(tmp_path / "rows.npy", label_file=str(tmp_path / name))[1].tolist() == LABELS.tolist()


def test_values_that_are_not_finite_are_bad_lines(tmp_path):
    rows = ROWS[:5].copy()
    rows[3, 7] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(DataError, match=r"rows.npy:4:8: the value nan in column 7 of the row"):
        read(tmp_path / "rows.npy")
    dense, _, line, text = read(tmp_path / "rows.npy", on_bad_line="skip")
    assert line.tolist() == [1, 2, 3, 5] and np.array_equal(dense, rows[[0, 1, 2, 4]]) and text.parser.skipped == 1
    np.save(tmp_path / "rows.npy", np.array([[1.0, 1e300]]))
    with pytest.raises(DataError, match=r"rows.npy:1:2: the value 1e\+300 in column 1"):
        read(tmp_path / "rows.npy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (saved(ROWS)[:-1], r"rows.npy:700:1: the array ends within this row"),
        (saved(ROWS)[:50_000], r"rows.npy:\d+:1: the array ends within this row"),
        (saved(ROWS)[:-240], "the file has 699 of the 700 rows"),
        (saved(ROWS) + b"more", "more bytes than the 700 rows"),
        (saved(ROWS[0]), r"float32\[60\]; give numbers in two dimensions"),
        (saved(ROWS).replace(b"(700, 60)", b"(-70, 60)"), r"float32\[-70, 60\]; give numbers in two dimensions"),
        (saved(ROWS[:, :0]), "the array has 0 columns"),
        (saved(np.zeros((2, 2), object), allow_pickle=True), r"object\[2, 2\]"),
        (saved(np.zeros((2, 2), "i4,f4")), r"give numbers in two dimensions"),
        (saved(np.zeros((2, 2), "V2")), r"NumPy saves bfloat16 as the type V2; save `X.astype\(numpy.float32\)`"),
        (saved(np.zeros((2, 2), "V1")), "NumPy saves float8 as the type V1"),
        (saved(ROWS)[:40], "no array that NumPy's `save` has written"),
        (b"1 | a\n", "no array that NumPy's `save` has written"),
        (b"", "no array that NumPy's `save` has written|^$"),
    ],
)
def test_damaged_files_are_refused_with_their_place(tmp_path, content, message):
    (tmp_path / "rows.npy").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "rows.npy")


HEADERS = st.sampled_from([
    "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (%d, %d)}",
    "{'descr': '<f4', 'fortran_order': %d, 'shape': (%d,)}",
    "{'descr': '<f9', 'fortran_order': False, 'shape': (%d, %d)}",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (%d, %d)}",
    "(" * 9000 + "%d%d", "__import__('os').abort() or (%d, %d)", "{'shape': (-%d, %d)}", "%d%d",
])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    HEADERS, st.integers(0, 9) | st.integers(0, 2**62), st.integers(0, 9) | st.integers(0, 2**62),
    st.binary(max_size=400), st.sampled_from([b"\1\0", b"\2\0", b"\3\0", b"\0\0"]), st.integers(0, 3),
)  # fmt: skip
def test_hostile_files_are_read_or_refused(tmp_path_factory, header, n, d, body, version, length_change):
    text = (header % (n, d)).encode().ljust(53) + b"\n"
    size = (len(text) + length_change).to_bytes(2 if version[0] == 1 else 4, "little")
    path = tmp_path_factory.mktemp("hostile") / "rows.npy"
    path.write_bytes(b"\x93NUMPY" + version + size + text + body)
    try:
        dense, *_ = read(path)
    except DataError as error:
        assert "rows.npy" in str(error)
        return
    assert dense.size <= len(body)


def test_compressed_arrays_and_arrays_from_a_program(tmp_path):
    with gzip.open(tmp_path / "rows.npy.gz", "wb") as file:
        file.write(saved(ROWS))
    np.save(tmp_path / "rows.labels.npy", LABELS)
    dense, label, *_ = read(tmp_path / "rows.npy.gz")
    assert np.array_equal(dense, ROWS) and np.array_equal(label, LABELS)
    of_file, of_array = (library.Learner("oaa", 3, bits=10) for _ in range(2))
    of_file.learn_file(tmp_path / "rows.npy.gz", format="auto")
    of_array.learn_many(ROWS, LABELS)
    assert np.array_equal(of_file.predict_many(ROWS), of_array.predict_many(ROWS))


def test_a_run_learns_and_predicts_arrays_and_notices_new_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    centre = np.eye(3)[LABELS - 1]
    np.save("train.npy", np.hstack([centre, ROWS[:, :3] / 9]))
    np.save("train.labels.npy", np.array(["", "ant", "bee", "cat"])[LABELS])
    learn("-d", "train.npy", "-c", "--oaa", "3", "-f", "model", "-b", "10", "--passes", "2", "--quiet")
    xclass("-d", "train.npy", "--label_file", "train.labels.npy", "-t", "-i", "model", "-p", "predicted", "--quiet")
    assert (tmp_path / "predicted").read_text().split() == [["ant", "bee", "cat"][k - 1] for k in LABELS]
    np.save("train.labels.npy", np.array(["", "ant", "bee", "dog"])[LABELS])
    printed = learn("-d", "train.npy", "-c", "--oaa", "3", "-b", "10", "--passes", "2")
    assert "the cache is made again" in str(printed)
    with pytest.raises(UsageError, match="names one file, and there are several"):
        np.save("b.npy", ROWS)
        read_options = reader.ReaderOptions(data=("train.npy", "b.npy"), label_file="x.npy")
        list(
            reader.Reader(
                read_options,
                parser.Parser(parser.ParserOptions(), 18, "multiclass"),
                choose=detect.chooser(read_options),
            )
        )


def test_a_pattern_that_matches_rows_and_their_labels_stands_for_the_rows(tmp_path):
    for name in ("a.npy", "a.labels.npy", "b.npy", "b.labels.txt", "c.labels.npy"):
        (tmp_path / name).touch()
    found = shards.expand([str(tmp_path / "*")])
    assert [path.rpartition("/")[2] for path in found] == ["a.npy", "b.npy", "c.labels.npy"]


def test_the_first_file_of_a_pattern_says_that_labels_are_classes(tmp_path, monkeypatch):
    """A node of a cluster expands the pattern and reads the first lines."""
    monkeypatch.chdir(tmp_path)
    np.save("part0.npy", np.eye(4, dtype=np.float32))
    np.save("part0.labels.npy", np.array([1, 2, 3, 1]))
    given = {"data": ("part*.npy",)}
    lines = (tmp_path / "part0.npy").read_bytes().split(b"\n")
    declared.add_implied_options(given, *cli_command.option_groups(), bytearray(), lambda: ("part0.npy", lines))
    assert "cpt" in given or "multiclass" in given
