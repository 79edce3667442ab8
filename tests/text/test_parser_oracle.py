"""Random text over the grammar's alphabet: the parser and the crosser against the oracle, in VW's treatment."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oracles import reader as oracle
from tests.support.effort import tries
from xclass.text import parser

WORDS = [
    "a",
    "b",
    "7",
    "007",
    "ab",
    "abcd",
    "name1",
    "longer-name",
    "é",
    "ḷi",
    "\x01",
    " ",
    "inf",
    "'t",
    "-3",
    "e",
    "x9",
]
NUMBERS = [
    "1",
    "0",
    "-2",
    "2.5",
    ".5",
    "1e2",
    "1e-3",
    "1e",
    "-",
    ".",
    "+3",
    "1e+2",
    "0x1f",
    "inf",
    "nan",
    "-0.125",
    "123456789",
    "0.000123456789",
    "1e39",
    "1e-50",
    "1e256",
    "3.4028235e38",
    "1x",
    "2:3",
    "00.50",
    "9" * 30,
]
LABELS = ["1", "2", "17", "-1", "-2", "+4", "4294967295", "4294967297", "99999999999999999999", "0", "0012"]
number = st.sampled_from(NUMBERS) | st.decimals(-1000, 1000, places=4).map(str) | st.floats(width=32).map(repr)
word = st.sampled_from(WORDS)
feature = st.one_of(
    word,
    st.tuples(word, number).map(":".join),
    st.tuples(word, word).map(":".join),
    number.map(":{}".format),
    st.sampled_from([":", "a:", "a: b", "a: 5", "a:\tb", "a:|b", "a:b|c", "a\rb", "a:\rb", ":red", "a::", "a:1\tb"]),
)
space = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
namespace = st.tuples(
    st.sampled_from(
        [
            "",
            "a",
            "b",
            "x",
            "é",
            "5",
            "foo",
            "far",
            "a:2",
            "b:0.5",
            "x:-1",
            "f:0",
            "f:nan",
            "f:x",
            ":2",
            "b:1x",
            "longer name",
        ]
    ),
    st.lists(st.tuples(space, feature).map("".join), max_size=5).map("".join),
    st.sampled_from(["", "", " ", "\t"]),
).map(lambda parts: "|" + "".join(parts))
label = st.sampled_from(
    [
        "",
        "1 ",
        "2 0.5 ",
        "3 2 'tag ",
        "'tag ",
        "tag",
        "1",
        "1 tag",
        "x\t1 ",
        "1\t",
        "\t\t 1 ",
        " 5  ",
        "7 -1 ",
        "7 x ",
        "4 1x ",
        "5 nan 't ",
    ]
) | st.sampled_from(LABELS).map("{} ".format)
simple = label | number.map("{} ".format) | st.tuples(number, number).map("{0[0]} {0[1]} ".format) | st.just("1 2 3 4 ")
simple |= st.tuples(number, number, number).map("{0[0]} {0[1]} {0[2]} t".format)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\n\r\n", "\n\ufeff"])


def text_of(labels):
    line = st.tuples(labels, st.lists(namespace, max_size=4).map("".join), ends).map("".join)
    noise = st.text("1a|: '.-e\n", max_size=30)  # no TABs: VW reads a label of two TABs on the next line
    return st.tuples(st.lists(line | noise, max_size=6).map("".join), st.booleans()).map(
        lambda parts: (parts[0] if parts[1] else parts[0] + "\n").encode()
    )


def padded(data: bytes) -> np.ndarray:
    buffer = np.zeros(len(data) + 1 + parser.PADDING, np.uint8)
    buffer[: len(data)] = np.frombuffer(data, np.uint8)
    return buffer


def parsed(data: bytes, multiclass: bool, bits: int = 18, **options):
    """Examples of a text as the oracle shows them, and the error that ended it."""
    data += b"" if data.endswith(b"\n") else b"\n"
    reading = parser.Parser(
        parser.ParserOptions(on_bad_line="vw", number_rules="vw", **options),
        bits,
        "multiclass" if multiclass else "simple",
    )
    batch, error, used = reading.parse(padded(data), len(data), "f")
    assert error is not None or used == len(data)
    return batch, error


def as_examples(batch) -> list[oracle.Example]:
    examples = []
    for i in range(batch.n):
        groups = []
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            here = slice(batch.group_start[j], batch.group_start[j + 1])
            groups.append(
                (int(batch.group_name[j]), list(zip(batch.index[here].tolist(), batch.value[here], strict=True)))
            )
        value = float(batch.label[i])
        tag = batch.text[batch.tag_start[i] : batch.tag_end[i]].tobytes()
        weight, initial = float(batch.weight[i]), float(batch.initial[i])
        examples.append(
            oracle.Example(None if np.isnan(value) else value, weight, initial, tag, groups, int(batch.line[i]))
        )
        assert sum(len(features) for _, features in groups) == batch.start[i + 1] - batch.start[i]
    return examples


def assert_same(actual: list[oracle.Example], expected: list[oracle.Example], data: bytes) -> None:
    assert len(actual) == len(expected), data
    for actual_example, expected_example in zip(actual, expected, strict=True):
        for name in ("line", "label", "weight", "initial", "tag"):
            a, b = getattr(actual_example, name), getattr(expected_example, name)
            assert a == b, (name, a, b, data)
        assert [name for name, _ in actual_example.groups] == [name for name, _ in expected_example.groups], data
        for (_, features), (_, others) in zip(actual_example.groups, expected_example.groups, strict=True):
            assert [index for index, _ in features] == [index for index, _ in others], data
            values = np.array([value for _, value in features], np.float32)
            assert np.array_equal(values, np.array([value for _, value in others], np.float32), equal_nan=True), data


def check(data: bytes, multiclass: bool, **options) -> None:
    arguments = {name: value for name, value in options.items() if name != "noconstant"}
    arguments.update(multiclass=multiclass, constant="noconstant" not in options)
    batch, error = parsed(data, multiclass, **options)
    try:
        wanted = oracle.read(data, **arguments)
        assert error is None, (error, data)
    except oracle.BadLabel as stopped:
        assert str(error).startswith(f"f:{stopped.line_number}:"), (error, data)
        before = data.split(b"\n")[: stopped.line_number - 1]
        wanted = oracle.read(b"".join(line + b"\n" for line in before), **arguments)
    assert_same(as_examples(batch), wanted, data)


chosen = st.fixed_dictionaries(
    {},
    optional={
        "hash": st.just("all"),
        "hash_seed": st.sampled_from([7, 2**32 - 1]),
        "noconstant": st.just(True),
        "bits": st.sampled_from([10, 24, 31]),
    },
)


@settings(max_examples=tries(250))
@given(text_of(label), chosen)
@example(b"1 |f a:1|g b\n", {})
def test_multiclass_text_is_read_as_the_oracle_reads_it(data, options):
    check(data, True, **options)


@settings(max_examples=tries(150))
@given(text_of(simple), chosen)
def test_simple_text_is_read_as_the_oracle_reads_it(data, options):
    check(data, False, **options)
