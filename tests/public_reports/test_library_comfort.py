"""The library shows what it does, explains in words, and speaks of what the program has given."""

import warnings

import numpy as np
import pytest
from command import xclass as command

import xclass

TEXTS = ["free money now", "meeting at ten", "dinner on sunday", "free offer today", "the meeting room", "sunday lunch"]
LABELS = ["spam", "work", "family", "spam", "work", "family"]
LINES = [f"{label} | {text}" for label, text in zip(LABELS, TEXTS, strict=True)]


# -- progress


def test_a_learner_shows_a_bar_or_lines_if_asked(tmp_path, capsys):
    """Newcomer 3: there was no `verbose`."""
    path = tmp_path / "train.vw"
    path.write_text("\n".join(LINES) + "\n")

    def learned(**verbose) -> str:
        with xclass.Learner("oaa", 3, bits=12) as model:
            model.learn_many(TEXTS, LABELS, **verbose)
            model.learn_file(path, passes=2, **verbose)
        out, err = capsys.readouterr()
        assert not out
        return err

    assert not learned()
    assert "learning: 100%" in (bar := learned(verbose=True)) and "6/6" in bar and "pass 2: 100%" in bar
    lines = [line.rpartition(" ")[0] for line in learned(verbose=2).splitlines()]
    assert lines == ["learning: 6 examples, loss", "pass 1: 6 examples, loss", "pass 2: 6 examples, loss"]


# -- explanations


def test_explanations_of_a_pipeline_have_the_words_of_its_vectoriser():
    """Newcomer 13: after Tfidf the features were `4738`."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    pipelines = pytest.importorskip("sklearn.pipeline")
    from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

    from xclass.sklearn import XClassifier, explain

    def names(*steps) -> list[str]:
        pipeline = pipelines.make_pipeline(*steps, XClassifier("oaa", passes=5, bits=12)).fit(TEXTS, LABELS)
        (explanation,) = explain(pipeline, TEXTS[:1])
        assert explanation.prediction == pipeline.predict(TEXTS[:1])[0]
        return sorted(share.name for share in explanation.classes[0].shares)

    words = ["Constant", "free", "money", "now"]
    assert names() == sorted([*words, "free^money", "money^now"])
    assert names(text.TfidfVectorizer()) == names(text.CountVectorizer(), MaxAbsScaler()) == words
    upper = FunctionTransformer(lambda texts: [one.upper() for one in texts])  # which names no features
    assert names(upper, text.CountVectorizer()) == words
    with pytest.warns(xclass.XclassWarning, match="^HashingVectorizer, the step before XClassifier, does not name"):
        assert len(names(text.HashingVectorizer())) == 4
    with pytest.raises(xclass.UsageError, match="is no Pipeline whose last step is an XClassifier"):
        explain(XClassifier(), TEXTS)


# -- messages


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"options": {"l2": 0.1}}, "options: l2 has no effect with reduction='multiclass', .* choose reduction='oaa'"),
        ({"options": "--l2 0.1", "reduction": "hsm"}, "options: l2 has no effect with reduction='hsm', "),
        ({"options": {"trees": 2}, "reduction": "oaa"}, "options: trees belongs to reduction='cpt', which was not"),
    ],
)
def test_an_estimator_speaks_of_its_parameters(parameters, message):
    """Newcomer, low: `XClassifier(options={"l2": ...})` spoke of cpt, which the program had not named."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    with pytest.raises(xclass.UsageError, match=message):
        XClassifier(**parameters).fit(TEXTS, LABELS)


# -- values and files


def test_values_that_round_to_the_largest_float32_are_read_everywhere():
    """Show that a dictionary takes the values that text and arrays take."""
    limit = 2.0**128 - 2.0**103
    largest = float(np.nextafter(limit, 0.0))
    with xclass.Learner("oaa", 2, bits=10) as model:
        for examples in ([{"0": largest}], np.array([[largest]]), [f"| 0:{largest!r}"]):
            assert len(model.predict_many(examples)) == 1
        for examples in ([{"0": limit}], np.array([[limit]]), [f"| 0:{limit!r}"]):
            with pytest.raises(xclass.DataError):
                model.predict_many(examples)


def test_a_file_of_examples_is_replaced_only_by_a_whole_one(tmp_path):
    """Show that `write_vw` keeps the older file if a label cannot be written."""
    path = tmp_path / "x.vw"
    xclass.write_vw(path, np.eye(2), ["a", "b"])
    with pytest.raises(xclass.DataError, match=r"y\[1\] is 'b|'"):
        xclass.write_vw(path, np.eye(2), ["c", "b|"])
    assert path.read_text() == "a | 0\nb | 1\n" and [*tmp_path.iterdir()] == [path]


# -- interactions


NAMESPACES = ["1 |user a b |item c", "2 |user d |item e", "3 | e"]
IDLE = "no example has features of namespaces that begin with 'a' and with 'b'; those of the data begin with a blank"


@pytest.mark.parametrize("threads", [1, 2])
def test_the_command_warns_of_interactions_that_cross_nothing(tmp_path, threads):
    """Newcomer, low: `-q ab` without such namespaces crossed nothing, without a word."""
    (tmp_path / "d.vw").write_text("\n".join(NAMESPACES) + "\n")

    def said(*words) -> list[str]:
        result = command("-d", "d.vw", "-b", "12", "--threads", threads, *words, cwd=tmp_path)
        assert result.status == 0
        return [line for line in result.err.splitlines() if "crosses nothing" in line]

    (line,) = said("-q", "ab", "-q", "ui", "--passes", "2", "--holdout_off", "-c")
    assert f"-q ab crosses nothing: {IDLE}" in line
    assert len(said("--oaa", "3", "-q", "ui", "--cubic", "uix", "-q", "aa", "--interactions", "iu")) == 2
    assert not said("--oaa", "3", "-q", "uu", "-q", "::", "--cubic", "iiu")
    assert not said("--recall_tree", "3", "-q", "u\\x88")
    assert not said("--oaa", "3", "-q", "ab", "--vw_exact")
    assert not said("--oaa", "3", "-q", "ab", "-t")  # too few examples


def test_arguments_that_name_no_namespace_of_the_data_are_warned_of():
    """A second tester: `--keep z` dropped everything, and `--ngram z2` and others did nothing, without a word."""

    def messages(**options) -> list[str]:
        with xclass.Learner("oaa", 3, bits=12, **options) as model, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.learn_many(NAMESPACES)
            return [message.split(": no example has")[0] for message in model.end_pass().warnings]

    assert messages(ngram=["z2", "u2", "2"], skips=["z1"]) == ["ngram z2 has no effect", "skips z1 has no effect"]
    assert messages(ignore=["z"], ignore_linear=["q"]) == ["ignore z has no effect", "ignore_linear q has no effect"]
    assert messages(keep=["z"]) == ["keep z keeps nothing"]
    (text,) = messages(ignore=["user", "iu"])
    assert text == "ignore user names namespaces by their first characters"


def test_a_learner_warns_once_of_interactions_that_cross_nothing(tmp_path):
    """Newcomer, low: the same in the library, after a pass or after 100 examples."""
    (tmp_path / "d.vw").write_text("\n".join(NAMESPACES) + "\n")

    def messages(call) -> list[str]:
        with xclass.Learner("oaa", 3, bits=12, quadratic=["ab"]) as model, warnings.catch_warnings(record=True) as all_:
            warnings.simplefilter("always")
            call(model)
            return [str(one.message) for one in all_]

    assert not messages(lambda model: model.learn_many(NAMESPACES))
    calls = (
        lambda model: [model.learn_many(NAMESPACES), model.end_pass(), model.end_pass()],
        lambda model: model.learn_file(tmp_path / "d.vw", passes=2),
        lambda model: [model.learn(line) for line in NAMESPACES * 40],
        lambda model: [model.predict_many(NAMESPACES * 40) for _ in range(2)],
    )
    for call in calls:
        (message,) = messages(call)
        assert message.startswith(f"quadratic ab crosses nothing: {IDLE}")
