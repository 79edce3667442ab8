"""Columns of tables: names, kinds, and the bytes of a schema, which may come from a stranger."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.data.schema import CATEGORY, KINDS, NUMBER, TEXT, Column, Schema, category, written
from xclass.errors import DataError, ModelError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.sampled_from(KINDS), min_size=1), st.none() | NAMES)
def test_bytes_give_the_schema_back_with_the_order_of_its_columns(columns, label):
    schema = Schema(columns.items(), None if label in columns else label)
    read = Schema.from_bytes(schema.to_bytes())
    assert read == schema
    assert list(read.columns.items()) == list(columns.items())


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"[", "no JSON"),
        (b"[" * 100_000, "nested"),
        (b'{"columns":{"a":"text","a":"number"},"label":null}', "occurs twice"),
        (b"[]", "allowed is an object"),
        (b'{"columns":{}}', "label is missing"),
        (b'{"columns":{},"label":null}', "no columns"),
        (b'{"columns":[],"label":null}', "columns is"),
        (b'{"columns":{"a":"date"},"label":null}', "columns.a is 'date'"),
        (b'{"columns":{"a":5},"label":null}', "columns.a is 5"),
        (b'{"columns":{"":"text"},"label":null}', "without a name"),
        (b'{"columns":{"\\ud800":"text"},"label":null}', "surrogate"),
        (b'{"columns":{"a":"text"},"label":"a"}', "named as the label"),
        (b'{"columns":{"a":"text"},"label":7}', "label is 7"),
        (b" " * (1 << 25) + b"{}", "at most"),
    ],
)
def test_bytes_of_a_stranger_are_checked(record, message):
    with pytest.raises(ModelError, match=message):
        Schema.from_bytes(record)


def test_columns_are_found_by_name_in_any_order_and_a_missing_one_is_named():
    schema = Schema([Column("a", NUMBER), Column("b", TEXT)], "y")
    assert schema.positions(["y", "b", "c", "a"], "the table") == [3, 1]
    assert schema.additional(["y", "b", "c", "a"]) == ["c"]
    with pytest.raises(DataError, match="the table has no column 'a', from which the model has learned"):
        schema.positions(["y", "b"], "the table")


def test_a_difference_names_the_column_and_both_kinds():
    first, second = Schema([Column("a", NUMBER), Column("b", TEXT)]), Schema([Column("a", NUMBER)])
    assert first.difference(first) == ""
    assert first.difference(second).format("one", "two") == "'b' is a column of kind text in one and missing in two"
    third = Schema([Column("a", CATEGORY), Column("b", TEXT)])
    assert "'a' is a column of kind number in one and a column of kind category" in first.difference(third).format(
        "one", "two"
    )


def test_names_that_no_model_file_can_hold_are_refused():
    with pytest.raises(DataError, match="leave out columns"):
        Schema().adopt([Column("a" * (1 << 24), TEXT)], None, "the table")


def test_numbers_are_written_as_whole_where_they_are():
    values = (3, 3.0, 0.5, "3.0", True, 1e300)
    assert [written(value) for value in values] == ["3", "3", "0.5", "3.0", "True", "1e+300"]
    assert [category(cell) for cell in (" New  York ", "3.0", "3.", "-7.00", "3.1", "07")] == [
        "New_York", "3", "3", "-7", "3.1", "07",
    ]  # fmt: skip
    assert json.loads(Schema([Column("a", TEXT)]).to_bytes()) == {"columns": {"a": "text"}, "label": None}
