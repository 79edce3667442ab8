"""`Learner()` learns lists of labels as `Learner("multilabel")` does, and other labels as `Learner("multiclass")`."""

import numpy as np
import pytest

from xclass import Learner, read_vw
from xclass.api import configuration
from xclass.errors import DataError, UsageError

X = ["a b", "b", "a c", "c"]
NUMBERS, NAMES = [[1, 5], [], [5], [2]], [["tea", "milk"], [], ["tea"], ["cup"]]
MATRIX = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]])


def chosen(model):
    return configuration.chosen_name(model.core.config), model.core.names.class_list is not None


@pytest.mark.parametrize(
    ("y", "named"),
    [
        (NUMBERS, False),
        (NAMES, True),
        (MATRIX, False),
        ([[], [7], [1], []], False),
        ([set(), {"x"}, {"y"}, {"x"}], True),
    ],
)  # fmt: skip
def test_lists_beside_examples_are_learned(tmp_path, y, named):
    options = {"learn_names": True} if named else {}
    with Learner(bits=12) as model, Learner("multilabel", bits=12, **options) as other:
        model.learn_many(X, y)
        other.learn_many(X, y)
        assert chosen(model) == ("multilabel", named)
        model.save(tmp_path / "a")
        other.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(("lines", "named"), [(["1 | a", "1,5 | b"], False), (["tea | a", "tea,cup | b"], True)])
def test_lists_in_vw_text_are_learned(tmp_path, lines, named):
    (tmp_path / "d").write_text("".join(line + "\n" for line in lines))
    for learn in (
        lambda model: model.learn_many(lines), lambda model: model.learn_file(tmp_path / "d"),
        lambda model: model.learn(lines[1]),
    ):  # fmt: skip
        with Learner(bits=12) as model:
            learn(model)
            assert chosen(model) == ("multilabel", named)
    (batch,) = read_vw(tmp_path / "d", labels="lists") if not named else (None,)
    if batch is not None:
        with Learner(bits=12) as model:
            model.learn_many(batch)
            assert chosen(model) == ("multilabel", False)


@pytest.mark.parametrize("y", [[1, 2, 1, 3], np.array([[1], [2], [1], [3]]), ["x", "y", "x", "z"]])
def test_other_labels_are_classes(y):
    with Learner(bits=12) as model:
        model.learn_many(X, y)
        assert chosen(model)[0] == "multiclass"


def test_a_reduction_that_is_named_or_has_learned_stays():
    with Learner("multiclass", bits=12) as model, pytest.raises(DataError, match="use multilabel, Learner"):
        model.learn_many(X, NUMBERS)
    with Learner(bits=12) as model:
        model.learn("1 | a")
        with pytest.raises(DataError, match="use multilabel, Learner"):
            model.learn("1,2 | a")
    with Learner(bits=12, trees=2) as model:
        with pytest.raises(UsageError, match="trees belongs to"):
            model.learn_many(X, NUMBERS)
        model.learn_many(X, [1, 2, 1, 3])  # nothing has changed
        assert model.examples == 4
