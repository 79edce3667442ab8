"""Change the valid requests that schemathesis makes, so that the model of `trials` accepts them.

OpenAPI cannot describe lines of VW text, and which labels are accepted depends on the model, and changes while it
learns. Labels become numbers of classes here, lines keep only features without values, and examples no dense columns,
which the model has none of. Requests that are not valid stay as they are.
"""

from __future__ import annotations

from typing import Any

import schemathesis

LABEL = 1


@schemathesis.hook
def before_call(context: Any, case: Any, **more: Any) -> None:
    """Change a request before it is sent."""
    if case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        case.body = accepted(case.body, learns=case.path.endswith("/learn"))


def accepted(body: dict[str, Any], learns: bool) -> dict[str, Any]:
    """Return a valid body with labels and lines that the model accepts."""
    changed = dict(body)
    if "lines" in body:
        label = f"{LABEL} " if learns else ""
        lines = [line.partition("|")[2].replace(":", "") for line in body["lines"]]
        changed["lines"] = [f"{label}|{features}" for features in lines]
    if "labels" in body:
        count = len(body["texts"] if "texts" in body else body["rows"])
        changed["labels"] = [LABEL] * count
        if "weights" in body:
            changed["weights"] = [1] * count
    if "examples" in body:
        changed["examples"] = [
            {**one, "features": without_lists(one["features"]), **({"label": LABEL} if "label" in one else {})}
            for one in body["examples"]
        ]
    return changed


def without_lists(features: dict[str, Any]) -> dict[str, Any]:
    """Return features without dense columns."""
    return {name: value for name, value in features.items() if not isinstance(value, list)}
