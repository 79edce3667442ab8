"""A reduction from outside the package: a record is all that the command needs."""

from collections import Counter

import numpy as np
import pytest
from command import learn, xclass

import xclass as xclass_library
from xclass.binary import gd
from xclass.errors import UsageError
from xclass.options.declare import OptionGroup, option
from xclass.reductions import registry
from xclass.reductions.core.base import Reduction, ReductionRecord
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.spec import LearnerSpec

DATA = "".join(f"{1 + (i % 3 == 0)} | x{i}\n" for i in range(30))


class Options(OptionGroup):
    """Majority."""

    majority: int = option("number of classes, labels 1..K", metavar="K", minimum=1, stored=True)


class Majority(Reduction):
    """Predicts the class that was seen most often."""

    def __init__(self, spec: LearnerSpec):
        self.seen = np.zeros(spec.classes + 1, np.int64)
        self.stages = [self._count]

    def _count(self, task: BatchTask) -> None:
        task.prediction = np.empty(task.batch.n)
        learned = task.learned()
        for i in range(task.batch.n):
            task.prediction[i] = max(1, int(np.argmax(self.seen)))
            if learned[i]:
                self.seen[int(task.batch.label[i])] += 1
        task.loss = np.where(task.prediction != task.batch.label, task.batch.weight, 0.0).astype(np.float64)

    def serialize(self, archive):
        archive.fill("seen", self.seen)


RECORD = ReductionRecord(
    name="majority",
    title="Majority",
    summary="the class that was seen most often",
    options=Options,
    enabled="majority",
    build=Majority,
    resolve_defaults=lambda spec: gd.resolve_defaults(spec.binary, 1, reduction=True),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The command with one more reduction."""
    monkeypatch.setattr(registry, "REDUCTIONS", (*registry.REDUCTIONS, RECORD))


def test_it_learns_saves_and_predicts(tmp_path):
    result = learn("--majority", 2, "-b", 4, "-f", "m", stdin=DATA, cwd=tmp_path)
    assert "average loss = 0.4" in result.err or "average loss = 0.3" in result.err
    assert learn("-i", "m", "-t", "-p", "stdout", "--quiet", stdin="| x\n" * 2, cwd=tmp_path).lines == ["1", "1"]
    again = learn("-i", "m", "-f", "n", "-p", "stdout", "--quiet", stdin="2 | x\n" * 20, cwd=tmp_path)
    assert Counter(again.lines) == {"1": 11, "2": 9}  # the lower one of two that were seen as often


def test_its_options_are_in_the_help_and_are_checked(tmp_path):
    assert "--majority K" in learn("--help_all").out
    assert "the class that was seen most often" in learn("--help").out
    result = xclass("--majority", 0, stdin=DATA, cwd=tmp_path)
    assert (result.status, result.err) == (
        2,
        "xclass: --majority: 0 is out of range; give a whole number of at least 1\n",
    )
    result = xclass("--majority", 1, stdin=DATA, cwd=tmp_path)
    assert result.status == 1
    assert "label 2 is outside 1..1 (--majority 1)" in result.err


def test_its_models_are_checked(tmp_path):
    learn("--majority", 2, "-b", 4, "-f", "m", "--quiet", stdin=DATA, cwd=tmp_path)
    result = xclass("-i", "m", "--oaa", 2, stdin=DATA, cwd=tmp_path)
    assert result.status == 2
    assert "trained with --majority 2" in result.err


def test_the_library_has_it_too(tmp_path):
    with xclass_library.Learner("majority", 2, bits=4) as model:
        model.learn_many(DATA)
        model.save(str(tmp_path / "library"))
    learn("--majority", 2, "-b", 4, "-f", "command", stdin=DATA, cwd=tmp_path)
    assert (tmp_path / "library").read_bytes() == (tmp_path / "command").read_bytes()
    with xclass_library.load(str(tmp_path / "command")) as model:
        assert model.predict_many(["| x"] * 2).tolist() == [1, 1]
        with pytest.raises(UsageError, match="its predictions cannot be explained, because there is no module"):
            model.explain("| x")
