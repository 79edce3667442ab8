"""Trees as text and as drawings: `--print_tree`, `--dot_tree`, `--tree_levels`, and the summary's line about them."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from command import learn
from streams import multiclass

from xclass.abilities.describe.views import NodeView, figures, lines, preorder
from xclass.reductions.ect import bracket

K = 13
TREES = [
    ("--log_multi", K),
    ("--log_multi", K, "--layout", "vw"),
    ("--random_tree", K),
    ("--recall_tree", K, "--max_candidates", 3),
    ("--recall_tree", K, "--layout", "vw", "--randomized_routing"),
    ("--ect", K),
    ("--cpt", K),
    ("--cpt", K, "--trees", 2),
    ("--cpt", K, "--cpt_arity", 4),
]
EVERY = pytest.mark.parametrize("words", TREES, ids=lambda words: " ".join(map(str, words)))


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with data to run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(multiclass(1, K, 400, noise=0.4))
    return tmp_path


def parsed(text: str) -> list[tuple[int, str, str, str]]:
    """(level, side, name, the rest) of every line."""
    nodes = []
    for line in text.splitlines():
        blanks, side, name, rest = re.fullmatch(r"( *)(L |R |)([\d.]+): (.*)", line).groups()
        nodes.append((len(blanks) // 2, side.strip(), name, rest))
    return nodes


@EVERY
def test_whole_tree_is_written_and_is_the_one_of_the_summary(place, words):
    result = learn(*words, "-d", "data", "--print_tree", "t", "--tree_levels", 64, "--dot_tree", "t.dot")
    nodes = parsed((place / "t").read_text())
    shape = re.search(r"nodes = (\d+), leaves = (\d+), depth mean = ([\d.]+), max = (\d+)", result.err)
    names = [name for _, _, name, _ in nodes]
    assert len(set(names)) == len(names) == int(shape[1])
    leaves = [level for level, _, _, rest in nodes if rest.startswith("leaf")]
    assert len(leaves) == int(shape[2])
    assert f"{np.mean(leaves):.2f}" == shape[3]
    assert max(leaves) == int(shape[4])
    roots = words[-1] if "--trees" in words else 1
    assert [side for level, side, _, _ in nodes if level == 0] == [""] * roots
    sides = "".join(side for level, side, _, _ in nodes if level > 0)
    assert sides.count("L") == sides.count("R") == (len(nodes) - roots) // 2
    # children are below their parent, left before right
    path = []
    children: dict[str, list[str]] = {}
    for level, side, name, _ in nodes:
        del path[level:]
        assert len(path) == level
        if level:
            children.setdefault(path[-1], []).append(side)
        path.append(name)
    assert set(map(tuple, children.values())) <= {("L", "R")}
    # the drawing has the same nodes and the same edges
    drawing = (place / "t.dot").read_text()
    assert len(re.findall(r"^  \"[\d.]+\" \[label=", drawing, re.M)) == len(nodes)
    assert len(re.findall(r" -> ", drawing)) == len(nodes) - roots
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tplain", "t.dot"], check=True, capture_output=True)


@pytest.mark.sampled(3)
@EVERY
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_first_levels_are_those_of_the_whole_tree(place, words, levels):
    learn(*words, "-d", "data", "--quiet", "-f", "m", "--print_tree", "whole", "--tree_levels", 64)
    wanted = [line for line in (place / "whole").read_text().splitlines() if line.index(line.strip()) < 2 * levels]
    result = learn("-i", "m", "-t", "--no_stdin", "--quiet", "--print_tree", "stdout", "--tree_levels", levels)
    assert [line.removesuffix(", more below") for line in result.lines] == wanted
    cut = [line for line in result.lines if line.endswith(", more below")]
    assert bool(cut) == (len(wanted) < len((place / "whole").read_text().splitlines()))
    assert all(line.index(line.strip()) == 2 * (levels - 1) for line in cut)
    drawing = learn("-i", "m", "-t", "--no_stdin", "--quiet", "--dot_tree", "stdout", "--tree_levels", levels).out
    assert drawing.count('label="..."') == len(cut)


def test_labels_are_called_by_their_names(place):
    (place / "named").write_text("cat |w a\ndog |w b\n'odd\" |w c\n" * 30)
    names = ("--named_labels", 'cat,dog,"odd"')
    (place / "named").write_text('cat |w a\ndog |w b\n"odd" |w c\n' * 30)
    learn("--random_tree", 3, *names, "-d", "named", "--quiet", "--print_tree", "t", "--dot_tree", "t.dot")
    text = (place / "t").read_text()
    assert all(name in text for name in ("leaf, cat", "leaf, dog", 'leaf, "odd"'))
    assert r"\"odd\"" in (place / "t.dot").read_text()


def test_counts_are_those_of_the_data(place):
    (place / "counted").write_text("1 |w a\n2 |w b\n" * 40)
    learn("--log_multi", 2, "-d", "counted", "--quiet", "--print_tree", "t")
    nodes = parsed((place / "t").read_text())
    assert nodes[0][3].startswith("examples 80, labels 2, router")
    assert sum(int(re.search(r"examples (\d+)", rest)[1]) for _, _, _, rest in nodes[1:]) in (79, 80)


def test_tree_of_the_best_pass_is_written(place):
    words = ("--log_multi", K, "-d", "data", "--passes", 4, "-f", "m", "--cache_file", "c")
    learn(*words, "--print_tree", "t")
    again = learn("-i", "m", "-t", "--no_stdin", "--quiet", "--print_tree", "stdout").out
    assert (place / "t").read_text() == again


def test_preorder_asks_about_no_deeper_node():
    visited = []

    def look(a):
        visited.append(a)
        return NodeView((2 * a + 1, 2 * a + 2))

    assert [node.name for node in preorder(0, 3, look)] == ["0", "1", "3", "4", "2", "5", "6"]
    assert sorted(visited) == list(range(7))


def test_line_of_the_summary():
    assert lines(figures(0, np.empty(0, np.int64))) == ["nodes = 0, leaves = 0"]
    assert lines(figures(5, np.array([1, 2, 2]))) == ["nodes = 5, leaves = 3, depth mean = 1.67, max = 2"]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 100, 1000])
def test_depths_of_a_tournament_are_the_matches_of_its_labels(k):
    drawn = bracket.draw(k, 0)
    wanted = []
    for y in range(k):
        entry, count = drawn.entry[y], 0
        while entry >= 0:
            entry, count = drawn.entry[k + (entry >> 1 << 1)], count + 1
        wanted.append(count)
    assert bracket.depths(drawn, k).tolist() == wanted
