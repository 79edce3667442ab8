"""Parts of a learner, put together, are the learner that one process would have."""

from __future__ import annotations

import pytest
from library import summary_of
from spread import Spread, tasks_of
from streams import multiclass, of_kind
from variants import AT_THE_END, BY_NAME, VARIANTS, K, learner, name_of

from xclass.abilities.find import ability
from xclass.api import configuration, model_contents
from xclass.api.configuration import LearnerUse
from xclass.api.learner import Learner
from xclass.api.learner_core import LearnerCore

BITS = 12
SPREAD = ["oaa", "multilabel_oaa", "cpt", "softmax_tree"]
ONE_UNIT = [("oaa", {"layout": "vw", "loss_function": "squared", "label_range": "seen"})]
EVERY = pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, id=name_of(name, options))
        for name in SPREAD
        for options in [{}, *VARIANTS.get(name, [])]
        if (name, options) not in ONE_UNIT
    ],
)


def text(seed: int, n: int = 120, name: str = "oaa") -> str:
    return of_kind(BY_NAME[name].labels, seed, K, n, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1)


def shown(model: Learner, lines: str) -> list[float]:
    """Learn from lines; return the predictions, of lists the best label."""
    found: list[float] = []
    model.core.learned = lambda task: found.extend(task.prediction.tolist())
    model.learn_many(lines)
    return found


@pytest.mark.sampled(3)
@EVERY
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_model_has_the_bytes_of_one_process(name, options, count):
    with learner(name, bits=BITS, **options) as model:
        spread = Spread(name, K, {"bits": BITS, **options}, min(count, units(name, options)))
        for seed in (1, 2):
            lines = text(seed, name=name)
            assert spread.learn(lines) == shown(model, lines)
            model.end_pass()
            spread.end_pass()
        assert spread.model() == model_contents.to_bytes(model.core.contents())
        assert summary_of(spread.whole) == summary_of(model)


@pytest.mark.sampled(3)
@EVERY
def test_other_parts_go_on_with_the_same_bytes(name, options):
    with learner(name, bits=BITS, **options) as model:
        spread = Spread(name, K, {"bits": BITS, **options}, min(4, units(name, options)))
        for seed, count in ((1, 1), (2, min(3, units(name, options))), (3, 2)):
            model.learn_many(text(seed, name=name))
            spread.learn(text(seed, name=name))
            if name in AT_THE_END:
                model.end_pass()
                spread.end_pass()
            spread.redivide(min(count, units(name, options)))
        model.learn_many(text(4, name=name))
        spread.learn(text(4, name=name))
        model.end_pass()
        spread.end_pass()
        assert spread.model() == model_contents.to_bytes(model.core.contents())


def units(name: str, options: dict) -> int:
    with learner(name, bits=BITS, **options) as model:
        return ability(model.core.config.reduction, "spread").units(model.core.reduction)[0]


@pytest.mark.parametrize(("name", "options"), ONE_UNIT)
def test_options_may_allow_a_single_part_and_say_why(name, options):
    with learner(name, bits=BITS, **options) as model:
        count, reason = ability(model.core.config.reduction, "spread").units(model.core.reduction)
        assert count == 1 and reason


MANY = 400  # classes, more than an index or a tree has space for at first
LARGE = {  # each with few slots at first, so that tables are doubled
    "oaa": {"bits": 16},
    "cpt": {"bits": 12, "trees": 3, "rerank": True, "layout": "tagged", "max_doublings": 3, "index_bits": 8},
}


def learned(name: str, options: dict, passes: int, texts: list[str], holdout_period: int) -> LearnerCore:
    """Return what one process learns in several passes over the texts."""
    use = LearnerUse(passes=passes)
    model = LearnerCore(configuration.configured(name, MANY, options, use), use)
    for _ in range(passes):
        for text in texts:
            for task in tasks_of(model, text, holdout_period):
                model.learn_task(task)
        model.reduction.end_pass()
    return model


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("names", [False, True])
def test_many_classes_in_several_passes(name, count, names):
    texts = [multiclass(seed, MANY, 450, popular=2.0) for seed in (5, 6)]
    if names:
        texts = ["".join(f"c{line}\n" for line in text.splitlines()) for text in texts]
    options = {**LARGE[name], "learn_names": names}
    spread = Spread(name, MANY, options, count, LearnerUse(passes=3))
    for number in range(3):
        for text in texts:
            spread.learn(text, 10)
            if number == 1:
                spread.redivide(count)
        spread.end_pass()
    with learned(name, options, 3, texts, 10) as model:
        assert spread.model() == model_contents.to_bytes(model.contents())
        assert spread.whole.progress.average_loss == model.progress.average_loss
        if name == "cpt":
            words = [member.weights.words for member in spread.whole.reduction.members]
            assert any(len(table.word) > 16 << 8 for table in words)
