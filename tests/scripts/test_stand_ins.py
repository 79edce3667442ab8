"""scripts/paper/stand_ins.py from data to tables, on tiny sets."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess

import pytest
from command import learn
from running import tool
from streams import multiclass

from scripts.lib import papers
from scripts.paper import stand_ins


def script(*words) -> subprocess.CompletedProcess:
    """Run the command."""
    return tool("paper.stand_ins", *words)


@pytest.fixture
def data(tmp_path):
    """Isolet, packed, and books, a text."""
    folder = tmp_path / "data"
    (folder / "isolet1").mkdir(parents=True)
    for part, seed, n in (("train", 31, 600), ("test", 32, 150)):
        (folder / "isolet1" / f"{part}.vw.gz").write_bytes(gzip.compress(multiclass(seed, 12, n).encode()))
    (folder / "isolet1" / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(1, 13)))
    (folder / "books").mkdir()
    rng = random.Random(5)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "so"]
    for part, lines in (("train", 6), ("test", 3)):
        text = "".join(
            " ".join(words[i % 8] if rng.random() < 0.9 else f"odd{rng.randrange(99)}" for i in range(90)) + "\n"
            for _ in range(lines)
        )
        (folder / "books" / f"{part}.txt").write_text(text)
    return folder


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_script_goes_from_data_to_tables_and_goes_on_where_it_was(data, tmp_path):
    work = tmp_path / "work"
    words = [data, "--work", work, "--methods", "filter_tree,cpt"]
    result = script(*words, "--sets", "isolet1")
    assert result.returncode == 0, result.stdout + result.stderr
    records = json.loads((work / "stand_ins.json").read_text())
    assert [record["method"] for record in records] == ["filter_tree", "cpt"]
    # the figures are those of the command line that stands beside them
    learned = records[1]["command"].split()[1:]
    plain = gzip.decompress((data / "isolet1" / "train.vw.gz").read_bytes()).decode()
    test = gzip.decompress((data / "isolet1" / "test.vw.gz").read_bytes()).decode()
    learn(*learned[:-1], tmp_path / "m", "--quiet", stdin=plain)
    err = learn("-i", tmp_path / "m", "-t", stdin=test).err
    assert f"average loss = {records[1]['error'] / 100:.6f}\n" in err
    assert f"average squared loss = {records[1]['squared']:.6f}\n" in err
    assert "top5" not in records[0] and records[0]["cpu_seconds"] > 0
    # resumed: a new set is added, nothing is measured twice
    result = script(*words)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("as measured before") == 2
    assert "left out: " in result.stdout and "has no aloi27" in result.stdout
    assert json.loads((work / "stand_ins.json").read_text())[:2] == records
    report = (work / "stand_ins.md").read_text()
    assert report.strip() in result.stdout
    lines = report.splitlines()
    at = lines.index("Test error, %")
    assert cells(lines[at + 2]) == ["stands for", "set", "K", "filter tree", "CPT"]
    isolet, books = cells(lines[at + 4]), cells(lines[at + 5])
    assert isolet[:3] == ["Isolet", "isolet1", "12"] and books[:2] == ["LTCB", "books"]
    assert re.fullmatch(r"(\*\*)?\d+\.\d(\*\*)? \(15\.1\)", isolet[3]) and "(" not in isolet[4]  # the paper's figure
    assert "Squared loss on the test file, (1 - p)^2" in lines and "Training, CPU s" in lines
    assert "Not run: OAA on isolet1, books; Recall Tree on isolet1, books;" in report


def test_small_option_takes_the_first_examples(data, tmp_path):
    result = script(data, "--work", tmp_path / "work", "--small", "--methods", "random_tree,softmax_tree")
    assert result.returncode == 0, result.stdout + result.stderr
    small = tmp_path / "work" / "small"
    assert len((small / "isolet1" / "train.vw").read_text().splitlines()) == stand_ins.FIRST
    assert len((small / "books" / "train.vw").read_text().splitlines()) == 91  # one article and its end
    commands = {record["method"]: record["command"] for record in json.loads((small / "stand_ins.json").read_text())}
    assert "-b 22" in commands["random_tree"] and "-b" not in commands["softmax_tree"]


def test_commands_are_printed_and_nothing_done(data, tmp_path):
    result = script(
        data, "--work", tmp_path / "work", "--dry_run", "--methods", "oaa,multiclass", "--sets", "isolet1,books"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert not (tmp_path / "work").exists()
    assert "isolet1, for Isolet:" in result.stdout
    assert "$ xclass -d train.vw --oaa 12 -b 24 --passes 5 --holdout_off -f oaa.model\n" in result.stdout
    result = script(data, "--dry_run", "--methods", "recall_tree,softmax_tree", "--sets", "books")
    assert r"--recall_tree K -q ab --cubic abc -q 'a\x88' -b 26 -f" in result.stdout
    assert "--softmax_tree K -q ab --cubic abc --tao_iterations 2 -f" in result.stdout


def test_commands_of_a_text_are_printed_without_its_classes(data, tmp_path):
    result = script(data, "--work", tmp_path / "work", "--dry_run", "--methods", "multiclass", "--sets", "books")
    assert "$ xclass -d train.vw --multiclass K -q ab --cubic abc -b 26 -f multiclass.model\n" in result.stdout


def test_one_against_all_gets_a_table_by_the_number_of_classes(tmp_path):
    folder = tmp_path / "data" / "wordnet"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.vw").write_text(multiclass(1, 12, 30))
    for classes, bits in ((5_000, 24), (5_001, 28), (25_001, 30)):
        (folder / "labels.txt").write_text("".join(f"{y}\tx\n" for y in range(1, classes + 1)))
        result = script(tmp_path / "data", "--methods", "oaa", "--sets", "wordnet", "--dry_run")
        assert f"--oaa {classes} -b {bits} " in result.stdout, result.stderr


def test_a_cell_that_fails_is_reported_and_the_others_are_kept(data, tmp_path):
    lines = gzip.decompress((data / "isolet1" / "test.vw.gz").read_bytes()).replace(b"\n", b"\n99 | x\n", 1)
    (data / "isolet1" / "test.vw.gz").write_bytes(gzip.compress(lines))
    result = script(data, "--work", tmp_path / "work", "--sets", "isolet1", "--methods", "filter_tree,cpt")
    assert result.returncode == 1
    assert "failed: isolet1 filter_tree: " in result.stdout and "label 99 is outside 1..12" in result.stdout
    assert [record["method"] for record in json.loads((tmp_path / "work" / "stand_ins.json").read_text())] == ["cpt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sets", "isolet1,none"], "stand_ins: --sets none: must be one of isolet1, clinc150"),
        (["--methods", "vw"], "stand_ins: --methods vw: must be one of oaa, recall_tree"),
        (["--sets", "aloi27"], "aloi27 has neither train.vw nor train.txt, plain or .gz"),
    ],
)
def test_wrong_command_lines_are_refused(data, words, message):
    result = script(data, *words)
    assert result.returncode == 1 and message in result.stderr


def test_folder_that_is_none_is_named_and_help_is_given():
    result = script("/no/such/folder")
    assert result.returncode == 1 and result.stderr == "stand_ins: /no/such/folder is no folder\n"
    assert "DATA_DIR/SET holds train.vw" in script("--help").stdout


def test_papers_figures_are_read_from_their_scripts():
    assert papers.titles("wordnet") == "ODP, WIKI-Small"
    assert papers.best("aloi27", "recall_tree", "error") == [8.6]  # of 11.4 and 8.6
    assert papers.best("wordnet", "softmax_tree", "error") == [81.84, 75.62]
    assert papers.best("ptb", "hsm", "perplexity") == [575]
    assert papers.best("books", "hsm", "error") == []


def test_figures_are_shown_with_the_digits_they_need():
    figures = [stand_ins.figure(*case) for case in ((1.3621, None), (45.86, None), (4083.7, None), (8.449, 1))]
    assert figures == ["1.36", "45.9", "4,084", "8.4"]
