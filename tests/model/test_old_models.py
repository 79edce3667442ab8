"""Models that earlier versions wrote predict what they did, and the same command lines still learn the same.

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
    "scalar": "",
    "scalar_crossed": "-q :: --l1 1e-5",
    "oaa": f"--oaa {K} --loss_function logistic",
    "oaa_logistic": f"--oaa {K} --loss_function logistic",
    "recall_tree": f"--recall_tree {K}",
    "recall_tree_vw": f"--recall_tree {K} --layout vw",
    "log_multi": f"--log_multi {K}",
    "log_multi_vw": f"--log_multi {K} --layout vw --lom_rules vw",
    "ect": f"--ect {K} --error 2",
    "random_tree": f"--random_tree {K}",
    "cpt": f"--cpt {K} --layout odd",
    "cpt_trees": f"--cpt {K} --trees 2 --rerank",
    "cpt_wide": f"--cpt {K} --cpt_arity 4 --layout odd",
    "cpt_kmeans": f"--cpt {K} --cpt_tree kmeans --tree_sample 50 --layout odd",
    "cpt_columns": f"--cpt {K} --normalize_features columns --layout odd",
    "multiclass": f"--multiclass {K}",
    "softmax_tree": f"--softmax_tree {K} --depth 2",
    "vw_exact": f"--oaa {K} --vw_exact",
    "names": "--multiclass --learn_names",
}


def text(name: str, part: str) -> str:
    kind = "numbers" if name.startswith("scalar") else "classes"
    lines = (MODELS / f"{kind}.{part}.vw").read_text().splitlines(keepends=True)
    return "".join(f"c{line}" if name == "names" else line for line in lines)


@pytest.mark.parametrize("name", LINES)
def test_an_old_model_predicts_what_it_did(tmp_path, name):
    words = ("-i", MODELS / f"{name}.model", "-t", "-p", "p", "--quiet")
    learn(*words, stdin=text(name, "test"), cwd=tmp_path)
    assert (tmp_path / "p").read_bytes() == (MODELS / f"{name}.predictions").read_bytes()


WITHOUT_INDEX = ("cpt_trees", "multiclass", "names")  # these command lines learn with an index of features by now


@pytest.mark.parametrize("name", [name for name in LINES if name not in WITHOUT_INDEX])
def test_the_same_command_line_learns_the_same(tmp_path, name):
    words = (*LINES[name].split(), "--number_rules", "vw", "-b", 8, "--quiet", "-f", "m")
    learn(*words, stdin=text(name, "train"), cwd=tmp_path)
    with xclass.load(tmp_path / "m") as learned, xclass.load(MODELS / f"{name}.model") as old:
        arrays, expected = learned.contents().arrays, old.contents().arrays
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(array, expected[key]) for key, array in arrays.items())
