"""Files, compressed files and pipes give the same examples, however they arrive."""

import gzip
import io
import os
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from xclass.errors import DataError
from xclass.text import parser, reader

COLUMNS = ("index", "value", "label", "weight", "initial", "group_name", "line")


def make_text(lines: int, seed: int = 1) -> bytes:
    draw = random.Random(seed)
    words = [
        "a",
        "bc",
        "é",
        "longer-name",
        "12",
        "x:2.5",
        "y:-1",
        "colour:red ",
        ":3",
    ]  # a text value must not touch a bar
    text_lines = []
    for i in range(lines):
        spaces = [f"|{draw.choice(['f', 'g', 'foo', ''])} " + " ".join(draw.choices(words, k=draw.randrange(9)))
                  for _ in range(draw.randrange(4))]  # fmt: skip
        head = draw.choice([f"{i} ", f"{i} 2.5 'tag{i}", "", f"{i} t{i}"])
        text_lines.append(draw.choice(["", head + "".join(spaces), head + "".join(spaces)]))
    return "\n".join(text_lines).encode() + b"\n"


TEXT = make_text(300)


class Trickle(io.RawIOBase):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int):
        self.data, self.most = data, most

    def readinto(self, buffer) -> int:
        got = self.data[: min(self.most, len(buffer))]
        self.data = self.data[len(got) :]
        buffer[: len(got)] = got
        return len(got)


def read(path=None, **facts):
    facts.setdefault("stream", None)
    rules = parser.ParserOptions(on_bad_line=facts.pop("on_bad_line", "stop"))
    return reader.Reader(
        reader.ReaderOptions(None if path is None else str(path)), parser.Parser(rules, 18, "multiclass"), **facts
    )


def whole(batches) -> dict:
    """All batches as one, by column; tags as a list."""
    batches = list(batches)
    columns = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in COLUMNS}
    columns["start"] = np.cumsum([0] + [size for batch in batches for size in np.diff(batch.start)])
    columns["groups"] = np.array([size for batch in batches for size in np.diff(batch.group_first)])
    columns["sizes"] = np.array([size for batch in batches for size in np.diff(batch.group_start)])
    columns["tags"] = [
        batch.text[a:b].tobytes()
        for batch in batches
        for a, b in zip(batch.tag_start.tolist(), batch.tag_end.tolist(), strict=True)
    ]
    return columns


def assert_same(actual: dict, expected: dict) -> None:
    for name, column in expected.items():
        if name == "tags":
            assert actual[name] == column
        else:
            assert np.array_equal(actual[name], column, equal_nan=column.dtype.kind == "f"), name


@pytest.fixture(scope="module")
def wanted() -> dict:
    """One batch, straight from the parser."""
    text = np.zeros(len(TEXT) + parser.PADDING, np.uint8)
    text[: len(TEXT)] = np.frombuffer(TEXT, np.uint8)
    batch, error, used = parser.Parser(parser.ParserOptions(), 18, "multiclass").parse(text, len(TEXT), "f")
    assert error is None and used == len(TEXT) and batch.n > 100
    return whole([batch])


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "data.vw"
    path.write_bytes(TEXT)
    return path


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 65, 1000, 1 << 20, None])
def test_blocks_of_any_size_give_the_same_examples(plain, wanted, block):
    reading = read(plain, block_bytes=block)
    assert_same(whole(reading), wanted)
    assert (reading.bytes, reading.parser.lines, reading.size) == (len(TEXT), 300, len(TEXT))


@pytest.mark.parametrize("most", [1, 5, 100, 10**6])
def test_a_stream_of_small_pieces_gives_the_same_examples(wanted, most):
    assert_same(whole(read(stream=Trickle(TEXT, most))), wanted)
    assert_same(whole(read(stream=Trickle(TEXT, most), block_bytes=16)), wanted)


def test_reading_again_starts_again(plain, wanted):
    reading = read(plain, block_bytes=100)
    next(iter(reading))
    for _ in range(2):
        assert_same(whole(reading), wanted)
        assert reading.parser.lines == 300 and reading.bytes == len(TEXT)


def test_carriage_returns_marks_and_a_missing_newline(tmp_path, wanted):
    path = tmp_path / "data.vw"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n"))
    assert_same(whole(read(path, block_bytes=50)), wanted)
    for cut in (b"1 |f a\n2 |f b", b"1 |f a\n2 |f b\r"):
        path.write_bytes(cut)
        assert whole(read(path, block_bytes=9))["label"].tolist() == [1, 2]
    path.write_bytes(b"")
    assert list(read(path)) == []


def test_gzip(tmp_path, wanted):
    path = tmp_path / "data.vw.gz"
    half = len(TEXT) // 2
    path.write_bytes(gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:]))
    reading = read(path, block_bytes=500)
    positions = [reading.position() for _ in reading]
    assert positions == sorted(positions) and positions[-1] == reading.size == path.stat().st_size
    assert_same(whole(reading), wanted)
    assert reading.bytes == len(TEXT)


def test_zstandard(tmp_path, wanted):
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.ZstdCompressor().compress
    path = tmp_path / "data.vw.zst"
    half = len(TEXT) // 2
    path.write_bytes(pack(TEXT[:half]) + pack(TEXT[half:]))
    reading = read(path, block_bytes=500)
    assert_same(whole(reading), wanted)
    assert reading.size == path.stat().st_size
    monotonous = b"1 |f a\n" * 10**6
    path.write_bytes(pack(monotonous))
    assert sum(batch.n for batch in read(path)) == 10**6


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_compressed_file_that_was_cut_short(tmp_path, kind):
    text = make_text(3000, 5)
    packed = gzip.compress(text) if kind == "gz" else pytest.importorskip("zstandard").compress(text)
    path = tmp_path / f"data.{kind}"
    path.write_bytes(packed[:-50])
    seen = []
    with pytest.raises(DataError, match=rf"data\.{kind}: the compressed data end too early.*get a complete copy"):
        seen.extend(read(path, block_bytes=100))
    if kind == "gz":  # zstandard gives nothing of its last block
        assert len(seen) > 10


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_file_that_is_not_compressed_though_it_says_so(tmp_path, kind):
    if kind == "zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"data.{kind}"
    path.write_bytes(TEXT)
    with pytest.raises(DataError, match=rf"data\.{kind}: the file cannot be read"):
        list(read(path))


def test_preview_of_a_damaged_zst_leaves_the_error_to_the_reader(tmp_path):
    pack = pytest.importorskip("zstandard").ZstdCompressor().compress
    path = tmp_path / "data.zst"
    for damaged in (b"text", pack(TEXT)[:20] + b"xxxxxxxxx" + pack(TEXT)[29:]):
        path.write_bytes(damaged)
        reader.peek_labels((str(path),), SimpleNamespace(classes=None, add=lambda line: None), reader.Peeked())
        with pytest.raises(DataError, match=r"data\.zst: the file cannot be read"):
            list(read(path))


def test_preview_joins_a_line_of_many_blocks(tmp_path):
    path = tmp_path / "long.vw"
    path.write_bytes(b"1 | " + b"a" * (40 << 16) + b"\n2 | b\n")
    seen_lines: list[bytes] = []
    reader.peek_labels((str(path),), SimpleNamespace(classes=None, add=seen_lines.append), reader.Peeked())
    assert [len(line) for line in seen_lines] == [4 + (40 << 16), 5, 0]


def test_zst_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "data.zst"
    path.write_bytes(b"")
    with pytest.raises(DataError, match="pip install zstandard"):
        list(read(path))


def pipe_as_stdin(monkeypatch):
    """The writing end of a pipe that has become standard input."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read_end, "rb")))
    return os.fdopen(write_end, "wb", buffering=0)


def test_a_pipe_delivers_what_has_arrived(monkeypatch):
    end = pipe_as_stdin(monkeypatch)
    reading = read()
    assert reading.size is None and reading.name == "stdin"
    batches = iter(reading)
    for i in range(3):
        end.write(b"%d |f a\n7 |f" % i)
        batch = next(batches)
        assert batch.label[-1] == i
        end.write(b" b\n")
        assert next(batches).label.tolist() == [7]
    end.close()
    assert list(batches) == []
    assert reading.position() == reading.bytes == 42


def test_standard_input_from_a_file_is_read_in_whole_blocks(plain, wanted, monkeypatch):
    with open(plain, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        reading = read(block_bytes=1000)
        batches = list(reading)
        assert reading.size == len(TEXT)
        assert len(batches) <= len(TEXT) // 900
        assert_same(whole(batches), wanted)


def test_a_line_longer_than_a_block_makes_it_grow(tmp_path):
    path = tmp_path / "data.vw"
    names = " ".join(f"name{i}" for i in range(20000))
    path.write_text(f"1 |f a\n2 |f {names}\n3 |f b\n")
    columns = whole(read(path, block_bytes=100))
    assert np.diff(columns["start"]).tolist() == [2, 20001, 2]
    assert columns["line"].tolist() == [1, 2, 3]


def test_a_malformed_line_stops_with_its_number_in_the_file(plain):
    plain.write_bytes(TEXT + b"x |f a\n" + TEXT)
    batches = []
    reading = read(plain, block_bytes=200)
    with pytest.raises(DataError, match=r"data\.vw:301:1: label 'x' is not a class number"):
        batches.extend(reading)
    assert sum(batch.n for batch in batches) == sum(batch.n for batch in read(stream=io.BytesIO(TEXT)))
    reading = read(plain, block_bytes=200, on_bad_line="skip")
    assert sum(batch.n for batch in reading) == 2 * sum(batch.n for batch in batches)
    assert reading.parser.skipped == 1 and "data.vw:301:1:" in reading.report()[1]


@pytest.mark.parametrize("processors", [1, 2, 5])
@pytest.mark.parametrize("block", [40, None])
def test_the_same_on_any_number_of_threads(plain, wanted, monkeypatch, processors, block):
    monkeypatch.setattr("xclass.system.thread_limit.processors", lambda: processors)
    reading = read(plain, block_bytes=block)
    assert_same(whole(reading), wanted)
    assert_same(whole(reading), wanted)  # another pass
    assert (reading.bytes, reading.parser.lines) == (len(TEXT), 300)


def test_threads_name_the_line_and_deliver_what_is_before(tmp_path, monkeypatch):
    monkeypatch.setattr("xclass.system.thread_limit.processors", lambda: 3)
    path = tmp_path / "d.vw"
    path.write_text("".join(f"{i} | a b\n" for i in range(1, 200)) + "x y z | a\n" + "5 | a\n" * 100)
    reading = read(path, block_bytes=64)
    batches = []
    with pytest.raises(DataError, match=r"d.vw:200:"):
        batches.extend(reading)
    labels = []
    with pytest.raises(DataError):
        for batch in reading:
            labels.extend(batch.label.tolist())
    assert labels == list(range(1, 200))
    skipping = read(path, block_bytes=64, on_bad_line="skip")
    assert sum(batch.n for batch in skipping) == 299
    assert skipping.parser.skipped == 1
    assert "d.vw:200:" in skipping.report()[1]
