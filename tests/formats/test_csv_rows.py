"""Rows and cells of CSV text are those that Python's module csv reads with `strict=True`."""

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.effort import tries
from xclass.formats import csv_rows
from xclass.formats.csv_rows import NO_QUOTE, QUOTE, START
from xclass.text.malformed import BLANK_QUOTE, CELLS, INNER_RETURN, QUOTED_CELL

pytestmark = [pytest.mark.bounds, pytest.mark.plain]
texts = st.lists(st.sampled_from([",", '"', "\n", "\r", "a", "b ", '""', '","', "x,y\n", "é"]), max_size=30)


def rows_of(text, quoted):
    """The rows that Python reads, None for one that it refuses."""
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text.decode("latin-1"), newline="\n"), quoting=quoting, strict=True)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None


@settings(max_examples=tries(400))
@given(texts.map("".join), st.booleans(), st.integers(1, 3), st.integers(0, 40))
@example('a,"b\n', True, 2, 3)
@example('a,"b" c,d\ne\r\n\r\n"f""\n"\r\n', True, 1, 7)
def test_rows_are_those_of_python(text, quoted, width, at):
    text = text.encode() + b"\n"
    data, quote = np.frombuffer(bytearray(text + bytes(16)), np.uint8).copy(), QUOTE if quoted else NO_QUOTE
    end, state = csv_rows.end_of_rows(data, 0, len(text), START, ord(","), quote, False)
    at = min(at, len(text))
    before, state = csv_rows.end_of_rows(data, 0, at, START, ord(","), quote, False)
    after, _ = csv_rows.end_of_rows(data, at, len(text), state, ord(","), quote, False)
    assert (after or before) == end
    unfinished = list(rows_of(text[end:], quoted))
    assert unfinished in ([], [None])

    wanted = list(rows_of(text[:end], quoted))
    rows = csv_rows.rows_of(data, end, ord(","), quote, width)
    cells = data.tobytes()
    good = iter(
        [cells[b:e].decode("latin-1") for b, e in zip(*row, strict=True)]
        for row in zip(rows.cell_begin.tolist(), rows.cell_end.tolist(), strict=True)
    )
    names = {CELLS: "cells", QUOTED_CELL: None, INNER_RETURN: None}
    read = [next(good) if not problem else names[problem] for problem in rows.problem.tolist()]
    assert read == [row if row is None or len(row) == width else "cells" for row in wanted if row != []]
    assert len(rows.empty) == wanted.count([])
    assert rows.lines == text[:end].count(b"\n")
    cells = [
        row and [cell.decode("latin-1") for cell in row] for _, row in csv_rows.cells_of(text, ord(","), quote, width)
    ]
    assert cells == [*(row if isinstance(row, list) else None for row in read), *unfinished]
    first = next(csv_rows.cells_of(text, ord(","), quote, 0), (1, []))[1]
    assert (first and [cell.decode("latin-1") for cell in first]) == next(
        (row for row in [*wanted, *unfinished] if row != []), []
    )


@pytest.mark.parametrize("text", ['a, "b"', ' "a",b', 'a,\t "b,c"'])
def test_a_blank_before_a_quote_is_refused(text):
    """Python reads the quotes as part of the cell, other readers leave out the blank."""
    at = max(text.find(" "), 0) if "\t" not in text else text.index("\t")
    assert csv_rows.problem_of(text.encode() + b"\n", ord(","), QUOTE) == (BLANK_QUOTE, at)
    assert csv_rows.problem_of(text.encode() + b"\n", ord(","), NO_QUOTE)[0] == 0
