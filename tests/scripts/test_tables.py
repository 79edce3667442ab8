"""Scripts that make tables of probabilities, on data made here."""

from __future__ import annotations

import pytest
from command import learn
from running import tool
from streams import multiclass

from scripts.bench import exactness
from scripts.lib import peers
from scripts.lib.results import fact


@pytest.fixture
def data(tmp_path):
    """A folder with a small set."""
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    for name, seed, n in (("train.vw", 1, 300), ("test.vw", 2, 40)):
        (folder / name).write_text(multiclass(seed, 15, n))
    (folder / "labels.txt").write_text("".join(f"{y}\t{y}\n" for y in range(1, 16)))
    return folder.parent


def test_exactness_finds_every_example_as_all_classes_say(data):
    result = tool("bench.exactness", str(data), "--sets", "small", "--args=-b 16", "--examples", "25")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("small: 25 of 25 as all classes say; opened for the best: mean ")


def test_exactness_sees_a_wrong_list(tmp_path):
    (tmp_path / "top").write_text("2:0.5 1:0.3 0:0.2\n2:0.5 1:0.3 0:0.2\n3:0.4 1:0.3 0:0.2\n")
    (tmp_path / "all").write_text("1:0.3 2:0.5 0:0\n1:0.3 2:0.4 0:0\n1:0.3 2:0.4 3:0.4\n")
    assert exactness.differing(tmp_path / "top", tmp_path / "all") == (3, 2)


def test_probabilities_has_a_row_for_every_way(data):
    result = tool(
        "bench.probabilities", str(data), "--sets", "small", "--bits", "16", "--ways", "general;4 trees, reranked"
    )
    assert result.returncode == 0, result.stderr
    rows = [line.split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[1] for row in rows] == ["counts", "general", "4 trees, reranked"]
    for row in rows:
        squared, log, perplexity, error = (float(word) for word in row[2:6])
        assert 0 < squared < 1 and log > 0 and perplexity >= 1 and 0 <= error <= 100
    assert float(rows[1][2]) < float(rows[0][2])
    assert tool("bench.probabilities", str(data), "--sets", "small", "--ways", "none").returncode == 1


def test_ablation_changes_one_part_at_a_time(data):
    changes = "as it is: 4 trees, 5 candidates each, an index of 16 slots;no scorers, 1 tree;nodes of 4 branches"
    result = tool("bench.ablation", str(data), "--sets", "small", "--changes", changes)
    assert result.returncode == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head == "| | small, 15 |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in changes.split(";")]
    assert all(0 <= float(row.split(" | ")[1].split()[0]) <= 60 for row in rows)
    result = tool("bench.ablation", str(data), "--sets", "small", "--changes", "no such change")
    assert "'no such change' is none of" in result.stderr


def test_variants_are_columns_and_the_test_file_may_be_left_alone(data):
    words = [
        data,
        "--sets",
        "small",
        "--common=-b 14",
        "--variant",
        "tree=--cpt {K}",
        "--variant",
        "oaa=--oaa {K} -l 2",
    ]
    result = tool("bench.variants", *words)
    assert result.returncode == 0, result.stderr
    head, _, row = result.stdout.splitlines()
    assert head == "| set | K | tree | oaa |"
    assert row.startswith("| small | 15 | ")
    errors = [float(cell.split()[0]) for cell in row.split(" | ")[2:]]
    learn("--oaa", 15, "-l", 2, "-b", 14, "-d", data / "small" / "train.vw", "-f", data / "m", "--quiet")
    err = learn("-i", data / "m", "-t", "-d", data / "small" / "test.vw").err
    assert errors[1] == pytest.approx(100 * fact(err, "average loss"), abs=0.06)
    held_out = tool("bench.variants", *words, "--holdout", "--work", data / "work").stdout
    assert held_out.splitlines()[2] != row
    assert len((data / "work" / "small" / "last.vw").read_text().splitlines()) == 30


def test_peers_go_on_from_what_is_measured_and_print_it(data, tmp_path):
    stored = tmp_path / "results.json"
    words = (str(data), "--sets", "small", "--json", str(stored))
    result = tool("bench.peers", *words, "--methods", "xclass --cpt")
    assert result.returncode == 0, result.stderr
    assert "small xclass --cpt: error" in result.stderr
    result = tool("bench.peers", *words, "--methods", "xclass --cpt;VW --ect")
    assert result.returncode == 0, result.stderr
    assert "xclass --cpt" not in result.stderr
    printed = tool("bench.peers", "--table", str(stored))
    assert printed.stdout == result.stdout
    assert [line.split(" | ")[0] for line in result.stdout.splitlines()[2:]] == ["| xclass --cpt", "| VW --ect"]
    assert "none of" in tool("bench.peers", *words, "--methods", "nothing").stderr


def test_peers_make_the_same_features_for_others(tmp_path):
    (tmp_path / "a.vw").write_text("3 1.5 'tag|f x:2 y |g x y\n1 |f y y\n\n| unlabelled\n")
    (tmp_path / "b.vw").write_text("2 |f new x:0.5\n")
    vocabulary: dict[str, int] = {}
    peers.to_libsvm(tmp_path / "a.vw", tmp_path / "a.svm", vocabulary, True)
    peers.to_libsvm(tmp_path / "b.vw", tmp_path / "b.svm", vocabulary, False)
    assert (tmp_path / "a.svm").read_text() == "3 1:2 2:1 3:1 4:1\n1 2:2\n"
    assert (tmp_path / "b.svm").read_text() == "2 1:0.5\n"
    peers.to_fasttext(tmp_path / "a.vw", tmp_path / "a.words")
    assert (tmp_path / "a.words").read_text() == "__label__3 f|x f|y g|x g|y\n__label__1 f|y f|y\n"


def test_peers_find_the_options_of_this_version():
    assert not peers.unknown(peers.words_of("xclass", "ptb", 9))
    assert peers.words_of("xclass", "ptb", 9) == ["--multiclass", "9"]
    assert peers.words_of("xclass --cpt", "ptb", 9) == ["--cpt", "9", "-b", "26"]
    assert peers.words_of("xclass --cpt", "reuters", 93) == ["--cpt", "93", "-b", "24"]
    assert peers.unknown(["--no_such_reduction", "9"])
