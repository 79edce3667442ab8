"""Names to 32 bits: equal to mmh3, and VW's rules on top."""

import json
import os
import subprocess
import sys

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import formats as oracle
from xclass.data import hashing

pytestmark = [pytest.mark.bounds, pytest.mark.plain]
seeds = st.integers(0, 2**32 - 1)


def array_of(data: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(data), np.uint8) if data else np.zeros(0, np.uint8)


def strings(name: bytes, seed: int = 0) -> int:
    return int(hashing.name_hash(array_of(name), 0, len(name), np.uint32(seed), False, True))


@given(st.binary(max_size=40), seeds)
def test_murmur3_equals_mmh3(data, seed):
    hashed = hashing.murmur3(array_of(data), 0, len(data), np.uint32(seed))
    assert int(hashed) == mmh3.hash(data, seed, signed=False)


@given(st.binary(max_size=12), st.binary(max_size=30), st.binary(max_size=12), seeds)
def test_murmur3_looks_at_the_name_only(before, name, after, seed):
    data = array_of(before + name + after)
    hashed = hashing.murmur3(data, len(before), len(before) + len(name), np.uint32(seed))
    assert int(hashed) == mmh3.hash(name, seed, signed=False)


@given(st.binary(max_size=12), seeds, st.booleans())
def test_hash_all_takes_every_name_by_murmur3(name, seed, vw_text):
    hashed = hashing.name_hash(array_of(name), 0, len(name), np.uint32(seed), True, vw_text)
    assert int(hashed) == mmh3.hash(name, seed, signed=False)


@given(st.text("0a9 \t-", max_size=12) | st.text(max_size=8) | st.text("ab5", min_size=1, max_size=9), seeds)
def test_hash_strings_takes_digits_as_a_number(text, seed):
    name = text.encode()
    bare = name.strip(bytes(range(33)))
    digits = all(48 <= byte <= 57 for byte in bare)
    wanted = (int(bare or b"0") + seed) % 2**32 if digits else mmh3.hash(bare, seed, signed=False)
    assert strings(name, seed) == wanted


@given(st.text("0129 \t-", max_size=12) | st.integers(2**32 - 2, 2**32 + 2).map(str) | st.text(max_size=8), seeds)
def test_outside_vw_text_only_numbers_as_they_are_written_are_numbers(text, seed):
    name = text.encode()
    hashed = hashing.name_hash(array_of(name), 0, len(name), np.uint32(seed), False, False)
    assert int(hashed) == oracle.hash_word(name, seed)


@pytest.mark.parametrize(
    ("name", "seed", "wanted"),
    [
        (b"a", 0, 1009084850),
        (b"abc", 0, 3017643002),
        (b"hello", 0, 613153351),
        (b"f", 0, 728008763),
        (b"12", 0, 12),
        (b"00012", 0, 12),
        (b"4294967296", 0, 0),
        (b"", 5, 5),
        (b" 7\t", 1, 8),
    ],
)
def test_hashes_of_vw(name, seed, wanted):
    assert strings(name, seed) == wanted


def test_murmur3_of_the_empty_string_is_vws():
    assert int(hashing.murmur3(array_of(b""), 0, 0, np.uint32(7))) == 415870660


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes bytes by another algorithm")
def test_siphash_is_that_of_python():
    """PYTHONHASHSEED=0 is a key of zeros; the hash of no bytes is 0 there whatever the key."""
    names = [b"a", b"\xff\x80", *(b"abcdefghijklmnopqrstuvwxyz"[:n] for n in range(2, 27))]
    code = f"print([hash(name) % 2**64 for name in {names!r}])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    hashes = [int(hashing.siphash(array_of(name), 0, len(name), np.zeros(2, np.uint64))) for name in names]
    assert hashes == json.loads(result.stdout)


def test_siphash_depends_on_the_key():
    key = np.array([1, 0], np.uint64), np.array([0, 1], np.uint64), np.zeros(2, np.uint64)
    assert len({int(hashing.siphash(array_of(b"name"), 0, 4, half)) for half in key}) == 3
