"""The names of columns in the values of options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass import Learner
from xclass.errors import UsageError
from xclass.formats import columns

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip), min_size=1, unique=True)


@given(NAMES.filter(all))
def test_names_of_a_program_are_read_as_they_are(names):
    assert columns.names("--columns", columns.as_typed(names)) == names


@pytest.mark.parametrize("value", ["", " ", "a,,b", '"a', 'a,"b', "a\nb", '"a"b', "a,a"])
def test_values_that_are_no_row_of_names_are_refused(value):
    with pytest.raises(UsageError, match="--columns"):
        columns.names("--columns", [value])


def test_a_column_that_is_named_like_an_option_keeps_its_name(tmp_path):
    (tmp_path / "a.csv").write_text("label,a\n1,2\n")
    for options in ({"columns": "--sgd"}, {"label_column": "--sgd"}):
        with Learner("oaa", 2, bits=8) as model, pytest.raises(UsageError, match=r"'--sgd': .* has no such column"):
            model.learn_file(tmp_path / "a.csv", **options)
