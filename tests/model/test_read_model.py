"""The reader of docs/model_file.md, which needs NumPy alone, predicts what the command predicts.

`XCLASS_DATA_SETS` may name a folder that holds data sets as NAME/train.vw.gz and NAME/test.vw.gz; those of DATA_SETS
that are not there are skipped.
"""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from command import learn

import xclass

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODELS = Path(__file__).resolve().parent / "old_models"
MOST_LINES = 60  # of code, in each file of the reader
DATA_SETS = ("clinc150", "isolet1", "ptb")  # words, columns of numbers, many classes
LEARNED, PREDICTED = 4000, 400  # most lines of a data set
CLASSES = 20
NUMBERS = ("1", "-0.25", ".5", "3.", "1e-40", "0.123456789012", "1234567.75", "123456789", "2e-05", "1.5E3", "0")


@pytest.fixture
def read_model(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    for name in ("read_model", "read_features"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import read_model

    return read_model


def feature(rng: random.Random, label: int) -> str:
    """Return a feature in one of the forms of VW text, often one that belongs to the class."""
    word = rng.choice([f"w{rng.randrange(6 * label, 6 * label + 9)}", f"w{rng.randrange(200)}", f"{rng.randrange(50)}"])
    value = rng.choice([rng.choice(NUMBERS), f"{rng.gauss(0, 2):.4g}", f"{rng.gauss(0, 1):.12f}"])
    return rng.choice(
        [word] * 6 + [f"{word}:{value}"] * 2 + [f"colour:{word}", f"größe{label % 5}", "a_name_of_22_letters_"]
    )


def text(seed: int, n: int, name: str = "") -> str:
    """Return lines of VW text: namespaces once or several times, with weights, and labels, weights and tags."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        label = rng.randrange(CLASSES)
        head = rng.choice([f"{name}{label + 1}"] * 6 + [f"{name}{label + 1} 2", f"left out\t{name}{label + 1}"])
        head += rng.choice([" "] * 6 + [" 'tag ", " tag", " 'é", "  "])
        for _ in range(rng.randrange(4)):
            space = rng.choice(["", "", "a", "b", "abc", "ü", "17", "a:0.5", "b:0"])
            words = [feature(rng, label) for _ in range(rng.randrange(1, 6))]
            head += f"|{space}{rng.choice([' ', '  '])}{rng.choice([' ', '  ', chr(9)]).join(words)} "
        lines.append(head if "|" in head else head + "|")
    extra = ["|", " | ", "", "'only_a_tag", "word", "| unseen", f"{name}1 |a x:0 |b y |a z", "|a b|c d:2|a e\r"]
    return "".join(f"{line}\n" for line in lines + extra)


def columns(seed: int, n: int) -> str:
    """Return lines with columns of numbers of different sizes, which --cpt divides by their mean size."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        label = rng.randrange(CLASSES)
        values = [rng.gauss(label % (j + 2), 1) * 10 ** (j - 3) for j in range(8)]
        lines.append(f"{label + 1} | " + " ".join(f"x{j}:{value:.5g}" for j, value in enumerate(values) if value > -1))
    return "".join(f"{line}\n" for line in [*lines, "| unseen:7", "| x1:1e30 x2:-1e30"]).replace("e+", "e")


def check(read_model, folder: Path, train: str, test: str, *words) -> list[str]:
    """Train a model with `words`, and check that the reader and the command predict the same for each line."""
    learn(*words, "--quiet", "-f", "m", stdin=train, cwd=folder)
    learn("-t", "-i", "m", "-p", "p", "--quiet", stdin=test, cwd=folder)
    expected = (folder / "p").read_text("utf-8").split("\n")[:-1]
    predicted = list(read_model.predict(folder / "m", test.split("\n")))
    assert predicted == expected
    return expected


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-b 12",
        "-b 6",
        "--predict_only_model",
        "--indexing 0",
        "--oaa_subsample 3",
        "--learn_names",
        "--loss_function hinge",
        "--loss_function squared --sgd",
    ],
)
def test_reader_predicts_what_oaa_predicts(read_model, tmp_path, words):
    name = "c" if "names" in words else ""
    test = text(2, 1000, name)
    expected = check(read_model, tmp_path, text(1, 3000, name), test, "--oaa", CLASSES + 5, *words.split())
    assert len(set(expected)) > CLASSES / 2


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-b 12",
        "-b 3",
        "--learn_names",
        "--cpt_tree kmeans --tree_sample 500",
        "--cpt_tree huffman --tree_sample 500",
        "--cpt_tree balanced",
        "--normalize_features columns",
        "--normalize_features unit --sgd",
        "--normalize_features none",
    ],
)
def test_reader_predicts_what_cpt_predicts(read_model, tmp_path, words):
    name = "c" if "names" in words else ""
    expected = check(read_model, tmp_path, text(1, 3000, name), text(2, 1000, name), "--cpt", CLASSES, *words.split())
    assert len(set(expected)) > (1 if words == "-b 3" else CLASSES / 2)


@pytest.mark.parametrize("reduction", ["oaa", "cpt"])
def test_reader_predicts_from_columns_of_numbers(read_model, tmp_path, reduction):
    check(read_model, tmp_path, columns(1, 3000), columns(2, 1000), f"--{reduction}", CLASSES)
    if reduction == "cpt":
        _, _, arrays = read_model.load(tmp_path / "m")
        assert arrays["scales.state"][1] == 1


@pytest.mark.parametrize("reduction", ["oaa", "cpt"])
def test_reader_breaks_ties_as_the_command_does(read_model, tmp_path, reduction):
    lines = [f"{i} | {' '.join(words)}\n" for i, words in enumerate(itertools.permutations("abc", 2), 1)]
    check(read_model, tmp_path, "".join(lines), "".join([*lines, "|\n", "| a\n", "| b c\n"]), f"--{reduction}", 6)


@pytest.mark.parametrize("words", [("oaa", 3), ("cpt", 3)], ids=("oaa", "cpt"))
def test_reader_predicts_with_a_model_that_has_learned_nothing(read_model, tmp_path, words):
    reduction, classes = words
    with xclass.Learner(reduction, classes=classes, bits=8) as model:
        model.save(str(tmp_path / "m"))
    learn("-t", "-i", "m", "-p", "p", "--quiet", stdin="| a\n|\n", cwd=tmp_path)
    assert list(read_model.predict(tmp_path / "m", ["| a", "|"])) == (tmp_path / "p").read_text().split()


@pytest.mark.parametrize("name", ["oaa", "oaa_logistic", "cpt", "cpt_kmeans", "cpt_columns"])
def test_reader_predicts_with_models_of_an_older_version(read_model, name):
    lines = (MODELS / "classes.test.vw").read_text().splitlines()
    expected = (MODELS / f"{name}.predictions").read_text().splitlines()
    assert list(read_model.predict(MODELS / f"{name}.model", lines)) == expected


@pytest.mark.parametrize("reduction", ["oaa", "cpt"])
@pytest.mark.parametrize("name", DATA_SETS)
def test_reader_predicts_on_data_sets(read_model, tmp_path, name, reduction):
    folder = Path(os.environ.get("XCLASS_DATA_SETS", os.devnull), name)
    if not folder.is_dir():
        pytest.skip(f"there is no data set {name} in the folder that XCLASS_DATA_SETS names")
    parts = []
    for part, most in (("train", LEARNED), ("test", PREDICTED)):
        with gzip.open(folder / f"{part}.vw.gz", "rt", encoding="utf-8") as file:
            parts.append("".join(itertools.islice(file, most)))
    train, test = parts
    classes = 1 + max(int(line.split()[0]) for line in (train + test).splitlines())
    check(read_model, tmp_path, train, test, f"--{reduction}", classes)


@pytest.mark.parametrize(
    "words, seen",
    [
        ("--link logistic", "link"),
        ("--l1 1e-5", "l1"),
        ("-q ab", "quadratic"),
        ("--ngram 2", "ngram"),
        ("--ignore a", "ignore"),
        ("--hash all", "hash"),
        ("--hash_seed 7", "hash_seed"),
        ("--noconstant", "noconstant"),
    ],
)
def test_reader_refuses_options_that_predictions_depend_on(read_model, tmp_path, words, seen):
    learn("--oaa", 3, *words.split(), "--quiet", "-f", "m", stdin="1 |a x |b y\n2 |a z\n3 |b u\n", cwd=tmp_path)
    with pytest.raises(ValueError, match=rf"m: not supported: .*'{seen}'"):
        list(read_model.predict(tmp_path / "m", ["|a x"]))


@pytest.mark.parametrize(
    "name, seen",
    [
        ("scalar", "a model without --oaa and --cpt"),
        ("recall_tree", "'recall_tree': 6"),
        ("multiclass", "'rerank': True"),
        ("vw_exact", "'layout': 'vw'"),
        ("cpt_trees", "'trees': 2"),
        ("cpt_wide", "'cpt_arity': 4"),
    ],
)
def test_reader_refuses_other_models(read_model, name, seen):
    with pytest.raises(ValueError, match=rf"{name}.model: not supported: .*{seen}"):
        list(read_model.predict(MODELS / f"{name}.model", ["| a"]))


def test_reader_refuses_logistic_loss_of_a_tree(read_model, tmp_path):
    learn("--cpt", 3, "--loss_function", "logistic", "--quiet", "-f", "m", stdin="1 | x\n", cwd=tmp_path)
    with pytest.raises(ValueError, match="'loss_function': 'logistic'"):
        list(read_model.predict(tmp_path / "m", ["| x"]))


def test_reader_refuses_an_option_that_it_does_not_know(read_model, tmp_path):
    learn("--oaa", 3, "--quiet", "-f", "m", stdin="1 | x\n", cwd=tmp_path)
    content = (tmp_path / "m").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    options = json.loads(header["__metadata__"]["options"])
    header["__metadata__"]["options"] = json.dumps({**options, "a_new_option": "some"})
    changed = json.dumps(header, separators=(",", ":")).encode()
    (tmp_path / "m").write_bytes(len(changed).to_bytes(8, "little") + changed + content[end:])
    with pytest.raises(ValueError, match="a_new_option"):
        read_model.load(tmp_path / "m")


def test_reader_refuses_other_files(read_model, tmp_path):
    (tmp_path / "m").write_text("1 | a\n")
    with pytest.raises(ValueError, match="m: this is not a model of xclass"):
        list(read_model.predict(tmp_path / "m", ["| a"]))


@pytest.mark.parametrize("words", [":7", "a:b:c", "a:", "a:+1", "a:inf", "a:0x1f", "a:1e+5", "a:-"])
def test_reader_refuses_features_that_it_cannot_read(read_model, words):
    with pytest.raises(ValueError, match=r"is a name|is written like"):
        list(read_model.predict(MODELS / "oaa.model", [f"| {words}"]))


def test_reader_is_a_command(tmp_path):
    words = [sys.executable, str(DOCS / "read_model.py"), str(MODELS / "cpt.model")]
    done = subprocess.run(
        words, input=(MODELS / "classes.test.vw").read_bytes(), capture_output=True, timeout=60, env={"PYTHONPATH": ""}
    )
    assert done.stdout == (MODELS / "cpt.predictions").read_bytes(), done.stderr


def lines_of_code(path: Path) -> int:
    """Return the number of lines of a Python file that are neither blank nor a comment nor a docstring."""
    source = path.read_text(encoding="utf-8")
    in_docstring: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node):
            in_docstring.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in in_docstring for i, line in lines)


@pytest.mark.parametrize("name", ["read_model", "read_features"])
def test_reader_is_short_and_needs_numpy_alone(name):
    path = DOCS / f"{name}.py"
    assert lines_of_code(path) <= MOST_LINES
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name.split(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported - {"read_features"} <= {"numpy", *sys.stdlib_module_names}


def test_page_includes_the_reader():
    page = (DOCS / "model_file.md").read_text(encoding="utf-8")
    for name in ("read_model.py", "read_features.py"):
        assert f"```{{literalinclude}} {name}\n" in page
