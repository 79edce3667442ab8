"""Check the names of features in explanations, for every kind of examples that a program can pass."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xclass
from xclass.errors import UsageError

TRAIN = ["sport | ball goal team", "cooking | oven flour salt", "music | guitar song band"] * 5


def names_of(explained) -> set[str]:
    return {share.name for share in explained.classes[0].shares}


@pytest.fixture(scope="module")
def model():
    with xclass.Learner("oaa", 3, bits=12, learn_names=True, text_split="spaces") as learner:
        learner.learn_many(TRAIN)
        yield learner


def test_all_kinds_of_texts_and_dictionaries_have_the_same_explanation(model):
    expected = model.explain("| ball song")
    assert names_of(expected) == {"ball", "song", "Constant"}
    for same in (
        model.explain("ball song"),
        model.explain({"ball": 1, "song": 1, "unused": 0, "missing": None}),
        *model.explain_many(["| ball song"]),
        *model.explain_many("| ball song\n"),
        *model.explain_many(["ball song"]),
        *model.explain_many(xclass.Documents(["ball song"])),
        *model.explain_many([{"ball": 1, "song": 1}]),
        *model.explain_many(iter(["ball song"])),
    ):
        assert same == expected


def test_the_prediction_is_that_of_predict(model):
    texts = ["ball song", "salt", "guitar oven"]
    assert [e.prediction for e in model.explain_many(texts)] == model.predict_many(texts).tolist()
    assert model.explain("salt", label="sport").label == "sport"
    assert [e.label for e in model.explain_many(texts, y=["music", "sport", None])] == ["music", "sport", None]


def test_features_of_namespaces_text_values_and_interactions_are_named():
    with xclass.Learner("oaa", 2, bits=14, quadratic=["ab"], ngram=["a2"]) as model:
        model.learn_many(["1 |a x y |b z", "2 |a u v |b colour:red"] * 5)
        found = names_of(model.explain("|a x y |b z"))
        assert found == {"a^x", "a^y", "a^x^y", "b^z", "a^x*b^z", "a^y*b^z", "a^x^y*b^z", "Constant"}
        assert names_of(model.explain({"a": {"x": 1, "y": 1}, "b": {"z": 1}})) == found
        assert "b^colour^red" in names_of(model.explain({"b": {"colour": "red"}}))


def test_wildcard_interactions_are_named_as_those_that_were_learned():
    with xclass.Learner("oaa", 2, bits=14, interactions=["::"]) as model:
        model.learn_many(["1 |a x |b z", "2 |a u |c w"] * 5)
        assert "a^x*b^z" in names_of(model.explain("|a x |b z"))


def test_columns_are_named_by_their_numbers_or_names():
    pd = pytest.importorskip("pandas")
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    with xclass.Learner("oaa", 2, bits=12) as model:
        model.learn_many(X, [1, 2])
        for given in (X, csr_matrix(X), csr_matrix(X).tocsc()):
            assert [names_of(e) for e in model.explain_many(given)] == [{"0", "2", "Constant"}, {"1", "Constant"}]
    frame = pd.DataFrame({"size": [1.0, 0.0], "about": ["red ball", None]})
    with xclass.Learner("oaa", 2, bits=12) as model:
        model.learn_many(frame, [1, 2])
        (first, second) = map(names_of, model.explain_many(frame))
        assert first == {"size", "about^red", "about^ball", "about^red^ball", "Constant"}
        assert second == {"Constant"}


def test_a_feature_without_a_name_has_its_index(tmp_path):
    (tmp_path / "data").write_text("1 1:0.5 7:2\n2 3:1\n")
    with xclass.Learner("oaa", 2, bits=12) as model:
        model.learn_file(tmp_path / "data", format="libsvm")
        (batch,) = xclass.read_vw(str(write(tmp_path / "vw", "1 | ball:0.5\n")))
        model.learn_many(batch)
        (explained,) = model.explain_many(batch._replace(text=np.zeros(0, np.uint8)))
        known = [name for name in names_of(explained) if name != "Constant"]
        assert known
        assert all(name.isdecimal() for name in known)


def write(path, text):
    path.write_text(text)
    return path


def test_a_feature_that_occurs_twice_has_one_share(model):
    once, twice = model.explain("| ball"), model.explain("| ball ball")
    assert names_of(twice) == names_of(once)


def test_the_largest_shares_are_kept_and_the_others_summed(model):
    explained = model.explain("| ball song team goal", k=3).limited(2, 1)
    for of_class, whole in zip(explained.classes, model.explain("| ball song team goal", k=3).classes, strict=True):
        assert of_class.shares[:2] == whole.shares[:2]
        others, rest = of_class.shares[2:-1], of_class.shares[-1]
        assert (rest.name, rest.others) == ("(rest: 2 features)", 2)
        assert others == tuple(share for share in whole.shares if share.feature < 0)
        assert sum(s.share for s in of_class.shares) == pytest.approx(of_class.score, abs=1e-6)


def test_wrong_arguments_are_refused(model):
    with pytest.raises(UsageError, match="k: 0 is not a whole number"):
        model.explain("| ball", k=0)
    with pytest.raises(UsageError, match="not a single example"):
        model.explain(["| ball"])
    assert model.explain("| ball", label="unheard of").label is None
