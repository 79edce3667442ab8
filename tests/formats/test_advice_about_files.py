"""Commands and code that messages about files show are executed, and then the file is read.

Where a program or a package is missing that they need, the case is skipped.
"""

import gzip
import io
import lzma
import pickle
import re
import shutil
import sqlite3
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import xclass as run

VW = "1 | tea\n2 | rum\n"
TWICE = gzip.compress(gzip.compress(VW.encode(), mtime=0), mtime=0)  # without the time, which would name the test
OBJECTS = '[{"label": "tea", "text": "hot"}, {"label": "rum", "text": "cold"}]\n'
ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)
LABELS = np.array([1, 2] * 3)
FIELDS = np.array([(k, k + 1) for k in range(6)], [("a", "f4"), ("b", "f4")])


def compressed(tool):
    """Return VW compressed by a tool, nothing where there is none."""
    return subprocess.run([tool, "-c"], input=VW.encode(), stdout=subprocess.PIPE).stdout if shutil.which(tool) else b""


def by_compress(data):
    """Return a short text as `compress` writes it: numbers of 9 bits, each a letter, since none occurs before."""
    numbers = sum(letter << 9 * i for i, letter in enumerate(data))
    return b"\x1f\x9d\x90" + numbers.to_bytes(-(-9 * len(data) // 8), "little")


# a file, its contents, words of the command, and the beginning of the command of a shell that the message shows
OF_A_SHELL = [
    ("d.vw", VW.encode("utf-16"), "--oaa 3", "iconv"),
    ("d.vw", VW.encode("utf-16-le"), "--oaa 3", "iconv"),
    ("d.vw", VW.encode("utf-32"), "--oaa 3", "iconv"),
    ("d.vw", VW.replace("tea", "th\xe9").encode("latin-1"), "--oaa 3", "iconv"),
    ("d.vw", VW.replace("\n", "\r").encode(), "--oaa 3", "tr"),
    ("d.vw", by_compress(VW.encode()), "--oaa 3", "gzip"),
    ("d.vw.Z", by_compress(VW.encode()), "--oaa 3", "gzip"),
    ("d.vw.lz4", compressed("lz4"), "--oaa 3", "lz4"),
    ("d.json", OBJECTS.encode(), "--multiclass", "jq"),
    ("d.jsonl", b'{"label": "tea",\n "text": "hot"}\n{"label": "rum", "text": "cold"}\n', "--multiclass", "jq"),
]


@pytest.mark.parametrize(("name", "data", "words", "tool"), OF_A_SHELL)
def test_the_command_that_a_message_shows_converts_the_file(place, name, data, words, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    Path(name).write_bytes(data)
    first = run(*words.split(), "-d", name)
    found = re.search(rf"`({tool} [^`]*)`", first.err)
    assert found, first.err
    shown = found[1].replace("FILE", name)
    shown = shown.replace("NEW", "new") if "NEW" in shown else f"{shown} > new"
    subprocess.run(shown, shell=True, check=True)
    second = run(*words.split(), "-d", "new")
    assert second.status == 0 and "warning" not in second.err, second.err


def test_compressed_text_of_standard_input_is_decompressed_as_the_message_shows(place):
    data = gzip.compress(VW.encode())
    Path("d.vw.gz").write_bytes(data)
    refused = run("--oaa", 3, stdin=data)
    found = re.search(r"decompress it, `(.*) FILE.gz \| xclass ...`, or give (-d) FILE.gz", refused.err)
    assert refused.status and found, refused.err
    text = subprocess.run([*found[1].split(), "d.vw.gz"], check=True, capture_output=True).stdout
    assert run("--oaa", 3, stdin=text).status == 0
    assert run("--oaa", 3, found[2], "d.vw.gz").status == 0


# an array, and what the message says to save in place of it
OF_ARRAYS = [
    ("X", FIELDS, "numpy.lib.recfunctions.structured_to_unstructured(X)"),
    ("X", ROWS + 1j, "numpy.hstack([X.real, X.imag])"),
    ("X", ROWS.astype(int).astype("M8[s]"), "X.astype(float)"),
    ("X", ROWS.astype(int).astype("m8[s]"), "X.astype(float)"),
    ("X", ROWS.astype(str), "X.astype(numpy.float32)"),
    ("X", ROWS.astype(str).astype("S"), "X.astype(numpy.float32)"),
    ("X", ROWS.astype(object), "X.astype(numpy.float32)"),
    ("X", ROWS.reshape(6, 2, 1), "X.reshape(len(X), -1)"),
    ("X", np.asfortranarray(ROWS), "numpy.ascontiguousarray(X)"),
    ("y", LABELS.astype(object), "y.astype(str)"),
    ("y", LABELS.astype(object), "y.astype(int)"),
    ("y", LABELS[:, None], "y.ravel()"),
    ("y", np.eye(3, dtype=int)[LABELS], "y.argmax(axis=1)"),
]


@pytest.mark.parametrize(("name", "given", "code"), OF_ARRAYS)
def test_the_array_that_a_message_says_to_save_is_learned(place, name, given, code):
    import numpy.lib.recfunctions

    def learned(**arrays):
        np.save("rows.npy", arrays.get("X", ROWS))
        np.save("rows.labels.npy", arrays.get("y", LABELS))
        return run("--multiclass", "--learn_names", "-d", "rows.npy")

    refused = learned(**{name: given})
    assert refused.status and f"`{code}`" in refused.err, refused.err
    followed = learned(**{name: eval(code, {name: given, "numpy": numpy})})
    assert followed.status == 0, followed.err


def frame():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({"label": ["tea", "rum"], "text": ["hot", "cold"]})


def in_sqlite(path):
    with sqlite3.connect(path) as database:
        frame().to_sql("NAME", database, index=False)
    database.close()


TABLES = {
    "d.parquet": lambda path: frame().to_parquet(path),
    "d.arrow": lambda path: frame().to_feather(path),
    "d.feather": lambda path: frame().to_feather(path, version=1),
    "d.hdf": lambda path: frame().to_hdf(path, key="x"),
    "d.xls": lambda path: frame().to_excel(path),
    "d.sqlite": in_sqlite,
}
# the function of pandas that reads a file, and first bytes of a file that stands for one that cannot be written here
STAND_INS = {
    "d.parquet": ("read_parquet", b"PAR1\x15\0"),
    "d.arrow": ("read_feather", b"ARROW1\0\0"),
    "d.feather": ("read_feather", b"FEA1\0"),
    "d.hdf": ("read_hdf", b"\x89HDF\r\n\x1a\n"),
    "d.xls": ("read_excel", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_another_kind_is_written_as_csv_as_the_message_shows(place, monkeypatch, name):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    try:
        TABLES[name](name)
    except (ImportError, ValueError):  # a package is not installed that pandas needs
        function, first = STAND_INS[name]
        Path(name).write_bytes(first)
        monkeypatch.setattr(pandas, function, lambda path: {name: frame()}[path])
    refused = run("--multiclass", "-d", name)
    found = re.search(
        r"write it as CSV, such as by `([^`]*)`, or give the DataFrame to the Python library", refused.err
    )
    assert refused.status and found, refused.err
    eval(found[1].replace("FILE", name), {"pandas": pandas, "sqlite3": sqlite3})
    assert run("--multiclass", "-d", f"{name}.csv").status == 0


CSV = "label,text\ntea,hot\nrum,cold\n"
# a file, its contents, the advice, and the file and its text that follow it
OF_OTHER_FILES = [
    ("d.avro", b"Obj\x01", "convert it to (JSON lines)$", "d.jsonl", '{"label": "tea", "text": "hot"}\n'),
    ("d.xlsx", None, "save it as (CSV)$", "d.csv", CSV),
    ("d.ods", None, "save it as (CSV)$", "d.csv", CSV),
    ("d.pickle", pickle.dumps(VW.splitlines()), "load it in Python, and write the examples as (text)$", "d.vw", VW),
    ("d.vw.gz", TWICE, "compressed twice; decompress it (once)$", "d.vw", VW),
    ("d.png", b"\x89PNG\r\n", "give a file of (examples)$", "d.vw", VW),
    ("d.pdf", b"%PDF-1.4", "give a file of (examples)$", "d.vw", VW),
    ("d.7z", b"7z\xbc\xaf\x27\x1c", "unpack it, and give the (files) in it$", "d.vw", VW),
    ("d.rar", b"Rar!\x1a\x07", "unpack it, and give the (files) in it$", "d.vw", VW),
    ("d.bin", bytes(range(1, 9)) * 40, "; (give text), or", "d.vw", VW),
]


@pytest.mark.parametrize(("name", "data", "advice", "new", "text"), OF_OTHER_FILES)
def test_a_file_of_another_kind_is_converted_as_the_message_says(place, name, data, advice, new, text):
    Path(name).write_bytes(archive("zip") if data is None else data)
    refused = run("--multiclass", "-d", name)
    assert refused.status and re.search(advice, refused.err.strip()), refused.err
    if name.endswith(".pickle"):
        text = "".join(f"{line}\n" for line in pickle.loads(Path(name).read_bytes()))
    if name.endswith(".gz"):
        text = gzip.decompress(gzip.decompress(data)).decode()
    Path(new).write_text(text)
    assert run("--multiclass", "--learn_names", "-d", new).status == 0


@pytest.mark.parametrize("followed", ["xz -6", "free some"])
def test_a_file_that_takes_much_memory_to_decompress_is_compressed_as_the_message_shows(place, monkeypatch, followed):
    """A limit of what decompressing takes stands for the memory that is free."""

    def decompressor(most):
        real = lzma.LZMADecompressor

        class Limited:
            def __init__(self, **options):
                self._real = real(memlimit=most, **options)

            def __getattr__(self, name):
                return getattr(self._real, name)

            def decompress(self, *given):
                try:
                    return self._real.decompress(*given)
                except lzma.LZMAError as error:
                    raise MemoryError from error

        return Limited

    Path("d.vw.xz").write_bytes(lzma.compress(VW.encode(), preset=9))
    with monkeypatch.context() as patch:
        patch.setattr(lzma, "LZMADecompressor", decompressor(20 << 20))
        refused = run("--oaa", 3, "-d", "d.vw.xz")
        found = re.search(r"free some, or compress it by `xz (-\d)`", refused.err)
        assert refused.status and found, refused.err
        if followed.startswith("xz"):
            Path("d.vw.xz").write_bytes(lzma.compress(VW.encode(), preset=int(found[1][1:])))
            assert run("--oaa", 3, "-d", "d.vw.xz").status == 0
    assert run("--oaa", 3, "-d", "d.vw.xz").status == 0


def archive(kind):
    """Return an archive with a file of examples."""
    data = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(data, "w") as file:
            file.writestr("in.vw", VW)
    else:
        with tarfile.open(fileobj=data, mode="w") as file:
            entry = tarfile.TarInfo("in.vw")
            entry.size = len(VW)
            file.addfile(entry, io.BytesIO(VW.encode()))
    return data.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_is_unpacked_as_the_message_says(place, kind):
    Path(f"d.{kind}").write_bytes(archive(kind))
    refused = run("--oaa", 3, "-d", f"d.{kind}")
    assert refused.status and "unpack it, and give the files in it" in refused.err
    shutil.unpack_archive(f"d.{kind}")
    assert run("--oaa", 3, "-d", "in.vw").status == 0


def test_arrays_in_an_archive_are_saved_as_the_message_shows(place):
    np.savez("d.npz", X=ROWS, y=LABELS)
    refused = run("--multiclass", "-d", "d.npz")
    found = re.search(r"such as by `([^`]*)`, and the labels as (ROWS.labels.npy)", refused.err)
    assert refused.status and found, refused.err
    eval(found[1].replace("FILE", "d"), {"numpy": np})
    np.save(found[2], np.load("d.npz")["y"])
    assert run("--multiclass", "-d", "ROWS.npy").status == 0
