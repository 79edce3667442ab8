"""Random lines of each data format: what the reader reads, and where it refuses, against plain Python."""

import contextlib
import io
import json
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oracles import formats as oracle
from tests.support.effort import tries
from xclass.data.schema import NUMBER, Schema
from xclass.errors import DataError
from xclass.formats import csv_table, detect
from xclass.text import malformed, parser, reader

pytestmark = [pytest.mark.bounds, pytest.mark.plain]
BITS = 20
PLACE = re.compile(r"f:(\d+):(\d+): ")


def read(data: bytes, fmt: str, block_bytes: int = 1 << 16, column: str | None = None, **options):
    """Return the batches of the data, the reader, and the message that ended the reading, or an empty one."""
    options = {"learn_names": True, "text_split": "spaces", **options}
    source, schema = reader.ReaderOptions(format=fmt, label_column=column), Schema()
    schema.room = 0  # names of JSON lines keep no kind
    source = reader.Reader(
        source, parser.Parser(parser.ParserOptions(**options), BITS, "multiclass"), stream=io.BytesIO(data),
        choose=detect.chooser(source, schema), block_bytes=block_bytes,
    )  # fmt: skip
    source.name = "f"
    batches, message = [], ""
    try:
        for batch in source:
            batches.append(batch)
    except DataError as error:
        message = str(error).replace("stdin:", "f:")
    return batches, source, message


def examples(batches, names: list[str]) -> list[tuple]:
    """Return each example as line, label, features, weight and tag; the constant is checked and left out."""
    rows = []
    for batch in batches:
        for i in range(batch.n):
            here = slice(batch.start[i], batch.start[i + 1])
            features = list(zip(batch.index[here].tolist(), batch.value[here].tolist(), strict=True))
            assert features.pop() == (11650396, 1)
            groups = batch.group_name[batch.group_first[i] : batch.group_first[i + 1]].tolist()
            assert groups.pop() == 128
            assert len(set(groups)) == len(groups)
            label = batch.label[i]
            word = b"" if np.isnan(label) else names[int(label) - 1].encode("utf-8", "surrogateescape")
            tag = batch.text[batch.tag_start[i] : batch.tag_end[i]].tobytes()
            rows.append((int(batch.line[i]), word, features, float(batch.weight[i]), tag))
    return rows


def expected(lines: list[oracle.Line], seed: int = 0, every: bool = False, of_name=oracle.hash_word) -> list[tuple]:
    """Return the good lines as `examples` does."""
    mask = 2**BITS - 1
    return [
        (
            line.number, line.label,
            [(_index(path, seed, every, of_name) & mask, float(value)) for path, value in line.features],
            line.weight, line.tag,
        )
        for line in lines if not line.column
    ]  # fmt: skip


def _index(path, seed, every, of_name):
    if path[0] != b" default":
        return oracle.hashed(path, seed, every, of_name)
    parent = oracle.hashed((path[1],), seed, every)
    return oracle.hashed((b"", path[2]), 0, every) if parent is None else _chained(parent, path[2], every)


def _chained(parent, word, every):
    one = oracle.reader.hash_all if every else oracle.hash_word
    return one(word, parent) & 0xFFFFFFFF


def check(data: bytes, fmt: str, lines: list[oracle.Line], exact: bool = True, **options) -> None:
    """Compare the readings with `skip` and with `stop` with the lines of the oracle."""
    batches, source, message = read(data, fmt, on_bad_line="skip", **options)
    assert message == ""
    hashing = {"seed": options.get("hash_seed", 0), "every": options.get("hash") == "all"}
    if fmt in ("libsvm", "xmc"):
        hashing["of_name"] = oracle.reader.hash_strings
    assert examples(batches, source.parser.names.names) == expected(lines, **hashing)
    bad = [line for line in lines if line.column]
    assert source.parser.bad == source.parser.skipped == len(bad)
    messages = [message.replace("stdin:", "f:") for message in source.parser.first_messages]
    places = [tuple(map(int, PLACE.search(message).groups())) for message in messages]
    if exact:
        assert places == [(line.number, line.column) for line in bad[:5]]
    else:
        assert len(places) == min(5, len(bad))
    batches, source, message = read(data, fmt, **options)
    until = lines[: lines.index(bad[0])] if bad else lines
    assert examples(batches, source.parser.names.names) == expected(until, **hashing)
    assert bool(message) == bool(bad)
    if bad:
        place = tuple(map(int, PLACE.match(message).groups()))
        assert place == (bad[0].number, bad[0].column) if exact else place[0] >= bad[0].number
        assert ", or use --on_bad_line skip" in message


blank = st.sampled_from([" ", " ", "\t", "  ", "\v", "\f ", "\r"])
noise = st.text("a1:,#_|\x00 \té-.e", max_size=12).map(str.encode)
ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n", b"\n\xef\xbb\xbf"])


def files(line):
    """Return files of such lines; the last newline may be missing."""
    return st.tuples(st.lists(st.tuples(line | noise, ends).map(b"".join), max_size=12).map(b"".join), noise).map(
        b"".join
    )


def spaced(words, between=blank):
    return st.lists(st.tuples(words, between).map("".join), max_size=7).map("".join).map(str.encode)


labels = st.sampled_from(["__label__tea", "__label__7", "__label__", "__label__a,b", "__label__é", "__labe__x"])
words = st.sampled_from(["a", "b:1", "c|d", "17", "007", "|", "__label", "internationalisation", "é", "\x01", "x" * 7])
sizes = st.sampled_from([16, 64, 1 << 16])
hashes = st.sampled_from([{}, {"hash": "all"}, {"hash_seed": 7}, {"hash": "all", "hash_seed": 9}])


@settings(max_examples=tries(200))
@given(files(spaced(labels | words | words | words)), sizes, hashes)
@example(b"__label__tea a b\n__label__tea __label__b\n", 16, {})
def test_fasttext(data, size, options):
    check(data, "fasttext", list(oracle.fasttext(data)), block_bytes=size, **options)


numbers = st.sampled_from(
    ["1", "0", "-2.5", ".5", "1e2", "1E-3", "nan", "inf", "", "x", "1x", "2:3", "1e39", "+1", "0x10", "-", "e5",
     "1234567890123"]
)  # fmt: skip
pair = st.builds(
    "{}:{}".format, st.sampled_from(["1", "2", "17", "007", "39", "40", "99999999999999999999", "a", ""]), numbers
)
good = st.builds("{}:{}".format, st.integers(0, 39), st.integers(-9999, 9999).map(lambda x: f"{x / 100}"))
first = st.sampled_from(["1", "3.0", "2", "tea", "1,2", "-1", "1.5", "C#", "0", "qid:3", "9", "", "#"])
tail = st.sampled_from(["", "", "", " # a comment", "#c", " #"])
pair_line = st.builds(
    lambda label, rest, end: label.encode() + b" " + rest + end.encode(), first,
    spaced(good | good | good | pair, st.sampled_from([" ", "\t", "  "])), tail,
)  # fmt: skip


@settings(max_examples=tries(200))
@given(files(pair_line), sizes, hashes, st.booleans())
@example(b"3 1:0.5 7:2\n\n# comment\n2 qid:4 1:1#c\n", 64, {}, False)
@example(b"1:#", 16, {}, True)
@example(b"1:#", 16, {}, False)
def test_libsvm(data, size, options, names):
    lines = list(oracle.pairs(data, valid=oracle.is_name if names else oracle.is_class))
    if names:
        check(data, "libsvm", lines, block_bytes=size, **options)
        return
    batches, source, _ = read(data, "libsvm", size, learn_names=False, on_bad_line="skip", **options)
    wanted = [float(line.label) if line.label else np.nan for line in lines if not line.column]
    labels = np.concatenate([batch.label for batch in batches]) if batches else np.empty(0)
    np.testing.assert_array_equal(labels, np.array(wanted, float))
    assert source.parser.bad == sum(line.column > 0 for line in lines)


@settings(max_examples=tries(150))
@given(files(pair_line), sizes)
def test_extreme_classification(data, size):
    lines = list(oracle.pairs(data, (40, 5), valid=oracle.is_name))
    body = b"%d 40 5\n" % len(lines) + data
    shifted = [line._replace(number=line.number + 1) for line in lines]
    check(body, "xmc", shifted, block_bytes=size)


@pytest.mark.parametrize("count", [1, 3])
def test_number_of_examples_is_checked_at_the_end(count):
    batches, _, message = read(b"%d 40 5\n1 1:1\n2 2:1\n" % count, "xmc")
    assert sum(batch.n for batch in batches) == 2
    assert message == (
        f"f: the header names {count} examples, and the file has 2; fetch the file again, or correct the header"
    )


cells = st.sampled_from(
    ["1", "2.5", "", " ", "-3", "tea", "green tea", 'a "b" c', "a,b", "x\ny", "é", "1x", "é ü", '"', "a;b", "\t1", "0"]
)


@st.composite
def tables(draw):
    """Return a CSV file, mostly with good numbers in the columns n and m, and its delimiter."""
    delimiter = draw(st.sampled_from([",", ";", "\t"]))
    out = io.StringIO()
    writer = csv_writer(out, delimiter, draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerow(["n", "text", "label", "m", "title"])
    number = st.integers(-99, 99).map(str) | st.just("")
    for _ in range(draw(st.integers(0, 12))):
        row = [draw(number), draw(cells), draw(cells), draw(number), draw(cells)]
        writer.writerow(row if draw(st.integers(0, 9)) else row[: draw(st.integers(1, 4))])
    return out.getvalue().encode() + draw(st.sampled_from([b"", b"\n", b"a b"])), delimiter


def csv_writer(out, delimiter, end):
    import csv

    return csv.writer(out, delimiter=delimiter, lineterminator=end)


@settings(max_examples=tries(150))
@given(tables(), sizes)
def test_csv(table, size):
    data, delimiter = table
    schema = Schema()
    header = csv_table.CsvTable(reader.ReaderOptions(label_column="label"), schema)
    header.begin(data, True, "f")
    numeric = [schema.columns.get(name) == NUMBER for name in ("n", "text", "label", "m", "title")]
    lines = list(oracle.csv_rows(data, 2, numeric, delimiter))
    check(data, "csv", lines, exact=False, block_bytes=size)


def test_numbers_in_a_column_decide_on_its_type_once():
    rows = b"label,x,y\n" + b"a,1,b\n" * 20_000
    batches, _, message = read(rows + b'"a",\n"c, d",2,z\n' + b"b,one,2\n", "csv")
    assert message.startswith("f:20002:5: the row that ends in '\"\"' has 2 cells, and the header 3")
    batches, source, message = read(rows + b'a,"2",z\nb,"one",2\n', "csv")
    assert message.startswith(
        "f:20003:3: 'one' is text that is not a finite number, and the column 'x' has the kind number"
    )
    assert sum(batch.n for batch in batches) == 20_001
    assert source.format.schema.columns == {"x": "number", "y": "text"}


def test_place_of_a_cell_behind_cells_of_several_lines():
    begin = b"label,a,b,c\n" + b"x,1 2,3,4\n" * 10_000
    _, _, message = read(begin + b'x,"3","4",5\ny,"5\n""",7,six\n', "csv")
    assert message.startswith("f:10004:7: 'six'")
    _, _, message = read(begin + b'"x","3\n,""\n\n",four,5\n', "csv")
    assert message.startswith("f:10005:3: 'four'")


def test_quote_that_is_not_closed():
    _, _, message = read(b'label,a\nx,1\ny,"2\nz,3\n', "csv")
    assert message.startswith("f:3:1: the row that begins here has a quote that is not closed")


json_values = st.one_of(
    st.integers(-5, 5), st.floats(-100, 100, width=16), st.booleans(), st.none(), st.sampled_from(["red", "a b", "é"])
)
names = st.sampled_from(["a", "b:c", "17", "x y", "é", "|"])
json_objects = st.fixed_dictionaries(
    {},
    optional={
        "label": st.sampled_from(["tea", "green tea", 3, 2.5, None, "é", ["beer"]]),
        "text": st.sampled_from(["", "kettle leaf", "a:b |c\td\n", "17 é"]),
        "features": st.dictionaries(
            names, json_values | st.dictionaries(names, json_values, max_size=3), max_size=4
        ).filter(lambda d: all(not isinstance(v, dict) or k for k, v in d.items())),
        "weight": st.sampled_from([0, 1, 0.5, 3]),
        "tag": st.sampled_from(["t", "a b", None]),
    },
)


@settings(max_examples=tries(150))
@given(st.lists(json_objects, max_size=8), st.booleans(), sizes, hashes)
def test_json_lines(given_objects, ascii_only, size, options):
    data = b"".join(json.dumps(one, ensure_ascii=ascii_only).encode() + b"\n" for one in given_objects)
    check(data, "jsonl", list(oracle.json_lines(data)), block_bytes=size, **options)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (b'{"label": "a", "text": }', 24, "the line cannot be read from '}' on"),
        (b'{"label": ["a", "b"]}', 11, "the line has several labels, the second of them at 'b'"),
        (b'{"label": {"a": 1}}', 11, "'{\"a\": 1}' is not allowed here; give"),
        (b'{"label": "a,b"}', 11, "label 'a,b' contains a comma"),
        (b'{"text": 5}', 10, "'5' is not allowed here; give"),
        (b'{"features": [1, 2]}', 14, "'[1, 2]' is not allowed here; give"),
        (b'{"features": {"x": NaN}}', 20, "'NaN' is not allowed here; give"),
        (b'{"features": {"x": 1e39}}', 20, "'1e39' is too large"),
        (b'{"weight": -1}', 12, "weight '-1' is not a finite number of at least 0"),
        (b'{"weight": "2"}', 12, "weight '2' is not a finite number of at least 0"),
        (b'{"tag": 1.5}', 9, "'1.5' is not allowed here; give"),
        (b"[1]", 1, "'[1]' is not allowed here; give"),
        (b'{"label": "a"', 14, "the line ends before its object does"),
        (b"[" * 100_000, 1, "the line cannot be read from '[["),
        (
            b'{"features": {"x": ' + b"1" * 5000 + b"}}",
            20,
            "'1111111111111111111111111111111111111111...' is too large",
        ),
    ],
)
def test_malformed_json(line, column, message):
    batches, _, refused = read(b'{"text": "a"}\n' + line + b'\n{"text": "b"}\n', "jsonl")
    assert refused.startswith(f"f:2:{column}: {message}"), refused
    assert sum(batch.n for batch in batches) == 1
    batches, source, refused = read(b'{"text": "a"}\n' + line + b'\n{"text": "b"}\n', "jsonl", on_bad_line="skip")
    assert (refused, [line for batch in batches for line in batch.line.tolist()], source.parser.skipped) == (
        "",
        [1, 3],
        1,
    )


@settings(max_examples=tries(300))
@given(
    st.sampled_from(["fasttext", "libsvm", "xmc", "csv", "jsonl", "auto"]),
    st.binary(max_size=200),
    st.sampled_from(malformed.TREATMENTS),
)
def test_any_bytes_are_read_or_refused(fmt, data, treatment):
    with contextlib.suppress(DataError):
        read(data, fmt, 64, on_bad_line=treatment)
