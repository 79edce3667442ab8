"""JSON lines whose key of --dense holds a row of numbers."""

import json

import numpy as np
import pytest

from xclass.errors import DataError
from xclass.explain.feature_names import line_of
from xclass.formats import detect
from xclass.text import parser, reader

F = np.float32


def read(path, lines, on_bad_line="stop", dense="e"):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = reader.ReaderOptions(data=(str(path),))
    text = reader.Reader(
        options, parser.Parser(parser.ParserOptions(dense=(dense,), on_bad_line=on_bad_line), 18, "multiclass"),
        choose=detect.chooser(options),
    )  # fmt: skip
    return list(text), text


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("words", [{}, {"title": "a b"}])
def test_rows_are_those_of_the_key(tmp_path, nested, words):
    rows = [[1, 2.5, -3], None, [0, 0, 4]]
    lines, without = [], []
    for row in rows:
        features = dict(words) if row is None else {**words, "e": row}
        for to, given in ((lines, features), (without, words)):
            to.append({"label": 1, "features": given} if nested else {"label": 1, **given})
    (batch,), text = read(tmp_path / "data.jsonl", lines)
    assert batch.dense.tolist() == [[1, 2.5, -3], [0, 0, 0], [0, 0, 4]] and not text.notes
    named = [*text.format.features(line_of(batch, 0))]
    assert all(feature.namespace != b"e" and feature.name != b"e" for feature in named)
    (plain,), _ = read(tmp_path / "data.jsonl", without)
    assert plain.columns == 0
    for name in ("start", "index", "value", "group_name", "group_start"):
        assert np.array_equal(getattr(batch, name), getattr(plain, name)), name


def test_rows_that_are_malformed_are_bad_lines(tmp_path):
    good = {"label": 1, "e": [1, 2]}
    for bad, message in (
        ([1], r"data.jsonl:2:19: '\[1\]' is not allowed here; give a list of 2 numbers"),
        ([1, 2, 3], "list of 2 numbers"), ([1, "x"], "list of 2 numbers"), (5, "list of 2 numbers"),
        ([], "list of 2 numbers"), ([1, 1e300], "list of 2 numbers"), ({"a": 1}, "a list of 2 numbers"),
    ):  # fmt: skip
        lines = [good, {"label": 2, "e": bad}, {"label": 3, "e": [5, 6]}]
        with pytest.raises(DataError, match=message):
            read(tmp_path / "data.jsonl", lines)
        (batch,), text = read(tmp_path / "data.jsonl", lines, "skip")
        assert batch.dense.tolist() == [[1, 2], [5, 6]] and batch.label.tolist() == [1, 3] and text.parser.skipped == 1
    with pytest.raises(DataError, match="give a list of 4 numbers"):
        read(tmp_path / "data.jsonl", [good], dense="e:4")
    with pytest.raises(DataError, match="twice"):
        path = tmp_path / "twice.jsonl"
        path.write_text('{"label": 1, "e": [1, 2], "e": [3, 4]}\n')
        options = reader.ReaderOptions(data=(str(path),))
        list(
            reader.Reader(
                options,
                parser.Parser(parser.ParserOptions(dense=("e",)), 18, "multiclass"),
                choose=detect.chooser(options),
            )
        )
