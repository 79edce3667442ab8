"""Spread one-against-all: each part has a block of neighbouring classes, and learns them as one process does.

    whole    row r: | class 0 ... K - 1      |        part    row r: | first ... end - 1 |

The tables of the parts have the rows of the whole one, and in each row the weights of their own classes.
"""

from __future__ import annotations

from ...array_types import Bools, Int64s
from ...binary import gd
from ..core.base import split_range
from ..core.spec import Part

Block = tuple[int, int]  # first class and end
# class of each example, whether it is learned, and label base before and after, see `OneAgainstAll.classes_by_label`
Labels = tuple[Int64s, Bools, Int64s, Int64s]


def of_part(classes: int, part: Part | None) -> Block:
    """Return the classes of a part; the whole and a learner without parts have all."""
    if part is None or part.number is None:
        return 0, classes
    return split_range(classes, part.of)[part.number]


def size(rows: int, block: Block) -> tuple[int, int]:
    """Return the log2 of the slots of a part's table, and the slots of a row."""
    width = block[1] - block[0]
    return max(0, rows * width - 1).bit_length(), width


def new_table(rule: gd.Rule, bits: int, width: int, block: Block, weights_only: bool) -> gd.Table:
    """Return a table of 2**bits slots for some classes, with rows of `width` slots."""
    table = gd.new_table(rule, bits, block[1] - block[0], width, True, weights_only)
    if block[0]:
        table.sums[0] = 0  # only the first class of all begins with --initial_t
    return table
