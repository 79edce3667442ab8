"""The banner and the rows of the progress table are VW's; an invalid progress interval is refused or reported."""

from xclass.api import progress_table


def test_cells_that_are_too_long_are_cut():
    text = progress_table.row("1234567890", "n.a.", 10**13, 1e15, "x" * 15, "y" * 14, 10**9)
    assert text == "12345678 n.a.     100000000000 10000000000000 xxxxxxxxxxx... yyyyyyyyyyyyyy 10000000"


def test_values_of_progress_out_of_range_get_a_note():
    assert "every example" in progress_table.parse_schedule("-3").note
    assert "1.5 is used" in progress_table.parse_schedule("0.5").note
    assert "every 10 examples" in progress_table.parse_schedule("10.0").note
    assert not progress_table.parse_schedule("2.0").note
