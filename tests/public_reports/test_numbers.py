"""Situations from public reports about numbers and values, one test each."""

import pytest
from command import learn, xclass

import xclass as library

AUDIT = ("--loss_function", "squared", "-b", "18", "--noconstant", "-a", "--quiet")


@pytest.mark.parametrize("small", ["1e-256", "1e-230", "1e-400", "1.2345678901234567e-115"])
def test_a_value_too_small_for_a_float32_is_0(small, tmp_path):
    """pandas-dev/pandas#62741, eldronzhou/SDPR#6, davismcc/archive-scater#35: exponents do not wrap."""
    for name, text in {
        "a.vw": f"1 | p:{small}\n",
        "a.svm": f"1 1:{small}\n2 1:0.5\n",
        "a.csv": f"y,p\n1,{small}\n2,0.5\n",
    }.items():
        (tmp_path / name).write_text(text)
        shown = learn("-d", name, *AUDIT, cwd=tmp_path).out.split("\n")
        assert shown[1] == ""
    assert "total feature number = 4\n" in learn("-b", "18", "--multiclass", stdin=f"1 | p:{small} q\n2 | r\n").err


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.vw", "1 | gene:1e256\n", "a.vw:1:10"),
        ("a.vw", "1 | gene:1e400\n", "a.vw:1:10"),
        ("a.vw", "1 |n:1e256 gene\n", "a.vw:1:6"),
        ("a.vw", "1 1e256 | a\n", "a.vw:1:3"),
        ("a.vw", "1e256 | a\n", "a.vw:1:1"),
        ("a.vw", "1 1 -1e39 | a\n", "a.vw:1:5"),
        ("a.svm", "1 1:2\n2 1:1e256\n", "a.svm:2:5"),
        ("a.csv", "y,p\n1,1e256\n2,0.5\n", "a.csv:2:3"),
        ("a.jsonl", '{"label": 1, "features": {"p": 1e256}}\n', "a.jsonl:1:32"),
        ("a.jsonl", '{"label": 1, "weight": 1e256}\n', "a.jsonl:1:24"),
        ("a.jsonl", '{"label": 1e999}\n', "a.jsonl:1:11"),
    ],
)
def test_a_number_too_large_for_a_float32_is_an_error_at_its_place(name, text, place, tmp_path):
    """pandas-dev/pandas#62741."""
    (tmp_path / name).write_text(text)
    refused = xclass("-d", name, *AUDIT, cwd=tmp_path)
    assert refused.status == 1
    assert f"xclass: {place}: '" in refused.err and "' is too large; the largest number is 3.4e+38" in refused.err


def test_exponents_wrap_only_as_in_vw(tmp_path):
    """pandas-dev/pandas#62741: with --vw_exact numbers stay those of VW."""
    shown = learn("--vw_exact", "--noconstant", "-a", "--quiet", stdin="1 | gene:1e256 other:1e-230\n").out.split("\n")[
        1
    ]
    assert "gene:" in shown and ":1:0" in shown and ":1e+26:0" in shown


def test_small_labels_and_weights():
    """pandas-dev/pandas#62741: label 1e-256 is 0."""
    assert " 1.0         0.0000 " in learn("--loss_function", "squared", stdin="1e-256 | a\n").err


def test_a_value_that_is_missing_is_an_error_when_predicting():
    """VowpalWabbit/vowpal_wabbit#3109."""
    model = library.Learner(bits=18)
    for _ in range(20):
        model.learn_many(["tea |a price:2 |b leaf", "beer |a price:3 |b hops", "milk |a price:2 |b cow"])
    with pytest.raises(library.DataError, match="batch:1:9: feature 'price' has no value"):
        model.predict_many(["|a price: |b leaf", "|a price: |b hops", "|a price: |b cow"])
    assert list(model.predict_many(["|a |b leaf", "|a |b hops", "|a |b cow"])) == ["tea", "beer", "milk"]


def test_words_as_values_stay_legal():
    """VowpalWabbit/vowpal_wabbit#3109: a value may be a word, even one that begins as `inf` and `nan` do."""
    shown = learn(*AUDIT, stdin="1 | colour:red form:information link:http://x\n").out
    assert "colour^red:" in shown and "form^information:" in shown and "link^http://x:" in shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:0x11", "2:5: '0x11' is not a finite number"),
        ("1 1:1e", "2:5: '1e' is not a finite number"),
        ("1 1:1e-", "2:5: '1e-' is not a finite number"),
        ("1 1:", "2:5: "),
    ],
)
def test_a_malformed_value_in_libsvm(line, message, tmp_path):
    """mathurinm/libsvmdata#33, cjlin1/libsvm#199: a space is missing between two features."""
    (tmp_path / "a.svm").write_text(f"1 2:0.5\n{line}\n")
    refused = xclass("-d", "a.svm", "--format", "libsvm", "--multiclass", cwd=tmp_path)
    assert refused.status == 1 and f"xclass: a.svm:{message}" in refused.err


def test_a_comment_ends_a_line_of_libsvm_wherever_it_begins(tmp_path):
    """cjlin1/libsvm#199: `#` behind a label, a group and a value."""
    lines = ("tea#first 3:1", "milk qid:3# 9:9", "tea 4:2#5:1", "#6:1", "beer#", "milk 1:1 # 8:1")
    plain = ("tea", "milk", "tea 4:2", "beer", "milk 1:1")
    for name, text in (("a", lines), ("b", plain)):
        (tmp_path / f"{name}.svm").write_text("".join(line + "\n" for line in text))
        learn("-d", f"{name}.svm", "--format", "libsvm", "--multiclass", "-b", "18", "-f", f"{name}.m", cwd=tmp_path)
    assert list(library.load(str(tmp_path / "a.m")).classes) == ["tea", "milk", "beer"]
    assert (tmp_path / "a.m").read_bytes() == (tmp_path / "b.m").read_bytes()


def test_a_header_with_a_number_too_large(tmp_path):
    """cjlin1/libsvm#199: a header of 20 digits in a file of the extreme classification repository."""
    (tmp_path / "a.txt").write_text("2 99999999999999999999 5\n1 0:1\n2 1:1\n")
    refused = xclass("-d", "a.txt", "--format", "xmc", cwd=tmp_path)
    assert refused.status == 1
    assert "xclass: a.txt:1:1: '2 99999999999999999999 5' has a number above 1e+14, which is too large" in refused.err
