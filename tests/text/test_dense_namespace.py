"""`--dense`: the features of one namespace become rows of numbers, and all others stay hashed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from xclass.cache import source as cache
from xclass.data.batch import Batch
from xclass.errors import DataError, UsageError
from xclass.text import parser, reader

F = np.float32


def parse(text: str, dense: str, **options) -> tuple[Batch, parser.Parser]:
    """The batch of a text; raise the error that ends the reading."""
    of = parser.Parser(parser.ParserOptions(dense=(dense,), **options), 18, "multiclass")
    content = text.encode()
    buffer = np.frombuffer(bytearray(content + bytes(parser.PADDING)), np.uint8)
    batch, error, _ = of.parse(buffer, len(content), "train.vw")
    if error is not None:
        raise error
    return batch, of


def line(row: list[float], by_name: bool) -> str:
    return " ".join(f"{k if by_name else ''}:{x:.9g}" for k, x in enumerate(row) if x or not by_name)


@pytest.mark.bounds
@settings(max_examples=40)
@given(
    arrays.arrays(F, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(-1e9, 1e9, width=32)),
    st.sampled_from(["e", "embedding", "7"]),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_rows_are_those_of_the_text(rows, name, by_name):
    n, d = rows.shape
    text = "".join(
        f"{i + 1} |w a b |{name} {line(rows[i].tolist(), by_name[i])} |x c\n" for i in range(n)
    )  # fmt: skip
    batch, _ = parse(text, f"{name}:{d}")
    assert np.array_equal(batch.dense, rows) and batch.dense.dtype == F
    without = "".join(f"{i + 1} |w a b |x c\n" for i in range(n))
    plain, _ = parse(without, name)
    for field in ("start", "index", "value", "group_name", "group_start", "label", "line"):
        assert np.array_equal(getattr(batch, field), getattr(plain, field)), field
    assert plain.columns == 0


def test_the_first_row_says_how_many_columns_there_are():
    for text, rows in (
        ("1 |e :1 :0 :3\n2 |e 1:5", [[1, 0, 3], [0, 5, 0]]),
        ("1 | a\n2 |e 2:4 0:.5\n3 |e 1", [[0, 0, 0], [0.5, 0, 4], [0, 1, 0]]),
        ("1 |e:2 :1 :-3 |e 0:1\n", [[3, -6]]),
        ("1 |ee 0:9 |e 1:1 1:2\t0:1 \n", [[1, 3]]),
    ):
        batch, of = parse(text + "\n", "e")
        assert batch.dense.tolist() == rows and of.width == len(rows[0])
    assert parse("1 |e 20000:1 0:1\n", "e:20001")[0].columns == 20001


BAD = {
    "|e a:1": "6: 'a:1' is in the namespace of --dense, and not named by the number of a column",
    "|e -1:1": "6: '-1:1' is in the namespace of --dense",
    "|e 2:1": "6: '2:1' is beyond the 2 columns of the rows",
    "|e 4294967296:1": "beyond the 2 columns|not named by the number",
    "|e :1 :2 :3": "12: ':3' is beyond the 2 columns of the rows",
    "|e :1": "8: the row has fewer values than the 2 columns",
    "|e 1:x": "8: the value 'x' of a feature is not a number",
    "|e 1:": "7: feature '1' has no value",
    "|e :1 :1e99": "'1e99' is too large",
    "|e :1 :nan": "the value 'nan' of a feature is not a number",
}


@pytest.mark.bounds
@pytest.mark.parametrize("bad", BAD)
def test_rows_that_are_malformed_stop_the_run_or_are_skipped(bad):
    text = f"1 |e :1 :2\n2 {bad}\n1 |e 1:7\n"
    with pytest.raises(DataError, match=rf"^train.vw:2:.*({BAD[bad]})"):
        parse(text, "e")
    batch, of = parse(text, "e", on_bad_line="skip")
    assert batch.dense.tolist() == [[1, 2], [0, 7]] and batch.line.tolist() == [1, 3] and of.skipped == 1
    batch, of = parse(text, "e", on_bad_line="vw")
    assert batch.n == 3 and of.bad == 1 and batch.dense[[0, 2]].tolist() == [[1, 2], [0, 7]]


def test_names_and_columns_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="--dense e:0: allowed are 1 to"):
        parser.ParserOptions(dense=("e:0",))
    for empty in (("",), ("a,",), ("a", " ")):
        with pytest.raises(UsageError, match=f"--dense '{','.join(empty)}': there is an empty name"):
            parser.ParserOptions(dense=empty)
    with pytest.raises(UsageError, match="--dense a,b: only a DataFrame has several"):
        parse("1 | a\n", "a,b")


def test_rows_of_zeros_alone_are_rows():
    text = b"1 | a\n2 |e 0:0 1:0\n"
    reading = parser.Parser(parser.ParserOptions(dense=("e",)), 18, "multiclass")
    for block, columns in ((text[:6], 0), (text[6:], 2), (text[:6], 2)):
        padded = np.frombuffer(bytearray(block + bytes(parser.PADDING)), np.uint8)
        assert reading.parse(padded, len(block), "f")[0].columns == columns

    _, reading = parse("1 |e 0:0 1:0\n", "e")
    assert not reading.featureless


@pytest.mark.parametrize("first", [0, 3000])
def test_blocks_and_the_cache_have_the_rows_of_a_file(tmp_path, first):
    rng = np.random.default_rng(5)
    rows = np.round(rng.normal(size=(4000, 5)), 3).astype(F)
    rows[:first] = 0
    path = tmp_path / "data"
    path.write_text(
        "".join(
            f"{i % 3 + 1} |w a{i}" + f" |e {line(row, False)}" * (i >= first) + "\n"
            for i, row in enumerate(rows.tolist())
        )
    )
    options = parser.ParserOptions(dense=("e",))
    text = reader.Reader(
        reader.ReaderOptions(data=(str(path),)), parser.Parser(options, 18, "multiclass"), block_bytes=1 << 13
    )
    key = cache.make_key(options, 18, "multiclass", None, None, None)
    source = cache.Source(text, cache.CacheOptions(cache_file=str(tmp_path / "cache")), key, True, 2)
    for _ in range(2):
        blocks = []
        for batch, _ in source:
            assert batch.columns in ((0, 5) if first else (5,))
            blocks.append(batch.dense.copy() if batch.columns else np.zeros((batch.n, 5), F))
        assert np.array_equal(np.concatenate(blocks), rows)
    assert source.complete_cache is not None
