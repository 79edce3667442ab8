"""The same command lines learn the same as long ago, and their models predict the same.

The files in `old_models` were written before the modules became packages, by VW's rules of numbers. Command
lines with --layout odd had it by default then.
"""

from pathlib import Path

import numpy as np
import pytest
from command import learn

import xclass

MODELS = Path(__file__).resolve().parent / "old_models"
K = 6
LINES = {
    "scalar_crossed": "-q :: --l1 1e-5",
    "oaa_logistic": f"--oaa {K} --loss_function logistic",
    "recall_tree": f"--recall_tree {K} --recall_stop bound",
    "cpt": f"--cpt {K} --layout odd",
    "vw_exact": f"--oaa {K} --vw_exact",
}


def text(name: str, part: str) -> str:
    kind = "numbers" if name.startswith("scalar") else "classes"
    return (MODELS / f"{kind}.{part}.vw").read_text()


@pytest.mark.parametrize("name", LINES)
def test_an_old_model_predicts_what_it_did(tmp_path, name):
    words = ("-i", MODELS / f"{name}.model", "-t", "-p", "p", "--quiet")
    learn(*words, stdin=text(name, "test"), cwd=tmp_path)
    assert (tmp_path / "p").read_bytes() == (MODELS / f"{name}.predictions").read_bytes()


@pytest.mark.parametrize("name", LINES)
def test_the_same_command_line_learns_the_same(tmp_path, name):
    words = (*LINES[name].split(), "--number_rules", "vw", "-b", 8, "--quiet", "-f", "m")
    learn(*words, stdin=text(name, "train"), cwd=tmp_path)
    with xclass.load(tmp_path / "m") as learned, xclass.load(MODELS / f"{name}.model") as old:
        arrays, expected = learned.contents().arrays, old.contents().arrays
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(array, expected[key]) for key, array in arrays.items())
