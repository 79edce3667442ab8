"""--audit with an index of features: the shares of the features, their names, and that it changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from command import learn
from streams import multiclass

TRAIN = """\
sport | ball goal team
cooking | oven flour salt
sport | team match goal
cooking | salt pan flour
music | guitar song |more band
music |more band |stage song
"""


def proposals(out: str) -> list[tuple[str, float, str, dict[str, float]]]:
    """Return the class, score, tag and shares of each pair of lines."""
    lines = out.splitlines()
    found = []
    for first, second in zip(lines[::2], lines[1::2], strict=True):
        head, _, tag = first.partition(" ")
        label, score = head.rsplit(":", 1)
        words = second.split("\t")[1:]
        found.append((label, float(score), tag, {w.rsplit(":", 1)[0]: float(w.rsplit(":", 1)[1]) for w in words}))
    return found


def test_features_that_propose_a_class_are_named(tmp_path):
    learn("--multiclass", "-b", 12, "-f", "m", "--quiet", stdin=TRAIN, cwd=tmp_path)
    test = "| team goal song\nmusic 'b | song unknown |more band\n"
    found = proposals(learn("-i", "m", "-t", "--audit", "--quiet", stdin=test, cwd=tmp_path).out)
    assert [(label, tag, list(shares)) for label, _, tag, shares in found] == [
        ("sport", "", ["team", "goal"]), ("music", "", ["song"]), ("music", "b", ["song", "more^band"]),
    ]  # fmt: skip
    assert all(sum(shares.values()) == pytest.approx(score, rel=1e-4) for _, score, _, shares in found)


def test_shares_sum_to_the_score_and_are_in_falling_order(tmp_path):
    text = multiclass(5, 30, 400, noise=0.5, tags=True)
    out = learn("--multiclass", "-b", 12, "-q", "::", "--audit", "--quiet", stdin=text, cwd=tmp_path).out
    found = proposals(out)
    assert len(found) > 500
    for label, score, _, shares in found:
        assert 1 <= int(label) <= 30
        assert sum(shares.values()) == pytest.approx(score, rel=1e-3)
        assert np.all(np.diff(list(shares.values())) <= 0)
    assert any("*" in name for *_, shares in found for name in shares)


def test_the_audit_changes_nothing(tmp_path):
    (tmp_path / "data").write_text(multiclass(4, 5, 80, unlabelled=0.1, tags=True))
    made = []
    for audit in ((), ("--audit",)):
        learn("data", "--multiclass", "-b", 10, "-p", "p", "-f", "m", "--quiet", *audit, cwd=tmp_path)
        made.append(((tmp_path / "p").read_text(), (tmp_path / "m").read_bytes()))
    assert made[0] == made[1]
