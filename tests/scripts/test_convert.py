"""The converters of the papers' sources: headers, comments, empty lines, packed files, labels from 0, bad lines."""

import bz2
import gzip
import lzma
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.convert import sparse, uci, vw, wikipedia, words
from scripts.lib.command_line import run

MAINS = {"sparse": sparse, "uci": uci, "vw": vw, "words": words}


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Execute a converter in this process; return the exit status and standard error."""
    monkeypatch.chdir(tmp_path)

    def go(name, *words):
        module = MAINS[name]
        monkeypatch.setattr(sys, "argv", [f"{name}.py", "--out", "out", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            run(module.main)
        err = capsys.readouterr().err
        return (1, f"{end.value.code}\n") if isinstance(end.value.code, str) else (end.value.code or 0, err)

    return go


def out(name):
    return Path("out", name).read_text("utf-8").splitlines()


def compressed(content: bytes) -> bytes:
    """Pack bytes as `compress` does, with codes of nine bits; the table is emptied before they are full."""
    packed, codes = bytearray(b"\x1f\x9d\x90"), []
    for byte in content:
        codes.append(byte)
        if len(codes) % 200 == 199:
            codes.append(256)
            codes += [0] * (-len(codes) % 8)  # what is left of a group of eight is skipped
    bits = sum(code << 9 * place for place, code in enumerate(codes))
    return bytes(packed) + bits.to_bytes(-(-9 * len(codes) // 8), "little")


# -- packed files ------------------------------------------------------------------------------------------------


def packings(path, content):
    """Write a file in all the ways it may be packed; yield the paths."""
    yield path
    path.write_bytes(content)
    for end, pack in ((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".Z", compressed)):
        packed = path.with_name(path.name + end)
        packed.write_bytes(pack(content))
        yield packed
    packed = path.with_name(path.name + ".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", content)
    yield packed


def test_every_packing_gives_the_same(convert, tmp_path):
    content = b"".join(b"%d 1:0.5 %d:2\n" % (i % 7, 2 + i) for i in range(50))
    contents = set()
    (tmp_path / "a").write_bytes(content)
    for path in packings(tmp_path / "a", content):
        assert convert("sparse", "--train", path, "--shuffle") == (0, "")
        contents.add(Path("out/train.vw").read_bytes() + Path("out/test.vw").read_bytes())
    assert len(contents) == 1


# -- LIBSVM, the extreme classification repository -----------------------------------------------------------------


def test_sparse_lines(convert, tmp_path):
    (tmp_path / "a").write_text("# a comment\n\n0 1:0.5 7:-1e-3 # more\r\n  \n10 3:1\n-1 1:2\n9\n")
    (tmp_path / "b").write_text("10 1:1\n2.0 5:.5\n")
    assert convert("sparse", "--train", "a", "--test", "b") == (0, "")
    assert out("train.vw") == ["2 |f 1:0.5 7:-1e-3", "5 |f 3:1", "1 |f 1:2", "4 |f "]
    assert out("test.vw") == ["5 |f 1:1", "3 |f 5:.5"]
    assert out("labels.txt") == ["1\t-1", "2\t0", "3\t2", "4\t9", "5\t10"]  # by value, test labels too
    (tmp_path / "a").write_text("1 1:1\n# fine\n1 1:x\n1 1:1\n")
    assert convert("sparse", "--train", "a") == (1, "sparse: a:3: '1:x' is no index:value such as 17:0.5\n")


def test_repository_files_have_a_header_and_several_labels(convert, tmp_path):
    (tmp_path / "a").write_text("4 100 30\n3,5 0:1 99:2\n7 1:1\n 5:1\n29, 0 2:1\n")
    assert convert("sparse", "--train", "a", "--test", "a", "--several", "first") == (0, "")
    assert out("train.vw") == ["1 |f 0:1 99:2", "2 |f 1:1", "3 |f 2:1"]
    assert [line.split("\t")[1] for line in out("labels.txt")] == ["3", "7", "29"]
    convert("sparse", "--train", "a", "--test", "a", "--several", "lists")
    assert out("train.vw") == ["1,2 |f 0:1 99:2", "3 |f 1:1", "4,0 |f 2:1"]
    (tmp_path / "many").write_text("3,5,0 0:1\n" * 300)
    status, _ = convert("sparse", "--train", "many", "--several", "draw")
    assert status == 0
    drawn = [line.split()[0] for line in out("train.vw") + out("test.vw")]
    assert min(drawn.count(label) for label in "123") > 70


# -- splits, numbers, cuts ---------------------------------------------------------------------------------------------


def test_split_is_exact_seeded_and_loses_nothing(convert, tmp_path):
    (tmp_path / "a").write_text("".join(f"{i % 10} {i}:1\n" for i in range(1, 1001)))
    assert convert("sparse", "--train", "a", "--shuffle")[0] == 0
    train, test = out("train.vw"), out("test.vw")
    assert (len(train), len(test)) == (900, 100)
    numbers = [int(line.split("|f ")[1].split(":")[0]) for line in train + test]
    assert sorted(numbers) == list(range(1, 1001)) and numbers != sorted(numbers)
    convert("sparse", "--train", "a", "--shuffle")
    assert (out("train.vw"), out("test.vw")) == (train, test)
    convert("sparse", "--train", "a")
    assert out("train.vw") != train and sorted(out("train.vw")) == sorted(train) and out("test.vw") == test
    convert("sparse", "--train", "a", "--seed", "2")
    assert out("test.vw") != test
    convert("sparse", "--train", "a", "--limit", "50", "--packed")
    assert len(gzip.decompress(Path("out/train.vw.gz").read_bytes()).splitlines()) == 45


# -- UCI ---------------------------------------------------------------------------------------------------------------


def test_uci_lines(convert, tmp_path):
    (tmp_path / "a").write_text("x,y,class\n# comment\n\n-0.5, 0, 1.\n?,2e-1,26.\n1,1,3\n")
    assert convert("uci", "--train", "a", "--test", "a") == (0, "")
    assert out("train.vw") == ["1 |f 1:-0.5", "3 |f 2:0.2", "2 |f 1:1 2:1"]
    assert out("labels.txt") == ["1\t1", "2\t3", "3\t26"]
    (tmp_path / "b").write_text("1,2,b c\n3,4,a\n")
    convert("uci", "--train", "b", "--test", "b")
    assert out("labels.txt") == ["1\ta", "2\tb_c"]


# -- VW ----------------------------------------------------------------------------------------------------------------


def test_vw_lines_keep_all_but_the_bare_namespace(convert, tmp_path):
    (tmp_path / "a").write_text("9 | a:1 b |c d | e\n\n3 2.0 'tag|x y\n | unlabelled\n'tag | unlabelled\n9 |\n")
    assert convert("vw", "--train", "a", "--test", "a", "--namespace", "n") == (0, "")
    assert out("train.vw") == ["2 |n a:1 b |c d |n e", "1 2.0 'tag|x y", "2 |n"]
    assert convert("vw", "--train", "a", "--test", "a", "--classes", "9") == (0, "")
    assert out("train.vw")[1] == "3 2.0 'tag|x y" and len(out("labels.txt")) == 9


# -- words -------------------------------------------------------------------------------------------------------------


def test_means_of_training_examples_are_subtracted(convert, tmp_path):
    (tmp_path / "a").write_text("1 |f a:1 b:3\n2 |f b:1\n")
    (tmp_path / "b").write_text("1 |f c:9 a\n")
    assert convert("vw", "--train", "a", "--test", "b", "--subtract_mean") == (0, "")
    assert out("train.vw") == ["1 |f a:0.5 b:1", "2 |f a:-0.5 b:-1"] and out("test.vw") == ["1 |f a:0.5 b:-2"]
    (tmp_path / "a").write_text("1 |f a:1\n2 |f a:1 |g b:1:2\n")
    assert "|f a:1 |g b:1:2' are not all features with a value" in convert("vw", "--train", "a", "--subtract_mean")[1]


def test_next_word_of_joined_lines(convert, tmp_path):
    (tmp_path / "a").write_text("the cat sat\n\nthe cat : |\n")
    (tmp_path / "b").write_text("a cat sat\n")
    assert convert("words", "--train", "a", "--test", "b", "--join", "--context", "2", "--least", "2") == (0, "")
    assert [line.split("\t")[1] for line in out("labels.txt")] == ["<eos>", "cat", "the", "<oov>"]
    assert out("train.vw") == [
        "3 |a <eos> |b <eos>",
        "2 |a the |b <eos>",
        "4 |a cat |b the",
        "1 |a sat |b cat",
        "3 |a <eos> |b sat",
        "2 |a the |b <eos>",
        "4 |a cat |b the",
        "4 |a _ |b cat",
        "1 |a _ |b _",
    ]
    assert out("test.vw")[:2] == ["4 |a <eos> |b <eos>", "2 |a a |b <eos>"]
    convert("words", "--train", "a", "--test", "b", "--join", "--context", "2", "--least", "2", "--rare", "drop")
    assert len(out("labels.txt")) == 3 and len(out("train.vw")) == 6


def test_words_as_vectors(convert, tmp_path):
    (tmp_path / "a").write_text("a b c\n" * 3)
    (tmp_path / "v").write_text("a 0.5 1\nb -1 0.25\n")
    assert convert("words", "--train", "a", "--test", "a", "--context", "2", "--vectors", "v") == (0, "")
    assert out("train.vw")[0].endswith("|a 1:-1 2:0.25 |b 1:0.5 2:1")
    (tmp_path / "v").write_text("a 0.5 1\nb -1\n")
    args = ("words", "--train", "a", "--test", "a", "--context", "2", "--vectors", "v")
    assert "v:2: 1 numbers, 2 in the lines before" in convert(*args)[1]
    (tmp_path / "v").write_text("a 0.5 x\n")
    assert "v:1: what follows the word are not all numbers" in convert(*args)[1]
    (tmp_path / "a").write_text("<oov> b c\n" * 3)
    assert "the text has the word <oov>" in convert("words", "--train", "a", "--test", "a")[1]


def test_article_is_what_a_reader_sees(tmp_path):
    dump = tmp_path / "dump.xml"
    dump.write_text(
        '<mediawiki>\n<page><title>A</title><text xml:space="preserve">#REDIRECT [[B]]</text></page>\n'
        "<page><text xml:space=\"preserve\">'''Anarchism''' is [[political theory|a theory]] of [[1789]]&amp;ndash;9.\n"
        "&lt;ref name=x&gt;hidden&lt;/ref&gt;&lt;!-- hidden --&gt;{{hidden {{too}} | a}}\n"
        "{| hidden\n| {{too}} |}\n[[Image:x.png|thumb|left|A [[flag]] here]] [http://x.org the page] http://y.org\n"
        "[[Category:Ideas|*]] [[de:Anarchie]]&lt;br /&gt; end</text></page>\n"
        "<page><text/></page>\n<page><text>cut short\n"
    )
    first, last = [wikipedia.plain(article) for article in wikipedia.articles(dump)]
    assert first == ("anarchism is a theory of one seven eight nine nine a flag here the page ideas end")
    assert last == "cut short"
