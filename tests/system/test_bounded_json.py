"""JSON of strangers is bounded, has one meaning, and has the shape that was declared."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.errors import DataError
from xclass.system import bounded_json
from xclass.system.bounded_json import (
    AnyOf,
    Anything,
    Kind,
    List,
    Malformed,
    Number,
    OneOf,
    OrNull,
    Record,
    Text,
    Whole,
)

SHAPE = Record(
    {"name": Text(), "n": Whole(1, 9), "sums": List(Number(-1, 1), 2, 2), "kind": OneOf(("a", "b"))},
    optional={
        "flag": Kind("true or false", lambda value: isinstance(value, bool), {"type": "boolean"}),
        "none": OrNull(Number()),
        "any": AnyOf("a text or numbers", Text(), List(Number(0, 9))),
    },
)
GOOD = {"name": "x", "n": 3, "sums": [0, 0.5], "kind": "a"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: this is no JSON"),
        ('{"a": 1\n,}', "line 2, column 2: this is no JSON"),
        (b'{"a":\n "\xff"}', "line 2, column 3: byte 0xff is not UTF-8"),
        ("NaN", "NaN is no JSON; allowed are finite numbers"),
        ("[-Infinity]", "line 1, column 2: -Infinity is no JSON"),
        ('{"NaN": "NaN",\n "x": NaN}', "line 2, column 7: NaN is no JSON"),
        ('["1e999 \\"", 1e999x]', "line 1, column 14: the number 1e999 is too large"),
        ("1e999", "the number 1e999 is too large"),
        ("9" * 5000, "the number 99999999999999999999... is too large"),
        ('{"a": 1, "a": 1}', "the name 'a' occurs twice"),
        ('"\\ud800"', "half a surrogate pair"),
        ('{"\\udfff": 1}', "half a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 40 + "]" * 40, "nested too deeply; allowed is a depth of 32"),
        ("[" + "0," * bounded_json.MOST_ITEMS + "0]", "1048576 commas; allowed are at most 1048576 values"),
    ],
)
def test_what_other_readers_may_take_is_refused(text, message):
    with pytest.raises(Malformed) as raised:
        bounded_json.parse(text, Anything())
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n is 0; allowed is a whole number from 1 to 9"),
        ({"n": True}, "n is True; allowed is a whole number"),
        ({"n": 3.0}, "n is 3.0; allowed is a whole number"),
        ({"name": None}, "name is None; allowed is a text"),
        ({"sums": [0, 2]}, "sums[1] is 2; allowed is a number from -1 to 1"),
        ({"sums": [0]}, "sums is [0]; allowed is a list of 2 values"),
        ({"kind": "\x1b[31m"}, "kind is '\\x1b[31m'; allowed is 'a' or 'b'"),
        ({"flag": 1}, "flag is 1; allowed is true or false"),
        ({"none": "x"}, "none is 'x'; allowed is a number from -1e+300 to 1e+300, or null"),
        ({"any": {}}, "any is {}; allowed is a text or numbers"),
        ({"any": [1, 10]}, "any[1] is 10; allowed is a number from 0 to 9"),
        ({"\u202e": 1}, "'\\u202e' is not known; allowed are name, n, sums, kind, flag, none, any"),
    ],
)
def test_a_value_of_another_shape_is_named(change, message):
    assert bounded_json.parse(json.dumps(GOOD), SHAPE) == GOOD
    with pytest.raises(Malformed) as raised:
        bounded_json.parse(json.dumps({**GOOD, **change}), SHAPE)
    assert message in str(raised.value)
    jsonschema = pytest.importorskip("jsonschema")
    schema = jsonschema.Draft202012Validator({**SHAPE.schema})
    assert schema.is_valid(GOOD) and schema.is_valid({**GOOD, "none": None, "any": [0], "flag": True})
    assert not schema.is_valid({**GOOD, **change}) or change == {"n": 3.0}  # which is a whole number in a schema
    for name in GOOD:
        with pytest.raises(Malformed, match=f"{name} is missing; it has to be "):
            bounded_json.parse(json.dumps({key: value for key, value in GOOD.items() if key != name}), SHAPE)


@given(JSON)
def test_what_json_can_say_is_read_as_python_reads_it(value):
    assert bounded_json.parse(json.dumps(value), Anything()) == value
    assert bounded_json.parse(json.dumps(value, ensure_ascii=False).encode(), Anything()) == value


@given(st.text() | st.text(alphabet='{}[],:"\\u0123456789eE+-.nulltruefasNI '))
def test_any_text_is_read_or_refused(text):
    try:
        value = bounded_json.parse(text.encode("utf-8", "surrogatepass"), SHAPE)
    except Malformed:
        return
    assert value == json.loads(text)


def test_the_errors_of_a_file_name_it_and_the_cure(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"name":\n x}')
    with pytest.raises(DataError, match=r"a.json:2:2: this is no JSON: .*; write it again$"):
        bounded_json.read(str(path), SHAPE, "write it again")
    with open(path, "wb") as file:
        file.truncate(bounded_json.MOST_BYTES + 1)
    with pytest.raises(DataError, match=r"a.json: the file has more than 67108864 bytes, which is the limit; write"):
        bounded_json.read(str(path), SHAPE, "write it again")
    with pytest.raises(DataError, match=r"none: the file cannot be read \(No such file or directory\); write it again"):
        bounded_json.read(str(tmp_path / "none"), SHAPE, "write it again")
