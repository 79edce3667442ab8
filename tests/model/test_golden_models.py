"""Models that are kept load and predict the same for ever, and their command lines learn the same."""

from pathlib import Path

import numpy as np
import pytest
from command import learn

import xclass

MODELS = Path(__file__).resolve().parent / "golden"
K = 6
LINES = {
    "scalar_crossed": "-q :: --l1 1e-5",
    "oaa_logistic": f"--oaa {K} --loss_function logistic",
    "recall_tree": f"--recall_tree {K} --recall_stop bound",
    "cpt": f"--cpt {K}",
    "vw_exact": f"--oaa {K} --vw_exact",
}


def text(name: str, part: str) -> str:
    kind = "numbers" if name.startswith("scalar") else "classes"
    return (MODELS / f"{kind}.{part}.vw").read_text()


@pytest.mark.parametrize("name", LINES)
def test_a_kept_model_predicts_what_it_did(tmp_path, name):
    words = ("-i", MODELS / f"{name}.model", "-t", "-p", "p", "--quiet")
    learn(*words, stdin=text(name, "test"), cwd=tmp_path)
    assert (tmp_path / "p").read_bytes() == (MODELS / f"{name}.predictions").read_bytes()


@pytest.mark.parametrize("name", LINES)
def test_the_same_command_line_learns_the_same(tmp_path, name):
    words = (*LINES[name].split(), "-b", 8, "--quiet", "-f", "m")
    learn(*words, stdin=text(name, "train"), cwd=tmp_path)
    with xclass.load(tmp_path / "m") as learned, xclass.load(MODELS / f"{name}.model") as kept:
        arrays, expected = learned.core.contents().arrays, kept.core.contents().arrays
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(array, expected[key]) for key, array in arrays.items())
