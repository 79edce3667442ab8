"""The shuffle buffer: the same examples in another order, the same for the same seed."""

from collections import Counter

import numpy as np
import pytest
from command import learn
from streams import multiclass

from xclass.data import batch_ops
from xclass.run import shuffle
from xclass.text import parser, reader

LINES = 700


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("shuffle") / "data"
    file.write_text(multiclass(2, 50, LINES, tags=True, unlabelled=0.1))
    return str(file)


def batches(path, block_bytes=None):
    for batch in reader.Reader(
        reader.ReaderOptions(data=(path,)),
        parser.Parser(parser.ParserOptions(), 18, "multiclass"),
        block_bytes=block_bytes,
    ):
        yield batch, batch.line % 10 == 0


def examples(pairs) -> list[tuple]:
    """Everything known of each example, in order."""
    rows = []
    for batch, mark in pairs:
        for i in range(batch.n):
            example = batch_ops.cut(batch, i, i + 1)
            rows.append(
                (
                    int(example.line[0]),
                    bool(mark[i]),
                    str(example.label[0]),
                    float(example.weight[0]),
                    float(example.initial[0]),
                    example.text[example.tag_start[0] : example.tag_end[0]].tobytes(),
                    example.start.tolist() == [0, len(example.index)]
                    and example.group_first.tolist() == [0, len(example.group_name)],
                    example.index.tobytes(),
                    example.value.tobytes(),
                    example.group_name.tobytes(),
                    example.group_start.tobytes(),
                )
            )
    return rows


def shuffled(path, size, seed=0, block_bytes=None):
    return examples(shuffle.Shuffler(size, seed).pass_through(batches(path, block_bytes)))


@pytest.mark.bounds
@pytest.mark.parametrize("size", [2, 3, 50, 333, LINES, 5000])
def test_every_example_comes_out_once_and_whole(path, size):
    expected = examples(batches(path))
    actual = shuffled(path, size)
    assert all(example[6] for example in expected)
    assert Counter(actual) == Counter(expected)
    assert actual != expected


def test_order_depends_on_seed_and_size_only(path):
    order = shuffled(path, 100, seed=4)
    for block_bytes in (200, 3000, 10**6):
        assert shuffled(path, 100, seed=4, block_bytes=block_bytes) == order
    assert shuffled(path, 100, seed=5) != order
    assert shuffled(path, 101, seed=4) != order


def test_every_pass_has_an_order_of_its_own(path):
    shuffler = shuffle.Shuffler(200, 1)
    first, second = (examples(shuffler.pass_through(batches(path))) for _ in range(2))
    assert Counter(first) == Counter(second)
    assert first != second


def test_small_data_are_shuffled_uniformly():
    """Where each of five numbers lands in 20000 permutations; a share of 1/5 has a deviation of 0.003."""
    random = np.array([3], np.uint64)
    landed = np.zeros((5, 5))
    for _ in range(20000):
        order = np.arange(5)
        shuffle.permute(order, random)
        landed[order, np.arange(5)] += 1
    assert np.abs(landed / 20000 - 0.2).max() < 0.015


def test_examples_move_about_as_far_as_the_buffer_is_large(path):
    lines = np.array([example[0] for example in shuffled(path, 100)])
    moved = np.abs(lines - np.arange(1, LINES + 1))
    assert 20 < moved.mean() < 150


def test_memory_does_not_hold_the_text(path):
    wide = shuffle.Shuffler(100, 0).pass_through(batches(path))
    for batch, _ in wide:
        assert len(batch.text) == int((batch.tag_end - batch.tag_start).sum())


def test_lines_are_held_where_names_of_features_are_asked_for(tmp_path, path):
    args = (path, "-b", 20, "-t", "--audit", "--quiet")
    actual, expected = (sorted(learn(*args, *more, cwd=tmp_path).lines) for more in (["--shuffle", 64], []))
    assert actual == expected
    assert len(set(actual)) > 100
    learn(path, "--oaa", 50, "-b", 20, "--shuffle", 64, "--invert_hash", "names", cwd=tmp_path)
    names = (tmp_path / "names").read_text()
    assert all(f"\n{name}:" in names for name in ("Constant", "w^p0_3", "n^size"))


def test_shuffled_runs_repeat_and_hold_the_same_lines_out(tmp_path, path):
    args = (path, "--oaa", 50, "--shuffle", 64, "--passes", 3, "-p", "stdout", "-f")
    first = learn(*args, "m1", cwd=tmp_path)
    other = learn(*args, "m2", "-c", "--cache_file", "c", cwd=tmp_path)
    assert first.out == other.out
    assert (tmp_path / "m1").read_bytes() == (tmp_path / "m2").read_bytes()
    plain = learn(path, "--oaa", 50, "--passes", 3, "-p", "stdout", cwd=tmp_path)
    assert plain.out != first.out
    counts = [
        [line for line in run.err.splitlines() if "passes used" in line or "per pass" in line] for run in (first, plain)
    ]
    assert counts[0] == counts[1] and len(counts[0]) == 2
    assert learn(*args, "m3", "--random_seed", 7, cwd=tmp_path).out != first.out


def test_shuffling_helps_where_classes_come_in_blocks(tmp_path):
    lines = multiclass(5, 20, 2000, noise=0.5).splitlines(keepends=True)
    text = "".join(sorted(lines, key=lambda line: int(line.split()[0])))
    test = multiclass(6, 20, 500, noise=0.5)
    losses = []
    for more in ([], ["--shuffle", 2000]):
        learn("--oaa", 20, "-f", "m", *more, stdin=text, cwd=tmp_path)
        err = learn("-i", "m", "-t", stdin=test, cwd=tmp_path).err
        losses.append(float(err.split("average loss = ")[1].split()[0]))
    assert losses[1] < losses[0]
