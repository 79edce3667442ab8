"""Sets of dense rows, embedded texts, and the table and the picture of what learns them, on tiny sets."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from command import learn
from running import tool

from scripts.dense import embed_texts, sets
from scripts.dense.rows import save

VW = {"train": "1 |w red apple\n2 |w grey stone\n" * 30, "test": "2 |w stone\n1 |w apple red\n"}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    for part, lines in VW.items():
        (folder / f"{part}.vw").write_text(lines)
    (folder / "labels.txt").write_text("1\ta\n2\tb\n")
    return tmp_path / "data"


def of_letters(texts):
    return np.array([[text.count("p"), text.count("r"), text.count("t") + 0.5] for text in texts], np.float32)


def clusters(folder):
    rows, label = sets.clusters("gauss", 500, 5, 16)
    for part, at in (("train", slice(400)), ("test", slice(400, 500))):
        save(folder, part, rows[at] + 20 * np.eye(16)[label[at]], label[at])


def cells(result):
    assert result.returncode == 0, result.stderr
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:]]


def test_clusters_have_the_shares_and_the_noise_that_their_names_say():
    rows, label = sets.clusters("zipf", 4000, 20, 6)
    share = np.bincount(label)[1:] / len(label)
    assert share[0] == pytest.approx(1 / (1 / np.arange(1, 21)).sum(), abs=0.03) and share[0] > 10 * share[19]
    assert rows[label == 1].std(axis=0) == pytest.approx([3] * 6, abs=0.3)
    rows, label = sets.clusters("anisotropic", 4000, 2, 6)
    spread = np.sqrt(np.linalg.eigvalsh(np.cov(rows[label == 1].T)))
    assert spread[-1] > 5 * spread[0] and abs(np.corrcoef(rows[label == 1].T) - np.eye(6)).max() > 0.1


def test_columns_are_numbered_from_1_and_those_without_training_rows_are_left_out(tmp_path):
    (tmp_path / "train.vw").write_text("3 |f 1:0.5 3:2\n4 |f 2:1\n")
    (tmp_path / "test.vw").write_text("4 |f 3:1 9:7\n")
    (rows, label), (new, new_label) = sets.columns(tmp_path)
    assert rows.tolist() == [[0.5, 0, 2], [0, 1, 0]] and label.tolist() == [3, 4]
    assert new.tolist() == [[0, 0, 1]] and new_label.tolist() == [4]


def test_embedded_words_are_learned_as_arrays_and_beside_the_words(data, monkeypatch):
    monkeypatch.setattr(embed_texts, "wordllama", lambda: of_letters)
    assert tool("dense.embed_texts", data, "--sets", "tiny", "--out", "rows", "--vw").returncode == 0
    folder = Path("rows/tiny")
    assert np.load(folder / "train.npy")[:2].tolist() == of_letters(["red apple", "grey stone"]).tolist()
    assert np.load(folder / "test.labels.npy").tolist() == [2, 1]
    assert (folder / "test.vw").read_text().splitlines()[0] == "2 |w stone |e :0 :0 :1.5"
    for file, dense in (("npy", ()), ("vw", ("--dense", "e"))):
        learn("--multiclass", "-d", folder / f"train.{file}", *dense, "-f", "m")
        learn("-t", "-i", "m", "-d", folder / f"test.{file}", "-p", "p")
        assert Path("p").read_text().split() == ["2", "1"]


def test_texts_of_csv_keep_their_labels(tmp_path):
    (tmp_path / "train.csv").write_text('label,text\ntea,"Green, hot"\nale,Cold\n')
    texts, labels = embed_texts.texts_of(tmp_path / "train.csv")
    assert texts == ["Green, hot", "Cold"] and labels.tolist() == ["tea", "ale"]


def test_errors_and_times_are_measured_once_and_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clusters(tmp_path / "rows" / "tiny")
    words = ["rows", "--json", "j", "--methods", "xclass --means,NearestCentroid"]
    drawn = ["--plot", "f.png"] if importlib.util.find_spec("matplotlib") else []
    (row,) = cells(tool("dense.bench", *words, *drawn))
    stored = Path("j").read_text()
    first = json.loads(stored)[0]["found"]
    assert first["error"] < 0.05 and first["cpu"] > 0 and first["us"] > 0 and first["memory"] > 2e7
    assert row[0] == "tiny" and row[1].startswith(f"{100 * first['error']:.1f} (")
    assert cells(tool("dense.bench", *words)) == [row] and Path("j").read_text() == stored
    assert not drawn or Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_a_method_is_stopped_at_the_limit_and_strange_ones_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows" / "tiny").mkdir(parents=True)
    for part, n in (("train", 40_000), ("test", 20_000)):
        save(tmp_path / "rows" / "tiny", part, np.random.default_rng(n).normal(size=(n, 50)), np.arange(n) % 9 + 1)
    (row,) = cells(tool("dense.bench", "rows", "--limit", 1, "--methods", "KNeighborsClassifier"))
    assert row == ["tiny", "> 1 s"]
    result = tool("dense.bench", "rows", "--methods", "kNN")
    assert result.returncode == 1 and "--methods: 'kNN' is none of xclass, xclass --means" in result.stderr
