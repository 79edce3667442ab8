"""Files of the data: patterns, URLs, parts, and reading a part from any position."""

import gzip
import io

import numpy as np
import pytest

from xclass.api import configuration
from xclass.cli.declared import resolved
from xclass.cluster import shards
from xclass.cluster.shards import DataPart, PartFiles, PartReader
from xclass.data.class_names import Names
from xclass.data.schema import Schema
from xclass.errors import DataError, UsageError
from xclass.text import urls


def config_of(**given):
    return resolved({"oaa": 9, **given}, None)


def lines_of(part, position=0, **given):
    """Return the positions and labels of a part after a position."""
    config = config_of(**given)
    reader = PartReader(part, config, Names(), configuration.label_range(config), Schema())
    found = [(line.tolist(), batch.label.tolist()) for batch, line in reader.after(position)]
    return [line for lines, _ in found for line in lines], [int(y) for _, labels in found for y in labels]


@pytest.fixture
def data(tmp_path):
    """Three files of five lines with labels 1, 2, ... 9, 1, ..."""
    paths = []
    for k in range(3):
        path = tmp_path / f"part-{k}.vw"
        path.write_text("".join(f"{(5 * k + i) % 9 + 1} | word{i}\n" for i in range(5)))
        paths.append(str(path))
    return paths


def test_patterns_and_urls_become_paths_in_order(tmp_path, data):
    assert shards.expand([f"{tmp_path}/part-*.vw", data[0]]) == [*data, data[0]]
    assert shards.expand([f"file://{tmp_path}/part-*.vw"]) == [f"file://{path}" for path in data]
    assert shards.sizes_of([data[0], f"file://{data[0]}", "nowhere.vw"]) == [50, 50, None]
    with pytest.raises(DataError, match=r"x-\*.vw: no file matches"):
        shards.expand([f"{tmp_path}/x-*.vw"])
    odd = tmp_path / "a[1].vw"
    odd.write_text("1 | a\n")
    assert shards.expand([str(odd)]) == [str(odd)]


def test_files_are_dealt_in_turn(data):
    assert shards.deal(PartFiles(data, [50, 50, 50], True), 2) == [
        DataPart(1, (data[0], data[2])),
        DataPart(2, (data[1],)),
    ]
    assert lines_of(DataPart(1, (data[0], data[2]))) == ([*range(1, 11)], [1, 2, 3, 4, 5, 2, 3, 4, 5, 6])
    assert lines_of(DataPart(1, (data[0], data[2])), 7) == ([8, 9, 10], [4, 5, 6])


@pytest.mark.parametrize("count", [2, 3, 5, 11])
def test_ranges_of_a_file_hold_each_line_once(tmp_path, count):
    path = tmp_path / "train.vw"
    path.write_text("".join(f"{i % 9 + 1} | " + "word " * (i % 7) + "\n" for i in range(40)).rstrip("\n"))
    parts = shards.deal(PartFiles([str(path)], [path.stat().st_size], True), count)
    lines, labels = [], []
    for part in parts:
        line, label = lines_of(part)
        lines += line
        labels += label
        if len(line) > 1:
            assert lines_of(part, line[0]) == (line[1:], label[1:])
    assert lines == [*range(1, 41)]
    assert labels == [i % 9 + 1 for i in range(40)]


def test_line_of_an_error_in_a_range_is_that_of_the_file(tmp_path):
    path = tmp_path / "train.vw"
    path.write_text("1 | a\n" * 30 + "77 | a\n" + "1 | a\n" * 9)
    parts = shards.deal(PartFiles([str(path)], [path.stat().st_size], True), 2)
    assert lines_of(parts[0])[0][-1] < 31
    with pytest.raises(DataError, match=r"train\.vw:31:"):
        lines_of(parts[1])


def test_files_that_cannot_be_split_are_refused(tmp_path):
    path = tmp_path / "train.vw.gz"
    path.write_bytes(gzip.compress(b"1 | a\n"))
    with pytest.raises(UsageError, match=r"2 workers and 1 data file, and .*gz cannot be split"):
        shards.deal(PartFiles([str(path)], [30], True), 2)
    assert lines_of(*shards.deal(PartFiles([str(path)], [30], True), 1)) == ([1], [1])
    assert shards.first_lines(str(tmp_path), str(path)) == b"1 | a\n\n"
    assert shards.first_lines(str(tmp_path), str(tmp_path / "none.vw")) == b""
    with pytest.raises(DataError, match="there is no such file"):
        lines_of(DataPart(1, (str(tmp_path / "none.vw"),)))


class ServerError(Exception):
    """An exception of a package for a kind of URLs."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class FailingServer(io.BytesIO):
    """A file system, and its only file, of which the second block cannot be read."""

    def __init__(self, status):
        super().__init__(b"1 | a\n" * 9)
        self.status = status

    def open(self, path, mode):
        if self.status is None:
            return self
        try:
            raise ServerError(self.status)
        except ServerError as error:
            raise FileNotFoundError(path) from error  # as fsspec does

    def readinto(self, buffer):
        if self.tell():
            raise ServerError("lost")
        return super().readinto(buffer[:12])

    def info(self, path):
        return {"size": 54}

    def glob(self, path):
        raise ServerError(self.status)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (None, r"http://host/x\.vw: the file cannot be read \(ServerError: status lost\)"),
        (404, r"http://host/x\.vw: there is no such file"),
        (500, r"http://host/x\.vw: the file cannot be opened \(ServerError: status 500\)"),
    ],
)
def test_failures_of_a_server_are_errors_of_the_data(monkeypatch, status, message):
    server = FailingServer(status)
    monkeypatch.setattr(urls, "file_system", lambda url: (server, url))
    with pytest.raises(DataError, match=message):
        lines_of(DataPart(1, ("http://host/x.vw",)))
    with pytest.raises(DataError, match=r"http://host/\*\.vw: the files cannot be listed \(ServerError: status"):
        shards.expand(["http://host/*.vw"])


def test_urls_are_read_like_files(data):
    assert lines_of(DataPart(1, (f"file://{data[0]}",))) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    np.testing.assert_equal(lines_of(shards.deal(PartFiles([f"file://{data[0]}"], [50], True), 2)[1])[1], [4, 5])
    with pytest.raises(DataError, match="there is no such file"):
        lines_of(DataPart(1, ("file:///nowhere/x.vw",)))
    with pytest.raises(DataError, match="the URL cannot be read"):
        lines_of(DataPart(1, ("nosuchscheme://x.vw",)))
