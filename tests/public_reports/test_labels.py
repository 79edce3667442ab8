"""Public reports about labels: what is a class, which spellings are the same one, and what a run says about it."""

import numpy as np
import pytest
from command import learn, xclass

import xclass as library

TEXTS = ["red wine", "pale ale", "green tea"]
CODES = ["0101", "0102", "0201", "0101"]
ONCE = ("--passes", 5, "--holdout_off", "-b", 14)


def predicted(folder, name: str, text: str, *options) -> tuple[list[str], str]:
    """Return what a model that was learned from a file predicts for it, and what the run that learned has said."""
    (folder / name).write_text(text)
    said = learn("-d", name, "-f", "m", *ONCE, *options, cwd=folder).err
    return learn("-d", name, "-t", "-i", "m", "-p", "stdout", "--quiet", cwd=folder).lines, said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codes.vw", "".join(f"{code} | a{code} b{code}\n" for code in CODES)),
        ("codes.csv", "label,t\n" + "".join(f"{code},a{code} b\n" for code in CODES)),
        ("codes.svm", "".join(f"{code} {int(code)}:1\n" for code in CODES)),
        ("codes.jsonl", "".join(f'{{"label": "{code}", "text": "a{code}"}}\n' for code in CODES)),
        ("codes.ft", "".join(f"__label__{code} a{code}\n" for code in CODES)),
    ],
)
def test_codes_with_leading_zeros_come_back_as_they_were_written(name, text, tmp_path):
    """dathere/qsv#3938 (ICD-9, Dewey), nao1215/filesql#150."""
    lines, said = predicted(tmp_path, name, text)
    assert lines == CODES
    assert "labels are names" in said


def test_labels_that_differ_in_a_leading_zero_are_two_classes(tmp_path):
    """dathere/qsv#3938, nao1215/filesql#150."""
    labels = ["07", "7", "8", "9"]
    lines, _ = predicted(tmp_path, "two.vw", "".join(f"{y} | {x}\n" for y, x in zip(labels, "abcd", strict=True)))
    assert lines == labels


@pytest.mark.parametrize(("label", "fault"), [("07", "has a sign or leading zeros"), ("+3", "has a sign or leading")])
@pytest.mark.parametrize(("name", "line"), [("d.vw", "{} | a\n"), ("d.svm", "{} 1:1\n")])
def test_a_number_that_would_not_be_printed_as_it_is_written_is_refused_once_classes_are_numbers(
    label, fault, name, line, tmp_path
):
    """dathere/qsv#3938, nao1215/filesql#150."""
    (tmp_path / name).write_text("".join(line.format(i % 9 + 1) for i in range(120)) + line.format(label))
    result = xclass("-d", name, "-b", 12, cwd=tmp_path)
    assert result.status == 1 and f"{name}:121:1: label '{label}' {fault}" in result.err
    assert "--learn_names" in result.err


@pytest.mark.parametrize("different", [1, 2, 3])
def test_large_whole_labels_are_names(different, tmp_path):
    """yunwilliamyu/opal#3 (a label of 13 digits among class ids)."""
    labels = ["9781234567890", "9781234567891", "9781234567892"][:different] * 2
    lines, said = predicted(tmp_path, "d.vw", "".join(f"{y} | a{y}\n" for y in labels))
    assert lines == labels
    assert "labels are names, because '9781234567890' is above 2147483648, the largest number of a class" in said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", "label,x\n" + "".join(f"{y}.0,{y}\n" for y in "1231")),
        ("d.csv", "label,x\n" + "".join(f"{y}.000e+00,{y}\n" for y in "1231")),
        ("e.svm", "".join(f"{y}.000e+00 {y}:1\n" for y in "1231")),
        ("e.vw", "".join(f"{y}.000e+00 | x{y}\n" for y in "1231")),
        ("e.jsonl", "".join(f'{{"label": {y}.000e+00, "text": "x{y}"}}\n' for y in "1231")),
        ("d.svm", "".join(f"{y}.0 {y}:1\n" for y in "1231")),
        ("d.vw", "".join(f"{y}.0 | x{y}\n" for y in "1231")),
        ("d.jsonl", "".join(f'{{"label": {y}.0, "text": "x{y}"}}\n' for y in "1231")),
    ],
)
def test_whole_numbers_as_floats_are_classes(name, text, tmp_path):
    """catboost/catboost#1174 (whole numbers as floats)."""
    lines, said = predicted(tmp_path, name, text)
    assert set(lines) <= {"1", "2", "3"}
    assert "learning classes, as with --multiclass" in said


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        ("0 1 2", "whole numbers, one of them 0: learning numbers"),
        ("-1 0 1", "whole numbers, some of them negative: learning numbers"),
        ("1 2 1", "two whole numbers: learning numbers"),
        (" ".join(["1"] * 100 + ["2", "3"]), "all the same: learning numbers"),
        ("1e0 2e0 1e0", "two whole numbers: learning numbers"),
        ("3.000e+00 1.500e+00 1.200e+01", ""),
        ("-1 1 -1", ""),
        ("1.5 2 3", ""),
    ],
)
def test_a_regression_on_what_could_be_classes_is_said(labels, note, tmp_path):
    """yunwilliamyu/opal#3, catboost/catboost#1174."""
    (tmp_path / "d.vw").write_text("".join(f"{y} | a\n" for y in labels.split()))
    result = learn("d.vw", "-b", 12, cwd=tmp_path)
    assert f"the first labels are {note}" in result.err if note else "labels are" not in result.err


def test_a_tag_without_a_label_is_warned_of(tmp_path):
    """yunwilliamyu/opal#3: labels that are read as something else."""
    (tmp_path / "d.vw").write_text("'s | it\nnope | that\nyes | this\nwell | so\n4| x\n")
    learned = learn("d.vw", "-b", 12, "-f", "m", cwd=tmp_path).err
    assert "d.vw:5: '4' touches the bar and is read as a tag" in learned or "d.vw:1: 's begins with" in learned
    assert "is read as a tag" not in learn("-b", 12, "--vw_exact", "--oaa", 3, stdin="'s | it\n1 | a\n").err
    (tmp_path / "t.vw").write_text("'s | it\n'x | that\n")
    assert "is read as a tag" not in learn("-t", "-i", "m", "-d", "t.vw", cwd=tmp_path).err


def test_a_name_with_blanks_is_one_class_in_all_formats(tmp_path):
    """Labels such as "New York" of a CSV file come back as they were written."""
    (tmp_path / "d.csv").write_text("label,t\nNew York,a b\nParis,c d\nNew  York,a\n")
    (tmp_path / "d.vw").write_text("New_York |t a\nParis |t c\n")
    (tmp_path / "d.jsonl").write_text('{"label": "New York", "t": "a"}\n{"label": "Paris", "t": "c"}\n')
    learn("d.csv", *ONCE, "-f", "m", "-c", cwd=tmp_path)
    for data in ("d.csv", "d.vw", "d.jsonl"):
        result = learn(data, "-t", "-i", "m", "-p", "p", "--per_class", "c.csv", "--errors", "e", cwd=tmp_path)
        assert "not names of classes" not in result.err
    assert learn("d.vw", "-t", "-i", "m", "-p", "stdout", "--quiet", cwd=tmp_path).lines == ["New York", "Paris"]
    with library.load(tmp_path / "m") as model:
        assert model.classes == ["New York", "Paris"]
        assert model.predict("|t a") == "New York"
        model.learn("|t a", "New York")
        assert model.classes == ["New York", "Paris"]
    learn("d.vw", *ONCE, "-f", "underscore", cwd=tmp_path)
    with library.load(tmp_path / "underscore") as model:
        model.learn_many(["a", "z"], ["New York", "a b"])
        assert model.classes == ["New_York", "Paris", "a b"]


def test_two_spellings_of_a_name_are_said(tmp_path):
    """Labels of CSV and of programs can tell `a b` and `a_b` apart, and they are one class."""
    result = learn("--multiclass", "-b", 12, stdin="label,t\na b,x y\na_b,z z\nc,d d\n")
    assert "stdin:3: label 'a_b' is the same class as 'a b'" in result.err


def test_a_model_merges_a_class_that_is_spelled_in_two_ways(tmp_path):
    """The class `New York` of CSV is the class `New_York` of VW text."""
    (tmp_path / "1.csv").write_text("label,t\nNew York,a\nb,c\n")
    (tmp_path / "2.vw").write_text("New_York |t a\nd |t e\n")
    for name in ("1.csv", "2.vw"):
        learn(name, "--oaa", 4, "--learn_names", "-b", 12, "-f", f"{name}.m", cwd=tmp_path)
    learn("merge", "1.csv.m", "2.vw.m", "-f", "m", cwd=tmp_path)
    with library.load(tmp_path / "m") as model:
        assert sorted(model.classes) in (["New York", "b", "d"], ["New_York", "b", "d"])


@pytest.mark.parametrize("order", [[1, 1.0, True], [True, 1, np.float64(1)], [np.int64(1), True, 1.0]])
def test_equal_labels_are_one_class_in_river(order):
    """online-ml/river#733 (iterrows makes floats of integers), #1299."""
    pytest.importorskip("river")
    pandas = pytest.importorskip("pandas")
    from xclass.river import Classifier

    model = Classifier(bits=12)
    for i, label in enumerate([*order, 2, 2.0]):
        model.learn_one({f"w{i}": 1.0}, label)
    assert len(model.learner.classes) == 2
    assert model.predict_one({"w0": 1.0}) == 1
    frame = pandas.DataFrame({"w0": [1.0, 0.0], "w3": [0.0, 1.0]})
    model.learn_many(frame, pandas.Series([1.0, 2.0]))
    assert model.predict_proba_many(frame).sum(axis=1).tolist() == pytest.approx([1, 1])
    assert list(model.predict_proba_many(frame).columns) in ([1, 2], [2, 1])


def test_equal_labels_are_one_class_in_the_library():
    """online-ml/river#733."""
    with library.Learner(bits=12) as model:
        model.learn_many(TEXTS, np.array([1, 2.0, True], object))
        model.learn_many(TEXTS, ["1", "2", "1"])  # texts of numbers, where classes are numbers
        assert model.classes == 2


def test_equal_labels_are_one_class_in_the_estimator():
    """online-ml/river#733."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    rows = np.eye(4)
    model = XClassifier(bits=12).fit(rows, [1, 2, 1, 2]).partial_fit(rows, [1.0, 2.0, 1.0, 2.0])
    assert model.classes_.tolist() == [1, 2]
    assert XClassifier(bits=12).fit(rows, [1.0, 2.0, 3.0, 1.0]).learner_.classes == 3
    named = XClassifier(bits=12).fit(rows, [0.0, 1.0, 2.0, 0.0])
    assert named.learner_.classes == ["0", "1", "2"] and named.classes_.tolist() == [0.0, 1.0, 2.0]


def test_a_missing_label_is_no_label():
    """scikit-learn/scikit-learn#25073 (pd.NA in y), #25637."""
    pandas = pytest.importorskip("pandas")
    for missing in range(3):
        for kind in ("object", "category", "string", "Int64"):
            values = [None if i == missing else (i + 1 if kind == "Int64" else "abc"[i]) for i in range(3)]
            with library.Learner(bits=12) as model:
                model.learn_many(TEXTS, pandas.Series(values, dtype=kind))
                assert model.examples == 2


@pytest.mark.parametrize("label", ["1e999", "-1e999", "NaN", "true"])
def test_a_label_of_json_that_is_no_class_is_refused(label, tmp_path):
    """A label that JSON reads as infinity was a class named `inf`."""
    (tmp_path / "d.jsonl").write_text(f'{{"label": "a", "text": "x"}}\n{{"label": {label}, "text": "x"}}\n')
    result = xclass("d.jsonl", "-b", 12, cwd=tmp_path)
    assert result.status == 1 and "d.jsonl:2:11:" in result.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", [(), ("--top_k", 2), ("--probabilities",)])
@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("d.svm", "3.0 1:1\n1.0 2:1\n2.0 3:1\n", ()),
        ("d.svm", "3e0 1:1\n1.000e+00 2:1\n1.200e+01 3:1\n", ()),
        ("d.vw", "3e0 | a\n1.000e+00 | b\n2.0 | c\n", ("--oaa", 3)),
        ("d.vw", "3e0 | a\n1.000e+00 | b\n2.0 | c\n", ("--learn_names",)),
        ("d.vw", "03 | a\n1 | b\n2 | c\n", ("--on_bad_line", "vw", "--oaa", 3, "--indexing", 1)),
        ("d.vw", "03 | a\n1 | b\n2 | c\n", ("--oaa", 3)),
        ("d.vw", "1 doc:17| a\n2 doc:18| b\n3 0:1| c\n", ("--oaa", 3)),
        ("d.vw", "x:1 doc:17| a\nx:2 doc:18| b\nx:3 0:1| c\n", ("--oaa", 3)),
        ("d.vw", "0 | a\n1 | b\n2 | c\n", ("--oaa", 3, "--indexing", 0)),
        ("d.xmc", "3 3 3\n0 0:1\n1 1:1\n2 2:1\n", ("--oaa", 3)),
        ("d.csv", "label,t\ntire change,a b\noil_change,c d\n0,e f\n", ("--learn_names",)),
    ],
)
def test_compare_reads_perfect_predictions_as_they_were_written(name, text, options, form, tmp_path):
    """Files of predictions whose form was guessed from each line."""
    (tmp_path / name).write_text(text)
    reads = options[:2] if "--on_bad_line" in options else ()
    learn(name, *ONCE, "-f", "m", *options, cwd=tmp_path)
    learn(name, "-t", "-i", "m", "-p", "p", *reads, *form, "--quiet", cwd=tmp_path)
    result = learn("compare", "p", "p", "-d", name, cwd=tmp_path)
    assert [line.split()[:3] for line in result.lines[1:3]] == [["p", "3", "0.0000"]] * 2, (tmp_path / "p").read_text()


def test_shrink_counts_names_that_the_model_does_not_know_as_errors(tmp_path):
    """Frictions: the test data hold the name of a class that the model was not trained on."""
    (tmp_path / "d.vw").write_text("tea | kettle\nbeer | hops\nwine | grape\n")
    (tmp_path / "t.vw").write_text("tea | kettle\nsake | rice\nwine | grape\n")
    learn("d.vw", *ONCE, "-f", "m", cwd=tmp_path)
    result = learn("shrink", "m", "-f", "s", "-d", "t.vw", cwd=tmp_path)
    assert "error on t.vw: 0.333333 before, 0.333333 after" in result.err + result.out
