"""`Learner.scores`: the scores that `-r` writes, as arrays."""

import numpy as np
import pytest
from command import learn as run
from streams import multiclass

import xclass

K = 6


@pytest.mark.parametrize(
    ("reduction", "options"),
    [("oaa", {}), ("oaa", {"scores": True}), ("recall_tree", {"max_candidates": 3}), ("oaa", {"indexing": 0})],
    ids=str,
)
def test_scores_are_those_that_the_command_writes(tmp_path, reduction, options):
    text = multiclass(5, K, 300, lowest=options.get("indexing", 1))
    (tmp_path / "test").write_text(text)
    with xclass.Learner(reduction, K, **options) as model:
        model.learn_many(text)
        before = model.predict_many(text)
        scored = model.scores(text)
        assert (model.predict_many(text) == before).all()
        model.save(tmp_path / "model")
    out = ("--scores", "-p") if "scores" in options else ("-r",)
    lines = run("-i", "model", "-t", "-d", "test", *out, "stdout", "--quiet", cwd=tmp_path).lines
    expected = [[pair.split(":") for pair in line.split()] for line in lines]
    assert np.diff(scored.start).tolist() == [len(row) for row in expected]
    assert scored.classes.tolist() == [int(label) for row in expected for label, _ in row]
    assert np.allclose(scored.scores, [float(score) for row in expected for _, score in row], rtol=1e-4, atol=1e-4)
    best = [
        scored.classes[low + np.argmax(scored.scores[low:high])]
        for low, high in zip(scored.start, scored.start[1:], strict=False)
    ]
    if reduction == "oaa":
        assert best == before.tolist()
        assert scored.scores.shape == (300 * K,)


def test_scores_have_names_of_classes():
    with xclass.Learner("oaa", 3, bits=10) as model:
        model.learn_many(["tea | kettle leaf", "coffee | cup bean"] * 10)
        scored = model.scores([{"kettle": 1}, {"cup": 1}])
        assert scored.classes.tolist() == ["tea", "coffee", None] * 2
        assert scored.scores.reshape(2, 3).argmax(axis=1).tolist() == [0, 1]
        assert model.scores([]).start.tolist() == [0]
