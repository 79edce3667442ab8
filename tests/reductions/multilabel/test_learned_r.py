"""The regularisation of AROW that is learned: where labels follow from features, where they do not, merged, resumed."""

import random

import pytest

from xclass import Learner, load, merge

KINDS = ("multilabel", "plt")


def stream(noise: float, n: int = 400, seed: int = 1) -> str:
    """Return examples of eight labels, each with a word of its own, of which a share is another label's."""
    rng = random.Random(seed)
    labels = [rng.randrange(8) for _ in range(n)]
    words = [rng.randrange(8) if rng.random() < noise else y for y in labels]
    return "".join(f"{y},{y + 8} | w{w} x{rng.randrange(4)}\n" for y, w in zip(labels, words, strict=True))


def log_r(model: Learner) -> float:
    return float(model.core.contents().arrays["regularisation"][0])


@pytest.mark.parametrize("kind", KINDS)
def test_r_grows_with_noise(kind):
    logs = []
    for noise in (0.0, 0.8):
        with Learner(kind, bits=14) as model:
            model.learn_many(stream(noise))
            logs.append(log_r(model))
    assert logs[0] <= 0 < logs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_merged_models_average_r(kind, tmp_path):
    logs = []
    with Learner(kind, bits=14) as base:
        base.learn_many(stream(0.5, 100))
        base.save(tmp_path / "base")
    for name, noise in (("a", 0.0), ("b", 0.9)):
        with load(tmp_path / "base") as model:
            model.learn_many(stream(noise, 200, seed=2))
            model.save(tmp_path / name)
            logs.append(log_r(model))
    with merge([tmp_path / "a", tmp_path / "b"], base=tmp_path / "base") as merged:
        assert logs[0] < log_r(merged) < logs[1]
