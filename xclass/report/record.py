"""Write the contents of a report as a JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..run.results import by_class, summary
from .contents import Contents, Errors, FailingClass

SCHEMA = "xclass report 1"


def written(contents: Contents) -> bytes:
    """Return the report as the bytes of a JSON object; numbers that are not known are `null`."""
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "model": contents.request.model,
        "data": list(contents.request.data),
        "reduction": contents.reduction,
        "learned": contents.learned,
        "classes": contents.classes,
        "model_bytes": contents.model_bytes,
        "training_error": contents.training_error,
        "test": None if contents.errors is None else _test(contents, contents.errors),
    }
    if contents.measures is not None:
        header, *rows = by_class.label_rows(contents.measures, contents.name)
        shown = rows[: contents.request.top]
        result["test"] = {
            "measures": contents.measures.figures(),
            "labels_by_errors": [
                {
                    header[0]: row[0],
                    **{name: float(text) if text else None for name, text in zip(header[1:], row[1:], strict=True)},
                }
                for row in shown
            ],
        }
    return (json.dumps(summary.finite(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def _test(contents: Contents, errors: Errors) -> dict[str, Any]:
    name, total = contents.name, sum(cause.errors for cause in errors.causes)
    return {
        "examples": errors.examples,
        "weight": errors.weight,
        "classes": errors.classes,
        "error": errors.error,
        "list_error": errors.list_error,
        "log_loss": errors.log_loss,
        "calibration_error": None if errors.calibration is None else errors.calibration.error,
        "causes": [
            {
                "cause": remedy.cause.name, "errors": remedy.cause.errors, "of": total, "text": remedy.cause.meaning,
                "advice": remedy.text,
            }
            for remedy in contents.remedies
            if remedy.cause is not None
        ],
        "advice": [remedy.text for remedy in contents.remedies if remedy.cause is None],
        "classes_by_errors": [_class(one, name) for one in errors.by_errors],
        "classes_by_rate": [_class(one, name) for one in errors.by_rate],
        "pairs": [
            {
                "class": name(pair.label), "answer": name(pair.answer), "count": pair.often,
                "examples": pair.examples, "reverse": pair.reverse,
            }
            for pair in errors.pairs
        ],
        "counted_in": errors.source,
        "bins": [one._asdict() for one in errors.bins],
    }  # fmt: skip


def _class(one: FailingClass, name: Callable[[int], str]) -> dict[str, Any]:
    facts = one.facts
    return {
        "class": name(facts.label),
        "errors": facts.errors,
        "examples": facts.examples,
        "answers": facts.answers,
        "right_answers": facts.right,
        "training_examples": facts.trained,
        "taken_for": [
            {"answer": name(answer), "count": count, "reverse": reverse} for answer, count, reverse in facts.confused
        ],
        "reasons": [
            {
                "key": finding.key, "errors": finding.errors, "of": facts.errors, "text": finding.reason,
                "advice": finding.advice,
            }
            for finding in one.findings
        ],
    }  # fmt: skip
