"""Lists of labels in VW text: what is read, put right and refused, and that other readers of labels name the remedy."""

import io
import re
import warnings

import numpy as np
import pytest
from command import learn, xclass
from hypothesis import given
from hypothesis import strategies as st
from test_parser import padded, parse

from xclass import Learner, read_vw
from xclass.data import batch_ops
from xclass.data.class_names import UNKNOWN, Names
from xclass.errors import DataError, UsageError
from xclass.formats import detect
from xclass.text import parser, reader

NONE, EMPTY = None, []


def lists(batch) -> list[list[float] | None]:
    """The list of each example, None if its labels are not known."""
    ends = zip(batch.label_start[:-1], batch.label_start[1:], batch.label, strict=True)
    found = [NONE if np.isnan(count) else batch.labels[low:high].tolist() for low, high, count in ends]
    known = [x for x in found if x is not NONE]
    assert [len(x) for x in known] == batch.label[~np.isnan(batch.label)].tolist()
    return found


def read(text: bytes, **more):
    batch, error, reading = parse(text, "multilabel", lowest=0, highest=9, **more)
    return lists(batch), error, reading, batch


@pytest.mark.parametrize(
    ("line", "labels", "weight", "tag"),
    [
        (b"1,5,7 | a", [1, 5, 7], 1, b""),
        (b"7 |f a", [7], 1, b""),
        (b"7 2.5 |f a", [7], 2.5, b""),
        (b"7,5,1,5 .5 'tag |f a", [1, 5, 7], 0.5, b"tag"),
        (b"0,1 tag| a", [0, 1], 1, b"tag"),
        (b", | a", EMPTY, 1, b""),
        (b"| a", NONE, 1, b""),
        (b" | a", NONE, 1, b""),
        (b"'tag | a", NONE, 1, b"tag"),
        (b"prefix\t3,2 | a", [2, 3], 1, b""),
        (b"3,2", NONE, 1, b"3,2"),
        (b"3,2 ", [2, 3], 1, b""),
    ],
)
def test_a_list_is_put_in_order(line, labels, weight, tag):
    found, error, _, batch = read(b"2,1 | x\n" + line + b"\n9 | y\n")
    assert error is None
    assert found == [[1, 2], labels, [9]]
    assert batch.weight[1] == np.float32(weight)
    assert batch.text[batch.tag_start[1] : batch.tag_end[1]].tobytes() == tag


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (b"1,10 | a", 3, "label 10 is outside 0..9"),
        (b"1,-1,2 | a", 3, "label -1 is negative"),
        (b"1,,2 | a", 3, "the list of labels has an empty label"),
        (b",1 | a", 1, "the list of labels has an empty label"),
        (b"1, | a", 3, "the list of labels has an empty label"),
        (b"1, 2 | a", 3, "the list of labels has an empty label"),
        (b"1,x,2 | a", 3, "label 'x' is not a class number"),
        (b"1,1.7 | a", 3, "label '1.7' is not a class number"),
        (b"1,02 | a", 3, "label '02' has a sign or leading zeros"),
        (b"1,4294967295 | a", 3, "label 4294967295 is outside 0..9"),
        (b"1 2 3 | a", 1, "directly before the bar; if they are several labels, write commas between them: '1,2,3'"),
        (b"1,2 x | a", 5, "weight 'x' is not a finite number"),
    ],
)
def test_a_malformed_list_is_refused_with_its_column(line, column, message):
    text = b"1 | a\n" + line + b"\n2,3 | b\n"
    found, error, _, _ = read(text)
    assert found == [[1]]
    assert str(error).startswith(f"train.vw:2:{column}: ") and message in str(error)
    found, error, reading, _ = read(text, on_bad_line="skip")
    assert (found, error) == ([[1], [2, 3]], None)
    assert f"train.vw:2:{column}: " in reading.report()[1]


@pytest.mark.parametrize(
    ("line", "labels"),
    [  # multilabel.md, 3.1
        (b"1 2 | a", NONE),
        (b"1, 2 | a", NONE),
        (b"1,,2 | a", [1, 2]),
        (b",1 | a", [1]),
        (b", | a", NONE),
        (b"x,y | a", [0, 0]),
        (b"1x | a", [1]),
        (b"1.7 | a", [1]),
        (b"-1 | a", [4294967295]),
        (b"3,1 | a", [3, 1]),
        (b"1,1 | a", [1, 1]),
        (b"77 | a", [77]),
    ],
)
def test_vw_reads_a_malformed_list_in_its_way(line, labels):
    found, error, _, _ = read(line + b"\n", on_bad_line="vw", number_rules="vw")
    assert (found, error) == ([labels], None)


@pytest.mark.parametrize("names", [{"learn_names": True}, {"named_labels": "tea,4294967295,5"}])
def test_names_in_lists_that_vw_would_read_as_numbers_are_names(names):
    text = b"tea,4294967295 | a\n5,,tea | b\n, | c\n\x01x,tea | d\n5 | e\n"
    batch, error, reading = parse(text, "multilabel", on_bad_line="vw", number_rules="vw", **names)
    assert (lists(batch), error) == ([[1, 2], [3, 1], NONE, NONE, [3]], None)
    assert len(reading.report()) == 2 and "train.vw:4:1: label '\ufffdx" in reading.report()[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1,5 | a", "1:3: the line has several labels, the second of them at '5'"),
        (
            b", | a",
            "1:2: there is no label behind the comma, which alone is an empty list of labels, and this reduction",
        ),
    ],
)
@pytest.mark.parametrize("treatment", ["stop", "vw"])
def test_a_reduction_of_one_label_says_that_a_line_has_a_list(line, message, treatment):
    error = str(parse(line + b"\n", "multiclass", on_bad_line=treatment)[1])
    assert error.startswith(f"train.vw:{message}") and "use --multilabel, --multilabel_oaa K" in error


def test_data_with_nothing_but_lists_name_what_learns_them(tmp_path):
    (tmp_path / "a").write_text("1,5 | a\n, | b\n")
    result = xclass("-d", tmp_path / "a", "--oaa", 9, "--on_bad_line", "skip", "--quiet")
    assert result.err.endswith(
        "no example was learned from; use --multilabel, --multilabel_oaa K or --plt K, which learn lists of labels\n"
    )
    said = pytest.raises(DataError, match="from; use multilabel, Learner")
    with Learner("oaa", classes=9, on_bad_line="skip") as model, said:
        model.learn_file(tmp_path / "a")


def test_labels_of_the_repository_are_numbers_in_lists(tmp_path):
    """So that the same data in any format have the same tree."""
    (tmp_path / "a.xmc").write_text("3 9 9\n7,1 1:1\n3 2:1\n1 1:1\n")
    (tmp_path / "a.svm").write_text("7,1 1:1\n3 2:1\n1 1:1\n")
    for name in ("a.xmc", "a.svm"):
        with Learner("plt", classes=9, bits=8) as model:
            model.learn_file(tmp_path / name)
            model.save(tmp_path / f"{name}.model")
        done = xclass("-d", tmp_path / name, "--plt", 9, "-b", 8, "-f", tmp_path / f"{name}.bin")
        assert "names" not in done.err
    assert (tmp_path / "a.xmc.model").read_bytes() == (tmp_path / "a.svm.model").read_bytes()
    assert (tmp_path / "a.xmc.bin").read_bytes() == (tmp_path / "a.svm.bin").read_bytes()


@pytest.mark.parametrize("kind", ["multiclass", "simple"])
@pytest.mark.parametrize("options", [{}, {"learn_names": True}, {"named_labels": "1,5,7"}, {"on_bad_line": "skip"}])
def test_a_reduction_of_one_label_refuses_lists_and_names_the_remedy(kind, options):
    batch, error, reading = parse(b"1 | a\n1,5,7 | a\n", kind, **options)
    assert batch.n == 1
    assert (error is None) == (kind == "multiclass" and "on_bad_line" in options)  # no regression from the other lines
    said = str(error) if error else reading.report()[1]
    assert "train.vw:2:3: the line has several labels, the second of them at '5', and this reduction learns one" in said
    assert "; use --multilabel, --multilabel_oaa K or --plt K, which learn lists of labels" in said
    skips = "labels, or use --on_bad_line skip to leave out such lines"
    assert (skips in said) == (kind == "multiclass" and "on_bad_line" not in options)


FILES = {
    "vw": "0 | a\n1,5,7 | a\n",
    "names.vw": "tea | a\n" * 4 + "tea,black_tea | a\n",
    "libsvm": "1 1:1\n1,5,7 1:1\n",
    "xmc": "2 9 9\n1 1:1\n1,5,7 1:1\n",
    "fasttext": "__label__tea a\n__label__tea __label__cup a\n",
    "csv": 'label,text\n1,a\n"1,5,7",a\n',
    "jsonl": '{"label": "tea", "text": "a"}\n{"label": ["tea", "cup"], "text": "a"}\n',
}


@pytest.mark.parametrize(
    ("options", "stays"),
    [
        ((), True), (("--on_bad_line", "skip"), True), (("--top_k", "2"), True), (("--threshold", "auto"), True),
        (("--propensity", "1,1"), True), (("--learn_names",), True), (("-l", "0.5"), False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", FILES)
def test_lists_are_learned_if_no_reduction_is_named(tmp_path, name, options, stays):
    """As --multilabel learns them, which refuses options of other binary learners itself."""
    path, form = tmp_path / name, name.rpartition(".")[2]
    path.write_text(FILES[name])
    words = ("-d", path, "--format", form, "-f", tmp_path / "m")
    result = xclass(*words, *options)
    if not stays:
        assert result.status == 2 and "has no effect with --multilabel" in result.err
        return
    named = "tea" in FILES[name]
    as_with = "--multilabel" + " --learn_names" * (named and "--learn_names" not in options)
    first = next(text for text in ("1,5,7", "tea,black_tea", "tea,cup") if text in result.err)
    point = "" if named else "; the decimals of a number follow a point"
    said = f"labels are lists, the first of them '{first}': learning lists of labels, as with {as_with}{point}"
    assert result.status == 0 and said in result.err.replace("\n", " ")
    chosen = (tmp_path / "m").read_bytes()
    learn(*words, *options, "--multilabel", *["--learn_names"] * (named and "--learn_names" not in options))
    assert (tmp_path / "m").read_bytes() == chosen


def test_lists_from_standard_input_are_learned(tmp_path):
    result = xclass("--quiet", "-f", tmp_path / "m", stdin="1,5,7 | a\n2 | b\n")
    assert result.status == 0
    assert "--multilabel)" in learn("-i", tmp_path / "m", "-t", stdin="1 | a\n").err


@pytest.mark.parametrize(
    ("line", "named"),
    [("1,5 | a", False), ("01,5 | a", True), ("1,4294967299 | a", True), ("1,tea | a", True), ("1,-5 | a", False),
     ("tea | a\n1,5 | a", True)],
)  # fmt: skip
def test_labels_of_a_list_are_names_if_one_of_them_is(tmp_path, line, named):
    (tmp_path / "d").write_text(line + "\n")
    assert ("as with --multilabel --learn_names" in xclass("-d", tmp_path / "d").err) == named


def test_nothing_is_said_of_a_run_that_ends_before_its_first_example(tmp_path):
    path = tmp_path / "data"
    path.write_text("0,3 | a\n| b\n")
    said = xclass("-d", path, "--oaa", "3").err
    assert "several labels" in said and "no example has a feature" not in said and "number of examples" not in said


def test_a_batch_with_lists_is_read_and_refused_by_a_learner_of_one_label(tmp_path):
    path = tmp_path / "data"
    path.write_text("0,3 | a\n| b\n")
    (batch,) = read_vw(path, labels="lists")
    for kind in ("classes", "numbers"):
        message = f":1:3: the line has several labels, the second of them at '3', and labels='{kind}' reads one; give "
        with pytest.raises(DataError, match=re.escape(f"{path}{message}labels='lists'") + "$"):
            list(read_vw(path, labels=kind))
    assert lists(batch) == [[0, 3], NONE]
    with Learner("oaa", classes=3, bits=8) as model:
        for lines in (batch, ["0,3 | a"]):
            with pytest.raises(
                (UsageError, DataError),
                match=r'use multilabel, Learner\("multilabel_oaa", classes=K\) or Learner\("plt", classes=K\)',
            ):
                model.learn_many(lines)


def test_names_are_numbered_as_they_come_and_put_in_order():
    text = b"tea,black_tea | a\ncup,tea,cup | b\n| c\n, | d\ncup | e\n"
    found, error, reading, _ = read(text, learn_names=True)
    assert error is None
    assert reading.names.names == ["tea", "black_tea", "cup"]
    assert found == [[1, 2], [1, 3], NONE, EMPTY, [3]]
    no_names = [[UNKNOWN] * 2, [UNKNOWN] * 3]  # which of them are the same is not known
    for names, wanted in ((["tea", "cup"], [[1, UNKNOWN], [1, 2], NONE, EMPTY, [2]]), ([], no_names)):
        reading = parser.Parser(parser.ParserOptions(learn_names=True), 18, "multilabel", names=Names(tuple(names)))
        batch, error, _ = reading.parse(padded(text), len(text), "f")
        assert error is None and lists(batch)[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "1,2 | a\n\n3 5 'tag | b\n1 4 | c\n",
            "batch:3: '3 5' is read as label 3 with importance weight 5; if both are labels, write a comma between "
            "them: 3,5",
        ),
        ("1 0.5 | a\n1 2.0 | b\n3 1 | c\n1,2 3 | d\n3 12 | e\n", ""),  # these are no second label of 0..9
    ],
)
def test_a_weight_that_may_be_a_second_label_is_noted_once(lines, message):
    with Learner("plt", 10, bits=8) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [*model.learn_many(lines).warnings, *model.learn_many(lines).warnings] == [message] * bool(message)


@pytest.mark.parametrize(
    ("known", "lines", "noted"),
    [
        ("tea,cup", "1,2 | a\ntea | b\n", False),  # a name and numbers
        ("tea,cup", "| x\n3,1 | a\n2 | b\n", True),
        ("tea,1999", "1,2 | a\n", False),
        ("", "1,2 | a\n", False),
        ("tea,cup", "tea | x\n", False),
    ],
)
@pytest.mark.parametrize("kind", ["plt", "oaa"])
def test_numbers_that_become_names_of_a_model_of_names_are_noted_once(tmp_path, kind, known, lines, noted):
    if kind == "oaa":
        lines = re.sub(",[0-9]", "", lines)
    with Learner(kind, 9, bits=8, learn_names=True, **({"named_labels": known} if known else {})) as model:
        model.save(tmp_path / "m")
    (tmp_path / "data").write_text(lines)
    said = xclass("-d", tmp_path / "data", "-i", tmp_path / "m", "--passes", 2, "--holdout_off", "-k", "-c").err
    message = f"{tmp_path / 'data'}:2: label '3' is a number, and the labels before are names, the first of them 'tea'"
    assert said.count(message) == said.count("is a number") == noted


def test_listed_names_are_found_in_lists():
    found, error, _, _ = read(b"b,a | x\na | x\n", named_labels="a,b")
    assert (found, error) == ([[1, 2], [1]], None)
    assert "train.vw:1:3: label 'c' is not one of --named_labels" in str(read(b"b,c | x\n", named_labels="a,b")[1])


def test_a_name_too_many_leaves_its_line_out():
    text = b"a,b | x\nb,c,d | y\na | z\n"
    parsed = parse(text, "multilabel", lowest=1, highest=2, learn_names=True, on_bad_line="skip")
    assert lists(parsed[0]) == [[1, 2], [1]]
    assert "train.vw:2:3: label 'c' is a new name" in parsed[2].report()[1]
    assert parsed[2].skipped == 1
    assert "train.vw:2:3: label 'c' is a new name" in str(parse(text, "multilabel", 18, 1, 2, learn_names=True)[1])


NUMBERS = {  # format -> lines with the lists 1,5,7; 3; none; and the empty list where the format can write it
    "libsvm": "7,1,5,1 1:1\n3 1:1\n1:1\n, 1:1\n",
    "xmc": "4 9 9\n7,1,5,1 1:1\n3 1:1\n 1:1\n, 1:1\n",
    "csv": 'label,text\n"7, 1,5,1",a\n3,a\n,a\n",",a\n',
    "jsonl": '{"label": [7, 1, 5, 1], "text": "a"}\n{"label": 3, "text": "a"}\n{"label": null, "text": "a"}\n'
    '{"label": [], "text": "a"}\n',
    "fasttext": "__label__7 a __label__1 __label__5\nb __label__3\na\n",
}
NAMES = {  # lists cup,tea; green tea
    "csv": 'label,text\n"tea, cup",a\ngreen tea,a\n',
    "jsonl": '{"label": ["tea", "cup"], "text": "a"}\n{"label": "green tea", "text": "a"}\n',
    "fasttext": "__label__tea a __label__cup\nb __label__green_tea\n",
}


def of_format(form: str, text: str, **options):
    """The examples of a text in a format as one batch, and the names of the labels."""
    source, names = reader.ReaderOptions(format=form), Names((), options.get("learn_names", False))
    batches = reader.Reader(
        source, parser.Parser(parser.ParserOptions(**options), 18, "multilabel", 0, 9, names=names),
        stream=io.BytesIO(text.encode()), choose=detect.chooser(source),
    )  # fmt: skip
    (batch,) = batches
    return batch, names.names


@pytest.mark.parametrize("form", NUMBERS)
def test_every_format_has_lists(form):
    batch, _ = of_format(form, NUMBERS[form])
    assert lists(batch) == [[1, 5, 7], [3], NONE, EMPTY][: batch.n]


@pytest.mark.parametrize("form", NAMES)
def test_every_format_has_lists_of_names(form):
    batch, names = of_format(form, NAMES[form], learn_names=True)
    assert lists(batch) == [[1, 2], [3]]
    assert names == ["tea", "cup", "green_tea" if form == "fasttext" else "green tea"]


@pytest.mark.parametrize(
    ("form", "text", "place", "message"),
    [
        ("libsvm", "1 1:1\n1,10 1:1\n", "2:3", "label 10 is outside 0..9"),
        ("libsvm", "1,,2 1:1\n", "1:3", "the list of labels has an empty label"),
        ("xmc", "1 9 5\n1,7 1:1\n", "2:3", "label '7' is not a whole number below the number of labels in the header"),
        ("jsonl", '{"label": [true, 2]}\n', "1:11", "give a text, a number, a list of them or null"),
        ("csv", 'label,text\n"1,x",a\n', "2:1", "label 'x' is not a class number"),
        ("jsonl", '{"label": [1, 10], "text": "a"}\n', "1:11", "label 10 is outside 0..9"),
        ("jsonl", '{"label": "a,b", "text": "a"}\n', "1:11", "label 'a,b' contains a comma"),
        ("jsonl", '{"label": [1, [5]], "text": "a"}\n', "1:11", "'[5]' is not allowed here"),
        ("fasttext", "__label__1 __label__1,2 a\n", "1:21", "contains a comma"),
        ("fasttext", "a __label__1 __label__\n", "1:23", "has no name behind it"),
    ],
)
def test_a_malformed_list_of_any_format_is_refused_with_its_place(form, text, place, message):
    with pytest.raises(DataError) as caught:
        of_format(form, text)
    assert str(caught.value).startswith(f"stdin:{place}: ") and message in str(caught.value)


LISTS = st.lists(st.none() | st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=30)


@given(LISTS, st.data())
def test_cut_and_picked_examples_keep_their_lists(wanted, data):
    words = ["" if one is None else ",".join(map(str, one)) or "," for one in wanted]
    found, error, _, batch = read("".join(f"{word} |f a\n" for word in words).encode())
    wanted = [None if one is None else sorted(set(one)) for one in wanted]
    assert (found, error) == (wanted, None)
    low = data.draw(st.integers(0, batch.n))
    high = data.draw(st.integers(low, batch.n))
    assert lists(batch_ops.cut(batch, low, high)) == wanted[low:high]
    order = data.draw(st.permutations(range(batch.n)))
    assert lists(batch_ops.pick([(batch, np.array(order))])) == [wanted[i] for i in order]
    highest = batch_ops.highest_labels(batch)
    assert [None if np.isnan(x) else x for x in highest] == [max(one) if one else None for one in wanted]
