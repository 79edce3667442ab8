"""Weights after `xclass --vw_exact ARGS` against those after `vw ARGS`, learned live: the same bits."""

import platform
import re
from pathlib import Path

import numpy as np
import pytest
import streams
from command import learn
from versus import run_vw

from xclass.model import compact_columns, model_file

pytest.importorskip("vowpalwabbit")
pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library may round in another way")

FIELDS = ("w", "g", "n")  # VW keeps an index and these three of every slot that was touched
CASES = {  # name -> options, classes, lines. Small tables: path features and scorers share slots
    "recall tree": ("--recall_tree 60 --loss_function logistic -b 18", 60, 3000),
    "recall tree, crowded": ("--recall_tree 60 --max_candidates 9 --loss_function logistic -b 11", 60, 3000),
    "recall tree, tiny table": ("--recall_tree 60 --loss_function logistic -b 5", 60, 800),
    "recall tree, squared loss": ("--recall_tree 60 -b 18", 60, 2000),
    "one-against-all": ("--oaa 30 --loss_function logistic -b 18", 30, 2000),
    "one regressor": ("-b 18", 30, 2000),
    "one regressor, quantile loss": ("--loss_function quantile -b 18", 30, 2000),
    "one regressor, other decay": ("--power_t 0.3 -b 18", 30, 2000),
    "LOMTree": ("--log_multi 30 -b 18", 30, 2000),
    "LOMTree, logistic": ("--log_multi 30 --loss_function logistic -b 18", 30, 2000),
}


def slots_of_vw(model: Path, count: int) -> np.ndarray:
    """The slots at the end of a VW model: structured array of `count` rows."""
    row = np.dtype([("index", "<u4"), *((name, "<f4") for name in FIELDS)])
    return np.frombuffer(model.read_bytes()[-count * row.itemsize :], row)


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_vw_to_the_last_bit(case, tmp_path):
    args, classes, n = CASES[case]
    (tmp_path / "data.vw").write_text(streams.multiclass(3, classes, n))
    args = ["-d", "data.vw", *args.split()]
    save_args = ["--save_resume", "-f", "theirs", "--readable_model", "told", "--quiet"]
    run_vw(*args, *save_args, cwd=tmp_path)
    learn(*args, "--vw_exact", "-f", "ours", "--quiet", cwd=tmp_path)
    arrays = compact_columns.expanded(model_file.load(tmp_path / "ours").arrays)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    index = arrays.get("weights.index")  # a full table comes without
    index = np.flatnonzero(arrays["weights.w"]) if index is None else index
    text_lines = re.findall(r"^\d+:\S+ \S+ \S+$", (tmp_path / "told").read_text(), re.MULTILINE)
    assert len(index) == len(text_lines)
    slots = slots_of_vw(tmp_path / "theirs", len(index))
    assert np.array_equal(index, slots["index"])
    for name in FIELDS:
        actual, expected = arrays[f"weights.{name}"], slots[name]
        actual = actual[index] if len(actual) > len(index) else actual
        differ = np.flatnonzero(actual.view(np.int32) != expected.copy().view(np.int32))
        assert not len(differ), (
            f"{name} of {len(differ)} of {len(actual)}, first {actual[differ[0]]} and {expected[differ[0]]}"
        )
