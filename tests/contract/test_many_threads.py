"""Any number of threads may use one learner: predictions are those of one thread, and learning is serialised."""

import contextlib
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from streams import of_kind
from variants import BY_NAME, KINDS, VARIANTS, K, learner, name_of

from xclass.errors import UsageError

THREADS = 8
EVERY_VARIANT = pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, id=name_of(name, options))
        for name in BY_NAME
        for options in [{}, *VARIANTS.get(name, [])[-1:]]
    ],
)


def lines_of(name: str, seed: int, n: int) -> list[str]:
    return of_kind(KINDS[name], seed, K, n).splitlines()


def together(*calls) -> list:
    """The results of calls that are made at the same time, each twice in turn on its thread."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(60) for future in [pool.submit(lambda call=call: (call(), call())[1]) for call in calls]]


def plain(result):
    """A result with lists in the place of arrays, which can be compared."""
    if isinstance(result, tuple):
        return [plain(part) for part in result]
    return result.tolist() if isinstance(result, np.ndarray) else result


@pytest.mark.bounds
@EVERY_VARIANT
def test_threads_predict_with_one_learner(name, options):
    record, lines = BY_NAME[name], lines_of(name, 1, 80)
    blank = [line[line.index("|") :] for line in lines]
    with learner(name, **options) as model:
        model.learn_many(lines)
        model.end_pass()
        calls = [
            lambda: model.predict_many(blank),
            lambda: [model.predict(line) for line in blank[:12]],
            lambda: model.explain_many(blank[:3]),
        ]
        if record.probabilities:
            calls += [lambda: model.predict_many(blank, k=3), lambda: model.probabilities(blank)]
        if record.class_scores:
            calls += [lambda: model.scores(blank)]
        expected = [plain(call()) for call in calls]
        calls = (calls * THREADS)[:THREADS]
        found = together(*calls)
    for i, result in enumerate(found):
        assert plain(result) == expected[i % len(expected)]


@pytest.mark.bounds
@pytest.mark.parametrize("name", list(BY_NAME))
def test_learning_by_threads_is_serialised(name):
    """Nothing is lost, models that are saved meanwhile are whole, and predictions go on."""
    lines = lines_of(name, 2, 60)
    with learner(name) as model:
        model.learn_many(lines)
        model.end_pass()
        calls = [lambda: model.learn_many(lines), lambda: [model.learn(line) for line in lines[:10]]] * 2
        calls += [lambda: model.predict_many(lines)] * 3 + [lambda: saved(model)]
        together(*calls)
        assert model.examples == 60 + 2 * 2 * (60 + 10)
        model.end_pass()
        with pickle.loads(pickle.dumps(model)) as again:
            assert again.predict_many(lines).tolist() == model.predict_many(lines).tolist()


def saved(model) -> None:
    """Save a model and load it, which checks it, unless it holds examples that are not learned."""
    with contextlib.suppress(UsageError), pickle.loads(pickle.dumps(model)) as again:
        assert again.examples <= model.examples
