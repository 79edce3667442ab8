"""Advice about a model file that cannot be loaded is followed, by the command and in a program, and then it is loaded.

Each message names its cause; what is checked here is that another copy of the file, or a model trained again, helps.
"""

import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import learn
from command import xclass as run

import xclass
from xclass.model import model_file, model_header

MULTICLASS = ("--multiclass", "-b", 10, "-d", "d.csv", "-f")
ONE = ("--oaa", 3, "-b", 10, "-d", "d.vw", "-f")
MEANS = ("--means", 3, "-d", "rows.npy", "-f")


def in_file(change):
    """Return a damage that changes the bytes of a file."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


def in_parts(edit):
    """Return a damage that changes the options, facts or arrays of a model, and writes it anew."""

    def damage(path):
        options, facts, stored = model_file.load(path)
        arrays = {name: np.array(array) for name, array in stored.items()}
        edit(options, facts, arrays)
        model_file.save(path, options=options, facts=facts, arrays=arrays)

    return damage


def by_newer(path):
    """Write a model as a newer version would, in a format that this one does not know."""
    options, facts, stored = model_file.load(path)
    arrays = {name: np.array(array) for name, array in stored.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COMPACT_VERSION", "FIRST_VERSION"):
            patch.setattr(model_header, name, model_header.VERSION + 1)
        model_file.save(path, options=options, facts=facts, arrays=arrays)


def middle_changed(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


# how the model is made and damaged, and the message
DAMAGES = {
    "cut": (ONE, in_file(lambda data: data[:-9]), "the file is truncated: it has .* but its header says"),
    "cut header": (ONE, in_file(lambda data: data[:40]), "truncated"),
    "first bytes": (ONE, in_file(lambda data: data[:12]), "truncated: it has only 12 bytes"),
    "longer": (ONE, in_file(lambda data: data + b"x"), "the end is damaged"),
    "a bit": (ONE, in_file(middle_changed), "array .* is damaged: its bytes do not match"),
    "newer format": (ONE, by_newer, "made by a newer version"),
    "newer option": (ONE, in_parts(lambda o, f, a: o.update(new_option=1)), "an option --new_option, which"),
    "newer fact": (ONE, in_parts(lambda o, f, a: f.update(new_fact=1)), "a fact 'new_fact', which this"),
    "fact lost": (ONE, in_parts(lambda o, f, a: f.pop("clock")), "does not hold the fact 'clock'"),
    "fact": (ONE, in_parts(lambda o, f, a: f.update(examples=-1)), "the fact 'examples' is -1"),
    "learner": (ONE, in_parts(lambda o, f, a: f["learner"].pop("next")), "'learner' lacks 'next'"),
    "number": (ONE, in_parts(lambda o, f, a: f["learner"].update(next=-1)), "'learner' has 'next': -1"),
    "more facts": (ONE, in_parts(lambda o, f, a: f["learner"].update(more=1)), "a fact 'learner' with 'more'"),
    "no record": (ONE, in_parts(lambda o, f, a: f.update(learner=1)), "the fact 'learner' is 1"),
    "more arrays": (ONE, in_parts(lambda o, f, a: a.update(more=np.zeros(2))), "an array 'more'"),
    "array": (ONE, in_parts(lambda o, f, a: a.update(order=np.zeros(9))), "array 'order' does not fit"),
    "two reductions": (ONE, in_parts(lambda o, f, a: o.update(cpt=3)), "holds both "),
    "option of others": (ONE, in_parts(lambda o, f, a: o.update(plt_alpha=1.0)), "belongs to another reduction"),
    "option of a run": (ONE, in_parts(lambda o, f, a: o.update(final_regressor="x")), "belongs to a run|does not know"),
    "option": (ONE, in_parts(lambda o, f, a: o.update(oaa="x")), "its (--)?oaa is damaged"),
    "no bits": (ONE, in_parts(lambda o, f, a: o.pop("bits")), "it has no "),
    "names": (MULTICLASS, in_parts(lambda o, f, a: a["class_names"].__setitem__(0, 1)), "control characters"),
    "names of numbers": (MULTICLASS, in_parts(lambda o, f, a: a.update(class_names=np.zeros(2))), "to be uint8"),
    "schema": (MULTICLASS, in_parts(lambda o, f, a: a["schema"].__setitem__(0, 1)), "schema of its columns is damaged"),
    "means": (MEANS, in_parts(lambda o, f, a: a["scatter"].__setitem__(..., np.inf)), "not finite|does not fit"),
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("d.vw").write_text("1 | a\n2 | b\n")
        Path("d.csv").write_text("label,text\ntea,hot\nrum,cold\n")
        np.save("rows.npy", np.arange(12, dtype=np.float32).reshape(6, 2))
        np.save("rows.labels.npy", np.array([1, 2] * 3))
        for words in (ONE, MULTICLASS, MEANS):
            learn(*words, words[0].strip("-"), "--quiet")
    return folder


@pytest.mark.parametrize("interface", ["command", "program"])
@pytest.mark.parametrize("name", DAMAGES)
def test_another_copy_or_a_model_trained_again_is_loaded(models, tmp_path, monkeypatch, name, interface):
    words, damage, message = DAMAGES[name]
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    whole, model, data = Path(words[0].strip("-")), Path("m"), words[words.index("-d") + 1]

    def said():
        """Return what is said when the model is loaded and used, or nothing."""
        if interface == "command":
            return run("-t", "-i", "m", "-d", data, "--quiet").err
        try:
            xclass.load("m").evaluate(data)
        except xclass.XclassError as error:
            return str(error)
        return ""

    shutil.copy(whole, model)
    damage(model)
    first = said()
    assert re.search(message, first), first
    assert "train the model again, or take another copy of the file" in first
    if "newer" in message or "this xclass does not know" in first:
        assert "update xclass, or" in first
    shutil.copy(whole, model)  # another copy
    assert said() == ""
    damage(model)
    assert run(*words, "m", "--quiet").status == 0  # trained again
    assert said() == ""


# files that are no model of xclass: what is written, the advice, and what makes a model of it
OTHERS = [
    (lambda model: gzip.compress(model), "there is a model in it, (unpack) it", gzip.decompress),
    (lambda model: b"\x06\0\0\0" + b"9.8.0\0" + bytes(90), "(train) it again with xclass", None),
    (lambda model: b"1 | a\n2 | b\n", "models are made with (-f)|made with (save)", None),
]


@pytest.mark.parametrize(("made", "advice", "mended"), OTHERS)
@pytest.mark.parametrize("interface", ["command", "program"])
def test_advice_about_a_file_that_is_no_model_is_followed(
    models, monkeypatch, tmp_path, made, advice, mended, interface
):
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("m").write_bytes(made(Path("oaa").read_bytes()))
    if interface == "command":
        said = run("-t", "-i", "m", "-d", "d.vw").err
    else:
        with pytest.raises(xclass.ModelError) as raised:
            xclass.load("m")
        said = str(raised.value)
    assert re.search(advice, said), said
    if mended is not None:
        Path("m").write_bytes(mended(Path("m").read_bytes()))
    else:
        Path("m").unlink()
        learn(*ONE, "m")
    assert run("-t", "-i", "m", "-d", "d.vw").status == 0
    xclass.load("m").close()


def test_a_model_that_was_cut_off_while_it_was_read_is_loaded_again(models, tmp_path):
    path = tmp_path / "m"
    shutil.copy(models / "oaa", path)
    opened = model_file.opened(path)
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(xclass.ModelError, match=r"load it again$"):
        [np.asarray(array) for array in opened.arrays.values()]
    shutil.copy(models / "oaa", path)
    assert [np.asarray(array) for array in model_file.opened(path).arrays.values()]
