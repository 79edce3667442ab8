"""Lines of VW text, malformed ones, and the three ways of treating those."""

import numpy as np
import pytest

from xclass.data import hashing
from xclass.data.batch import CONSTANT
from xclass.text import malformed, parser

pytestmark = [pytest.mark.bounds, pytest.mark.plain, pytest.mark.filterwarnings("ignore:overflow")]
NAN = float("nan")


def padded(data: bytes) -> np.ndarray:
    buffer = np.zeros(len(data) + parser.PADDING, np.uint8)
    buffer[: len(data)] = np.frombuffer(data, np.uint8)
    return buffer


def parse(data: bytes, labels: str = "multiclass", bits: int = 18, lowest=None, highest=None, because="", **options):
    """The batch, the error, and the parser."""
    reading = parser.Parser(parser.ParserOptions(**options), bits, labels, lowest, highest, because)
    batch, error, used = reading.parse(padded(data), len(data), "train.vw")
    assert error is not None or used == len(data)
    return batch, error, reading


def features(line: bytes, **options) -> list[tuple[int, float]]:
    """Index at 18 bits and value of each feature of a line, without the constant."""
    options = {"on_bad_line": "vw", "number_rules": "vw", **options}
    batch, error, _ = parse(line + b"\n", noconstant=True, **options)
    assert error is None and batch.n == 1
    return [(int(i) % 2**18, float(v)) for i, v in zip(batch.index, batch.value, strict=True)]


def tag_of(batch, i: int) -> bytes:
    return batch.text[batch.tag_start[i] : batch.tag_end[i]].tobytes()


def same(a, b) -> bool:
    return np.array_equal(np.array(a), np.array(b), equal_nan=True)


# -- lines and labels


def test_the_example_of_the_docstring():
    batch, error, _ = parse(b"17 2.5 'tag |w:0.5 cat:2 colour:red dog |x :7\n")
    assert error is None
    assert (batch.label[0], batch.weight[0], tag_of(batch, 0)) == (17, 2.5, b"tag")
    assert batch.value.tolist() == [1, 1, 0.5, 7, 1]
    assert batch.group_name.tobytes() == b"wx\x80"
    assert batch.group_start.tolist() == [0, 3, 4, 5]
    assert batch.index[-1] == CONSTANT


def test_arrays_have_the_dtypes_and_layout_kernels_expect():
    batch, _, _ = parse(b"1 |a x |b y |a z\n\n2 |\n")
    kinds = {
        "index": "u4",
        "value": "f4",
        "label": "f8",
        "labels": "f8",
        "weight": "f4",
        "initial": "f4",
        "dense": "f4",
        "group_name": "u1",
        "text": "u1",
    }
    for name, array in batch._asdict().items():
        assert array.dtype == kinds.get(name, "i8"), name
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned, name


@pytest.mark.parametrize(
    ("line", "label", "weight", "tag"),
    [
        (b"1 |f a", 1, 1, b""),
        (b"1 'tg |f a", 1, 1, b"tg"),
        (b"1 tg|f a", 1, 1, b"tg"),
        (b"1 2.5 'tg |f a", 1, 2.5, b"tg"),
        (b"1|f a", NAN, 1, b"1"),
        (b"1tg|f a", NAN, 1, b"1tg"),
        (b"'tg |f a", NAN, 1, b"tg"),
        (b"1", NAN, 1, b"1"),
        (b"1 2 hello", 1, 2, b"hello"),
        (b"  1   |f a", 1, 1, b""),
        (b"9 hi\t1 |f a", 1, 1, b""),
        (b"1\t|f a", NAN, 1, b""),
        (b"|f a", NAN, 1, b""),
        (b"+3 |f a", 3, 1, b""),
        (b"-1 |f a", NAN, 1, b""),
        (b"-2 |f a", 4294967294, 1, b""),
        (b"4294967295 |f a", NAN, 1, b""),
        (b"4294967297 |f a", 1, 1, b""),
        (b"1 -2 |f a", 1, 0, b""),
        (b"1 x |f a", 1, 0, b""),
        (b"1 2x |f a", 1, 2, b""),
        (b"1234567890 |f a", 1234567890, 1, b""),
    ],
)
def test_classes_weights_and_tags(line, label, weight, tag):
    batch, error, _ = parse(line + b"\n", on_bad_line="vw")
    assert error is None
    assert same(batch.label, [label]) and same(batch.weight, [weight]) and tag_of(batch, 0) == tag


@pytest.mark.parametrize(
    ("line", "label", "weight", "initial"),
    [
        (b"-1.5 |f a", -1.5, 1, 0),
        (b"1 2 0.5 |f a", 1, 2, 0.5),
        (b"|f a", NAN, 1, 0),
        (b"x |f a", 0, 1, 0),
        (b"nan |f a", 0, 1, 0),
        (b"1 -2 |f a", 1, -2, 0),
        (b"1 2 3 4 |f a", NAN, 1, 0),
        (b"1e2 |f a", 100, 1, 0),
    ],
)
def test_simple_labels(line, label, weight, initial):
    batch, error, _ = parse(line + b"\n", labels="simple", on_bad_line="vw")
    assert error is None
    assert same(batch.label, [label]) and same(batch.weight, [weight]) and same(batch.initial, [initial])


def test_empty_lines_are_counted_but_no_examples():
    batch, error, reading = parse(b"\n1 |f a\n\r\n\n|\n2 \n\xef\xbb\xbf\n")
    assert error is None
    assert batch.line.tolist() == [2, 5, 6]
    assert np.diff(batch.start).tolist() == [2, 1, 1]
    assert reading.lines == 7


def test_a_byte_order_mark_and_a_carriage_return_are_dropped():
    plain, _, _ = parse(b"1 |f a:2\n2 |f b:3\n")
    other, error, _ = parse(b"\xef\xbb\xbf1 |f a:2\r\n\xef\xbb\xbf2 |f b:3\r\n")
    assert error is None
    assert all(same(plain[i], other[i]) for i in range(5))


def test_groups_are_merged_in_the_order_of_their_first_feature():
    batch, _, _ = parse(b"1 |l a b c d e f\n1 |foo a |b |g x |far b |b y |g z |far\n1 |b x\n")
    start, end = batch.group_first[1:3]
    assert batch.group_name[start:end].tobytes() == b"fgb\x80"
    assert np.diff(batch.group_start[start : end + 1]).tolist() == [2, 2, 1, 1]
    separate = [features(line)[0][0] for line in (b"|foo a", b"|far b", b"|g x", b"|g z", b"|b y")]
    assert batch.index[batch.start[1] : batch.start[2] - 1].tolist() == separate
    assert batch.index[batch.start[2]] == features(b"|b x")[0][0]
    assert batch.start.tolist() == [0, 7, 13, 15] and batch.group_first.tolist() == [0, 2, 6, 8]


def test_noconstant_leaves_the_constant_out():
    batch, _, _ = parse(b"1 |f a\n1 |\n", noconstant=True)
    assert batch.start.tolist() == [0, 1, 1] and batch.group_first.tolist() == [0, 1, 1]


# -- names and values


@pytest.mark.parametrize(
    ("line", "indices", "options"),
    [
        (b"| a", [92594], {}),
        (b"| 12", [12], {}),
        (b"|f a", [14355], {}),
        (b"|f 12", [34887], {}),
        (b"|f b", [146788], {}),
        (b"|foo x y 7", [80604, 167248, 115751], {}),
        (b"|f :5 :6", [34875, 34876], {}),
        (b"|f x:y x:z", [234998, 80879], {}),
        (b"|f -3", [12089], {}),
        ("| é".encode(), [67463], {}),
        (b"| 12", [192277], {"hash": "all"}),
        (b"|f 12 00012", [65340, 85141], {"hash": "all"}),
        (b"|foo 7", [72307], {"hash": "all"}),
    ],
)
def test_indices_of_vw(line, indices, options):
    assert [index for index, _ in features(line, **options)] == indices


@pytest.mark.parametrize(
    ("line", "index"), [(b"| a", 12747067), (b"|f a", 6415538), (b"|f 12", 5379780), (b"|foo x", 11785598)]
)
def test_indices_of_vw_with_a_seed(line, index):
    batch, _, _ = parse(line + b"\n", hash_seed=7, bits=24)
    assert batch.index.tolist() == [index, CONSTANT]


A, B = 14355, 146788


@pytest.mark.parametrize(
    ("rest", "wanted"),
    [
        (b"|f:2 a:3 b", [(A, 6), (B, 2)]),
        (b"|f:-0.5 a:3 b", [(A, -1.5), (B, -0.5)]),
        (b"|f:nan a", [(A, 1)]),
        (b"|f: 2 a", [(A, 2)]),
        (b"|f a  \t b", [(A, 1), (B, 1)]),
        (b"|f a:0 b", [(B, 1)]),
        (b"|f:0 a", []),
        (b"|f a:nan b", [(B, 1)]),
        (b"|f a: 5 b", [(A, 5), (B, 1)]),
        (b"|f a:", [(A, 1)]),
        (b"|f:2 a:\t", [(A, 1)]),
        (b"|f a:  ", []),
        (b"|f a:- b:. a:e b", [(B, 1)]),
        (b"|f a:1x b", [(A, 1)]),
        (b"|f a:1:2 b |g c", [(A, 1)]),
        (b"|f:x a", []),
        (b"|f a |:2 b", [(A, 1)]),
        (b"|f a\rb", [(A, 1)]),
        (b"|f a:.5 b:1e", [(A, 0.5), (B, 1)]),
        (b"|f a:+3 b:1e+2", [(A, 3), (B, 100)]),
        (b"|f a:0x10 b:inf", [(A, 16), (B, np.inf)]),
        (b"|f a:1e300 b:1e256", [(A, np.inf), (B, 1)]),
        (b"|f a:1e-50", []),
        (b"|f a:2|f b:3", [(A, 2), (B, 3)]),
        (b"|f a:0x.8p1|f b:-infinity", [(A, 1), (B, -np.inf)]),
        (b"|f a:123456789", [(A, 123456792)]),
        (b"|f a:1.1754944e-38|f b", [(A, float(np.float32(1.1754944e-38))), (B, 1)]),
    ],
)
def test_values_as_vw_reads_them(rest, wanted):
    assert features(b"1 " + rest) == wanted


def test_words_as_values():
    def chained(name: bytes, word: bytes) -> int:
        joined = np.frombuffer(bytearray(b"f" + name + word), np.uint8)
        key = np.uint32(0)
        for start, end in ((0, 1), (1, 1 + len(name)), (1 + len(name), len(joined))):
            key = hashing.name_hash(joined, start, end, key, False, True)
        return int(key) % 2**18

    assert features(b"|f:2 colour:red a") == [(chained(b"colour", b"red"), 1), (A, 2)]  # words are not multiplied
    assert features(b"|f a:b:c") == [(chained(b"a", b"b:c"), 1)]
    assert features(b"|f a:|b c") == [(chained(b"a", b"|b"), 1), features(b"|f c")[0]]
    assert features(b"|f x: y") == [(234998, 1)]


@pytest.mark.parametrize(
    "text", ["0.1", "16777217", "9.999999", "1234567.8", "0.00012345678", "3.14159265358979", "1e10"]
)
def test_numbers_are_rounded_step_by_step(text):
    digits, _, exponent = text.partition("e")
    whole, _, decimals = digits.partition(".")
    value = np.float32(0)
    for digit in whole:
        value = np.float32(np.float32(value * np.float32(10)) + np.float32(ord(digit))) - np.float32(48)
    for digit in decimals:
        value = np.float32(value * np.float32(10)) + np.float32(int(digit))
    power = np.float32(1)
    for _ in range(int(exponent or 0) - len(decimals)):
        power *= np.float32(10)
    for _ in range(len(decimals) - int(exponent or 0)):
        power /= np.float32(10)
    assert features(b"|f a:" + text.encode()) == [(A, float(value * power))]


# -- malformed lines

MALFORMED = [  # line, column, what the message says, label kind
    (b"cat |f a", 1, "label 'cat' is not a class number", "multiclass"),
    (b"1.5 |f a", 1, "label '1.5' is not a class number", "multiclass"),
    (b"2x |f a", 1, "label '2x' is not a class number", "multiclass"),
    (b"-1 |f a", 1, "label -1 is negative", "multiclass"),
    (b"99999999999 |f a", 1, "label 99999999999 is outside 0..4294967295", "multiclass"),
    (b"1 2 3 |f a", 1, "are more than a label and a weight;", "multiclass"),
    (b"1 -2 |f a", 3, "weight '-2' is not a finite number of at least 0", "multiclass"),
    (b"1 2x |f a", 3, "weight '2x'", "multiclass"),
    (b"1 inf |f a", 3, "weight 'inf'", "multiclass"),
    (b"1 |f a:1x b", 8, "the value '1x' of a feature is not a number; a feature is name, name:number", "multiclass"),
    (b"1 |f a:1:2 b", 8, "the value '1:2' of a feature is not a number", "multiclass"),
    (b"1 |f a:- b", 8, "the value '-' of a feature is not a number", "multiclass"),
    (b"1 |f a:nan b", 8, "the value 'nan' of a feature is not a number", "multiclass"),
    (b"1 |f a:-Infinity b", 8, "the value '-Infinity' of a feature is not a number", "multiclass"),
    (b"1 |f a:0x1f b", 8, "the value '0x1f' of a feature is not a number", "multiclass"),
    (b"1 |f a:1e b", 8, "the value '1e' of a feature is not a number", "multiclass"),
    (b"1 |f a:e5 b", 8, "the value 'e5' of a feature is not a number", "multiclass"),
    (b"1 |f a:1e39", 8, "'1e39' is too large; the largest number is 3.4e+38", "multiclass"),
    (b"1 |f a: b:2", 7, "feature 'a' has no value; write the value directly after the colon", "multiclass"),
    (b"1 |f abc:\t|b leaf", 9, "feature 'abc' has no value", "multiclass"),
    (b"1 |f abc:", 9, "feature 'abc' has no value", "multiclass"),
    (b"1 |f abc:red|b leaf", 10, "the text 'red', the value of a feature, touches a bar", "multiclass"),
    (b"1 1e256 |f a", 3, "'1e256' is too large", "multiclass"),
    (b"1 |f:1e256 a", 6, "'1e256' is too large", "multiclass"),
    (b"-1e400 |f a", 1, "'-1e400' is too large", "simple"),
    (b"1 1 1e39 |f a", 5, "'1e39' is too large", "simple"),
    (
        b"1 |f:1e30 a:1e30",
        13,
        "the value '1e30' of a feature, times the weight of its",
        True,
    ),
    (b"1 |f:x a", 6, "weight 'x' of a namespace is not a finite number; a namespace is", "multiclass"),
    (b"1 |f: |g a", 6, "not a finite number; a namespace is", "multiclass"),
    (b"1 |f:nan a", 6, "weight 'nan' of a namespace is not a finite number; a namespace is", "multiclass"),
    (b"1 |f:1:2 a", 6, "weight '1:2' of a namespace is not a finite number; a namespace is", "multiclass"),
    (b"1 |:2 a", 4, "':2' is not the name of a namespace", "multiclass"),
    (b"1 |f a\rb", 7, "there is a carriage return inside the line", "multiclass"),
    (b"cat |f a", 1, "label 'cat' is not a finite number", "simple"),
    (b"nan |f a", 1, "label 'nan' is not a finite number", "simple"),
    (b"1 x |f a", 3, "weight 'x'", "simple"),
    (b"1 1 x |f a", 5, "initial prediction 'x' is not a finite number", "simple"),
    (b"1 2 3 4 |f a", 1, "are more than a label, a weight and an initial", "simple"),
]


@pytest.mark.parametrize(("line", "column", "message", "labels"), MALFORMED)
def test_stop_ends_after_the_good_examples(line, column, message, labels):
    batch, error, reading = parse(b"1 |f a\n\n" + line + b"\n2 |f b\n", labels)
    assert batch.line.tolist() == [1]
    assert batch.start.tolist() == [0, 2] and len(batch.index) == 2 and len(batch.group_name) == 2
    assert str(error).startswith(f"train.vw:3:{column}: ") and message in str(error)
    assert str(error).endswith("Correct the line, or use --on_bad_line skip")
    assert reading.lines == 3


@pytest.mark.parametrize(("line", "column", "reason", "labels"), MALFORMED)
def test_skip_leaves_the_line_out(line, column, reason, labels):
    good = b"1 |f a |g b\n\n"
    batch, error, reading = parse(good + line + b"\n2 |f b\n", labels, on_bad_line="skip")
    other, _, _ = parse(good + b"\n2 |f b\n", labels)
    assert error is None
    assert all(same(batch[i], other[i]) for i in range(9)) and batch.line.tolist() == [1, 4]
    assert (reading.skipped, reading.bad) == (1, 1)
    counted, message = reading.report()
    assert counted == "1 malformed line was skipped:"
    assert message.startswith(f"train.vw:3:{column}: ") and reason in message


def test_vw_reads_on_but_not_after_a_bad_class():
    text = b"1 |f a:1x b\n1 -2 |f a\n1 |f:x a\n1 |f a:nan b\ncat |f a\n2 |f b\n"
    batch, error, reading = parse(text, on_bad_line="vw", number_rules="vw")
    assert batch.line.tolist() == [1, 2, 3, 4]
    assert np.diff(batch.start).tolist() == [2, 2, 1, 2]
    assert str(error).startswith("train.vw:5:1: label 'cat'")
    assert reading.skipped == 0 and reading.report()[0] == "3 malformed places were read as VW reads them:"
    assert "the rest of the line is ignored" in reading.report()[1]


def test_no_more_than_five_messages_are_kept():
    batch, error, reading = parse(b"x |f a\n" * 12 + b"1 |f a\n", on_bad_line="skip")
    assert error is None and batch.n == 1 and reading.skipped == 12
    assert reading.report()[0] == "12 malformed lines were skipped; the first:"
    assert [message.split(":")[1] for message in reading.report()[1:]] == ["1", "2", "3", "4", "5"]


def test_the_message_that_stops_vw_is_its_own_after_many_others():
    _, error, _ = parse(b"1 |f a:1x\n" * 9 + b"x |f a\n", on_bad_line="vw")
    assert str(error).startswith("train.vw:10:1: label 'x'")


@pytest.mark.parametrize("label", [b"0", b"1203"])
def test_a_class_outside_the_range_is_malformed(label):
    text = b"1000 |f a\n" + label + b" |f a\n1 'tag |f a\n"
    rules = {"lowest": 1, "highest": 1000, "because": "--oaa 1000"}
    batch, error, _ = parse(text, **rules)
    assert batch.n == 1
    assert str(error) == (
        f"train.vw:2:1: label {label.decode()} is outside 1..1000 (--oaa 1000)"
        f"{malformed.FROM_ONE if label == b'0' else malformed.CURE}"
    )
    batch, error, _ = parse(text.replace(b" |f", b" 2 |f"), **rules)
    assert batch.n == 1 and f"label {label.decode()} is outside" in str(error)
    batch, error, _ = parse(text, on_bad_line="skip", **rules)
    assert error is None and batch.label.tolist() == [1000, 1]
    batch, error, _ = parse(text, on_bad_line="vw", **rules)
    assert error is None and batch.n == 3
    assert parse(b"|f a\n4294967295 |f a\n", **rules)[0].n == 2  # unlabelled


def test_a_class_that_is_read_as_a_tag_is_told_once():
    reading = parser.Parser(parser.ParserOptions(), 18, "multiclass")
    for _ in range(2):
        batch, error, _ = reading.parse(padded(b"1 |f a\n17|f a\n18|f b\n"), 20, "train.vw")
        assert error is None and np.isnan(batch.label[1])
    assert len(reading.notes) == 1
    assert reading.notes[0].startswith("train.vw:2: '17' touches the bar and is read as a tag")
    assert parse(b"'17 |f a\nx17|f a\n")[2].notes == []
    assert parse(b"17|f a\n", labels="simple")[2].notes == []


# -- batches in flight


def test_memory_of_a_batch_is_not_used_again_while_somebody_holds_it():
    reading = parser.Parser(parser.ParserOptions(), 18, "multiclass")
    references = []
    for i in range(50):
        text = b"%d |f a%d\n" % (i, i)
        batch, _, _ = reading.parse(padded(text), len(text), "f")
        references.append((batch if i % 3 else batch.label, i))
        if i % 7 == 0:
            references = references[len(references) // 2 :]
        for reference, number in references:
            label = reference if isinstance(reference, np.ndarray) else reference.label
            assert label.tolist() == [number]


def test_memory_is_used_again_once_it_is_free():
    reading = parser.Parser(parser.ParserOptions(), 18, "multiclass")
    places = set()
    for _ in range(20):
        batch, _, _ = reading.parse(padded(b"1 |f a\n"), 7, "f")
        places.add(batch.start.ctypes.data)
        del batch
    assert len(places) <= 2
