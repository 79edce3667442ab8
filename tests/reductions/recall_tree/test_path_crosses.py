"""Path features crossed with a namespace: `\\x88` in interactions of the recall tree, as in VW."""

import pytest
from command import learn
from command import xclass as run
from streams import multiclass
from versus import needs_vw, run_vw

import xclass

TREE = ("--recall_tree", "60", "-b", "20", "--max_candidates", "5")


@needs_vw
@pytest.mark.parametrize("crosses", [("-q", r"w\x88"), ("-q", r"\x88w"), ("--interactions", r"n\x88", "-q", "wn")])
def test_crosses_with_the_path_give_the_predictions_of_vw(crosses, tmp_path):
    (tmp_path / "d.vw").write_text(multiclass(3, 60, 900))
    words = ("-d", "d.vw", *TREE, *crosses, "--quiet", "-p")
    run_vw(*words, "vw.p", cwd=tmp_path)
    learn("--vw_exact", *words, "x.p", cwd=tmp_path)
    learn("--vw_exact", "-d", "d.vw", *TREE, "--quiet", "-p", "without.p", cwd=tmp_path)
    assert (tmp_path / "x.p").read_text() == (tmp_path / "vw.p").read_text()
    assert (tmp_path / "x.p").read_text() != (tmp_path / "without.p").read_text()


def test_the_library_crosses_with_the_path_as_the_command_does(tmp_path):
    text = multiclass(3, 60, 900)
    learn(*TREE, "-q", r"w\x88", "-f", tmp_path / "command", stdin=text)
    options = {"classes": 60, "bits": 20, "max_candidates": 5}
    with xclass.Learner("recall_tree", quadratic=[r"w\x88"], **options) as model:
        crossed = model.learn_many(text).prediction
        model.save(tmp_path / "library")
    assert (tmp_path / "library").read_bytes() == (tmp_path / "command").read_bytes()
    with xclass.Learner("recall_tree", **options) as model:
        assert (model.learn_many(text).prediction != crossed).any()
    with xclass.load(tmp_path / "library") as model:
        learn("-t", "-i", tmp_path / "command", "-p", tmp_path / "p", stdin=text)
        assert model.predict_many(text).tolist() == [int(line) for line in (tmp_path / "p").read_text().split()]


@pytest.mark.parametrize(
    ("reduction", "options", "message"),
    [
        ("recall_tree", {"cubic": [r"ww\x88"]}, "one named namespace at a time"),
        ("recall_tree", {"quadratic": [r":\x88"]}, "one named namespace at a time"),
        ("recall_tree", {"quadratic": [r"w\x88"], "no_path_features": True}, "nothing to cross"),
        (
            "recall_tree",
            {"quadratic": [r"w\x88"], "ignore_linear": ["w"]},
            r"^ignore_linear drops namespace 'w'",
        ),
        ("oaa", {"quadratic": [r"w\x88"]}, "path of recall_tree, which was not chosen"),
    ],
    ids=str,
)
def test_crosses_that_cannot_be_made_are_refused(reduction, options, message):
    with pytest.raises(xclass.UsageError, match=message):
        xclass.Learner(reduction, 9, **options)


def test_crosses_that_cannot_be_made_end_the_command_before_it_reads():
    result = run("--oaa", 9, "-q", r"w\x88", stdin="no example\n")
    assert result.status == 2
    assert "path of --recall_tree, which was not chosen" in result.err
