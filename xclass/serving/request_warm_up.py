"""Load the kernels of all kinds of requests before the first one comes, or compile those that are not stored.

A small new learner with the options of the one that is served answers a request of each kind. Whatever code a request
passes, its kernels are loaded then, and the learner that is served stays as it is.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..api.inputs import Documents
from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..errors import XclassError
from ..reductions.core.spec import LearnerUse
from ..run import warm_up
from . import examples
from .examples import ExampleRequest
from .lines import LineHandler

BITS, CLASSES, COLUMNS, ROUNDS = 12, 16, 4, 3  # of the small learner
FEATURES: dict[str, Any] = {"a": 1, "b": "red", "n": {"c": 0.5}}


def load_request_kernels(handler: LineHandler) -> None:
    """Load or compile the kernels that the learner of an handler needs."""
    core = handler.learner.core
    for load in warm_up.parts(core.reduction, handler.learns, True).values():
        load()
    if core.config.reduction.learns_at_end or core.preview_size is not None:
        return  # a new one would need to see more examples
    with contextlib.suppress(Exception):  # the first requests load what is missing
        for rows in (False, True) if core.schema.width else (False,):
            with _small(core) as learner:
                _ask(learner, handler.learns, rows)


def _small(core: LearnerCore) -> Learner:
    """Return a new learner with the options of another one."""
    config, named = core.config, core.classes is not None
    changed: dict[str, Any] = {"bits": min(config.learner.bits, BITS), "named_labels": None, "learn_names": named}
    classes = config.values().get(config.reduction.name)
    if type(classes) is int:
        changed[config.reduction.name] = min(classes, CLASSES)
    return Learner.of(LearnerCore(config.with_values(changed, LearnerUse())))


def _ask(learner: Learner, learns: bool, rows: bool) -> None:
    """Let a new learner learn, and answer each kind of request."""
    core = learner.core
    kind, named = core.config.reduction.labels, core.classes is not None
    words = ("tea", "beer") if named else ("1", "2")
    labels: list[Any] = [word if named else int(word) for word in words]
    labels = [[label] for label in labels] if kind == "multilabel" else labels
    given: list[Any] = [FEATURES] * 2
    if rows:
        width = core.config.parser.dense_namespace()[1] or COLUMNS
        given = np.eye(2, width, dtype=np.float32)  # type: ignore[assignment]
    unlabelled = ["|n:2 a:1 b=red c:1e3 d:word e"] * 2  # with what few lines have
    lines = [f"{word} 't {line}" for word, line in zip(words, unlabelled, strict=True)]
    for _ in range(ROUNDS):
        _learn(learner, ExampleRequest(given, labels, [1.0, 1.0]))
    if learns and not rows:
        _learn(learner, ExampleRequest(lines))
        _learn(learner, ExampleRequest(Documents(["a red cup"] * 2), labels))
    k = 2 if core.config.reduction.probabilities else None
    asked: list[Any] = [given] if rows else [given, unlabelled, Documents(["a red cup"] * 2), ["| not_learned"]]
    for one in asked:
        for count in {None, k}:
            examples.predict(learner, [ExampleRequest(one, k=count), ExampleRequest(one[:1], k=count)])
        with contextlib.suppress(XclassError):  # it does not explain
            for _ in examples.explain(learner, ExampleRequest(one, k=k)):
                pass
    if not rows:
        LineHandler(learner, learns).handle("".join(f"{line}\n" for line in lines).encode(), learns)


def _learn(learner: Learner, given: ExampleRequest) -> None:
    for _ in examples.learn(learner, given, lambda: len(given.examples)):
        pass
