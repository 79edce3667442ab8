"""Situations from public reports about files that a command destroyed or left half written, one test each."""

import gzip
import os
import shutil

import pytest
from command import learn, xclass

from xclass.api.learner import load
from xclass.errors import ModelError, UsageError
from xclass.system import output_file
from xclass.vw import Workspace

DATA = "1 |a x\n2 |a y\n3 |a z\n" * 8


@pytest.fixture
def place(tmp_path):
    """A folder with data, a model of them, a tree and a file of names."""
    (tmp_path / "d.vw").write_text(DATA)
    (tmp_path / "nm").write_text("1\n2\n3\n")
    learn("d.vw", "--cpt", 3, "-f", "ma", "--save_tree", "t", "--quiet", cwd=tmp_path)
    (tmp_path / "c.vw").write_text(DATA)
    return tmp_path


def test_a_run_that_fails_leaves_the_predictions_of_yesterday(place):
    """The attack of the page on what destroys files (class B)."""
    (place / "p").write_text("of yesterday\n")
    (place / "bad.vw").write_text(DATA + "x |a x\n" + DATA)
    result = xclass("bad.vw", "-t", "-i", "ma", "-p", "p", cwd=place)
    assert result.status == 1
    assert "the predictions so far are in p.interrupted; p is as it was before" in result.err
    assert (place / "p").read_text() == "of yesterday\n"
    assert (place / "p.interrupted").read_text() == "1\n2\n3\n" * 8


def test_full_names_of_namespaces_are_crossed_by_their_first_letters(place):
    """Questions about `-q` with names of namespaces (class F)."""
    (place / "n.vw").write_text("1 |user a |item b\n2 |user c |item b\n" * 5)
    rows = [learn("n.vw", "--oaa", 2, "-q", pair, "-p", "stdout", cwd=place).out for pair in ("ui", "user|item")]
    assert rows[0] == rows[1]
    counts = [learn("n.vw", "--oaa", 2, *q, cwd=place).err for q in (("-q", "user|item"), ())]
    assert "total feature number = 40" in counts[0] and "total feature number = 30" in counts[1]


def test_a_file_that_is_no_cache_is_not_replaced_by_one(place):
    """Runs of `-c` in a folder where `DATA.cache` is another file, such as VW's cache."""
    (place / "other.vw").write_text(DATA)
    (place / "d.vw.cache").write_text("of VW\n")
    for words in (("--cache_file", "other.vw"), ("-c",), ("-c", "-k")):
        result = xclass("d.vw", *words, cwd=place)
        name = words[1] if words[0] == "--cache_file" else "d.vw.cache"
        assert result.status == 1 and f"{name}: this is not a cache of xclass, so it is neither read nor" in result.err
    assert ((place / "other.vw").read_text(), (place / "d.vw.cache").read_text()) == (DATA, "of VW\n")
    (place / "d.vw.cache").write_text("")
    learn("d.vw", "-c", cwd=place)
    assert (place / "d.vw.cache").read_bytes().startswith(b"xclass cache")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has this device")
def test_nothing_is_saved_beside_a_device(place):
    """A model that is written to a full disk."""
    (place / "full").symlink_to("/dev/full")
    result = xclass("d.vw", "-f", "full", cwd=place)
    assert result.status == 1 and "what was learned is lost: full is not a regular file" in result.err
    assert not (place / "full.interrupted").exists()


@pytest.mark.parametrize("kill", [[], ["-k"]])
def test_a_cache_that_vw_made_is_replaced(place, kill):
    """Both tools call the cache of -c DATA.cache, and a Makefile for VW is run again with xclass."""
    (place / "d.vw.cache").write_bytes((7).to_bytes(8, "little") + b"9.11.9\0c\x12\0\0\0" + bytes(60))
    result = xclass("d.vw", "--cpt", 3, "-c", *kill, cwd=place)
    assert result.status == 0
    assert ("d.vw.cache: the cache is made again: it is one of Vowpal Wabbit" in result.err) == (not kill)
    assert (place / "d.vw.cache").read_bytes().startswith(b"xclass cache\n")
    (place / "d.vw.cache").write_bytes(b"a text of mine")
    result = xclass("d.vw", "--cpt", 3, "-c", *kill, cwd=place)
    assert result.status == 1 and "neither read nor replaced" in result.err


def test_files_beside_the_data_may_be_compressed(place):
    """Names, trees, predictions and texts of classes are read as data are."""
    xclass("d.vw", "-t", "-i", "ma", "-p", "p", "--quiet", cwd=place)
    for name in ("nm", "t", "p"):
        (place / f"{name}.gz").write_bytes(gzip.compress((place / name).read_bytes()))
    assert xclass("d.vw", "--cpt", 3, "--cpt_tree", "t.gz", "--quiet", cwd=place).status == 0
    assert xclass("d.vw", "--multiclass", "--named_labels", "@nm.gz", "--quiet", cwd=place).status == 0
    assert xclass("compare", "p", "p.gz", "-d", "d.vw", cwd=place).status == 0


def test_each_writer_of_a_model_knows_its_own_file(place, monkeypatch):
    """A link that was moved, a file of a third writer, one that was only touched, and one that a program copied."""
    monkeypatch.chdir(place)
    for name in ("v1", "v2"):
        shutil.copy("ma", name)
    os.symlink("v1", "cur")
    model = load("ma")
    output_file.claim("cur")
    os.remove("cur")
    os.symlink("v2", "cur")
    before = (place / "v2").read_bytes()
    with pytest.raises(ModelError, match="cur: another process has saved a model here"):
        model.save("cur")
    assert (place / "v2").read_bytes() == before
    shutil.copy("ma", "cur.interrupted")
    assert output_file.interrupted("cur") == f"cur.interrupted.{os.getpid()}"
    output_file.claim("v1")
    os.utime("v1", (1, 1))
    model.save("v1")
    output_file.drop_claims()
    with Workspace("--oaa 4 -f m --quiet") as workspace:
        workspace.learn("1 | a")
    shutil.copy("ma", "m")
    model.save("m")
    with Workspace("-i m -f m --quiet") as workspace:
        workspace.learn("1 | a")


def test_two_workspaces_do_not_save_to_one_file(place, monkeypatch):
    monkeypatch.chdir(place)
    first = Workspace("--oaa 3 -f m --quiet")
    with pytest.raises(UsageError, match="another Workspace of this program saves to this file"):
        Workspace("--oaa 3 -f ./m --quiet")
    first.learn("1 | a")
    first.finish()
    for _ in range(2):  # one that the program drops is finished
        dropped = Workspace("-i m -f m --quiet")
        dropped.learn("2 | b")
        del dropped
    with load("m") as model:
        assert model.examples == 3
