"""The measurement of the data formats: the files that it writes hold the same examples, and the table its figures."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import xclass
from scripts.bench import formats


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "data" / "tea"
    folder.mkdir(parents=True)
    with gzip.open(folder / "train.vw.gz", "wt") as file:
        file.write("tea |a leaf:0.5 cup |b kettle\nbeer |a cup cup\nwine |\n")
    return folder / "train.vw.gz"


def test_files_hold_the_same_examples(source, tmp_path):
    files = formats.written(source, tmp_path, 2)
    counts = {}
    for kind, path in files.items():
        read = formats.read_xclass(kind)
        read(str(path))
        if kind not in ("vw", "fasttext", "csv", "jsonl"):
            (batch,) = xclass.read_vw(path, format=kind)
            counts[kind] = np.diff(batch.start).tolist()
    assert counts == {"libsvm": [4, 2], "xmc": [4, 2]}
    assert files["fasttext"].read_text() == "__label__tea leaf cup kettle\n__label__beer cup cup\n"
    assert files["libsvm"].read_text() == "1 0:0.5 1:1 2:1\n2 1:1\n"


def test_table_has_a_row_for_each_figure():
    lines = formats.table([("tea", "libsvm", 1.25, 123.4, "scikit-learn", 12.6), ("tea", "csv", 1, 30, "", 0.0)])
    assert lines[2:] == ["| tea | libsvm | 1.2 | 123 | scikit-learn: 13 |", "| tea | csv | 1.0 | 30 |  |"]
