"""What --multilabel says about its predictions, and its model as text, agree with each other and with the rule."""

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
    learn("-d", "data", "--multilabel", "-f", "m", cwd=path)
    return path


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
