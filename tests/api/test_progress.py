"""Progressive validation: the table and the summary are VW's, character for character."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from versus import run_vw

from xclass.api import progress as stats
from xclass.api import progress_table

PACES = ["2.0", "1.5", "10.0", "1", "7", "0.5", "0", "1e1"]


def vw(folder: Path, lines: list[str], *options: str) -> list[str]:
    """Run VW on `lines` and return what it printed from the table on; predictions are in `folder`/p."""
    pytest.importorskip("vowpalwabbit")
    (folder / "data").write_text("\n".join(lines) + "\n")
    printed = run_vw("-d", "data", "-p", "p", *options, cwd=folder).err.split("\n")
    return printed[printed.index(progress_table.HEADER[0]) : -1]


def table_lines(progress, sizes, columns, **summary) -> list[str]:
    """Hand `columns` over in batches of the given sizes (the last one repeats); return what is printed."""
    rows, start = [], 0
    n = len(columns["label"])
    sizes = list(sizes)
    while start < n:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        part = {name: None if c is None else c[start : start + size] for name, c in columns.items()}
        rows += progress.update(**part)
        start += size
    return [*progress_table.HEADER, *rows, *progress.summary(**summary)]


def batches(rng, n):
    return [int(size) for size in rng.integers(1, max(2, n // 3), 20)]


def multiclass_data(rng, n, classes):
    """Random lines and the columns a reader makes of them."""
    label = rng.integers(1, classes + 1, n).astype(np.float64)
    weight = rng.choice([1, 1, 1, 0.5, 2.5, 0, 17], n).astype(np.float32)
    label[rng.random(n) < 0.1] = np.nan
    weight[np.isnan(label)] = 1
    words = [rng.integers(0, 30, rng.integers(0, 6)) for _ in range(n)]
    lines = []
    for y, w, example_words in zip(label, weight, words, strict=True):
        head = "" if np.isnan(y) else f"{int(y)} {w}"
        lines.append(f"{head} | " + " ".join(f"w{i}" for i in example_words))
    return lines, label, weight, np.array([len(example_words) + 1 for example_words in words])


@pytest.mark.parametrize("text", PACES)
@pytest.mark.parametrize("reduction", ["--oaa", "--recall_tree"])
def test_multiclass_table_is_vws(tmp_path, text, reduction):
    rng = np.random.default_rng([3, PACES.index(text), len(reduction)])
    n = int(rng.integers(1, 400))
    lines, label, weight, features = multiclass_data(rng, n, 5)
    expected = vw(tmp_path, lines, reduction, "5", "-P", text)
    prediction = np.loadtxt(tmp_path / "p", ndmin=1)
    wrong = (prediction != label) & ~np.isnan(label)
    columns = {
        "label": label,
        "weight": weight,
        "features": features,
        "prediction": prediction,
        "loss": np.where(wrong, weight.astype(np.float64), 0.0),
    }
    for sizes in ([n], [1], batches(rng, n)):
        assert (
            table_lines(stats.Progress("multiclass", progress_table.parse_schedule(text)), sizes, columns) == expected
        )


def test_table_without_reported_loss_is_vws(tmp_path):
    rng = np.random.default_rng(5)
    lines, label, weight, features = multiclass_data(rng, 100, 5)
    expected = vw(tmp_path, lines, "--oaa", "5", "--oaa_subsample", "2")
    columns = {
        "label": label,
        "weight": weight,
        "features": features,
        "prediction": np.loadtxt(tmp_path / "p"),
        "loss": None,
    }
    progress = stats.Progress("multiclass", progress_table.parse_schedule("2.0"))
    assert table_lines(progress, [7], columns) == expected
    assert progress.average_loss is None


def test_table_of_probabilities_is_vws(tmp_path):
    rng = np.random.default_rng(6)
    lines, label, weight, features = multiclass_data(rng, 200, 4)
    labelled = np.flatnonzero(~np.isnan(label))
    lines, label, weight, features = [lines[i] for i in labelled], label[labelled], weight[labelled], features[labelled]
    expected = vw(tmp_path, lines, "--oaa", "4", "--probabilities", "--loss_function", "logistic", "-P", "9")
    predicted = [line.split() for line in (tmp_path / "p").read_text().splitlines()]
    scores = np.array([[float(word.split(":")[1]) for word in words] for words in predicted])
    prediction = scores.argmax(1) + 1.0
    columns = {
        "label": label,
        "weight": weight,
        "features": features,
        "prediction": prediction,
        "loss": np.where(prediction != label, weight.astype(np.float64), 0.0),
        "log_loss": -np.log(scores[np.arange(len(label)), label.astype(int) - 1]) * weight,
        "shown_probability": scores.max(1),
    }
    rows = table_lines(stats.Progress("multiclass", progress_table.parse_schedule("9")), [50, 1, 33], columns)
    place = next(i for i, line in enumerate(expected) if "log loss" in line)
    assert rows[:place] == expected[:place]
    assert rows[place + 1 :] == expected[place + 1 :]
    words = "average multiclass log loss = "  # -p rounds what this is made from to six digits
    assert rows[place].startswith(words)
    assert float(rows[place].removeprefix(words)) == pytest.approx(float(expected[place].removeprefix(words)), 1e-5)


def float32_loss(name, p, y):
    """Each loss as VW computes it, in float32."""
    one = np.float32(1)
    if name == "squared":
        return (p - y) * (p - y)
    if name == "hinge":
        return np.maximum(one - y * p, np.float32(0))
    if name == "logistic":
        grown = one + np.exp(-y.astype(float) * p).astype(np.float32)
        return np.log(grown.astype(float)).astype(np.float32)
    error = y - p
    return np.where(error > 0, np.float32(0.3) * error, -(one - np.float32(0.3)) * error)


KINDS = {  # what VW takes as labels under each loss
    "squared": ("reals", "two", "one", "zero", "none"),
    "quantile": ("reals", "two", "one", "zero", "none"),
    "hinge": ("two", "one", "none"),
    "logistic": ("two", "one", "minus", "none"),
}


@pytest.mark.parametrize("text", ["2.0", "1", "3"])
@pytest.mark.parametrize(("loss", "kind"), [(loss, kind) for loss, kinds in KINDS.items() for kind in kinds])
def test_simple_table_is_vws(tmp_path, loss, kind, text):
    """VW is made to predict given numbers: without learning its prediction is the third word of the label."""
    rng = np.random.default_rng([7, len(loss), len(kind), int(float(text))])
    n = int(rng.integers(5, 200))
    values = {"reals": None, "two": [-1, 1], "one": [1], "minus": [-1], "zero": [0], "none": [1]}[kind]
    # halves only: VW reads other decimals to the last digit but one
    label = np.rint(rng.normal(size=n) * 1000) / 2 if values is None else rng.choice(values, n).astype(np.float64)
    weight = rng.choice([1, 1, 0.5, 3, 0], n).astype(np.float32)
    guess = np.rint(rng.normal(size=n) * (500 if kind == "reals" else 4)) / 2 + 0.0
    label[(rng.random(n) < 0.1) | (kind == "none")] = np.nan
    weight[np.isnan(label)] = 1
    guess[np.isnan(label)] = 0
    lines = [
        "| a b" if np.isnan(y) else f"{y} {w} {p} |f a:2 b c" for y, w, p in zip(label, weight, guess, strict=True)
    ]
    bounds = ("-t", "--min_prediction", "-1e9", "--max_prediction", "1e9")
    tau = ("--quantile_tau", "0.3") if loss == "quantile" else ()
    expected = vw(tmp_path, lines, "--loss_function", loss, *tau, *bounds, "-P", text)
    y, p = label.astype(np.float32), guess.astype(np.float32)
    each = np.where(np.isnan(y), 0, float32_loss(loss, p, y)).astype(np.float32) * weight
    columns = {
        "label": label,
        "weight": weight,
        "features": np.where(np.isnan(label), 3, 4),
        "prediction": p.astype(np.float64),
        "loss": each.astype(np.float64),
    }
    for sizes in ([n], batches(rng, n)):
        progress = stats.Progress("simple", progress_table.parse_schedule(text))
        assert table_lines(progress, sizes, columns, loss=loss, tau=0.3) == expected


def test_negative_weights_enter_the_sums():
    progress = stats.Progress("simple", progress_table.parse_schedule("1"))
    columns = {
        "label": np.array([1.0, 1.0, 1.0, 1.0]),
        "weight": np.array([1, -2, 1, 1], np.float32),
        "features": np.array([1, 1, 1, 1]),
        "prediction": np.zeros(4),
        "loss": np.array([1.0, -2.0, 1.0, 1.0]),
    }
    assert len(progress.update(**columns)) == 1
    assert progress.weight == 1.0


def test_empty_run_is_vws(tmp_path):
    assert [*progress_table.HEADER, *stats.Progress("simple", None).summary()] == vw(tmp_path, [""])


def test_squared_loss_is_linear_beyond_the_label_range():
    """VW's squared loss outside the labels seen, as under -t with a model."""
    columns = {
        "label": np.array([2.0, 4.0]),
        "weight": np.ones(2, np.float32),
        "features": np.ones(2, int),
        "prediction": np.zeros(2),
        "loss": np.array([4.0, 16.0]),
    }
    progress = stats.Progress("simple", None)
    assert progress.update(**columns) == []
    assert "best constant's loss = 1.000000" in progress.summary()
    assert "best constant's loss = 1.000000" in progress.summary(label_range=(0.0, 4.0))
    straight = ((2 - 1) ** 2 + 2 * (2 - 1) * (1 - 3) + (4 - 1) ** 2 + 2 * (4 - 1) * (1 - 3)) / 2
    assert f"best constant's loss = {straight:.6f}" in progress.summary(label_range=(0.0, 1.0))


def test_no_rows_without_progress_interval():
    progress = stats.Progress("multiclass", None)
    ones = np.ones(5)
    assert progress.update(ones, ones.astype(np.float32), np.ones(5, int), ones, np.zeros(5)) == []
    assert (progress.examples, progress.average_loss) == (5, 0.0)
