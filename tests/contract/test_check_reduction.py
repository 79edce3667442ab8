"""What `check_reduction` says about a reduction that somebody writes: each outcome names what to mend."""

import re
from dataclasses import replace

import numpy as np
import pytest

from xclass import UsageError, check_reduction, checks
from xclass.options.declare import OptionGroup, option
from xclass.reductions import registry
from xclass.reductions.core import base

RECORD = next(record for record in registry.REDUCTIONS if record.name == "random_tree")


@pytest.mark.parametrize("given", [None, 3, RECORD.build, RECORD.options, [RECORD], "reduction.py", base])
def test_what_is_no_reduction_is_refused(given):
    with pytest.raises(UsageError, match=r"is not a reduction; give one of scalar, .*, or the record of one, a `Red"):
        check_reduction(given)


class Own(OptionGroup):
    own: int = option("number of classes", minimum=1, stored=True)


class Clash(Own):
    bits: str = option("another option of the name")


class Empty(OptionGroup):
    pass


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": None}, "the record's 'name' is None; give lower-case letters"),
        ({"name": "my tree"}, "the record's 'name' is 'my tree'; give lower-case letters"),
        ({"name": "bits"}, "the record's 'name' is 'bits', which is an option of every reduction"),
        ({"name": "learner"}, "the record's 'name' is 'learner', which is an option of every reduction"),
        ({"options": None}, "the record's 'options' is None; give a subclass of OptionGroup"),
        ({"options": int}, "the record's 'options' is <class 'int'>; give a subclass of OptionGroup"),
        ({"name": "own", "options": Empty}, "no 'own', the number of classes; declare `own: int = option"),
        ({"name": "own", "options": Clash}, "the option 'bits' is one of the group 'learner', too"),
        ({"labels": "classes"}, "the record's 'labels' is 'classes'; give one of multiclass, multilabel, simple"),
        ({"build": None}, "the record's 'build' is None; give a function"),
        ({"label_range": (1, 9)}, r"the record's 'label_range' is \(1, 9\); give a function"),
        ({"build": lambda spec: None}, "the record's 'build' returns None; return a Learner"),
        ({"build": lambda spec: object()}, "the record's 'build' returns <object .*>; return a Learner"),
    ],
)
def test_a_record_that_builds_no_learner_is_one_problem(fields, said):
    (problem,) = check_reduction(replace(RECORD, **fields))
    assert re.search(said, problem.message), problem.message


class Changed(RECORD.build):
    """A learner, the stages of which end with `after`."""

    def __init__(self, spec):
        super().__init__(spec)
        self.stages = [*self.stages, self.after]

    def after(self, task):
        pass


class Unlearned(Changed):
    def after(self, task):
        task.prediction = None


class Short(Changed):
    def after(self, task):
        task.prediction = task.prediction[:3]


class Single(Changed):
    def after(self, task):
        task.loss = task.loss.astype(np.float32)


class Failing(Changed):
    def after(self, task):
        raise KeyError("leaf")


class Refusing(Changed):
    def after(self, task):
        assert task.batch.n == -1


class Stageless(Changed):
    def __init__(self, spec):
        super().__init__(spec)
        self.stages = None


class Objects(Changed):
    def serialize(self, archive):
        super().serialize(archive)
        archive.arrays["names"] = ["a", "b"]


class Facts(Changed):
    def serialize(self, archive):
        super().serialize(archive)
        archive.facts["weight"] = np.float32(3)


class Unrestored(Changed):
    def restore(self, arrays, facts, live=None):
        raise IndexError("no node 3")


class Abstract(base.Reduction):
    def __init__(self, spec):
        pass


HERE = rf"\(.*{re.escape(__file__)}:\d+\)"


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (Unlearned, r"after the stages, `task.prediction` is None; set it to float64\[40\]"),
        (Short, r"after the stages, `task.prediction` is float64\[3\]; set it to float64\[40\]"),
        (Single, r"after the stages, `task.loss` is float32\[40\]; set it to float64\[40\]"),
        (Failing, f"KeyError: 'leaf', raised in after {HERE}"),
        (Refusing, f"AssertionError: .*, raised in after {HERE}"),
        (Stageless, "the learner sets no list `stages`"),
        (Objects, "`serialize` saves .* with the name 'names'; give arrays of numbers"),
        (Facts, "`serialize` saves facts that JSON cannot hold: Object of type float32"),
        (Abstract, "abstract method .*serialize"),
    ],
)
def test_a_learner_that_cannot_be_used_is_one_problem(build, said):
    (problem,) = check_reduction(replace(RECORD, build=build))
    assert re.search(said, problem.message, re.DOTALL), problem.message


def test_a_learner_that_fails_when_a_model_is_loaded_is_named_where_that_happens():
    problems = {problem.check: problem.message for problem in check_reduction(replace(RECORD, build=Unrestored))}
    assert problems.pop("is_described").startswith("the docstring of test_check_reduction has no line Source")
    assert "a_model_predicts_like_its_learner" in problems
    assert all(re.search(f"IndexError: no node 3, raised in restore {HERE}", said) for said in problems.values())


def test_a_module_that_is_missing_is_named():
    with pytest.raises(AssertionError, match=r"^there is no module xclass.abilities.describe.own; write it$"):
        checks.is_described(checks.Case(replace(RECORD, name="own")))
    # whose module of `describe` there is
    with pytest.raises(
        AssertionError, match=r"abilities.merge.ect; write it, or say in `not_merged` of the record why"
    ):
        checks.is_described(checks.Case(replace(RECORD, name="ect", not_merged="")))
