"""The reader of docs/model_file.md, which needs NumPy alone, predicts what the command predicts.

`XCLASS_DATA_SETS` may name a folder that holds data sets as NAME/train.vw.gz and NAME/test.vw.gz; those of DATA_SETS
that are not there are skipped.
"""

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from command import learn

import xclass
from xclass.model import model_file

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODELS = Path(__file__).resolve().parent / "golden"
CLASSES = 20
NUMBERS = ("1", "-0.25", ".5", "3.", "0.7", "-12.345", "1234567", "0.0000012", "16777217e+0", "-.3e+0", "0", "00.00")


@pytest.fixture
def read_model(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "read_model", raising=False)
    import read_model

    return read_model


def feature(rng: random.Random, label: int) -> str:
    """Return a word, or a word with a number that the reader takes exactly; often one that belongs to the class."""
    word = rng.choice([f"w{rng.randrange(6 * label, 6 * label + 9)}", f"w{rng.randrange(200)}", f"{rng.randrange(50)}"])
    value = rng.choice([rng.choice(NUMBERS), f"{rng.gauss(0, 2):.4f}", f"{rng.gauss(0, 1):.12f}e+0"])
    return rng.choice([word] * 6 + [f"{word}:{value}"] * 3 + [f"größe{label % 5}", "a_name_of_22_letters_"])


def text(seed: int, n: int, name: str = "") -> str:
    """Return lines of VW text with labels, weights, and namespaces; those with the same first letter adjoin."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        label = rng.randrange(CLASSES)
        head = rng.choice([f"{name}{label + 1}"] * 6 + [f"{name}{label + 1} 2", f"left out\t{name}{label + 1}"])
        head += rng.choice([" ", "  "])
        for space in sorted(rng.choices(["", "", "a", "b", "abc", "ü", "17"], k=rng.randrange(4))):
            words = [feature(rng, label) for _ in range(rng.randrange(1, 6))]
            head += f"|{space}{rng.choice([' ', '  '])}{rng.choice([' ', '  ', chr(9)]).join(words)} "
        lines.append(head if "|" in head else head + "|")
    extra = ["|", " | ", "", f"{name}1 ", "| unseen", "|a x:0 |b y |c z", "|a b|c d:2|e f\r"]
    return "".join(f"{line}\n" for line in lines + extra)


def columns(seed: int, n: int) -> str:
    """Return lines with columns of numbers of different sizes, which --cpt divides by their mean size."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        label = rng.randrange(CLASSES)
        values = [rng.gauss(label % (j + 2), 1) * 10 ** (j - 3) for j in range(8)]
        numbers = [f"{value:.7f}e+0" if rng.random() < 0.2 else f"{value:.3f}" for value in values]
        lines.append(f"{label + 1} | " + " ".join(f"x{j}:{number}" for j, number in enumerate(numbers)))
    return "".join(f"{line}\n" for line in [*lines, "| unseen:7 other:0", "| x1:1e+30 x2:-1e+30"])


def check(read_model, folder: Path, train: str, test: str, *words) -> list[str]:
    """Train a model with `words`, and check that the reader and the command predict the same for each line."""
    learn(*words, "--quiet", "-f", "m", stdin=train, cwd=folder)
    exact = ["--exact"] if "--cpt" in words else []
    learn("-t", "-i", "m", "-p", "p", "--quiet", *exact, stdin=test, cwd=folder)
    expected = (folder / "p").read_text("utf-8").split("\n")[:-1]
    predicted = list(read_model.predict(folder / "m", test.split("\n")))
    assert predicted == expected
    return expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        "",
        "-b 12",
        "-b 8",
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
    test = text(2, 300, name)
    expected = check(read_model, tmp_path, text(1, 1000, name), test, "--oaa", CLASSES + 5, *words.split())
    assert len(set(expected)) > CLASSES / 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        "",
        "-b 12",
        "-b 3",
        "--learn_names",
        "--cpt_tree kmeans --tree_sample 200",
        "--cpt_tree huffman --tree_sample 200",
        "--cpt_tree balanced",
        "--sgd",
    ],
)
def test_reader_predicts_what_cpt_predicts(read_model, tmp_path, words):
    name = "c" if "names" in words else ""
    expected = check(read_model, tmp_path, text(1, 1000, name), text(2, 300, name), "--cpt", CLASSES, *words.split())
    assert len(set(expected)) > (1 if words == "-b 3" else CLASSES / 2)


@pytest.mark.parametrize("reduction", ["oaa", "cpt"])
def test_reader_predicts_from_columns_of_numbers(read_model, tmp_path, reduction):
    check(read_model, tmp_path, columns(1, 1000), columns(2, 300), f"--{reduction}", CLASSES)
    if reduction == "cpt":
        scales_state = model_file.load(tmp_path / "m").arrays["scales.state"]
        assert scales_state[1] == 1, "values are divided by their mean size"


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


@pytest.mark.parametrize("name", ["oaa_logistic", "cpt"])
def test_reader_predicts_with_models_that_are_kept(read_model, name):
    lines = (MODELS / "classes.test.vw").read_text().splitlines()
    expected = (MODELS / f"{name}.predictions").read_text().splitlines()
    assert list(read_model.predict(MODELS / f"{name}.model", lines)) == expected


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
    "words, seen",
    [
        ("", "neither --oaa, nor --cpt"),
        ("--recall_tree 6", "'recall_tree': 6"),
        ("--multiclass 6", "'rerank': True"),
        ("--oaa 6 --vw_exact", "'layout': 'vw'"),
        ("--cpt 6 --trees 2", "'trees': 2"),
        ("--cpt 6 --cpt_arity 4", "'cpt_arity': 4"),
        ("--cpt 6 --normalize_features columns", "'normalize_features': 'columns'"),
    ],
)
def test_reader_refuses_other_models(read_model, tmp_path, words, seen):
    learn(*words.split(), "-b", 8, "--quiet", "-f", "m", stdin="1 | x\n", cwd=tmp_path)
    with pytest.raises(ValueError, match=rf"m: not supported: .*{seen}"):
        list(read_model.predict(tmp_path / "m", ["| a"]))


def test_reader_refuses_logistic_loss_of_a_tree(read_model, tmp_path):
    learn("--cpt", 3, "--loss_function", "logistic", "--quiet", "-f", "m", stdin="1 | x\n", cwd=tmp_path)
    with pytest.raises(ValueError, match="nor --cpt with squared loss"):
        list(read_model.predict(tmp_path / "m", ["| x"]))


@pytest.mark.parametrize("version, option", [("1", "a_new_option"), ("2", "oaa")])
def test_reader_refuses_what_it_does_not_know(read_model, tmp_path, version, option):
    learn("--oaa", 3, "--quiet", "-f", "m", stdin="1 | x\n", cwd=tmp_path)
    content = (tmp_path / "m").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    options = json.loads(header["__metadata__"]["options"])
    header["__metadata__"].update(version=version, options=json.dumps({**options, option: 3}))
    changed = json.dumps(header, separators=(",", ":")).encode()
    (tmp_path / "m").write_bytes(len(changed).to_bytes(8, "little") + changed + content[end:])
    with pytest.raises(ValueError, match=r"not supported: {'(a_new_option|version)': '?[23]'?}"):
        next(read_model.predict(tmp_path / "m", ["| x"]))


@pytest.mark.parametrize("words", [" a:red", " a:b:c", " a:1:2", " a:", " a:0x1f", " a:-", "a:2 b"])
def test_reader_refuses_features_that_it_cannot_read(read_model, words):
    with pytest.raises((ValueError, TypeError), match=r"could not convert|too many values|positional argument"):
        list(read_model.predict(MODELS / "oaa_logistic.model", [f"|{words}"]))


def test_reader_needs_nothing_of_xclass():
    program = """
import sys
from read_model import predict
print(*predict(sys.argv[1], open(sys.argv[2], encoding="utf-8")), sep="\\n")
assert "xclass" not in sys.modules
"""
    words = [sys.executable, "-c", program, str(MODELS / "cpt.model"), str(MODELS / "classes.test.vw")]
    done = subprocess.run(words, capture_output=True, timeout=60, env={"PYTHONPATH": ""}, cwd=DOCS)
    assert done.stdout == (MODELS / "cpt.predictions").read_bytes(), done.stderr


def test_page_includes_the_reader():
    page = (DOCS / "model_file.md").read_text(encoding="utf-8")
    assert "```{literalinclude} read_model.py\n" in page
