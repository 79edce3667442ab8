"""Give explanations the labels that the program of an estimator uses."""

from __future__ import annotations

from dataclasses import replace

from ..explain.records import ExplainedClass, Explanation
from .class_labels import ClassLabels


def with_labels(explanation: Explanation, labels: ClassLabels) -> Explanation:
    """Return an explanation with the labels of an estimator."""

    def of_class(explained: ExplainedClass) -> ExplainedClass:
        return replace(explained, label=labels.value_of(explained.label))

    return replace(
        explanation,
        prediction=labels.value_of(explanation.prediction),
        label=labels.value_of(explanation.label),
        classes=tuple(map(of_class, explanation.classes)),
        others=tuple(map(of_class, explanation.others)),
    )
