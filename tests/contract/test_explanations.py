"""What the explanation of every member of REDUCTIONS has to keep, new ones included.

The scores come from the kernels that decide, the shares from plain code beside them, so that the sum is a test of both.
"""

import functools
import itertools
import math
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import state_of
from servers import result
from streams import COLOURS, multiclass, of_kind, real
from variants import BY_NAME, KINDS, VARIANTS, K, learner, name_of

from xclass import checks
from xclass.api.learner import Learner
from xclass.errors import XclassWarning
from xclass.explain.records import Explanation, Share
from xclass.serving import json_examples

MORE: dict[str, list[dict]] = {  # beside VARIANTS
    "scalar": [{"binary": True}, {"l1": 0.001, "l2": 0.001}, {"min_prediction": -0.3, "max_prediction": 0.3}],
    "oaa": [{"l1": 0.001, "l2": 0.001}, {"loss_function": "logistic", "link": "logistic"}, {"ngram": ["w2"]}],
    "recall_tree": [{"max_candidates": 3, "quadratic": [r"w\x88"]}],
    "cpt": [{"trees": 2, "rerank": True, "index_slots": 8}, {"beam": 1}, {"exact": True}],
}
OPTIONS = [
    pytest.param(name, options, id=name_of(name, options))
    for name in BY_NAME
    for options in [{}, *VARIANTS.get(name, []), *MORE.get(name, [])]
]
OPTIONS.append(pytest.param("multiclass", {}, id="multiclass"))
PROBABLE = [*(name for name, record in BY_NAME.items() if record.probabilities), "multiclass"]

words = st.lists(st.builds("p{}_{}".format, st.integers(0, 2), st.integers(0, K + 3)), max_size=6)
lines = st.builds(
    "{} |w {} |n size:{:.3f} {}".format,
    st.sampled_from(["", *map(str, range(1, K + 1))]), words.map(" ".join), st.floats(-3, 3), st.sampled_from(COLOURS),
)  # fmt: skip


@functools.cache
def trained(name: str, number: int) -> Learner:
    """Return a learner with the options of a number in OPTIONS that has learned."""
    name, options = OPTIONS[number].values
    text = of_kind(KINDS[name] if name in BY_NAME else "multiclass", 1, K, 300)
    model = learner(name, **options)
    model.learn_many(text)
    model.end_pass()
    return model


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(len(OPTIONS)), ids=[param.id for param in OPTIONS])
def test_shares_sum_to_the_scores_that_decide(number):
    name, options = OPTIONS[number].values
    model = trained(name, number)
    before = state_of(model)

    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(lines)
    def agrees(line):
        lists = name in BY_NAME and BY_NAME[name].labels == "multilabel"
        label = int(line.split("|")[0].strip() or 0)
        if name == "scalar" or (lists and label == K):
            line, label = line[line.index("|") :], 0
        explained = model.explain(line, k=3)
        prediction = model.predict(line, k=3)[0][0] if lists else model.predict(line)
        assert explained.prediction == pytest.approx(prediction, rel=1e-5, abs=1e-6)
        checks.assert_sums(explained)
        listed = [of_class.label for of_class in explained.classes]
        if name in PROBABLE:
            assert label in (0, *listed)
            if "beam" in options:  # the classes that a limited search finds depend on their number
                return
            top = model.predict(line, k=3)
            assert listed[: len(top)] == [label for label, _ in top]
            probabilities = [of_class.probability for of_class in explained.classes[: len(top)]]
            assert probabilities == pytest.approx([p for _, p in top], rel=1e-4, abs=1e-6)
        elif explained.classes[0].score is None:  # the class where a path ends
            assert len(listed) == 1
            assert explained.classes[0].path
        else:
            assert listed[0] == prediction or name == "scalar"
            assert name not in ("ect", "log_multi", "random_tree")

    agrees()
    assert state_of(model) == before


FIRST = {param.values[0]: number for number, param in reversed([*enumerate(OPTIONS)])}  # of each reduction


@pytest.mark.parametrize("name", FIRST)
def test_the_explanation_of_a_long_line_is_divided(name):
    """Between two steps, a server answers others; the answer is that of the library with its largest shares."""
    model = trained(name, FIRST[name])
    line = multiclass(5, K, 1).strip().partition("|")[2]
    line = f"|{line} |w " + " ".join(f"p{i % 3}_{i}" for i in range(10_000))
    for _ in range(2):  # the second time, everything is compiled
        seconds = []
        steps = json_examples.explain(model, json_examples.GivenExamples([line], k=3, shares=3))
        answer = result(steps, lambda took=seconds: took.append(time.process_time()))
    assert max(np.diff(seconds)) < 0.05
    expected = model.explain(line, k=3).limited(3, 3).as_dict()
    for found, wanted in itertools.zip_longest(leaves(answer["explanations"]), leaves([expected])):
        assert found == (pytest.approx(wanted, rel=1e-9, abs=1e-12) if isinstance(wanted, float) else wanted)


def leaves(value):
    """The keys and values of nested lists and dictionaries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


@pytest.mark.parametrize("arity", [2, 4])
def test_the_probabilities_of_turns_multiply_to_that_of_the_class(arity):
    model = trained("cpt", next(n for n, p in enumerate(OPTIONS) if p.values == ("cpt", chosen_arity(arity))))
    for line in multiclass(2, K, 20).splitlines():
        for of_class in model.explain(line, k=3).classes:
            turns = [turn.probability for turn in of_class.path if turn.probability is not None]
            assert math.prod(turns) == pytest.approx(of_class.probability, rel=1e-6)


def chosen_arity(arity: int) -> dict:
    """Return the options of a single tree whose nodes have some branches."""
    return {} if arity == 2 else {"cpt_arity": arity}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("scalar", {}), ("oaa", {}), ("oaa", {"layout": "vw"}), ("recall_tree", {}), ("recall_tree", {"layout": "vw"}),
        ("cpt", {"normalize_features": "none"}), ("cpt", {"normalize_features": "none", "sgd": True}),
        ("cpt", {"normalize_features": "none", "cpt_arity": 4}), ("softmax_tree", {"normalize_features": "none"}),
    ],
)  # fmt: skip
def test_a_share_is_what_the_score_loses_without_the_feature(name, options):
    """Scores are linear if examples are not scaled."""
    text = real(1, 150, signs=True) if name == "scalar" else multiclass(1, K, 300)
    compared = 0
    with learner(name, **options) as model:
        model.learn_many(text.replace("|w", "|").replace("|a", "|"))
        model.end_pass()
        for line in text.splitlines()[:10]:
            features = {*line.split("|")[1].split()[1:]}
            whole = scores_of(model.explain(f"| {' '.join(features)}", k=K))
            for word in features:
                rest = scores_of(model.explain(f"| {' '.join(features - {word})}", k=K))
                for key in whole.keys() & rest.keys():
                    score, shares = whole[key]
                    (share,) = [share.share for share in shares if share.name == word] or [0.0]
                    assert score - rest[key][0] == pytest.approx(share, abs=2e-5)
                    compared += share != 0
    assert compared > 20


def scores_of(explained: Explanation) -> dict[tuple[str, object], tuple[float, tuple[Share, ...]]]:
    """Return the scores that are sums over features, by class or node, with their shares."""
    found: dict = {}
    for of_class in explained.classes:
        if of_class.score is not None and not of_class.by_path:
            label = None if isinstance(of_class.label, float) else of_class.label
            found["class", label, tuple(turn.node for turn in of_class.path)] = of_class.score, of_class.shares
        found.update({("node", t.node): (t.score, t.shares) for t in of_class.path if t.score is not None})
    is_limited = {key for key, (_, shares) in found.items() if any(s.name.startswith("limit of") for s in shares)}
    return {key: value for key, value in found.items() if key not in is_limited}


def test_the_label_is_explained_although_it_is_not_among_the_first():
    model = trained("oaa", next(n for n, p in enumerate(OPTIONS) if p.values == ("oaa", {})))
    explained = model.explain("|w p0_1 p1_2", k=1, label=7)
    assert [of_class.label for of_class in explained.classes] in ([7], [explained.prediction, 7])
    assert (explained.label, len(explained.others)) == (7, K - len(explained.classes))
    checks.assert_sums(explained)


def test_a_learner_without_classes_explains_nothing():
    for name in ("multiclass", "cpt", "softmax_tree", "recall_tree"):
        with learner(name) as model:
            explained = model.explain("| word")
            assert (explained.prediction, explained.considered, explained.classes) in (
                (None, 0, ()), (explained.prediction, 1, explained.classes),
            )  # fmt: skip


def test_an_example_whose_features_do_not_count_is_noted():
    with learner("multiclass") as model:
        model.learn_many(multiclass(1, K, 300))
        with pytest.warns(XclassWarning, match="^no feature adds to the scores of the classes explained; check that"):
            explanation = model.explain("|unseen p1_1 p1_2")
        assert not explanation.uses_features and explanation.classes
        with pytest.warns(XclassWarning, match="^no feature adds .* in 1 of 2 examples; check"):
            model.explain_many(["|w p1_1", "| unheard_of"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model.explain("|w p1_1").uses_features
