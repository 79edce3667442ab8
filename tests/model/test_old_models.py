"""Models that earlier versions wrote predict what they did, and the same command lines still write the same bytes.

The files in `models` were written by version 0.1.0, before its modules became packages. Command lines with --layout odd
had it by default then.
"""

from pathlib import Path

import pytest
from command import learn

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


@pytest.mark.parametrize("name", WITHOUT_INDEX)
def test_an_old_model_without_an_index_continues_as_it_did(tmp_path, name):
    """The continued models were written by the last version that had no index."""
    learn("-i", MODELS / f"{name}.model", "--quiet", "-f", "m", stdin=text(name, "train"), cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (MODELS / f"{name}.continued.model").read_bytes()


@pytest.mark.parametrize("name", [name for name in LINES if name not in WITHOUT_INDEX])
def test_the_same_command_line_writes_the_same_bytes(tmp_path, name):
    learn(*LINES[name].split(), "-b", 8, "--quiet", "-f", "m", stdin=text(name, "train"), cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (MODELS / f"{name}.model").read_bytes()
