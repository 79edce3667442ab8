"""What --multilabel says about its predictions, and its model as text, agree with each other and with the rule."""

from __future__ import annotations

import math
import re

import pytest
from command import learn
from streams import multilabel

from xclass import Learner, checks, load
from xclass.reductions.multilabel import frequent

LABELS = 12
PARTS = {"scorer", "index", "near", "prior"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("multilabel")
    (path / "data").write_text(multilabel(1, LABELS, 400))
    learn("-d", "data", "--multilabel", "-f", "m", "--readable_model", "text", "--invert_hash", "names", cwd=path)
    return path


def test_the_scorer_part_follows_from_the_model_as_text(folder):
    text = (folder / "names").read_text()
    v = {int(n): float(value) for n, value in re.findall(r"^V(\d+) = (\S+)$", text, re.MULTILINE)}
    labels = {
        y: (float(b), float(n))
        for y, b, n in re.findall(r"^label = (\d+) bias = (\S+) examples = (\S+)$", text, re.MULTILINE)
    }
    weights = {
        (name, y): float(w)
        for name, y, w in re.findall(r"^w\^(\w+)\[label (\d+)\]:scorers:\d+:(\S+) ", text, re.MULTILINE)
    }
    assert len(labels) == LABELS
    assert len(weights) > 2 * LABELS
    with load(folder / "m") as model:
        for name in sorted({name for name, _ in weights}):
            explained = model.explain(f"|w {name}", k=LABELS)  # the only feature has the value 1
            assert explained.considered == len(explained.classes) == LABELS
            for of_label in explained.classes:
                bias, n = labels[str(of_label.label)]
                s = max(-3.0, min(bias + weights.get((name, str(of_label.label)), 0.0), 3.0))
                expected = (
                    v[1] * s + v[2] * max(s, 0) + v[3] * (max(s + 0.6, 0) - 0.6) + v[7] * s * math.log(n + 1) / 10
                )
                assert of_label.parts["scorer"] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_every_word_in_use_is_in_the_text_and_known(folder):
    listed = re.findall(r"^scorers:(\d+):(\S+) (\S+)$", (folder / "text").read_text(), re.MULTILINE)
    named = re.findall(r"^\S+\[label \d+\]:scorers:(\d+):(\S+) (\S+)$", (folder / "names").read_text(), re.MULTILINE)
    assert listed == named
    with load(folder / "m") as model:
        words = model.core.reduction.scorers.words.word
        assert [int(slot) for slot, _, _ in listed] == words.nonzero()[0].tolist()


def test_parts_of_own_and_of_predicted_labels_add_up(folder):
    with load(folder / "m") as model:
        for line in multilabel(2, LABELS, 40).splitlines():
            explained = model.explain(line, k=2)
            checks.assert_sums(explained)
            own = explained.label or []
            assert {one.label for one in explained.classes} >= {*own}
            assert all(one.parts.keys() <= PARTS for one in explained.classes)
            assert len(explained.classes) == len({one.label for one in explained.classes})
            assert explained.classes[0].probability >= max(one.probability for one in explained.others)


def test_a_label_that_is_no_candidate_has_no_score():
    """Most labels are not proposed for an example of features that they never had."""
    many = frequent.MOST_ALL + 200
    with Learner("multilabel", bits=14) as model:
        model.learn_many([f"{y} | w{y}" for y in range(many) for _ in range(1 + (y < 64))])
        explained = model.explain(f"{many - 1},{many - 2} | w{many - 2}", k=1)
        assert [one.label for one in explained.classes] == [many - 2, many - 1]
        assert explained.considered < many
        assert (explained.classes[1].score, explained.classes[1].probability) == (None, 0.0)
        assert f"{many - 1}: probability 0, not compared" in str(explained)


def test_audit_shows_the_shares(folder):
    shown = learn("-t", "-i", "m", "-d", "data", "--audit", "--quiet", cwd=folder).out
    assert re.search(r"^\tw\^y\d+_\d:", shown, re.MULTILINE)
