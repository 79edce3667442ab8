"""Path features crossed with a namespace: `\\x88` in interactions of the recall tree, as in VW."""

import re
import shlex

import pytest
from command import learn
from streams import multiclass
from versus import needs_vw, run_vw

import xclass

TREE = ("--recall_tree", "60", "-b", "20", "--max_candidates", "5")


@needs_vw
@pytest.mark.parametrize(
    "crosses",
    [
        ("-q", r"w\x88"),
        ("-q", r"\x88w"),
        ("--interactions", r"n\x88", "-q", "wn"),
        ("-q", r"\x88:"),
        ("-q", "::", "-q", r":\x88", "--bern_hyper", "0.1"),
        ("-q", r"\x88\x88", "--permutations"),
        ("--cubic", r"\x88wn", "--node_only", "--loss_function", "logistic"),
        ("--cubic", r"ww\x88", "-q", r"\x88n", "--bern_hyper", "0.1"),
        ("--cubic", r"\x88::", "-q", "wn", "--bern_hyper", "0"),
        ("--interactions", r"\x88w\x88n", "--bern_hyper", "0.1", "--max_depth", "4"),
    ],
    ids=" ".join,
)
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


DEMOS = {  # commands of VW's demo/recall_tree, with fewer classes, bits and passes
    "aloi": "-k -c --passes 2 --recall_tree 60 -b 18 --loss_function logistic -q'\\x88': -l 1",
    "aloi tuned": "-k -c --passes 2 --recall_tree 60 -b 18 --loss_function logistic -q'\\x88': -l 0.85 "
    "--randomized_routing 1 --max_depth 4 --max_candidates 8 --bern_hyper 0.01",
    "ltcb": r"--recall_tree 60 -q wn --cubic wnw -b 18 --loss_function logistic -l 1 -q '\x88'w --cubic '\x88'wn",
    "ltcb hyper": r"-b 18 --recall_tree 60 -l 1.3 --max_depth 5 --max_candidates 9 --bern_hyper 0.7 "
    r"--randomized_routing 0 --node_only 1 -q wn --cubic wnz -q '\x88'w --cubic '\x88'wz",
    "imagenet": r"--recall_tree 60 -b 18 --loss_function logistic -l 1 --node_only 1 -q '\x88'w",
    "odp": r"--recall_tree 60 -b 18 --loss_function logistic -l 1 --node_only 1 -q '\x88'w --max_candidates 40 "
    "--max_depth 3",
    "odp hyper": r"--recall_tree 60 -b 18 --loss_function logistic -l 1.3 --max_depth 5 --max_candidates 9 "
    r"--bern_hyper 0.3 --link glf1 --randomized_routing 1 --node_only 0 -q '\x88'w",
}


@needs_vw
@pytest.mark.parametrize("name", DEMOS)
def test_the_commands_of_the_authors_demo_run_as_they_are_written(name, tmp_path):
    """VW 9.11 knows `--node_only` without a value only, and gets it so."""
    text = multiclass(5, 60, 500)
    (tmp_path / "d.vw").write_text(text)
    words = shlex.split(DEMOS[name])
    learn(*words, "-f", "own.model", stdin=text, cwd=tmp_path)
    learn("-t", "-i", "own.model", stdin=text, cwd=tmp_path)
    today = re.sub("--(node_only|randomized_routing) 0", "", DEMOS[name])
    today = re.sub("(--node_only|--randomized_routing) 1", r"\1", today)
    run_vw(*shlex.split(today), "-d", "d.vw", "-p", "vw.p", "--quiet", cwd=tmp_path)
    learn("--vw_exact", *words, "-p", "x.p", "--quiet", stdin=text, cwd=tmp_path)
    assert (tmp_path / "x.p").read_text() == (tmp_path / "vw.p").read_text()
