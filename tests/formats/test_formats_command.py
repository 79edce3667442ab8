"""Whole commands on data of other formats: the models and predictions are those of the same data as VW text."""

import contextlib
import gzip
import json
import random
import warnings

import numpy as np
import pytest
from command import learn, start_process, xclass

import xclass as library
from xclass.formats.detect import detect

CLASSES = ("tea", "beer", "wine", "milk")
OPTIONS = ("--oaa", 4, "-b", 14, "--quiet")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with the same examples in every format: names in n.*, numbers in p.*."""
    folder = tmp_path_factory.mktemp("formats")
    draw = random.Random(3)
    texts = {name: [] for name in ("n.vw", "n.ft", "n.jsonl", "n.csv", "p.vw", "p.svm", "p.xmc", "p.names.vw")}
    texts["n.csv"].append("label;text;n")
    for _ in range(400):
        k = draw.randrange(4)
        words = [f"w{k}{draw.randrange(5)}" for _ in range(draw.randrange(1, 6))]
        pairs = [(j, round(draw.uniform(-2, 2), 3)) for j in sorted(draw.sample(range(4 * k, 4 * k + 9), 4))]
        shown = " ".join(f"{j}:{x}" for j, x in pairs)
        texts["n.vw"].append(f"{CLASSES[k]} | {' '.join(words)}")
        texts["n.ft"].append(f"__label__{CLASSES[k]} {' '.join(words)}")
        texts["n.jsonl"].append(json.dumps({"label": CLASSES[k], "text": " ".join(words)}))
        texts["n.csv"].append(f'{CLASSES[k]};"{" ".join(words)}";{pairs[0][1]}')
        texts["p.vw"].append(f"{k + 1} | {shown}")
        texts["p.names.vw"].append(f"{k} | {shown}")
        texts["p.svm"].append(f"{k + 1} {shown}")
        texts["p.xmc"].append(f"{k} {shown}")
    texts["p.xmc"].insert(0, "400 40 4")
    texts["p.names.vw"].insert(0, "")  # held-out lines are chosen by their numbers
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "p.svm.gz").write_bytes(gzip.compress((folder / "p.svm").read_bytes()))
    return folder


def model_of(folder, *args, stdin=None) -> bytes:
    learn(*args, *OPTIONS, "-f", "m", cwd=folder, stdin=stdin)
    return (folder / "m").read_bytes()


@pytest.mark.parametrize(
    "more", [(), ("--ngram", 2, "-q", "::"), ("--hash", "all", "--hash_seed", 5), ("--noconstant",)]
)
@pytest.mark.parametrize(("text", "other"), [("p.vw", "p.svm"), ("n.vw", "n.ft"), ("n.vw", "n.jsonl")])
def test_model_has_the_bytes_of_that_of_vw_text(data, text, other, more):
    names = ("--learn_names",) if text == "n.vw" else ()
    more = (*more, "--text_split", "spaces")
    assert model_of(data, text, *more, *names) == model_of(data, other, *more)


def test_model_of_a_compressed_file_a_pipe_and_a_cache(data):
    wanted = model_of(data, "p.vw")
    assert model_of(data, "p.svm.gz") == wanted
    assert model_of(data, stdin=(data / "p.svm").read_bytes()) == wanted
    assert model_of(data, "--format", "libsvm", "-c", "-k", "-d", "p.svm") == wanted
    assert model_of(data, "--format", "libsvm", "-c", "-d", "p.svm") == wanted
    again = learn("-c", "-d", "p.svm", *OPTIONS[:-1], cwd=data)
    assert "the cache is made again: it was made with format libsvm, but this run has format auto" in again.err


def test_passes_and_two_files(data):
    more = ("--passes", 3, "--holdout_period", 5)
    assert model_of(data, "-d", "p.svm", "-d", "p.svm", *more) == model_of(data, "-d", "p.vw", "-d", "p.vw", *more)
    wanted = model_of(data, "-d", "p.names.vw", "-d", "p.names.vw", "--learn_names", *more)
    assert model_of(data, "-d", "p.xmc", "-d", "p.xmc", *more) == wanted


def test_predictions_have_the_numbers_of_the_file(data):
    learn("p.xmc", *OPTIONS, "-f", "x", cwd=data)
    shown = learn("p.xmc", "-t", "-i", "x", "-p", "stdout", "--quiet", cwd=data).lines
    learn("p.names.vw", *OPTIONS, "--learn_names", "-f", "x", cwd=data)
    assert learn("p.names.vw", "-t", "-i", "x", "-p", "stdout", "--quiet", cwd=data).lines == shown
    assert set(shown) == set("0123")
    learn("p.xmc", *OPTIONS, "--indexing", 0, "-f", "x", cwd=data)
    learn("p.names.vw", *OPTIONS, "--indexing", 0, "-f", "y", cwd=data)
    assert (data / "x").read_bytes() == (data / "y").read_bytes()


def test_other_formats_test_the_models_of_each_other(data):
    learn("n.ft", *OPTIONS, "-f", "f", cwd=data)
    shown = [
        learn(name, "-t", "-i", "f", "-p", "stdout", "--quiet", cwd=data).out for name in ("n.vw", "n.ft", "n.jsonl")
    ]
    assert shown[0] == shown[1] == shown[2]
    learn("n.csv", *OPTIONS, "-f", "c", cwd=data)
    rows = [line.split(";") for line in (data / "n.csv").read_text().splitlines()[1:]]
    text = "".join(f"{label} | n:{n} |text {words[1:-1]}\n" for label, words, n in rows)
    wanted = learn("n.csv", "-t", "-i", "c", "-p", "stdout", "--quiet", cwd=data).out
    assert learn("-t", "-i", "c", "-p", "stdout", "--quiet", cwd=data, stdin=text).out == wanted


def test_lines_from_which_no_format_is_clear_are_those_of_the_columns_of_the_model(tmp_path):
    (tmp_path / "t.csv").write_text("label,text\n" + "tea,kettle leaf\nbeer,hop malt\n" * 5)
    learn("t.csv", *OPTIONS, "-f", "m", cwd=tmp_path)
    for text, words in (("text\nhop and malt\n", ()), ("hop and malt\n", ("--header", "text"))):
        done = learn("-t", "-i", "m", "-p", "stdout", *words, cwd=tmp_path, stdin=text)
        assert done.lines == ["beer"] and "Data format: CSV, by the first lines" in done.err
    assert learn("-t", "-i", "m", "-p", "stdout", "--quiet", cwd=tmp_path, stdin="|text hop\n").lines == ["beer"]
    refused = xclass("-t", "-i", "m", cwd=tmp_path, stdin="hop and malt\n")
    assert refused.status == 1 and "if the file has no header, give the names of its columns by --header" in refused.err


def test_banner_names_the_format(data):
    done = learn("n.csv", cwd=data)
    assert "Data format: CSV, by the name of the file\n" in done.err
    assert "Delimiter: semicolon; label: 'label'; numbers: 'n'; text: 'text'\n" in done.err
    first = (data / "n.csv").read_text().split("\n")[1].split(";")[0]
    assert f"labels are names, the first of them {first!r}" in done.err
    done = learn("p.xmc", "--format", "xmc", cwd=data)
    assert "Data format: extreme classification repository, as --format says\n" in done.err
    assert "400 examples, 40 features, 4 labels, numbered from 0\n" in done.err
    assert "Data format" not in learn("p.vw", cwd=data).err
    piped = learn("--oaa", 4, "--learn_names", stdin=(data / "n.ft").read_bytes())
    assert piped.err.count("Data format: lines of fastText") == 1


def test_a_pipe_is_answered_line_by_line(data):
    learn("n.ft", *OPTIONS, "-f", "f", cwd=data)
    process = start_process("-t", "-i", "f", "-p", "stdout", "--quiet", cwd=data)
    try:
        for line in (data / "n.ft").read_text().splitlines()[:3]:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().strip().decode() in CLASSES
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize(
    ("name", "text", "place", "words"),
    [
        ("a.svm", "1 1:2\n1 2:x\n", "a.svm:2:5:", "'x' is not a finite number; a feature is number:value"),
        ("a.svm", "1 1:2\n1,2 2:3\n", "a.svm:2:3:", "several labels, the second of them at '2', and this"),
        ("a.svm", "1 1:2\n1.5 2:3\n", "a.svm:2:1:", "label '1.5' is not a class number"),
        ("a.svm", "1 1:2\n5 2:3\n", "a.svm:2:1:", "label 5 is outside 1..4 (--oaa 4)"),
        ("a.ft", "__label__a b\n__label__a __label__b c\n", "a.ft:2:12:", "several labels"),
        ("a.xmc", "1 4 3\n0,2 1:1\n", "a.xmc:2:3:", "; use --multilabel, --multilabel_oaa K or --plt K, which learn"),
        ("a.xmc", "1 4 3\n0 4:1\n", "a.xmc:2:3:", "feature '4:1' is not below the number of features in the header"),
        ("a.xmc", "1 4 3\n3 1:1\n", "a.xmc:2:1:", "label '3' is not a whole number below the number of labels"),
        ("a.csv", "label,a\nx,1,2\n", "a.csv:2:5:", "the row that ends in '2' has 3 cells, and the header 2"),
        ("a.csv", 'label,a\n1,2\nx,"1\n2",3\n', "a.csv:4:4:", "the row that ends in '3' has 3 cells, and the header 2"),
        ("a.csv", "label,5.1\nx,1\n", "a.csv:1:1:", "column 2 of the header is the number '5.1'"),
        ("a.csv", "label,a,a\nx,1,2\n", "a.csv:1:1:", "column 3 of the header has the name 'a'"),
        ("a.jsonl", '{"features":{"label":1},"label":-7}\n', "a.jsonl:1:33:", "label -7 is negative"),
        ("a.jsonl", '{"text":"weight","weight":"x"}\n', "a.jsonl:1:27:", "weight 'x' is not a finite number"),
        ("a.jsonl", '{"features":{"n":{"a":1},"a":{"b":[]}}}\n', "a.jsonl:1:35:", "'[]' is not allowed here"),
        ("a.jsonl", '{"t":"\u00fc","label":-2}\n', "a.jsonl:1:19:", "label -2 is negative"),
        ("a.jsonl", '{"label": ["a", "b"]}\n', "a.jsonl:1:11:", "several labels"),
        ("a.jsonl", '{"label": 1}\n{"text": "a"\n', "a.jsonl:2:13:", "the line ends before its object does"),
        ("a.ft", "__label__ a\n", "a.ft:1:10:", "the prefix __label__ has no name behind it"),
    ],
)  # fmt: skip
def test_malformed_lines_are_named(tmp_path, name, text, place, words):
    (tmp_path / name).write_text(text)
    done = xclass(name, "--oaa", 4, cwd=tmp_path)
    assert done.status == 1
    (line,) = (line for line in done.err.splitlines() if place in line)
    assert line.startswith(f"xclass: {place} ")
    assert words in line


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("a.vw", "| a\n", (), "a labelled line is `label | features`"),
        ("a.svm", "1:2\n", (), "a labelled line is `label number:value number:value`"),
        ("a.ft", "b\n", (), "a labelled line is `__label__tea kettle leaf`"),
        ("a.xmc", "1 4 3\n 1:1\n", (), "a labelled line is `number number:value`, with the number of its label first"),
        ("a.csv", "label,a\n,1\n", (), "all cells of the column 'label' are empty; --label_column names another one"),
        ("a.csv", "label,a\n1,1\n", ("--label_column", 0), "no column holds labels; name one by --label_column"),
        ("a.jsonl", '{"text": "a"}\n', (), 'a labelled line is `{"label": "tea", "text": "kettle leaf"}`'),
    ],
)  # fmt: skip
def test_data_without_labels_are_told_what_a_labelled_line_is(tmp_path, name, text, options, words):
    (tmp_path / name).write_text(text)
    format = "fasttext" if name == "a.ft" else "auto"
    done = xclass(name, "--oaa", 4, "--quiet", "--format", format, *options, cwd=tmp_path)
    assert (done.status, done.err) == (1, f"xclass: {name}: no example was learned from; {words}\n")


def test_malformed_lines_are_skipped_or_read_in_part(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 2:2\n2 1:1 2:x 3:1\n2 3:3\n")
    (tmp_path / "skip.vw").write_text("1 | 1:1 2:2\n2 | 3:3\n")
    (tmp_path / "part.vw").write_text("1 | 1:1 2:2\n2 | 1:1\n2 | 3:3\n")
    skipped = learn("a.svm", "--oaa", 2, "--on_bad_line", "skip", "-f", "a", cwd=tmp_path)
    assert "1 malformed line was skipped:\nwarning: a.svm:2:9: 'x' is not a finite number" in skipped.err
    learn("skip.vw", "--oaa", 2, "-f", "b", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    read = learn("a.svm", "--oaa", 2, "--on_bad_line", "vw", "-f", "a", cwd=tmp_path)
    assert "the rest of the line is ignored" in read.err
    learn("part.vw", "--oaa", 2, "--on_bad_line", "vw", "-f", "b", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_column_of_the_label(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,1\n")
    models = []
    for chosen in (("--label_column", "y"), ("--label_column", "2")):
        learn("a.csv", "--oaa", 2, *chosen, "-f", "a", cwd=tmp_path)
        models.append((tmp_path / "a").read_bytes())
    assert models[0] == models[1]
    assert "label: none; numbers: 'x', 'y'" in learn("a.csv", "--oaa", 2, "--label_column", 0, "-t", cwd=tmp_path).err
    refused = xclass("a.csv", "--oaa", 2, "--label_column", "z", cwd=tmp_path)
    assert refused.status == 2
    assert "--label_column 'z': a.csv has no such column; its 2 columns are 'x', 'y'" in refused.err
    (tmp_path / "a.vw").write_text("1 | a\n")
    refused = xclass("a.vw", "--oaa", 2, "--label_column", "z", cwd=tmp_path)
    assert (refused.status, refused.err) == (
        2, "xclass: --label_column is for CSV and JSON lines, and a.vw is VW text: leave it out\n"
    )  # fmt: skip


def test_columns_of_two_files_are_the_same(tmp_path):
    (tmp_path / "a.csv").write_text("label,x\na,1\n")
    (tmp_path / "b.csv").write_text("label,y\na,1\n")
    refused = xclass("-d", "a.csv", "-d", "b.csv", "--oaa", 2, cwd=tmp_path)
    assert "b.csv:1:1: the header has no column 'x', from which the model has learned" in refused.err


BEGINNINGS = {
    "vw": "1 | a\n", "fasttext": "__label__1 a\n", "libsvm": "1 1:2\n", "csv": "label,x\n1,2\n",
    "jsonl": '{"label": 1, "text": "a"}\n',
}  # fmt: skip


@pytest.mark.parametrize("first", BEGINNINGS)
def test_all_files_have_the_format_of_the_first(tmp_path, first):
    for name, text in BEGINNINGS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "again").write_text(BEGINNINGS[first])
    for other in BEGINNINGS:
        run = xclass("-d", first, "-d", other, "--oaa", 2, "--learn_names", cwd=tmp_path)
        if other == first:
            assert run.status == 0
            continue
        assert run.status == 1
        assert f"xclass: {other} begins like " in run.err and f", and {first} like " in run.err
    words = ("--passes", 2, "--holdout_off", "-k", "-c", "--oaa", 2)
    assert "number of examples per pass = 2" in learn("-d", first, "-d", "again", *words, cwd=tmp_path).err


def test_a_later_file_may_begin_with_a_line_that_does_not_tell_its_format(tmp_path):
    for name, text in (("a.svm", "1 1:2\n"), ("b", "2\n2 1:1\n"), ("a.vw", "1 | a\n"), ("c", "2\n1 | b\n"), ("d", "")):
        (tmp_path / name).write_text(text)
    for files in (("a.svm", "b", "d"), ("a.vw", "c", "d")):
        words = [word for file in files for word in ("-d", file)]
        assert "number of examples = 3" in learn(*words, "--oaa", 2, cwd=tmp_path).err
    refused = xclass("-d", "a.vw", "-d", "a.svm", "--oaa", 2, cwd=tmp_path)
    assert "name the format of all by --format" in refused.err
    learn("-d", "a.vw", "-d", "a.svm", "--oaa", 2, "--format", "vw", cwd=tmp_path)


AUDITED = {
    "a.csv": 'label,n,words,m\ntea,1.5,red cat,2\n"oat cake",,"x\nred",-1\ntea,3,dog,\n',
    "b.vw": "tea | n:1.5 m:2 |words red cat\noat_cake | m:-1 |words x red\ntea | n:3 |words dog\n",
    "a.jsonl": """\
{"label": "tea", "text": "red cat", "tag": "t", "features": {"n": 1.5, "at": "home", "o": {"k": true, "l": "m"}}}
{"label": "cake", "features": {"o": {"k": -1}, "n": null, "o2": {"k": 3}}, "weight": 2}
""",
    "c.vw": "tea t| red cat n:1.5 at:home |o k l:m\ncake 2 | |o k:-1 |o2 k:3\n",
}  # fmt: skip


@pytest.mark.parametrize(("name", "like"), [("a.csv", "b.vw"), ("a.jsonl", "c.vw")])
@pytest.mark.parametrize("more", [(), ("--hash", "all", "--ngram", "2", "-q", "::")])
def test_audit_and_names_are_those_of_the_same_vw_text(tmp_path, name, like, more):
    shown = []
    for data in (name, like):
        (tmp_path / data).write_text(AUDITED[data])
        options = ("--oaa", 3, "--learn_names", "--audit", "--invert_hash", "names", "-k", *more)
        options += ("--text_split", "spaces")
        done = learn(data, *options, "--quiet", cwd=tmp_path)
        shown.append((done.out, (tmp_path / "names").read_text()))
    assert shown[0] == shown[1]
    assert "red:" in shown[0][0]


def test_audit_shows_names_that_vw_text_cannot_have(tmp_path):
    (tmp_path / "a.csv").write_text("label,size in cm,what: it|is\n1,2,red cat\n")
    (tmp_path / "a.jsonl").write_text('{"label": 1, "features": {"size in cm": 2, "a b": {"c d": "e f"}}}\n')
    assert "\tsize in cm:" in learn("a.csv", "--oaa", 2, "--audit", cwd=tmp_path).out
    assert "\twhat: it|is^red:" in learn("a.csv", "--oaa", 2, "--audit", cwd=tmp_path).out
    out = learn("a.jsonl", "--oaa", 2, "--audit", cwd=tmp_path).out
    assert "\tsize in cm:" in out
    assert "\ta b^c d^e f:" in out


def test_audit_of_a_row_that_is_read_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("xclass.formats.csv_table.TYPED_BYTES", 100)
    (tmp_path / "a.csv").write_text("label,n,m,text\n1,1,2,red\n" + "2,1,2,red\n" * 20 + "2,3,x,red\n")
    shown = learn("a.csv", "--oaa", 2, "--audit", "--on_bad_line", "vw", cwd=tmp_path).lines
    assert [word.partition(":")[0] for word in shown[-1].split("\t")[1:]] in (["n", "Constant"], ["Constant", "n"])


def test_a_new_name_beyond_the_classes_is_shown_with_its_column(tmp_path):
    (tmp_path / "a.csv").write_text("n,label\n1,tea\n22,cake\n")
    (tmp_path / "a.jsonl").write_text('{"label": "tea"}\n{"text": "label", "label": "cake"}\n')
    for name, place in (("a.csv", "a.csv:3:4:"), ("a.jsonl", "a.jsonl:2:28:")):
        done = xclass(name, "--oaa", 1, "--learn_names", cwd=tmp_path)
        assert f"xclass: {place} label 'cake' is a new name" in done.err


def test_weights_of_json_lines_are_no_parts_of_names(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"label": "a", "weight": 2}\n{"label": "a", "weight": 3}\n{"label": "b"}\n')
    assert "importance weight" not in learn("a.jsonl", "--oaa", 2, "--learn_names", cwd=tmp_path).err


def test_real_labels(tmp_path):
    (tmp_path / "a.svm").write_text("0.5 1:1\n-1 2:3 # end\n")
    (tmp_path / "a.vw").write_text("0.5 | 1:1\n-1 | 2:3\n")
    for name in ("a.svm", "a.vw"):
        learn(name, "-f", name + ".m", cwd=tmp_path)
    assert (tmp_path / "a.svm.m").read_bytes() == (tmp_path / "a.vw.m").read_bytes()
    refused = xclass("--format", "fasttext", "--loss_function", "squared", stdin="__label__tea a\n")
    assert "stdin:1:10: label 'tea' is not a finite number; names of classes need a reduction" in refused.err


@pytest.mark.parametrize(
    ("text", "file", "wanted"),
    [
        (b"1 | a\n", "f", "vw"),
        (b"1 2 3\n", "stdin", None),
        (b"1 2 3\n1 1:1\n", "stdin", "xmc"),
        (b"1 2 3\n1 | a\n", "stdin", "vw"),
        (b"3\n", "f.svm.gz", "libsvm"),
        (b"3\n", "f", "vw"),
        (b"3 1:0.5 7:2 # x\n", "f", "libsvm"),
        (b"tea qid:3 1:.5\n", "f", "libsvm"),
        (b"1:1 2:1e-5\n", "f", "libsvm"),
        (b"1:1 2:x\n", "f", "vw"),
        (b"3 1:0.5:7\n", "f.svm.bz2", "libsvm"),
        (b"3\n", "f.vw.xz", "vw"),
        (b"__label__a b\n", "f", "fasttext"),
        (b"b __label__a\n", "f", "fasttext"),
        (b"__label__a | b\n", "f", "vw"),
        (b"__label__a 2 | b\n", "f", "vw"),
        (b"__label__a the w: | b\n", "f", "fasttext"),
        (b"__label__a | b\n", "f.ft", "fasttext"),
        (b"label,text\n", "f", "csv"),
        (b"label\ttext\n", "f", "csv"),
        (b"label,wo|rds\n", "f.csv", "csv"),
        (b"text\na\n", "f.csv.zst", "csv"),
        (b"1,2\n", "f", "csv"),
        (b"1,2\n", "f.jsonl", "jsonl"),
        (b"b c\n", "f.ft", "fasttext"),
        (b"[\n", "f", "jsonl"),
        (b"{\n", "f", "jsonl"),
        (b"a b,c\n", "f", "csv"),
        (b"a, b |c\n", "f", "vw"),
        (b'{"label": "a|b"}\n', "f", "jsonl"),
        (b'{"label": "a"\n', "f", "jsonl"),
        (b"{a |b\n", "f", "vw"),
        (b"\n\n \n", "f", None),
        (b"\n" * 100_000, "f", "vw"),
        (b"", "f", None),
        (b"\xef\xbb\xbf3 1:0.5\n", "f", "libsvm"),
    ],
)
def test_detection(text, file, wanted):
    assert detect(text, False, file) == wanted
    assert detect(text, True, file) == (wanted or "vw")


def test_library_reads_every_format(data):
    import numpy as np

    import xclass as library
    from xclass.errors import UsageError

    (text,) = library.read_vw(data / "p.vw")
    for name, chosen in (("p.svm", "auto"), ("p.svm.gz", "libsvm")):
        batches = list(library.read_vw(data / name, format=chosen))
        for field in ("index", "value", "label"):
            assert np.array_equal(np.concatenate([getattr(b, field) for b in batches]), getattr(text, field))
    (batch,) = library.read_vw(data / "n.csv", format="csv", labels="numbers", label_column="n")
    assert np.isfinite(batch.label).all()
    with pytest.raises(UsageError, match="format: 'arff' is not one of auto, vw"):
        next(library.read_vw(data / "p.vw", format="arff"))


def test_a_malformed_row_of_a_file_with_its_columns_in_another_order_is_reported(tmp_path):
    (tmp_path / "a.csv").write_text('label,n,text\ntea,1,kettle leaf\nbeer,2,"hop, ""malt"" "\n')
    (tmp_path / "b.csv").write_text('text,label,n\n"hop,\n""malt"" \r leaf",beer,2\nkettle,tea\n')
    refused = xclass("-d", "a.csv", "-d", "b.csv", *OPTIONS, cwd=tmp_path)
    assert refused.status == 1 and "b.csv:4:8: the row that ends in 'tea'" in refused.err
    words = ("-d", "a.csv", "-d", "b.csv", *OPTIONS, "--on_bad_line", "skip", "--text_split", "spaces", "--explain", 1)
    learn(*words, "--explain_format", "json", "--explain_file", "e.jsonl", cwd=tmp_path)
    last = json.loads((tmp_path / "e.jsonl").read_text().splitlines()[-1])
    names = {share["name"] for share in last["classes"][0]["shares"]}
    assert names == {"n", "text^hop,", 'text^"malt"', "text^leaf", "Constant"}


def test_labels_of_rows_of_several_lines_choose_the_reduction(tmp_path):
    """Show that names are found although no block of the first lines ends with a row."""
    lines = "line of text\n" * 400
    rows = "".join(f'{"ab"[i % 2]},"{lines} last {"ab"[i % 2]}"\n' for i in range(60))
    (tmp_path / "t.csv").write_text("label,text\n" + rows)
    assert "learning classes" in learn("t.csv", cwd=tmp_path).err


def test_options_of_texts_are_warned_of_where_there_are_no_texts(tmp_path):
    (tmp_path / "t.vw").write_text("a | x\nb | y\n" * 3)
    done = learn("t.vw", "--text_chars", "3-5", cwd=tmp_path)
    assert "--text_chars has no effect: t.vw is VW text, which has no texts" in done.err


def test_columns_that_count_from_another_number_than_those_learned_are_noted(tmp_path):
    values = np.tile(np.arange(1.0, 10), (30, 1))
    for base in (0, 1):
        row = " ".join(f"{j + base}:{j + 1}" for j in range(9))
        (tmp_path / f"{base}.svm").write_text("".join(f"{k % 3 + 1} {row}\n" for k in range(30)))
    np.save(tmp_path / "0.npy", values)
    said = "as if they were counted from"
    for learned in (0, 1):
        learn("-d", f"{learned}.svm", "--oaa", 3, "-b", 12, "-f", f"m{learned}", cwd=tmp_path)
        for given in (0, 1):  # in one run
            files = ("-d", f"{learned}.svm", "-d", f"{given}.svm")
            assert (said in learn(*files, "--oaa", 3, "-b", 12, cwd=tmp_path).err) == (learned != given)
        assert (said in learn("-d", "0.npy", "-t", "-i", f"m{learned}", cwd=tmp_path).err) == (learned == 1)
        with library.load(tmp_path / f"m{learned}") as model, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            model.predict_many(values)
            assert [said in str(one.message) for one in warned] == [True] * learned
    learn("-d", "0.svm", "-d", "0.svm", "--oaa", 3, "-b", 12, "-f", "other", cwd=tmp_path)
    for second, message in (("m1", "m1 has learned from columns 1 to 9 at least, and m0 has"), ("other", "")):
        merged = learn("merge", "-f", "merged", "m0", second, cwd=tmp_path).err
        assert (said in merged) == bool(message) and message in merged
    for learned in (0, 1):
        learn("-d", f"{learned}.svm", "--oaa", 3, "-b", 12, "-f", "m", cwd=tmp_path)
        for given in (0, 1):
            for words in (["-t"], ["-f", "continued"]):
                shown = learn("-d", f"{given}.svm", *words, "-i", "m", cwd=tmp_path).err
                assert (said in shown) == (learned != given)
            with library.load(tmp_path / "m") as model:
                for use in (model.evaluate, model.learn_file):
                    with pytest.warns(library.XclassWarning) if learned != given else contextlib.nullcontext():
                        use(tmp_path / f"{given}.svm")


FORMS = {  # data of each form of features
    "d.csv": "label,a,b\n1,2,3\n2,4,1\n",
    "d.jsonl": '{"label": 1, "a": 2, "b": 3}\n{"label": 2, "a": 4, "b": 1}\n',
    "0.csv": "label,0,1\n1,2,3\n2,4,1\n",
    "d.svm": "1 0:2 1:3\n2 0:4 1:1\n",
    "d.ft": "__label__1 red\n__label__2 blue\n",
    "d.vw": "1 | a:2 b:3\n2 | a:4 b:1\n",
}
NUMBERED = "matrices, whose columns have numbers"


@pytest.mark.parametrize(
    ("learned", "given", "message"),
    [
        *((table, other, f"{other}: its examples are {form}, and the model has learned from the columns 'a', 'b'")
          for table in ("d.csv", "d.jsonl") for other, form in (("d.svm", NUMBERED), ("d.npy", NUMBERED),
                                                                ("d.ft", "plain texts"))),
        ("d.npy", "d.ft", "d.ft: its examples are plain texts, and the model has learned from matrices"),
        ("d.npy", "d.csv", "d.csv: it has the columns 'a', 'b', and the model has learned from matrices"),
        ("d.csv", "d.vw", ""), ("d.npy", "d.svm", ""), ("d.svm", "d.npy", ""), ("d.vw", "d.ft", ""),
    ],
)  # fmt: skip
def test_files_whose_features_cannot_be_those_learned_are_refused(tmp_path, learned, given, message):
    for name, text in FORMS.items():
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "d.npy", np.array([[2.0, 3], [4, 1]]))
    np.save(tmp_path / "d.labels.npy", np.array([1, 2]))
    learn("-d", learned, "--oaa", 2, "-b", 10, "-f", "m", "--quiet", cwd=tmp_path)
    for words in (("-t",), ("-f", "m2")):
        done = xclass("-d", given, "-i", "m", *words, "--quiet", cwd=tmp_path)
        assert (done.status == 1) == bool(message) and message in done.err
