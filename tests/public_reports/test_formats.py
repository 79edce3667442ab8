"""Situations from public reports about data formats, one test each."""

import bz2
import io
import json
import lzma
import zipfile

import pytest
from command import learn, xclass

OPEN_QUOTE = """\
label\ttext
ham\tsee you
spam\t"win a prize now
ham\tcall me
spam\tfree entry
ham\tshe said "ok" then
spam\tsay "hi"
ham\tlater then
"""


def test_a_quote_that_opens_a_cell_by_mistake_is_an_error_at_its_line(tmp_path):
    """pandas-dev/pandas#25228, clarin-eric/ParlaMint#899, facebookresearch/pytext#376, pytorch/text#612."""
    (tmp_path / "train.tsv").write_text(OPEN_QUOTE)
    refused = xclass("train.tsv", "-f", "m", cwd=tmp_path)
    assert refused.status == 1
    assert "xclass: train.tsv:3:6: the quoted cell that begins here ends before 'ok\" then'; write a" in refused.err
    assert "number of examples = 7\n" in learn("train.tsv", "--quoting", "none", "-f", "m", cwd=tmp_path).err
    again = xclass("train.tsv", "--quoting", "none", "-t", "-i", "m", "-p", "stdout", "--quiet", cwd=tmp_path)
    assert len(again.lines) == 7


def test_fasttext_writes_a_prediction_for_each_line(tmp_path):
    """facebookresearch/fastText#344."""
    (tmp_path / "train.txt").write_text("__label__a x y\n__label__b z w\n__label__c q\n")
    (tmp_path / "new.txt").write_text("x y\n\nz w\n\nq\n")
    learn("train.txt", "--passes", 5, "--holdout_off", "-f", "m", cwd=tmp_path)
    done = learn("new.txt", "--format", "fasttext", "-t", "-i", "m", "-p", "stdout", "--quiet", cwd=tmp_path)
    assert (len(done.lines), done.lines[::2]) == (5, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.vw", "1 | a\n\n2 | b\n", 2),
        ("a.vw", "1 | a\n2 | b\n1 x y | c\n", 3),
        ("a.svm", "1 1:1\n# a comment\n2 1:2\n", 2),
        ("a.jsonl", '{"label": 1, "text": "a"}\n{"label": 2}\n\n', 3),
        ("a.csv", 'label,a\n1,"x\ny"\n\n2,z\n', 4),
        ("a.csv", 'label,a\n1,"x\ny"\n1,2,3\n2,z\n', 4),
    ],
)
def test_lines_without_a_prediction_are_told(tmp_path, name, text, line):
    """facebookresearch/fastText#344, in the other formats."""
    (tmp_path / name).write_text(text)
    options = (name, "--oaa", 2, "--on_bad_line", "skip")
    words = f"warning: lines without an example, the first of them {name}:{line}, have no prediction"
    assert words in learn(*options, "-p", "p", cwd=tmp_path).err
    assert words not in learn(*options, cwd=tmp_path).err
    full = text.replace("\n\n", "\n").replace("# a comment\n", "").replace("1 x y | c\n", "").replace("1,2,3\n", "")
    (tmp_path / name).write_text(full)
    assert "have no prediction" not in learn(*options, "-p", "p", cwd=tmp_path).err


@pytest.mark.parametrize(
    ("text", "place"),
    [("1 1:0.9 6:6.646450757947346680e-0114:8.746e-01\n1 2:0.1\n", "1:11"), ("1 1:nan\n2 2:1\n", "1:5")],
)
def test_a_malformed_first_line_is_read_by_the_format_of_the_name(tmp_path, text, place):
    """mathurinm/libsvmdata#33, cjlin1/libsvm#199."""
    (tmp_path / "a.svm").write_text(text)
    refused = xclass("a.svm", "--multiclass", cwd=tmp_path)
    assert refused.status == 1
    assert f"xclass: a.svm:{place}: " in refused.err
    assert "is not a finite number; a feature is number:value" in refused.err


VW = b"1 | a\n2 | b\n"


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a", bz2.compress(VW), "a: the data are compressed, but the name does not end in .bz2; rename the file"),
        ("a", lzma.compress(VW), "a: the data are compressed, but the name does not end in .xz; rename the file"),
        ("a.bz2", VW, "a.bz2: the file cannot be read (Invalid data stream)"),
        ("a.xz", VW, "a.xz: the file cannot be read (Input format not supported by decoder)"),
        ("a.bz2", bz2.compress(VW)[:-9], "a.bz2: the compressed data end too early"),
        ("a.xz", lzma.compress(VW)[:-9], "a.xz: the compressed data end too early"),
        ("a.txt", VW.decode().encode("utf-32-be"), "a.txt: the text is encoded as UTF-32BE; convert it, `iconv"),
        ("a.json", json.dumps([{"label": 1}], indent=1).encode(), "a.json:1:1: this is an array of JSON"),
        ("a.npz", zipped(), "a.npz: this is an archive of NumPy arrays, not text; save the array of"),
        ("a.zip", zipped(), "a.zip: this is a zip archive, not text; unpack it"),
        ("a.csv", VW, "a.csv: the name is that of CSV, and the first line that of VW text; rename the file, or name "
         "its format, --format csv or --format vw"),
        ("a.csv", b'{"label": 1, "b": 2}\n', "a.csv: the name is that of CSV, and the first line that of JSON lines"),
        ("a.vw", b"1 1:2 3:4\n", "a.vw: the name is that of VW text, and the first line that of LIBSVM"),
        ("a.data", b"5.1,3.5,tea\n4.9,3.0,beer\n", "a.data:1:1: column 1 of the header is the number '5.1'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named_with_the_cure(tmp_path, name, data, words):
    """Files that had messages about labels or columns."""
    (tmp_path / name).write_bytes(data)
    refused = xclass(name, "--oaa", 2, cwd=tmp_path)
    assert refused.status == 1
    assert f"xclass: {words}" in refused.err


def test_bz2_and_xz_are_read_like_the_plain_file(tmp_path):
    """Files of mulan and of LIBSVM's site are compressed by bzip2 and xz."""
    models = []
    for name, data in (("a.vw", VW), ("a.vw.bz2", bz2.compress(VW)), ("a.vw.xz", lzma.compress(VW))):
        (tmp_path / name).write_bytes(data)
        learn(name, "--oaa", 2, "-k", "-c", "--cache_file", "cache", "-f", "m", cwd=tmp_path)
        models.append((tmp_path / "m").read_bytes())
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize("name", ["a.vw", "a.jsonl", "a.svm"])
def test_an_empty_first_file_decides_nothing(tmp_path, name):
    """Show that labels are detected, and that keys are columns, by the first file that is not empty."""
    rows = {"a.jsonl": '{"label": %d, "n": %d, "t": "x"}\n', "a.svm": "%d 1:%d\n", "a.vw": "%d | n:%d t\n"}[name]
    (tmp_path / name).write_text("".join(rows % (i, i) for i in (1, 2, 3)))
    (tmp_path / f"empty-{name}").write_text("")
    one, two = (xclass(*files, cwd=tmp_path).err for files in (["-d", name], ["-d", f"empty-{name}", "-d", name]))
    for words in ("labels are whole numbers", "number of examples = 3", "total feature number = "):
        shown = [next(line for line in err.splitlines() if words in line) for err in (one, two)]
        assert shown[0] == shown[1]


def test_text_without_bars_is_told_to_have_no_features(tmp_path):
    """A file in which no line has a bar had no message."""
    (tmp_path / "a.txt").write_text("1 2\n2 2\n")
    words = "warning: no example has a feature; a line of VW text is `label | features`"
    assert words in learn("a.txt", "--oaa", 2, cwd=tmp_path).err
    (tmp_path / "a.txt").write_text("1 2\n2 2 | a\n")
    assert words not in learn("a.txt", "--oaa", 2, cwd=tmp_path).err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"label": "a \\ud83d", "text": "x"}', "3:11: label 'a \N{REPLACEMENT CHARACTER}"),
        ('{"label": "a", "text": "x", "\\u0074ext" : "z"}', "3:29: the object has the key 'text' twice"),
        ('{"label": "a", "features": {"b:": 1, "b:" : 2}}', "3:38: the object has the key 'b:' twice"),
        ("{'label': 'a'}", "3:2: the line cannot be read from 'label': 'a'} on; JSON has double quotes"),
        ('{"label": "a", "text": "at 12:30, \\":", "weight": null}', ""),
    ],
)
def test_what_json_leaves_open_is_refused_at_its_place(line, message, tmp_path):
    """Public questions about JSON lines: halves of surrogate pairs, equal keys, Python's quotes, a missing weight."""
    (tmp_path / "d.jsonl").write_text('{"label": "a", "text": "x"}\n{"label": "b", "text": "y"}\n' + line + "\n")
    result = xclass("d.jsonl", "--oaa", 2, "--learn_names", cwd=tmp_path)
    assert result.status == (1 if message else 0)
    assert f"d.jsonl:{message}" in result.err if message else "weighted example sum = 3" in result.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.svm", "1 1:0.5\r2 2:1\r1 1:2\r"),
        ("b", "1 1:0.5\r2 2:1\r1 1:2\r"),
        ("a.txt", "__label__a x\r__label__b y\r"),
        ("a.csv", "label,size\ra,1\rb,2\r"),
        ("b.csv", "label,size\na,1\rb,2\r"),
        ("a.jsonl", '{"label": "a"}\r{"label": "b"}\r'),
        ("a.xmc", "2 10 4\r0 1:0.5\r3 2:1\r"),
    ],
)
def test_lines_that_end_with_a_carriage_return_are_refused_with_the_cure(tmp_path, name, text):
    """facebookresearch/fastText#344, askmyfile/filesql#279."""
    (tmp_path / name).write_text(text, newline="")
    place = f"{name}:{text.count(chr(10)) + 1}:{text.rpartition(chr(10))[2].index(chr(13)) + 1}"
    done = xclass(name, "--quiet", cwd=tmp_path)
    assert f"{place}: there is a carriage return inside the line" in done.err, done.err
    assert r"convert the file, `tr '\r' '\n' < FILE > NEW`" in done.err and done.status == 1


def test_the_line_that_names_the_delimiter_is_no_header(tmp_path):
    """PowerShell/PowerShell#7776."""
    for k, (mark, delimiter, end) in enumerate([("", ";", "\n"), ("\N{BYTE ORDER MARK}", "|", "\r\n")]):
        rows = [f"sep={delimiter}", "label;t,u".replace(";", delimiter), f"a{delimiter}x", f"b{delimiter}y", "c"]
        (tmp_path / f"{k}.csv").write_text(mark + end.join(rows) + end, newline="")
        done = xclass(f"{k}.csv", "--multiclass", "--learn_names", cwd=tmp_path)
        assert "label: 'label'; numbers: none; text: 't,u'" in done.err
        assert f"{k}.csv:5:1: the row that ends in 'c' has 1 cells" in done.err
    done = xclass("1.csv", "-d", "0.csv", "--multiclass", "--learn_names", "--on_bad_line", "skip", cwd=tmp_path)
    assert "1.csv:1:1: the line names the delimiter '|', and that of the first file is ';'" in done.err


@pytest.mark.parametrize(
    ("text", "place"), [("label,t\nté,x\n", "2:2"), ("label,t\n" + "a,x\n" * 40000 + "é,x\n", "40002:1")]
)
def test_text_that_is_not_utf8_is_warned_of_once(tmp_path, text, place):
    """pandas-dev/pandas#17687."""
    (tmp_path / "a.csv").write_text(text, encoding="latin-1")
    done = learn("a.csv", "--oaa", 3, "--learn_names", "--passes", 2, "-k", "-c", cwd=tmp_path)
    assert done.err.count(f"a.csv:{place}: the byte 0xe9 is not UTF-8") == done.err.count("is not UTF-8") == 1


def test_labels_that_are_text_in_json_are_told(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"label": 1.0, "text": "x"}\n{"label": "1", "text": "x"}\n{"label": "x"}\n')
    assert "labels are names, because '1' is text, not a number" in learn("a.jsonl", cwd=tmp_path).err


def test_rows_between_two_stray_quotes_are_told_and_quoted_texts_of_many_lines_are_not(tmp_path):
    rows = [f"{'abcd'[i % 4]},w{i % 4} x{i % 6}" for i in range(400)]
    rows[100], rows[200] = 'a,"w0 six inch', 'a,w0 five"'
    (tmp_path / "a.csv").write_text("label,text\n" + "\n".join(rows) + "\n")
    letter = "Dear all,\n" + "we meet at ten\nin the small room\n" * 10
    (tmp_path / "b.csv").write_text("label,text\n" + f'a,"{letter}"\nb,"{letter}"\n' * 20)
    said = learn("-d", "a.csv", "-f", "a", cwd=tmp_path).err
    assert "a.csv:102: a cell in quotes covers 101 lines, most of which look like rows" in said
    assert "number of examples = 400" in learn("-d", "a.csv", "--quoting", "none", "-f", "a", cwd=tmp_path).err
    assert "warning" not in learn("-d", "b.csv", "-f", "b", cwd=tmp_path).err


def test_a_bar_is_a_delimiter_of_csv_and_a_table_without_features_is_refused(tmp_path):
    rows = [f"{'abcd'[i % 4]}|w{i % 4} x{i % 6}" for i in range(100)]
    (tmp_path / "a.csv").write_text("label|text\n" + "\n".join(rows) + "\n")
    (tmp_path / "b.csv").write_text("label:text\n" + "\n".join(rows).replace("|", ":") + "\n")
    assert "--format csv" in xclass("-d", "a.csv", "-f", "a", cwd=tmp_path).err
    assert "Delimiter: bar; label: 'label'" in learn("-d", "a.csv", "--format", "csv", "-f", "a", cwd=tmp_path).err
    refused = xclass("-d", "b.csv", "-f", "b", cwd=tmp_path)
    assert refused.status == 1 and "b.csv:1:1: the only column of the header is 'label:text'" in refused.err
    (tmp_path / "c.csv").write_text("sep=:\n" + (tmp_path / "b.csv").read_text())
    assert "Delimiter: ':'; label: 'label'" in learn("-d", "c.csv", "-f", "c", cwd=tmp_path).err
