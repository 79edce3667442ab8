"""Progressive validation: the table and the summary are VW's, character for character."""

import numpy as np
import pytest
from command import learn
from versus import needs_vw, run_vw, table

from xclass.api import progress as stats
from xclass.data import batch_ops
from xclass.reductions.core.contract import AsRead, BatchTask

PACES = ["2.0", "1.5", "10.0", "1", "7", "0.5", "0", "1e1"]


def assert_same_table(folder, lines: list[str], *words) -> None:
    """Check that the table and the summary of a run are those that VW prints."""
    (folder / "data").write_text("\n".join(lines) + "\n")
    expected = run_vw("-d", "data", *words, cwd=folder)
    result = learn("-d", "data", "--vw_exact", *words, cwd=folder)
    assert table(result.err) == table(expected.err)


def multiclass_lines(rng, n: int, classes: int, unlabelled: float = 0.1, weights=(1, 1, 1, 0.5, 2.5, 17)) -> list[str]:
    lines = []
    for _ in range(n):
        words = " ".join(f"w{i}" for i in rng.integers(0, 30, rng.integers(0, 6)))
        head = f"{rng.integers(1, classes + 1)} {rng.choice(weights)}"
        lines.append(f"{'' if rng.random() < unlabelled else head} | {words}")
    return lines


@needs_vw
@pytest.mark.parametrize("text", PACES)
@pytest.mark.parametrize("reduction", ["--oaa", "--recall_tree"])
def test_multiclass_table_is_vws(tmp_path, text, reduction):
    rng = np.random.default_rng([3, PACES.index(text), len(reduction)])
    weights = (1, 1, 1, 0.5, 2.5, 17, *([0] if reduction == "--oaa" else []))  # 0 makes entropies NaN in VW
    lines = multiclass_lines(rng, int(rng.integers(1, 400)), 5, weights=weights)
    assert_same_table(tmp_path, lines, reduction, "5", "-P", text)


@needs_vw
@pytest.mark.parametrize("words", ["--oaa_subsample 2", "--probabilities --loss_function logistic -P 9"])
def test_table_without_losses_or_with_those_of_probabilities_is_vws(tmp_path, words):
    lines = multiclass_lines(np.random.default_rng(5), 100, 4, unlabelled=0)
    assert_same_table(tmp_path, lines, "--oaa", "4", *words.split())


KINDS = {  # what VW takes as labels under each loss
    "squared": ("reals", "two", "one", "zero", "none"),
    "quantile": ("reals", "two", "one", "zero", "none"),
    "hinge": ("two", "one", "none"),
    "logistic": ("two", "one", "minus", "none"),
}


@needs_vw
@pytest.mark.parametrize("text", ["2.0", "1", "3"])
@pytest.mark.parametrize(("loss", "kind"), [(loss, kind) for loss, kinds in KINDS.items() for kind in kinds])
def test_simple_table_is_vws(tmp_path, loss, kind, text):
    """Both are made to predict given numbers: without learning, a prediction is the third word of the label."""
    rng = np.random.default_rng([7, len(loss), len(kind), int(float(text))])
    values = {"reals": None, "two": [-1, 1], "one": [1], "minus": [-1], "zero": [0], "none": [1]}[kind]
    lines = []
    for _ in range(int(rng.integers(5, 200))):
        # halves only: VW reads other decimals to the last digit but one
        label = np.rint(rng.normal() * 1000) / 2 if values is None else rng.choice(values)
        guess = np.rint(rng.normal() * (500 if kind == "reals" else 4)) / 2 + 0.0
        is_unlabelled = kind == "none" or rng.random() < 0.1
        lines.append("| a b" if is_unlabelled else f"{label} {rng.choice([1, 1, 0.5, 3, 0])} {guess} |f a:2 b c")
    bounds = ("-t", "--min_prediction", "-1e9", "--max_prediction", "1e9")
    tau = ("--quantile_tau", "0.3") if loss == "quantile" else ()
    assert_same_table(tmp_path, lines, "--loss_function", loss, *tau, *bounds, "-P", text)


@needs_vw
@pytest.mark.parametrize("lines", [["1 | a", "1 -2 | a", "1 | a", "1 | a"], [""]])
def test_negative_weights_and_empty_runs_are_vws(tmp_path, lines):
    assert_same_table(tmp_path, lines, "-P", "1")


def test_squared_loss_is_linear_beyond_the_label_range():
    """VW's squared loss outside the labels seen, as under -t with a model."""
    batch = batch_ops.empty(2, 0, 0)._replace(label=np.array([2.0, 4.0]), weight=np.ones(2, np.float32))
    progress = stats.Progress("simple", None)
    as_read = AsRead(features=np.ones(2, np.int64))
    task = BatchTask(batch, True, np.zeros(2), as_read, prediction=np.zeros(2), loss=np.array([4.0, 16.0]))
    assert progress.count(task) == []
    assert "best constant's loss = 1.000000" in progress.summary()
    assert "best constant's loss = 1.000000" in progress.summary(label_range=(0.0, 4.0))
    straight = ((2 - 1) ** 2 + 2 * (2 - 1) * (1 - 3) + (4 - 1) ** 2 + 2 * (4 - 1) * (1 - 3)) / 2
    assert f"best constant's loss = {straight:.6f}" in progress.summary(label_range=(0.0, 1.0))
