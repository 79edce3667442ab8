"""The scripts that measure parts and limits of --multilabel, on a tiny set."""

from __future__ import annotations

import argparse
import random

import numpy as np
import pytest
from command import learn
from running import tool

from scripts.lib import papers
from scripts.multilabel import ablation, lists

NO_EFFECT = ("as it is", "no frequent labels beyond 1024 labels", "an index of 8 slots")  # with few labels


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    draw = random.Random(3)
    for part, n in (("train", 800), ("test", 200)):
        lines = []
        for _ in range(n):
            labels = sorted(draw.sample(range(8), draw.choice([1, 2, 2, 3])))
            shown = [label if draw.random() < 0.6 else draw.randrange(8) for label in labels]
            words = [f"w{label}_{draw.randrange(3)}:{draw.randrange(1, 4)}" for label in shown]
            lines.append(f"{','.join(map(str, labels))} |a {' '.join(words)} |b x{draw.randrange(20)}\n")
        (folder / f"{part}.vw").write_text("".join(lines))
    (folder / "labels.txt").write_text("".join(f"{label}\tl{label}\n" for label in range(8)))
    return tmp_path / "data"


def cells(result):
    assert result.returncode == 0, result.stderr
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:]]


def test_measures_are_those_of_the_summary(data, tmp_path):
    [row] = cells(tool("multilabel.figures", "measures", data, "--sets", "tiny"))
    folder = data / "tiny"
    model = tmp_path / "m"
    learn("--multilabel", 8, "--threshold", "auto", "-d", folder / "train.vw", "-f", model)
    summary = learn("-i", model, "-t", "-d", folder / "test.vw").err
    expected = [papers.measured(summary, name) for name in ("p1", "p3", "p5", "ndcg5", "psp5")]
    assert [float(word) for word in [*row[1].split("/"), *row[2:4]]] == pytest.approx(expected, abs=0.006)
    assert 0 < float(row[4]) < 0.2 and 30 < float(row[5]) <= float(row[6].split()[0]) + 1


def test_new_labels_do_not_depend_on_their_number(data):
    rows = cells(tool("multilabel.figures", "new_labels", data, "--sets", "tiny"))
    assert [row[1:3] for row in rows] == [["thirds", ""], ["thirds", "8"], ["as it is", ""]]
    assert rows[0][3:] == rows[1][3:] != rows[2][3:] and float(rows[0][3]) > 30


def test_streams_have_the_words_of_their_labels(tmp_path):
    result = tool("multilabel.figures", "classes", "--classes", "50", "--examples", 600, "--work", tmp_path)
    [[classes, learned, *_, precision, _]] = cells(result)
    assert classes == learned == "50" and float(precision) > 30
    line = (tmp_path / "lists_50_600" / "test.vw").read_text().splitlines()[0]
    labels, words = line.split(" | ")
    own = [int(word[1:]) // 6 for word in words.split() if word.startswith("w")]
    assert sorted(own) == sorted(3 * list(map(int, labels.split(",")))) and len(words.split()) == 30


def test_calibration_and_f1():
    p, right = np.array([0.9, 0.95, 0.2, 0.25]), np.array([1.0, 0.0, 0.0, 0.0])
    assert lists.calibration_error(p, right) == pytest.approx((0.85 + 0.45) / 4)
    assert lists.micro_f1(p, right, 2, 0.5) == pytest.approx(2 / 4)
    assert lists.micro_f1(p, right, 2, 0.2) == pytest.approx(2 / 5)


def test_every_change_changes_something_and_is_undone(data):
    given = argparse.Namespace(lines=None)
    whole = ablation.progressive("as it is", "tiny", data / "tiny", 9, given)
    predictions = (data / "tiny" / "predictions").read_bytes()
    for change in ablation.CHANGES:
        ablation.progressive(change, "tiny", data / "tiny", 9, given)
        assert ((data / "tiny" / "predictions").read_bytes() == predictions) == (change in NO_EFFECT), change
    assert ablation.progressive("as it is", "tiny", data / "tiny", 9, given) == whole
    assert (data / "tiny" / "predictions").read_bytes() == predictions


def test_commands_name_what_is_wrong(data):
    result = tool("multilabel.ablation", data, "--sets", "tiny", "--changes", "no trees")
    assert result.returncode == 1 and "--changes: 'no trees' is none of as it is; no near examples" in result.stderr
    assert "belong to all but `classes`" in tool("multilabel.figures", "prediction").stderr
