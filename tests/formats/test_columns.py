"""The names of columns in the values of options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.errors import UsageError
from xclass.formats import columns

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip), min_size=1, unique=True)


@given(NAMES.filter(all))
def test_names_of_a_program_are_read_as_they_are(names):
    assert columns.names("--columns", columns.as_row(names)) == names


@pytest.mark.parametrize("value", ["", " ", "a,,b", '"a', 'a,"b', "a\nb", '"a"b', "a,a"])
def test_values_that_are_no_row_of_names_are_refused(value):
    with pytest.raises(UsageError, match="--columns"):
        columns.names("--columns", [value])
