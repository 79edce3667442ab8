"""--summary, --curve, --per_class, --errors: what they say about a run, counted again from its predictions."""

import csv
import json
import math
import platform
from collections import Counter

import numpy as np
import pytest
import streams
from command import learn, xclass

import xclass as package
from xclass import comparison

K = 7
REDUCTIONS = (  # with probabilities, and then without
    ("--multiclass",), ("--cpt", K), ("--oaa", K), ("--recall_tree", K), ("--softmax_tree", K),
    ("--sparse_experts", K),
    ("--log_multi", K), ("--ect", K), ("--random_tree", K),
)  # fmt: skip
WITH_PROBABILITIES = REDUCTIONS[:6]


def table(path) -> list[dict[str, str]]:
    """The rows of a CSV file, by column."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def labels_of(text: str) -> list[str]:
    """The labels of VW text."""
    return [line.split(" ")[0] for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path):
    """A folder with data."""
    (tmp_path / "d.vw").write_text(streams.multiclass(3, K, 400))
    (tmp_path / "t.vw").write_text(streams.multiclass(4, K, 150))
    return tmp_path


@pytest.mark.parametrize("words", REDUCTIONS)
def test_classes_are_counted_as_the_predictions_say(folder, words):
    learn("d.vw", "-b", 14, *words, "-f", "m", "--quiet", cwd=folder)
    learn("t.vw", "-t", "-i", "m", "-p", "p", "--per_class", "c.csv", "--summary", "s.json", "--quiet", cwd=folder)
    label, answer = labels_of((folder / "t.vw").read_text()), (folder / "p").read_text().split()
    rows = table(folder / "c.csv")
    assert [row["class"] for row in rows if int(row["examples"])] == sorted(
        set(label),
        key=lambda y: (-sum(a == y != b for a, b in zip(label, answer, strict=True)), -label.count(y), int(y)),
    )
    for row in rows:
        y = row["class"]
        wrong = Counter(b for a, b in zip(label, answer, strict=True) if a == y != b)
        right = sum(a == b == y for a, b in zip(label, answer, strict=True))
        assert (int(row["examples"]), float(row["errors"])) == (label.count(y), wrong.total())
        assert row["precision"] == (f"{right / answer.count(y):.6f}" if y in answer else "")
        assert row["recall"] == (f"{right / label.count(y):.6f}" if y in label else "")
        if wrong:
            assert float(row["confused"]) == max(wrong.values()) == wrong[row["confused_with"]]
        assert bool(row["mean_probability"]) == (words in WITH_PROBABILITIES and y in label)
    record = json.loads((folder / "s.json").read_text())
    mistakes = [a != b for a, b in zip(label, answer, strict=True)]
    assert record["average_loss"] == pytest.approx(np.mean(mistakes))
    assert comparison.read_summary(str(folder / "s.json")).wrong.tolist() == mistakes


@pytest.mark.parametrize("words", WITH_PROBABILITIES)
def test_probabilities_are_those_that_are_listed(folder, words):
    learn("d.vw", "-b", 14, *words, "-f", "m", "--quiet", cwd=folder)
    test = ("t.vw", "-t", "-i", "m", "--quiet")
    learn(*test, "--errors", "e.tsv", "--per_class", "c.csv", cwd=folder)
    learn(*test, "-p", "p", "--top_k", K, cwd=folder)
    lists = [dict(pair.split(":") for pair in line.split()) for line in (folder / "p").read_text().splitlines()]
    first = [line.split(":")[0] for line in (folder / "p").read_text().splitlines()]
    text = (folder / "t.vw").read_text().splitlines()
    header, *lines = [line.split("\t") for line in (folder / "e.tsv").read_text().splitlines()]
    assert header == ["place", "label", "answer", "answer_probability", "label_probability", "line"]
    surprise = []
    for place, label, answer, of_answer, of_label, line in lines:
        i = int(place.removeprefix("t.vw:")) - 1
        assert text[i] == line
        assert (label, answer) == (labels_of(line)[0], first[i])
        assert float(of_answer) == pytest.approx(float(lists[i][answer]), rel=1e-4, abs=1e-6)
        if label in lists[i]:
            assert float(of_label) == pytest.approx(float(lists[i][label]), rel=1e-4, abs=1e-6)
        surprise.append(float(of_label))
    assert surprise == sorted(surprise)
    assert len(lines) == sum(y != a for y, a in zip(labels_of("\n".join(text)), first, strict=True)) > 3


def test_the_most_surprising_lines_are_kept(folder):
    words = ("d.vw", "-b", 14, "--cpt", K, "--quiet", "--errors")
    learn(*words, "all", cwd=folder)
    learn(*words, "few", "--most_errors", 5, cwd=folder)
    every = (folder / "all").read_text().splitlines()
    assert (folder / "few").read_text().splitlines() == every[:6]
    assert len(every) > 20
    said = learn(*words[:-2], "--errors", "few", "--most_errors", 5, cwd=folder).err
    assert f"few: 5 of {len(every) - 1} wrong lines are written; --most_errors {len(every) - 1} writes all" in said
    assert "wrong lines are written" not in learn(*words[:-2], "--errors", "all", cwd=folder).err
    unknown = [line.split("\t")[4] == "" for line in every[1:]]
    assert unknown == sorted(unknown)  # labels that occur for the first time come last
    assert sum(unknown) > 0


def test_the_curve_has_the_rows_of_the_progress_table(folder):
    result = learn("d.vw", "-b", 14, "--cpt", K, "-P", "37", "--curve", "c.csv", "--summary", "s", cwd=folder)
    rows = {row["examples"]: row for row in table(folder / "c.csv")}
    printed = [line.split() for line in result.err.splitlines() if line[:1] in "01" and len(line.split()) == 7]
    assert [line[2] for line in printed] == [str(37 * i) for i in range(1, 11)]
    for line in printed:
        assert rows[line[2]]["average_loss"] == line[0]
    assert "400" in rows and len(rows) > 60
    record = json.loads((folder / "s").read_text())
    assert float(rows["400"]["average_loss"]) == pytest.approx(record["average_loss"], abs=1e-6)
    assert float(rows["400"]["average_log_loss"]) == pytest.approx(record["figures"]["log_loss"], abs=1e-6)
    recent = [(int(row["examples"]), float(row["recent_loss"])) for row in rows.values()]
    total = sum((n - m) * loss for (m, _), (n, loss) in zip([(0, 0.0), *recent], recent, strict=False))
    assert total / 400 == pytest.approx(record["average_loss"], abs=1e-5)


def test_held_out_lines_are_described_if_there_are_any(folder):
    words = ("d.vw", "-b", 14, "--oaa", K, "--passes", 3, "-f", "m", "--quiet")
    learn(*words, "--per_class", "c", "--curve", "v", "--summary", "s", "--errors", "e", cwd=folder)
    held_out = (folder / "d.vw").read_text().splitlines()[9::10]
    assert sum(int(row["examples"]) for row in table(folder / "c")) == len(held_out)
    curve = table(folder / "v")
    assert {row["pass"] for row in curve} == {"1", "2", "3"}
    record = json.loads((folder / "s").read_text())
    losses = {row["pass"]: float(row["held_out_loss"]) for row in curve if row["held_out_loss"]}
    best = record["held_out"]
    assert losses[str(best["best_pass"])] == pytest.approx(best["best_loss"]) == min(losses.values())
    wrong = [line.split("\t") for line in (folder / "e").read_text().splitlines()[1:]]
    assert len(wrong) == sum(float(row["errors"]) for row in table(folder / "c"))
    assert all(line[-1] in held_out for line in wrong)


def test_the_summary_describes_the_run(folder):
    result = learn("d.vw", "-b", 14, "--cpt", K, "-l", 0.25, "--summary", "s.json", "-f", "m", cwd=folder)
    record = json.loads((folder / "s.json").read_text())
    assert record["schema"] == "xclass summary 1"
    assert (record["status"], record["error"], record["reduction"]) == ("finished", None, "cpt")
    assert (record["data"], record["model"], record["examples"], record["passes"]) == ("d.vw", "m", 400, 1)
    assert (record["options"]["learning_rate"], record["options"]["bits"]) == (0.25, 14)
    assert {"learning_rate", "bits", "summary"} <= set(record["given"])
    assert record["versions"]["xclass"] == package.__version__
    assert record["versions"]["python"] == platform.python_version()
    assert record["seconds"] > 0 and record["cpu_seconds"] > 0 and record["peak_memory_bytes"] > 1 << 20
    shown = [
        line for line in result.err.splitlines() if line.partition(" = ")[0] in ("average loss", "average log loss")
    ]
    assert set(shown) <= set(record["lines"])
    assert f"{record['figures']['log_loss']:.6f}" == shown[1].partition(" = ")[2]


def test_names_are_written(tmp_path):
    data = "".join(f"{name} | {name[0]} x{i % 3}\n" for i, name in enumerate(["tea", "coffee", "käse"] * 30))
    (tmp_path / "d.vw").write_text(data)
    learn("d.vw", "-b", 14, "--learn_names", "--per_class", "c", "--errors", "e", "--quiet", cwd=tmp_path)
    assert {row["class"] for row in table(tmp_path / "c")} == {"tea", "coffee", "käse"}
    assert {line.split("\t")[1] for line in (tmp_path / "e").read_text().splitlines()[1:]} == {"tea", "coffee", "käse"}


def test_data_from_a_cache_have_lines_too(folder):
    words = ("d.vw", "-b", 14, "--cpt", K, "--quiet", "--errors", "e", "--cache_file", "c")
    learn(*words, cwd=folder)
    first = (folder / "e").read_text()
    learn(*words, cwd=folder)
    assert (folder / "e").read_text() == first
    assert first.splitlines()[1].split("\t")[-1]


@pytest.mark.parametrize(
    ("line", "copies", "error", "examples"),
    [("1.5 | a", 1, "bad.vw:401:1: ", 400), ("| a", 0, "bad.vw: no example was learned from; ", 1)],
)
def test_a_run_that_fails_says_so_in_the_summary(folder, line, copies, error, examples):
    (folder / "bad.vw").write_text((folder / "d.vw").read_text() * copies + f"{line}\n")
    result = xclass("bad.vw", "-b", 14, "--cpt", K, "--summary", "s", "--curve", "c", "--quiet", cwd=folder)
    assert result.status == 1
    record = json.loads((folder / "s").read_text())
    assert record["status"] == "failed" and record["error"].startswith(error)
    assert record["examples"] == examples == int(table(folder / "c")[-1]["examples"])


@pytest.mark.parametrize("flag", ["--per_class", "--errors"])
def test_real_labels_have_no_classes(tmp_path, flag):
    (tmp_path / "d.vw").write_text("0.5 | a\n-1 | b\n")
    result = xclass("d.vw", "--loss_function", "squared", flag, "x", cwd=tmp_path)
    assert result.status == 2 and f"{flag} needs classes" in result.err
    learn("d.vw", "--loss_function", "squared", "--curve", "c", "--summary", "s", cwd=tmp_path)
    record = json.loads((tmp_path / "s").read_text())
    assert record["outcomes"] is None
    assert math.isclose(float(table(tmp_path / "c")[-1]["average_loss"]), record["average_loss"], abs_tol=1e-6)
