"""Public reports about labels that mean something else than their user thinks, which the first of them show."""

import gzip
import itertools
import json
import pickle
import random
import warnings
from pathlib import Path

import pytest
from command import learn, xclass

import xclass as library
from xclass.data.alike_names import AlikeNames

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
BITS = ("-b", 12)
TAGS = ["tea;hot", "cake;sweet", "tea;sweet", "cake;hot", "hot"]
ONE_HOT = "id,text,toxic,rude,kind\n" + "".join(
    f"a{i},word{i % 3} x,{i % 2},{i % 3 // 2},{1 - i % 2}\n" for i in range(9)
)
SORTED = [f"c{k}" for k in range(8) for _ in range(20)]
TOPICS = ["sport|ball", "sport|run", "news|tv", "news|paper"]
NFC, NFD = "caf\u00e9", "cafe\u0301"


def csv_of(labels: list[str]) -> str:
    return "text,label\n" + "".join(f"w{i % 5} x,{label}\n" for i, label in enumerate(labels))


def vw_of(labels: list[str]) -> str:
    return "".join(f"{label} | w{i % 5} x\n" for i, label in enumerate(labels))


def shuffled(labels: list[str]) -> list[str]:
    return random.Random(0).sample(labels, len(labels))


def warned(folder, name: str, text: str, *options: str) -> list[str]:
    """Return the warnings of a run of the command, after checking that the library has the same ones."""
    (folder / name).write_text(text)
    said = [line for line in learn(name, *BITS, *options, cwd=folder).err.splitlines() if line.startswith("warning: ")]
    given = {key.removeprefix("--"): value for key, value in zip(options[::2], options[1::2], strict=True)}
    if "label_columns" in given:
        given["label_columns"] = given["label_columns"].split(",")
    size = {"random_order": True} if given.pop("shuffle", None) else {}
    with warnings.catch_warnings(record=True) as caught, library.Learner(bits=12) as model:
        warnings.simplefilter("always", library.XclassWarning)
        if not size:
            model.learn_file(folder / name, **given)
    strip = str.maketrans("", "", "-")
    of_library = [
        str(one.message).replace(f"{folder}/", "").replace("the command's ", "").translate(strip) for one in caught
    ]
    assert size or [line.removeprefix("warning: ").translate(strip) for line in said] == of_library
    return said


@pytest.mark.parametrize(
    ("name", "text", "message", "advice"),
    [
        ("a.csv", ONE_HOT, "columns of 0 and 1 are the labels, give --label_columns toxic,rude,kind",
         ("--label_columns", "toxic,rude,kind")),
        ("a.csv", "text,category\n" + "".join(f"word {i} here,{'abc'[i % 3]}\n" for i in range(20)),
         "as in --label_column category", ("--label_column", "category")),
        ("a.csv", "id,text\n" + "".join(f"{i},some words {i}\n" for i in range(7, 40)),
         "give --label_column 0 if there are no labels", None),
        ("a.csv", "id,text\n" + "".join(f"{i},some words {i}\n" for i in range(7, 70)),
         "give --label_column 0 if there are no labels", None),
        ("a.csv", "kind,label\n" + "".join(f"{'abc'[i % 3]},{i}\n" for i in range(1, 61)),
         "each of the 60 examples has another label, such as '1', and these are numbers", ("--label_column", "kind")),
        ("a.csv", "kind,label\n" + "".join(f"{'abc'[i % 3]},what was said by number {i}\n" for i in range(60)),
         "and these are texts", ("--label_column", "kind")),
        ("a.jsonl", "".join(f'{{"label": {i + 1}, "kind": "{"abc"[i % 3]}"}}\n' for i in range(60)),
         "such as '1', and these are numbers without gaps", ("--label_column", "kind")),
        ("a.vw", vw_of(["a"] * 400 + ["b"] * 40 + ["c"] * 40), "the labels are grouped: 9", ("--shuffle", "100000")),
        ("a.csv", csv_of(TAGS * 20), "--label_separator ';' reads them", ("--label_separator", ";")),
        ("a.tsv", csv_of(TAGS * 20).replace(",", "\t"), "--label_separator ';' reads them", ("--label_separator", ";")),
        ("a.jsonl", "".join(f'{{"label": "{tag}", "text": "x"}}\n' for tag in TAGS * 20),
         "--label_separator ';' reads them", ("--label_separator", ";")),
        ("a.ft", "".join(f"__label__{tag} w x\n" for tag in TAGS * 20), "--label_separator ';' reads them", None),
        ("a.vw", vw_of(TAGS * 20), "elsewhere a comma separates labels", None),
        ("a.vw", vw_of(SORTED), "the labels are grouped: 95% of", ("--shuffle", "100000")),
        ("a.csv", csv_of(SORTED), "the labels are grouped: ", ("--shuffle", "100000")),
        ("a.vw", vw_of([f"{y[1:]}1" for y in SORTED]), "the labels are grouped: ", ("--shuffle", "100000")),
        ("a.vw", vw_of(["a"] * 5000 + ["b"] * 5000), "the labels are grouped: ", None),
        ("a.csv", csv_of(["Tea", "rum", "tea"]), "look alike and are two classes", None),
        ("a.csv", csv_of([NFC, "tea", NFD]), "look alike and are two classes", None),
        ("a.csv", csv_of(["tea", "mint", "te\u200ba"]), "look alike and are two classes", None),
        ("a.csv", csv_of(["tea mint", "rum", "tea\u00a0mint"]), "look alike and are two classes", None),
        ("a.vw", vw_of(["__label__tea", "__label__rum"] * 30), "and --format fasttext reads them", None),
    ],
)  # fmt: skip
def test_labels_that_seem_to_mean_something_else_are_warned_of_in_command_and_library(
    tmp_path, name, text, message, advice
):
    said = warned(tmp_path, name, text)
    assert len(said) == 1 and message in said[0]
    if advice is not None:
        assert warned(tmp_path, name, text, *advice) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vw", vw_of(shuffled(SORTED))),
        ("a.vw", vw_of(["a"] * 30 + shuffled(["a"] * 1200 + ["b"] * 12 + ["c"] * 6))),
        ("a.csv", csv_of(["uk|sport", "us|sport", "uk|other", "other"] * 20)),
        ("a.csv", "name,sex,age\n" + "".join(f"n{i},{'mf'[i % 2]},{i}\n" for i in range(7))),
        ("a.vw", vw_of([f"{i * i + 1}" for i in range(60)])),
        ("a.vw", vw_of([f"{i % 50 + 1}" for i in range(60)])),
        ("a.csv", csv_of(shuffled(TOPICS * 20))),
        ("a.csv", csv_of(shuffled(["book flight", "book hotel", "cancel flight", "credit limit", "rate"] * 20))),
        ("a.csv", csv_of(["red", "light red", "dark red", "green", "light green", "dark green"] * 20)),
        ("a.csv", csv_of(["bear", "polar bear", "brown bear", "English", "British English"] * 20)),
        ("a.csv", csv_of([f"{month} {2010 + i}" for month in "JFMASOND" for i in range(10)] * 9)),
        ("a.csv", csv_of([f"{a}|{b}" for a in ("uk", "us", "fr", "de") for b in ("sport", "tech", "tv")] * 9)),
        ("a.csv", csv_of(["en|US", "en|CA", "fr|FR", "fr|CA"] * 20)),
        ("a.csv", csv_of((["ok"] * 35 + ["fault"] * 5) * 9)),
        ("a.csv", csv_of(["[deleted]", "caf\u00e9", "(none)"] * 20)),
        ("a.csv", "room,size,floor\n" + "".join(f"r{i % 4},{i},{i % 2}\n" for i in range(40))),
        ("a.csv", "word,meaning\n" + "".join(f"word{i * i},what it means {i}\n" for i in range(40))),
    ],
)
def test_labels_as_they_should_be_give_no_warning(tmp_path, name, text):
    assert warned(tmp_path, name, text) == []


def test_arrays_and_single_examples_are_examined_too():
    with library.Learner(bits=12) as model:
        found = model.learn_many(["a b"] * len(SORTED), SORTED).warnings
        assert len(found) == 1 and "the labels are grouped" in found[0] and "--" not in found[0]
    with library.Learner(bits=12) as model, warnings.catch_warnings():
        warnings.simplefilter("error")  # a stream may have runs
        for label in SORTED:
            model.learn("a b", label)
    with library.Learner(bits=12) as model:
        assert "as Python writes it" in "".join(model.learn_many(["a", "b"] * 20, ["['tea']", "['rum']"] * 20).warnings)
        with pytest.raises(library.DataError, match=r"a name has no comma, .* or a list if these are several labels"):
            model.learn_many(["a", "b"], ["['tea', 'hot']", "['rum']"])


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("\"['tea', 'hot']\"", "tea,hot"),
        ("['tea']", "tea"),
        ("['tea' 'hot']", "tea,hot"),
        ("\"('tea', 'hot')\"", "tea,hot"),
        ('"[""it\'s"", \'a, b\']"', "it's,a; b"),
        ("[]", ","),
        ("\"{'tea', 'hot'}\"", "tea,hot"),
        ('"[tea, hot]"', "tea,hot"),
        ('"{a,b}"', "a,b"),
        ("\"array(['tea', 'hot'], dtype='<U3')\"", "tea,hot"),
        ("\"frozenset({'a', 'b'})\"", "a,b"),
        ('"c(""a"", ""b"")"', "a,b"),
        ('"[""caf\\u00e9"", ""tea""]"', "caf\u00e9,tea"),
    ],
)
def test_lists_that_python_has_written_into_cells_are_lists(tmp_path, cell, labels):
    """A column of lists in a DataFrame that pandas writes by to_csv."""
    (tmp_path / "a.csv").write_text("text,label\n" + f"w x,{cell}\nw y,\"['tea', 'hot']\"\n" * 9)
    learn("a.csv", "--multilabel", *BITS, "-f", "m", "--per_class", "c.csv", cwd=tmp_path)
    names = {line.split(",")[0].strip('"') for line in (tmp_path / "c.csv").read_text().splitlines()[1:]}
    assert names == {"tea", "hot", *labels.strip(",").split(",")} - {""}


def test_columns_of_labels_hold_1_and_0_alone(tmp_path):
    (tmp_path / "a.csv").write_text(ONE_HOT + "a9,x,2,0,0\n")
    done = xclass("a.csv", "--label_columns", "toxic,rude,kind", *BITS, cwd=tmp_path)
    assert done.status == 1 and "a.csv:11:6: '2' is not allowed here; give 1 or 0" in done.err
    (tmp_path / "a.jsonl").write_text('{"t": "x", "a": 1, "b": false}\n{"t": "y", "a": null, "b": true}\n' * 9)
    learn("a.jsonl", "--label_columns", "a,b", *BITS, "-f", "m", cwd=tmp_path)
    done = learn("a.jsonl", "-t", "-i", "m", "--label_columns", "a,b", "-p", "stdout", "--quiet", cwd=tmp_path)
    assert done.lines[:2] == ["a", "b"]
    for words, message in (
        (("--label_columns", "a,z"), "'z': a.jsonl: the first line"),
        (("--label_columns", "a", "--label_column", "b"), "leave it out"),
        (("--label_columns", "a", "--columns", "a,t"), "leave one of them out"),
    ):
        done = xclass("a.jsonl", *words, *BITS, cwd=tmp_path)
        assert done.status != 0 and "label_columns" in done.err, message


BITS_OF_LABELS = [("hot cup", 1, 0), ("cold glass", 0, 1), ("red", 0, 0)]
SEPARATED = [("hot cup", "tea;hot"), ("cold glass", "rum;cold")]


@pytest.mark.parametrize(
    ("ending", "rows", "names", "option", "value"),
    [
        (ending, rows, names, option, value)
        for ending in ("csv", "jsonl")
        for rows, names, option, value in (
            (BITS_OF_LABELS, ("text", "a", "b"), "label_columns", "a,b"),
            (SEPARATED, ("message", "label"), "label_separator", ";"),
            (SEPARATED, ("text", "label"), "label_separator", ";"),
        )
    ],
)
def test_a_model_keeps_how_labels_are_written(tmp_path, ending, rows, names, option, value):
    def write(name, names, rows):
        objects = [dict(zip(names, row, strict=False)) for row in rows]
        lines = [",".join(names), *(",".join(map(str, row[: len(names)])) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines if ending == "csv" else map(json.dumps, objects)) + "\n")
        return name

    table = write(f"a.{ending}", names, rows * 9)
    bare = write(f"b.{ending}", names[:1], rows)
    learn(table, f"--{option}", value, *BITS, "-f", "m", cwd=tmp_path)
    for given in ((), (f"--{option}", value)):
        done = learn(table, "-t", "-i", "m", *given, cwd=tmp_path)
        assert "precision at 1" in done.err and "average loss = 0.000000" in done.err and "warning" not in done.err
    done = learn(bare, "-t", "-i", "m", "-p", "stdout", cwd=tmp_path)
    assert len(done.lines) == len(rows) and "warning" not in done.err and "average loss = n.a." in done.err
    with library.load(tmp_path / "m") as model:
        assert model.evaluate(tmp_path / table)["average_loss"] == 0
        copy = pickle.loads(pickle.dumps(model))
    with copy:
        assert copy.evaluate(tmp_path / table)["average_loss"] == 0


@pytest.mark.parametrize("first", ["kettle,0,0", "tea,1,0", "tea,1,1"])
@pytest.mark.parametrize("options", [{}, {"multilabel": 0}])
def test_columns_of_labels_are_lists_of_names_whatever_the_first_row_holds(tmp_path, first, options):
    rows = [first, *(f"w{i},{i % 2},{1 - i % 2}" for i in range(20)), "both,1,1", "none,0,0"]
    (tmp_path / "a.csv").write_text("\n".join(["text,hot,cold", *rows, ""]))
    objects = ['{{"text": "{}", "hot": {}, "cold": {}}}'.format(*row.split(",")) for row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join([*objects, ""]))
    for name in ("a.csv", "a.jsonl"):
        learn(name, *(f"--{key}" for key in options), "--label_columns", "hot,cold", *BITS, cwd=tmp_path)
        for given in ("hot,cold", ["hot", "cold"]):
            with library.Learner(*options, bits=12) as model:
                assert model.learn_file(tmp_path / name, label_columns=given)["examples"] == len(rows)
                assert {*model.classes} == {"hot", "cold"}


def test_the_key_labels_of_json_is_that_of_the_labels(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "x", "labels": ["a", "b"]}\n{"text": "y", "labels": []}\n' * 9)
    assert "as with --multilabel --learn_names" in learn("a.jsonl", *BITS, cwd=tmp_path).err
    (tmp_path / "b.jsonl").write_text('{"text": "x", "intent": "a"}\n')
    done = xclass("b.jsonl", "--multiclass", *BITS, cwd=tmp_path)
    assert (
        "no line has a label with the key 'label'; name the key by --label_column, such as one of 'intent'" in done.err
    )


def test_an_unknown_name_of_the_data_that_looks_like_a_class_is_told(tmp_path):
    (tmp_path / "a.csv").write_text(csv_of([NFC, "tea"] * 9))
    (tmp_path / "t.csv").write_text(csv_of(["tea", NFD]))
    learn("a.csv", *BITS, "-f", "m", cwd=tmp_path)
    done = learn("t.csv", "-t", "-i", "m", cwd=tmp_path)
    assert "t.csv:3: the label 'cafe\\u0301' is no class of the model, and looks like its class 'caf\\xe9'" in done.err


def test_sorted_data_are_told_by_the_search_for_options(tmp_path):
    (tmp_path / "a.vw").write_text(vw_of(SORTED * 3))
    assert "the labels are grouped" in xclass("tune", "-d", "a.vw", "--time", "1s", cwd=tmp_path).err


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not here")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", sorted(SHARED.glob("*/train.vw.gz")), ids=lambda path: path.parent.name)
def test_the_data_sets_give_no_warning(place, path):
    """Learning and testing of the first lines, and the names of all classes."""
    kind = "--multilabel" if path.parent.name.startswith("ml_") else "--multiclass"
    with gzip.open(path, "rb") as file:
        (place / "d").write_bytes(b"".join(itertools.islice(file, 3000)))
    assert "warning" not in learn("-d", "d", kind, 0, "-f", "m").err
    assert "warning" not in learn("-d", "d", "-t", "-i", "m").err
    with gzip.open(path.with_name("labels.txt.gz"), "rt") as file:
        names = [line.rstrip("\n").split("\t")[-1] for line in file]
    assert AlikeNames().check(names) == ""
    with library.Learner(bits=12) as model:
        assert (
            model.learn_many(
                ["x"] * min(len(names), 2000), random.Random(1).sample(names, min(len(names), 2000))
            ).warnings
            == ()
        )
