"""Prediction lines: numbers as C prints them, line shapes as VW writes them."""

import numpy as np
import pytest
from effort import tries
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xclass.data.batch import Batch
from xclass.run import predictions

pytestmark = [pytest.mark.bounds, pytest.mark.plain]

FLOATS = st.one_of(
    st.floats(width=32),
    st.integers(0, 2**32 - 1).map(lambda bits: float(np.uint32(bits).view(np.float32))),
    st.tuples(st.integers(100000, 999999), st.integers(-3, 3)).map(  # halves: ties of %g
        lambda pair: float(np.float32((pair[0] + 0.5) * 10.0 ** pair[1]))
    ),
    st.tuples(st.integers(-(2**24), 2**24), st.integers(0, 30)).map(lambda pair: pair[0] / 2.0 ** pair[1]),
    st.integers(-45, 38).map(lambda power: float(np.float32(10.0**power))),
)


def batch_of(tags: list[bytes]) -> Batch:
    """A batch of which only the tags matter."""
    sizes = np.array([len(tag) for tag in tags], np.int64)
    end = np.cumsum(sizes)
    n = len(tags)
    z = np.zeros(n + 1, np.int64)
    return Batch(
        start=z,
        index=np.zeros(0, np.uint32),
        value=np.zeros(0, np.float32),
        label=np.zeros(n),
        weight=np.ones(n, np.float32),
        initial=np.zeros(n, np.float32),
        group_first=z,
        group_name=np.zeros(0, np.uint8),
        group_start=z[:1],
        tag_start=end - sizes,
        tag_end=end,
        line=np.arange(1, n + 1),
        text=np.frombuffer(b"".join(tags) or b"\0", np.uint8).copy(),
    )


def written(path, kind, tags, **columns) -> bytes:
    writer = predictions.PredictionWriter(str(path), kind)
    writer.write(batch_of(tags), **columns)
    writer.close()
    return path.read_bytes()


def as_vw_prints(x: float) -> str:
    if np.isnan(x):
        return "nan"
    return f"{x:.0f}" if np.isinf(x) or np.floor(x) == x else f"{x:.6f}"


def check_numbers(path, values) -> None:
    numbers = np.array(values, np.float32)
    n = len(numbers)
    lines = written(path, "simple", [b""] * n, values=numbers.astype(np.float64)).decode().splitlines()
    assert lines == [as_vw_prints(float(x)) for x in numbers]
    lines = written(path, "scores", [b""] * n, scores=numbers, labels=np.arange(n), start=np.arange(n + 1)).decode()
    assert lines.splitlines() == [f"{i}:{float(x):g}" for i, x in enumerate(numbers)]


@settings(max_examples=tries(300), deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=50))
@example([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-45, -3.4e38, 2.0**62, 2.0**63, -(2.0**64)])
@example([999999.5, 999998.5, 123456.5, 123457.5, 9999995.0, 9999985.0, 1e-4, 9.99999e-5, 0.00012345678, 8388607.5])
@example([0.0000005, 0.00000049, -1e-9, 1e5, 1e6, 150000.0, 15.5, 1.5e-5, 1e-5, 1e10, 0.1, 100.0])
def test_numbers_are_printed_as_by_printf(tmp_path_factory, values):
    check_numbers(tmp_path_factory.getbasetemp() / "numbers", values)


def test_numbers_are_printed_as_by_printf_over_all_bits(tmp_path):
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 2**32, 10000, dtype=np.uint32).view(np.float32)
    powers = np.float32(10.0) ** np.arange(-45, 39).astype(np.float32)
    near = [powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))]
    check_numbers(tmp_path / "p", np.concatenate([numbers[~np.isnan(numbers)], *near]))


def test_tags_stand_at_the_end_of_the_line(tmp_path):
    tags = [b"first", b"", "ü'x".encode()]
    start = np.array([0, 2, 2, 3])
    scores = {"scores": np.array([0.5, -2, 1e-7], np.float32), "labels": np.array([3, 10, 7]), "start": start}
    path = tmp_path / "p"
    values = np.array([1.5, -2, 0.25])
    assert written(path, "simple", tags, values=values) == "1.500000 first\n-2\n0.250000 ü'x\n".encode()
    values = np.array([1.0, 0, 4000000000])
    assert written(path, "multiclass", tags, values=values) == "1 first\n0\n4000000000 ü'x\n".encode()
    assert written(path, "scores", tags, **scores) == "3:0.5 10:-2 first\n\n7:1e-07 ü'x\n".encode()
    assert written(path, "raw_scores", tags, **scores) == " 3:0.5 10:-2 first\n\n 7:1e-07 ü'x\n".encode()


@pytest.mark.parametrize("size", [1, 100, 300])
def test_small_buffer_gives_the_same_bytes(tmp_path, monkeypatch, size):
    rng = np.random.default_rng(2)
    tags = [b"t" * int(rng.integers(0, 80)) for _ in range(100)]
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 20, 100))])
    columns = {
        "simple": {"values": rng.normal(size=100)},
        "scores": {
            "scores": rng.normal(size=start[-1]).astype(np.float32),
            "labels": rng.integers(0, 2**40, start[-1]),
            "start": start,
        },
    }
    whole = {kind: written(tmp_path / "p", kind, tags, **arrays) for kind, arrays in columns.items()}
    monkeypatch.setattr(predictions, "BUFFER", size)
    for kind, arrays in columns.items():
        assert written(tmp_path / "p", kind, tags, **arrays) == whole[kind]


def test_empty_batch_writes_nothing(tmp_path):
    assert written(tmp_path / "p", "simple", [], values=np.zeros(0)) == b""
