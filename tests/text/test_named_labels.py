"""Labels that are names: what is learned and written, against VW."""

import random
import re

import numpy as np
import pytest
from command import learn, xclass
from streams import multiclass
from versus import needs_vw, run_vw

NAMES = ["cat", "dog", "élan", "a-very-long-name-of-a-bird", "7"]


def data(seed: int) -> str:
    lines = multiclass(seed, 5, 80, tags=True, weights=(0.5, 1, 2), unlabelled=0.1).splitlines()
    named = [re.sub(r"^([1-5]) ", lambda m: NAMES[int(m[1]) - 1] + " ", line) for line in lines]
    rng = random.Random(seed)
    named[rng.randrange(20, 80)] = "unheard-of |w p0_1"
    return "".join(line + "\n" for line in named)


@needs_vw
@pytest.mark.parametrize(
    "command",
    [
        "--oaa 5",
        "--oaa 5 --scores",
        "--oaa 5 --probabilities --loss_function logistic",
        "--recall_tree 5",
        "--ect 5",
        "--log_multi 5",
        "--oaa 5 -r r",
    ],
)
def test_predictions_and_table_are_vws(command, tmp_path):
    (tmp_path / "data").write_text(data(3))
    args = ["-d", "data", *command.split(), "--named_labels", ",".join(NAMES), "-P", "1", "-p"]
    result = run_vw(*args, "wanted", cwd=tmp_path)
    own = learn("--vw_exact", *args, "found", cwd=tmp_path)
    expected, actual = ((tmp_path / name).read_text().splitlines() for name in ("wanted", "found"))
    assert len(actual) == len(expected)
    cut = [
        [re.sub(r":(-?[\d.e-]+)", lambda m: f":{float(m[1]):.2f}", line) for line in lines]
        for lines in (actual, expected)
    ]
    same = [a == b for a, b in zip(*cut, strict=True)]
    assert np.mean(same) > (0.9 if ":" in expected[0] else 0.999)
    rows = [
        [line for line in err.splitlines() if re.match(r"^[\d.]+ +\S+ +\d+ ", line)] for err in (own.err, result.err)
    ]
    table = [[(row.split()[2], row.split()[4]) for row in some] for some in rows]
    if "recall_tree" not in command:  # labels without a name count as class 0 there
        assert table[0] == table[1]


def test_names_may_be_the_lines_of_a_file(tmp_path):
    (tmp_path / "names").write_text("".join(name + "\n" for name in NAMES))
    text = data(5).replace("unheard-of", "cat")
    learn("--oaa", 5, "--named_labels", ",".join(NAMES), "-f", "a", stdin=text, cwd=tmp_path)
    learn("--oaa", 5, "--named_labels", "@names", "-f", "b", stdin=text, cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    (tmp_path / "names").unlink()  # the model has them
    result = learn("-i", "b", "-t", "-p", "stdout", "--quiet", stdin=text, cwd=tmp_path)
    assert {line.split()[0] for line in result.lines} <= set(NAMES)


def test_more_names_than_a_command_line_could_hold(tmp_path):
    names = [f"a-class-with-a-long-name-{i:06d}" for i in range(20_000)]
    (tmp_path / "names").write_text("\n".join(names))
    text = "".join(f"{names[i]} | w{i}\n" for i in range(0, 20_000, 1000))
    learn("--multiclass", "--named_labels", "@names", "-b", 18, "-f", "m", "--quiet", stdin=text * 4, cwd=tmp_path)
    result = learn("-i", "m", "-t", "-p", "stdout", "--quiet", stdin=text, cwd=tmp_path)
    assert result.lines == [line.split()[0] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "names: the file cannot be read (No such file or directory); give one with"),
        ("", "names: the file of --named_labels is empty; write one name on each line"),
        ("cat\n\ndog\n", "names:2: the line '' is not a name of --named_labels; a name is not empty"),
        ("cat\nbig,dog\n", "names:2: the line 'big,dog' is not a name of --named_labels; a name has no comma"),
        ("big_dog\nbig dog\n", "--named_labels lists 'big dog' twice"),
        ("cat\ncat\n", "--named_labels lists 'cat' twice"),
    ],
)
def test_a_file_of_names_that_is_none_is_refused(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "names").write_text(content)
    result = xclass("--multiclass", "--named_labels", "@names", stdin="cat | a\n")
    assert result.status == 2 and message in result.err


@pytest.mark.plain
def test_numbers_can_be_names():
    result = xclass(
        "--oaa", 2, "-b", 10, "--named_labels", "20,10", "-p", "stdout", stdin="20 |w a\n10 |w b\n20 |w a\n"
    )
    assert result.status == 0
    assert result.out.split()[-1] == "20"
