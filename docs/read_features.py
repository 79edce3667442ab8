"""Turn a line of VW text into the features that a model of xclass reads; model_file.md explains the steps."""

import re

import numpy as np

CONSTANT = 11650396
TEN = np.float32(10)
NUMBER = re.compile(rb"(?=-?\.?\d)(-?)(\d*)\.?(\d{0,35})(?:[eE](-?\d{1,2}))?")
WORD = re.compile(rb"(?!inf|nan|e\d*$)[^-+.\d].*", re.IGNORECASE)


def number(text):
    """Return the number that a text stands for, rounded to float32 after every step."""
    match = NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.decode()!r}: a number is written like -1.5 or 2e-05")
    sign, whole, decimals, power = match.groups(b"0")
    value = np.float32(0)
    for digit in whole:
        value = value * TEN + np.float32(digit) - np.float32(48)
    for digit in decimals:
        value = value * TEN + np.float32(digit - 48)
    exponent = int(power) - len(decimals)
    powers = (np.multiply if exponent > 0 else np.divide).accumulate(np.float32([1] + abs(exponent) * [10]))
    value = value * powers[-1] if exponent >= -37 else np.float32(0)
    return -value if sign else value


def name_hash(name, seed):
    """Return the hash of a name: a name of digits is taken as a number, others are hashed by MurmurHash3."""
    name = name.strip(bytes(range(33)))
    if name.isdigit():
        return (int(name) + seed) % 2**32
    h = seed
    for i in range(0, len(name) + 1, 4):
        k = int.from_bytes(name[i : i + 4], "little") * 0xCC9E2D51 % 2**32
        h ^= (k << 15 | k >> 17) * 0x1B873593 % 2**32
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) % 2**32 if i + 4 <= len(name) else h ^ len(name)
    for shift, factor in (16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1):
        h = (h ^ h >> shift) * factor % 2**32
    return h


def features(line, bits):
    """Return the indices (uint64) and the values (float32) of the features of a line, the constant included."""
    groups = {}  # by the first byte of the namespace
    for space, words in re.findall(rb"\|([^ \t\r\n|]*)([^|]*)", line):
        space, colon, weight = space.partition(b":")
        seed, scale = name_hash(space, 0), number(weight) if colon else np.float32(1)
        for word in re.findall(rb"[^ \t\r\n]+", words):
            name, colon, text = word.partition(b":")
            if not name or b":" in text:
                raise ValueError(f"{word.decode()!r}: a feature is a name, name:number or name:word")
            if WORD.fullmatch(text):
                index, value = name_hash(text, name_hash(name, seed)), np.float32(1)
            else:
                index, value = name_hash(name, seed), number(text) * scale if colon else scale
            if value:
                groups.setdefault(space[:1], []).append((index % 2**bits, value))
    pairs = np.array([*(pair for group in groups.values() for pair in group), (CONSTANT, 1)])
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.float32)


def tag(line):
    """Return a space and the tag: the last word before the first bar, if it touches the bar or begins with a quote."""
    head = line.rstrip(b"\r\n").split(b"|")[0].split(b"\t", 1)[-1]
    match = re.search(rb"(?:^| )(?:'([^ ]*) *|([^ ]+))$", head)
    text = match and (match[1] or match[2])
    return " " + text.decode() if text else ""
