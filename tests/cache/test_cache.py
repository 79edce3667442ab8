"""The cache: what is read from it is what was parsed, and nothing but a whole and fitting cache is used."""

import functools
import gzip
import json
import os
import random
import signal
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from command import forked, learn, start_process, xclass
from hypothesis import given
from hypothesis import strategies as st
from streams import multiclass, real
from versus import small

from xclass.cache import cache_file
from xclass.cache import source as cache
from xclass.data.batch import Batch
from xclass.text import parser, reader

NUMBERS = (
    "start",
    "label_start",
    "labels",
    "index",
    "value",
    "label",
    "weight",
    "initial",
    "group_first",
    "group_name",
    "group_start",
    "line",
    "dense",
)


def tags(batch: Batch) -> list[bytes]:
    return [batch.text[a:b].tobytes() for a, b in zip(batch.tag_start, batch.tag_end, strict=True)]


def assert_same(actual: Batch, expected: Batch) -> None:
    for name in NUMBERS:
        actual_column, expected_column = getattr(actual, name), getattr(expected, name)
        assert actual_column.dtype == expected_column.dtype, name
        np.testing.assert_array_equal(actual_column, expected_column, err_msg=name)
    assert tags(actual) == tags(expected)


def source(path, file=None, *, labels="multiclass", bits=18, passes=1, limit=None, kill=False, **parse):
    """A `Source` and the text's reader."""
    options = parser.ParserOptions(**parse)
    text = reader.Reader(reader.ReaderOptions(data=(str(path),)), parser.Parser(options, bits, labels))
    key = cache.make_key(options, bits, labels, None, None, limit)
    chosen = cache.CacheOptions(cache_file=None if file is None else str(file), kill_cache=kill)
    return cache.Source(text, chosen, key, not options.noconstant, passes)


def copies(batches) -> list[tuple[Batch, np.ndarray]]:
    """Keep batches beyond the next one."""
    return [(Batch._make(map(np.array, batch)), line) for batch, line in batches]


def assert_passes_are_equal(path, *, passes=3, **more) -> None:
    reading = source(path, passes=passes, **more)
    first = copies(reading)
    for _ in range(1, passes):
        again = copies(reading)
        assert reading.complete_cache is not None
        assert len(again) == len(first)
        for (batch, line), (expected, wanted_line) in zip(again, first, strict=True):
            np.testing.assert_array_equal(line, wanted_line)
            assert_same(batch, expected)


# -- batches


@pytest.mark.bounds
@pytest.mark.parametrize("labels", ["multiclass", "simple", "multilabel"])
@pytest.mark.parametrize("options", [{}, {"noconstant": True}, {"bits": 30}, {"hash": "all", "limit": 50}])
def test_batches_from_the_cache_are_those_from_the_text(tmp_path, labels, options):
    classes = labels != "simple"
    rng = random.Random(f"{classes} {options}")
    path = tmp_path / "data"
    for text in (
        small(rng, 300, 9, not classes),
        multiclass(3, 70000, 200, tags=True, weights=(0, 1, 2.5), unlabelled=0.2)
        if classes
        else real(1, 300, tags=True),
        "".join(
            f"{i % 7} |f {' '.join(f'w{rng.random():.6f}:{rng.random():.5f}' for _ in range(30))}\n" for i in range(900)
        ),
        "".join(
            f"{i % 300}{' ' + str(i % 3) if i % 2 else ''} |"
            + "|".join(f"n{rng.randrange(9)} a b:2 " for _ in range(5))
            + "\n"
            for i in range(500)
        ),
        "3,1,3 |\n| a\n, |\n4294967294,0 |\n\n1 2 |\n" * (labels == "multilabel"),
        "1 |\n\n |f\n\n\n2 |f a:0\n",
        "1 2 'tag|\n" * 3 + "|x a\n",
        "",
    ):
        path.write_text(text)
        assert_passes_are_equal(path, labels=labels, **options)


def test_every_way_to_store_a_column_gives_its_numbers_back():
    rng = np.random.default_rng(3)
    columns = {  # size of the dictionary, bytes of a number -> numbers
        (1, 0): np.full(1000, 7),
        (0, 0): np.empty(0),
        (0, 1): rng.integers(0, 256, 1000),
        (0, 2): rng.integers(0, 1 << 16, 1000),
        (0, 3): rng.integers(0, 1 << 24, 1000),
        (0, 4): rng.integers(0, 1 << 32, 1000),
        (200, 1): np.resize(rng.permutation(1 << 20)[:200] + (1 << 30), 3000),
        (700, 2): np.resize(rng.permutation(1 << 20)[:700] + (1 << 30), 9000),
    }
    for (size, width), numbers in columns.items():
        column = numbers.astype(np.uint32)
        dictionary, found, stored = cache_file._encoded(column, np.uint64(1))
        assert (len(dictionary), found) == (size, width)
        data = np.frombuffer(dictionary.tobytes() + stored.tobytes() + bytes(8), np.uint8)
        place, m = np.array([0, dictionary.nbytes, size, width]), len(column)
        places = ([0, m], False), ([0, m // 3, m // 3, m], False), ([0, m // 3 + 1, m // 3 + 2, m + 3], True)
        for rows, constant in places:
            out = np.empty(rows[-1], np.uint32)
            cache_file.decode_rows(data, place, np.array(rows), constant, 77, out)
            last = np.array(rows[1:]) - 1 if constant else np.empty(0, np.int64)
            assert (out[last] == 77).all()
            assert np.array_equal(np.delete(out, last), column)


def test_any_changed_word_and_many_changed_pairs_change_the_checksum():
    rng = np.random.default_rng(2)
    for size in (1, 7, 8, 9, 24, 61):
        words = rng.integers(0, 1 << 63, size).astype(np.uint64)
        wanted = cache_file.checksum(words)
        assert cache_file.checksum(words[:-1]) != wanted
        pairs = [(i, i) for i in range(64 * size)]
        pairs += [(64 * i + 63 - bit, 64 * (i + 8) + 63 - bit) for i in range(size - 8) for bit in range(64)]
        for first_bit, second_bit in pairs:
            changed = words.copy()
            for bit in {first_bit, second_bit}:
                changed[bit // 64] ^= np.uint64(1 << bit % 64)
            assert cache_file.checksum(changed) != wanted, (size, first_bit, second_bit)


LINES = st.lists(
    st.sampled_from(
        [
            "",
            "1 |a b c",
            "3 2.5 'tag |a:2 b:3 c |d e:0.1 f:x",
            "|",
            "7|x y",
            "65000 |a b |c d |a e",
            "2 'another_tag |q 1:1 2:2 3:-3e-5",
            "|é ü:7",
            "4294967294 0 |a " + "w " * 300,
        ]
    ),
    max_size=60,
)


@given(LINES, st.booleans())
def test_any_lines_come_back(tmp_path_factory, lines, noconstant):
    path = tmp_path_factory.mktemp("lines") / "data"
    path.write_text("".join(line + "\n" for line in lines))
    assert_passes_are_equal(path, passes=2, noconstant=noconstant)


def test_cache_is_smaller_than_the_text(tmp_path):
    path = tmp_path / "data"
    for text in (multiclass(1, 3000, 6000), real(2, 6000), "".join(f"{i % 9} | a b c\n" for i in range(6000))):
        path.write_text(text)
        list(source(path, tmp_path / "c", kill=True, labels="simple" if "." in text.split(" ")[0] else "multiclass"))
        assert os.path.getsize(tmp_path / "c") < 0.6 * os.path.getsize(path)


def test_several_files_and_compressed_ones_are_kept_apart(tmp_path):
    first, second = multiclass(1, 5, 40), multiclass(2, 5, 30)
    (tmp_path / "a").write_text(first)
    with gzip.open(tmp_path / "b.gz", "wt") as file:
        file.write(second)
    (tmp_path / "both").write_text(first + second)
    args = ("--oaa", "5", "--passes", "3", "-p", "stdout")
    both = learn("both", *args, cwd=tmp_path)
    for more in ((), ("-c",), ("-c",)):
        several = learn("-d", "a", "b.gz", *args, *more, cwd=tmp_path)
        assert several.out == both.out
    assert "Cache: a.cache is read instead of the data" in several.err
    assert "the number of its data files was 2 and is now 1" in learn("a", *args, "-c", cwd=tmp_path).err


# -- what is used, and what is made anew


@pytest.fixture
def made(tmp_path):
    """A folder with data and its cache."""
    (tmp_path / "data").write_text(multiclass(1, 5, 200, tags=True))
    learn("data", "--oaa", "5", "-c", cwd=tmp_path)
    return tmp_path


def run(folder, *args, status=0):
    result = xclass("data", "-c", *args, "-p", "stdout", cwd=folder)
    assert result.status == status, result.err
    return result


def blocks_of(content: bytes) -> bytes:
    """A cache without its last part, which contains times."""
    return content[: content.rindex(b'{"key"')]


def cache_note(result) -> str:
    """The note about the cache; empty if the cache was used."""
    if "Data: data\nCache: data.cache is read instead of the data\n" in result.err:
        return ""
    assert "Data: data\nCache: data.cache is written\n" in result.err
    return next((line for line in result.err.splitlines() if "made again" in line), "silent")


def test_matching_cache_gives_the_same_predictions_and_model(made):
    text = learn("data", "--oaa", "5", "-p", "stdout", "-f", "m1", cwd=made)
    before = (made / "data.cache").stat()
    cached = run(made, "--oaa", "5", "-f", "m2")
    assert cache_note(cached) == ""
    assert cached.out == text.out
    assert (made / "m1").read_bytes() == (made / "m2").read_bytes()
    assert (made / "data.cache").stat().st_mtime_ns == before.st_mtime_ns
    assert cache_note(run(made, "--oaa", "5", "-l", "2", "--passes", "3")) == ""


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--oaa", "6"], "it was made with highest 5, but this run has highest 6"),
        (["--oaa", "5", "-b", "20"], "but this run has bits 20"),
        (["--oaa", "5", "--hash", "all"], "it was made with hash strings, but this run has hash all"),
        (["--oaa", "5", "--hash_seed", "3"], "it was made with hash_seed 0, but this run has hash_seed 3"),
        (["--oaa", "5", "--noconstant"], "it was made with noconstant False"),
        (["--oaa", "5", "--examples", "9"], "it was made with examples None, but this run has examples 9"),
        (["--oaa", "5", "--on_bad_line", "skip"], "on_bad_line"),
        ([], "but this run has "),
    ],
)
def test_cache_of_other_options_is_made_anew(made, args, reason):
    note = cache_note(run(made, *args))
    assert note.startswith("warning: data.cache: the cache is made again: ")
    assert reason in note
    assert cache_note(run(made, *args)) == ""


def test_changed_data_are_noticed_even_with_the_same_size_and_time(made):
    path = made / "data"
    info = path.stat()
    text = path.read_text()
    path.write_text(text + text[: text.index("\n") + 1])
    assert "data has changed: " in cache_note(run(made, "--oaa", "5"))
    path.write_text(text)
    assert "data has changed: " in cache_note(run(made, "--oaa", "5"))
    changed = text.replace("red", "rod", 1)
    path.write_text(changed)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert cache_note(run(made, "--oaa", "5")).endswith("data has changed")


def test_a_change_right_after_the_cache_was_made_is_noticed(tmp_path):
    path = tmp_path / "data"
    for _ in range(20):
        path.write_text("1 |a b\n")
        then = cache.settled_entry(str(path))
        assert cache.stale_reason({"files": [then]}, {}, [str(path)]) == ""
        path.write_text("1 |a c\n")
        os.utime(path, ns=(0, then["time"][0]))
        assert cache.stale_reason({"files": [then]}, {}, [str(path)]) == f"{path} has changed"
    other = path.rename(tmp_path / "data.csv")
    reason = f"it was made from data, not from {other}"  # whose ending may mean another format
    assert cache.stale_reason({"files": [then]}, {}, [str(other)]) == reason
    then = cache.settled_entry(str(other))
    renamed = other.rename(tmp_path / "renamed.csv")
    assert (
        cache.stale_reason({"files": [then | {"time": cache.file_entry(str(renamed))["time"]}]}, {}, [str(renamed)])
        == ""
    )
    renamed.write_text("1 |a b c\n")
    assert cache.stale_reason({"files": [then]}, {}, [str(renamed)]) == f"it was made from data.csv, not from {renamed}"


def test_any_damage_is_noticed_and_changes_no_answer(made):
    wanted = run(made, "--oaa", "5").out
    whole = (made / "data.cache").read_bytes()
    rng = random.Random(4)
    for case in range(21):
        content = bytearray(whole)
        if case % 3 == 0:
            del content[rng.randrange(len(whole)) :]
        else:
            content[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        (made / "data.cache").write_bytes(content)
        result = run(made, "--oaa", "5")
        assert "the cache is made again: " in result.err
        assert result.out == wanted
        assert blocks_of((made / "data.cache").read_bytes()) == blocks_of(whole)


@pytest.mark.parametrize(
    "facts",
    [
        {"key": -1}, {"key": []}, {"bad": "x"}, {"lines": None}, {"lines": -1}, {"blocks": True}, {"blocks": [[-8, 0]]},
        {"kept": 5}, {"kept": [5]}, {"told": "x"}, {"names": [["a"]]}, {"skipped": 2.5},
    ],
)  # fmt: skip
def test_a_record_with_a_valid_checksum_is_checked_before_it_is_used(made, facts):
    wanted = run(made, "--oaa", "5").out
    content = (made / "data.cache").read_bytes()
    body = blocks_of(content)
    record = record_of(content)
    for changed in ({**record, **facts}, {name: record[name] for name in set(record) - set(facts)}):
        if changed == record:  # there were no names
            continue
        text = json.dumps(changed).encode()
        (made / "data.cache").write_bytes(body + text + end(text))
        result = run(made, "--oaa", "5")
        assert result.out == wanted
        assert "data.cache: the cache is made again: it is damaged" in result.err


def test_a_record_too_deep_to_be_read_is_damage(made):
    content = (made / "data.cache").read_bytes()
    text = b"[" * 100_000
    (made / "data.cache").write_bytes(blocks_of(content) + text + end(text))
    assert "data.cache: the cache is made again: it is damaged" in run(made, "--oaa", "5").err


def record_of(content: bytes) -> dict:
    """The record of a cache."""
    return json.loads(content[len(blocks_of(content)) : -16 - len(cache_file.END)])


def end(text: bytes) -> bytes:
    """The end of a cache whose record is `text`."""
    return np.array([len(text), zlib.crc32(text)], "<i8").tobytes() + cache_file.END


def test_missing_and_swapped_blocks_are_noticed(tmp_path):
    path, file = tmp_path / "data", tmp_path / "c"
    path.write_text(multiclass(1, 50, 6000))
    wanted = copies(source(path, file))
    assert len(wanted) >= 3
    whole = file.read_bytes()
    blocks, at = [], len(cache_file.MAGIC)
    for size, _ in record_of(whole)["blocks"]:
        blocks.append(whole[at : at + size])
        at += size
    for order in ([1, 0, *range(2, len(blocks))], [*range(1, len(blocks))], [0, 0, *range(1, len(blocks))]):
        file.write_bytes(whole[: len(cache_file.MAGIC)] + b"".join(blocks[i] for i in order) + whole[at:])
        with open(file, "rb") as opened, pytest.raises(cache_file.DamagedCacheError):
            list(cache_file.CacheReader(opened, "c", True))


def test_damage_in_the_middle_goes_on_from_the_text_where_it_was(tmp_path):
    (tmp_path / "data").write_text(multiclass(1, 50, 6000))
    learn("data", "--oaa", "50", "-c", cwd=tmp_path)
    wanted = learn("data", "--oaa", "50", "-p", "stdout", "--passes", "2", cwd=tmp_path).out
    whole = (tmp_path / "data.cache").read_bytes()
    content = bytearray(whole)
    content[len(whole) * 2 // 3] ^= 16
    (tmp_path / "data.cache").write_bytes(content)
    result = run(tmp_path, "--oaa", "50", "--passes", "2")
    assert "data.cache: the cache is made again: it is damaged at byte " in result.err
    assert result.out == wanted
    assert blocks_of((tmp_path / "data.cache").read_bytes()) == blocks_of(whole)


@pytest.mark.parametrize("content", [b"", cache_file.MAGIC, cache_file.MAGIC + bytes(100) + cache_file.END])
def test_what_begins_as_a_cache_is_made_again(made, content):
    (made / "data.cache").write_bytes(content)
    assert "made again: it is" in cache_note(run(made, "--oaa", "5"))
    assert cache_note(run(made, "--oaa", "5")) == ""


def test_kill_cache_makes_the_cache_anew_silently(made):
    (made / "data.cache").write_bytes(b"")
    result = run(made, "--oaa", "5", "-k")
    assert cache_note(result) == "silent"
    assert cache_note(run(made, "--oaa", "5")) == ""
    learn("data", "--oaa", "5", "-k", cwd=made)


def test_bad_lines_are_reported_from_the_cache_too(tmp_path):
    (tmp_path / "data").write_text("1 |a b\nx |a b\n2 |a c\n1|a d\n")
    args = ("data", "--oaa", "2", "-c", "--on_bad_line", "skip")
    warnings = []
    for _ in range(2):
        result = learn(*args, cwd=tmp_path)
        warnings.append([line for line in result.err.splitlines() if line.startswith("warning: ")])
    assert sorted(warnings[0]) == sorted(warnings[1])
    assert any("skipped" in line for line in warnings[0])
    assert any("touches the bar" in line for line in warnings[0])


def test_a_cache_is_not_compared_with_a_named_pipe(tmp_path):
    (tmp_path / "data").write_text(multiclass(1, 5, 200))
    learn("data", "--oaa", 5, "-b", 12, "-f", "m", cwd=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    words = ("-t", "-i", "m", "--cache_file", "c", "-p", "stdout")
    for made_again in (False, True):
        writer = subprocess.Popen(["sh", "-c", "cat data > pipe"], cwd=tmp_path)
        result = learn("pipe", *words, cwd=tmp_path)
        assert writer.wait(60) == 0 and result.out.count("\n") == 200
        assert ("c: the cache is made again: data from a pipe cannot be" in result.err) == made_again
        assert "the data changed" not in result.err and (tmp_path / "c").exists()


def test_bad_line_that_stops_leaves_no_cache(tmp_path):
    (tmp_path / "data").write_text("1 |a b\nx |a b\n")
    assert xclass("data", "--oaa", "2", "-c", cwd=tmp_path).status == 1
    assert os.listdir(tmp_path) == ["data"]


def test_pipe_with_passes_and_with_a_cache_file(tmp_path):
    text = multiclass(1, 5, 200)
    (tmp_path / "data").write_text(text)
    args = ("--oaa", "5", "--passes", "3", "-p", "stdout")
    wanted = learn("data", *args, cwd=tmp_path).out
    assert learn(*args, stdin=text, cwd=tmp_path).out == wanted
    assert learn(*args, "--cache_file", "c", stdin=text, cwd=tmp_path).out == wanted
    result = learn(*args, "--cache_file", "c", stdin=text, cwd=tmp_path)
    assert result.out == wanted
    assert "c: the cache is made again: data from a pipe cannot be compared with it" in result.err
    assert sorted(os.listdir(tmp_path)) == ["c", "data"]
    alone = start_process(*args, "--cache_file", "c", cwd=tmp_path, stdin=subprocess.DEVNULL)
    out, err = alone.communicate(timeout=400)
    assert (alone.returncode, out.decode()) == (0, wanted), err
    assert learn(*args, "-c", stdin=text, cwd=tmp_path).out == wanted  # the name is VW's
    assert sorted(os.listdir(tmp_path)) == [".cache", "c", "data"]


def test_cache_that_cannot_be_written_stops_nothing(made):
    wanted = run(made, "--oaa", "5", "--passes", "2").out
    for place in ("no/folder/c", "/proc/c"):
        result = learn("data", "--oaa", "5", "--passes", "2", "--cache_file", place, "-p", "stdout", cwd=made)
        assert f"{place}: the cache cannot be written" in result.err
        assert result.out == wanted
        piped = xclass("--oaa", "5", "--passes", "2", "--cache_file", place, stdin="1 |a b\n", cwd=made)
        assert piped.status == 1
        assert "can be read only once" in piped.err


def test_data_that_change_while_they_are_read_are_not_kept(tmp_path):
    path = tmp_path / "data"
    path.write_text("1 |a b\n" * 30000)
    reading = source(path, tmp_path / "c", passes=2)
    batches = iter(reading)
    next(batches)
    with open(path, "a") as file:
        file.write("2 |a c\n")
    for _ in batches:
        pass
    assert any("the data changed while they were read" in note for note in reading.notes)
    assert os.listdir(tmp_path) == ["data"]
    assert sum(batch.n for batch, _ in reading) == 30001


def kill_at(call: str, number: int) -> None:
    """Let this process be killed when it calls a function of `os` for the time with this number."""
    calls, before = [], getattr(os, call)

    def killed(*args, **more):
        calls.append(args)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return before(*args, **more)

    setattr(os, call, killed)


@pytest.mark.parametrize(("call", "number"), [("fsync", 1), ("fsync", 2), ("replace", 1)])
def test_run_killed_at_the_end_of_its_cache_leaves_the_old_one_or_none(tmp_path, call, number):
    (tmp_path / "data").write_text(multiclass(1, 5, 200))
    prepare = functools.partial(kill_at, call, number)
    assert forked(prepare, "data", "-c", "--oaa", 5, cwd=tmp_path) == -signal.SIGKILL
    assert not (tmp_path / "data.cache").exists()
    learn("data", "-c", "--oaa", 5, cwd=tmp_path)
    old = (tmp_path / "data.cache").read_bytes()
    assert forked(prepare, "data", "-c", "-k", "--oaa", 5, cwd=tmp_path) == -signal.SIGKILL
    assert (tmp_path / "data.cache").read_bytes() == old
    assert cache_note(run(tmp_path, "--oaa", "5")) == ""


@pytest.fixture(scope="module")
def replaceable(tmp_path_factory):
    """A folder with data, their cache of several blocks, and a cache of other data with the same sizes."""
    folder = tmp_path_factory.mktemp("replaceable")
    text = multiclass(1, 5, 20000)
    for content in (text.replace("p1_", "q1_"), text):
        (folder / "data").write_text(content)
        learn("data", "--oaa", "5", "-c", "-k", cwd=folder)
        os.rename(folder / "data.cache", folder / ("cache" if content == text else "other"))
    learn("data", "--oaa", "5", "-p", "wanted", cwd=folder)
    sizes = [[size for size, _ in record_of((folder / name).read_bytes())["blocks"]] for name in ("cache", "other")]
    assert sizes[0] == sizes[1] and len(sizes[0]) >= 3
    return folder


def change_while_read(change) -> None:
    """Let the cache change in place before its second block is read, after its end (two reads) and its first block."""
    calls, read = [], os.preadv

    def changed(*place):
        calls.append(place)
        if len(calls) == 4:
            with open("data.cache", "r+b") as file:
                change(file)
        return read(*place)

    os.preadv = changed


CHANGES = {  # what happens to a cache while it is read -> the reason in the message
    "truncated": (lambda file: file.truncate(20000), "it was cut off while it was read"),
    "replaced": (lambda file: file.write(Path("other").read_bytes()), "it is damaged at byte "),
    "zeros": (lambda file: file.write(bytes(os.path.getsize(file.name))), "it is damaged at byte "),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "words", ["-d data -c -p p -f m", "--cache_file data.cache -p p -f m", "tune -d data -c -k --settings 2"]
)
def test_a_cache_that_changes_while_it_is_read_is_noticed(replaceable, change, words):
    happens, reason = CHANGES[change]
    (replaceable / "data.cache").write_bytes((replaceable / "cache").read_bytes())
    prepare = functools.partial(change_while_read, happens)
    run = start_process(
        *words.split(), "--oaa", 5, cwd=replaceable, preexec_fn=prepare, stdin=subprocess.DEVNULL, text=True
    )
    err = run.communicate(timeout=400)[1]
    if words.startswith("-d"):
        assert run.returncode == 0 and f"warning: data.cache: the cache is made again: {reason}" in err
        assert (replaceable / "p").read_bytes() == (replaceable / "wanted").read_bytes()
        (replaceable / "m").unlink()
        return
    assert run.returncode == 1 and not (replaceable / "m").exists()
    assert f"data.cache: the cache cannot be read: {reason}" in err
    assert "; start again with the data and -k" in err


def test_temporary_cache_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    learn("--oaa", "5", "--passes", "3", stdin=multiclass(1, 5, 100), cwd=tmp_path)
    xclass("--oaa", "5", "--passes", "3", stdin="1 |a\nx |a\n", cwd=tmp_path)
    assert os.listdir(tmp_path / "t") == []
