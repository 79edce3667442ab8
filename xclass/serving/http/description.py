"""Describe the HTTP interface for programs, as OpenAPI 3.1; the requests are those that `validation` allows."""

from __future__ import annotations

import json
from typing import Any

from ... import __version__
from . import validation
from .metrics import COUNT, FACTS, NULLABLE, TEXT, YES_OR_NO

Schema = dict[str, Any]
ERRORS = {
    400: "The request is malformed, has no Host or a query string, or the model refuses an example.",
    401: "The token is missing or wrong.",
    403: "Host or Origin is not the server's, or learning is not allowed at this address.",
    404: "There is no such model.",
    408: "The client sends no more, so what takes long is given up.",
    413: "The body, or the answer, is too long.",
    415: "The body is not declared as application/json, or is compressed otherwise than by gzip or deflate.",
    500: "The model cannot be saved, or the server has a defect.",
    503: "Too many requests wait, or the server has failed.",
}
SUMMARIES = {
    "predict": "Predict examples",
    "learn": "Predict examples, then learn from them, in order",
    "explain": "Explain the predictions of examples by the shares of their features",
    "save": "Save the model",
}


def text() -> bytes:
    """Return the description as JSON."""
    return json.dumps(described(), indent=1).encode()


def described() -> Schema:
    """Return the description."""
    paths: Schema = {}
    for before, name in (("/v1", ""), ("/v1/{name}", "Named")):
        more = {"parameters": [{"$ref": "#/components/parameters/name"}]} if name else {}
        for operation in validation.SHAPES:
            paths[f"{before}/{operation}"] = {**more, "post": _post(operation, name)}
        paths[f"{before}/model"] = {
            **more, "get": _get(f"model{name}", "Return the facts of the model", _ref("Model"), 404)
        }  # fmt: skip
    names = _object({"models": {"type": "array", "items": TEXT}}, "models")
    status = _object({"status": TEXT}, "status")
    paths["/v1/models"] = {"get": _get("models", "Return the names of the models", names)}
    paths["/healthz"] = {"get": _get("healthz", "Say that the process is alive", status)}
    paths["/readyz"] = {"get": _get("readyz", "Say that requests are answered", status, 503)}
    metrics = _get("metrics", "Return metrics for Prometheus", {})
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": TEXT}}
    paths["/metrics"] = {"get": metrics}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xclass",
            "version": __version__,
            "description": "Predict and learn one of many classes, or lists of labels. A server with one model answers "
            "/v1/predict and the like; with several models, these paths contain the name of a model.",
        },
        "servers": [{"url": ".", "description": "The folder of this description, also behind a proxy."}],
        "paths": paths,
        "components": {
            "parameters": {
                "name": {
                    "name": "name",
                    "in": "path",
                    "required": True,
                    "description": "The name of a model, which is the name of its file without the ending.",
                    "schema": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": {
                str(status): {
                    "description": text,
                    "content": {"application/json": {"schema": _ref("Error")}},
                }
                for status, text in ERRORS.items()
            },
        },
    }


def _get(identifier: str, summary: str, schema: Schema, *errors: int) -> Schema:
    return {
        "operationId": identifier,
        "summary": summary,
        "responses": _responses(schema, (400, 403, *errors)),
    }


def _post(operation: str, name: str) -> Schema:
    title = operation.capitalize()
    changes = operation in ("learn", "save")
    return {
        "operationId": operation + name,
        "summary": SUMMARIES[operation],
        **({"security": [{}, {"token": []}]} if changes else {}),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _ref(f"{title}Request")}},
        },
        "responses": _responses(_ref(f"{title}Answer"), [n for n in ERRORS if changes or n != 401]),
    }


def _responses(schema: Schema, errors: Any) -> Schema:
    answered = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    return {"200": answered, **{str(n): {"$ref": f"#/components/responses/{n}"} for n in errors}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _schemas() -> Schema:
    warnings = {"type": "array", "items": TEXT}
    parts = {"type": "object", "additionalProperties": NULLABLE}
    scores = {"class": _ref("Class"), "score": NULLABLE, "probability": NULLABLE}
    explained = {
        **scores,
        "parts": parts,
        "shares": _list("Share"),
        "path": _list("Turn"),
    }
    explanation = {
        "prediction": _ref("Class"),
        "label": {},
        "considered": COUNT,
        "formula": TEXT,
        "uses_features": YES_OR_NO,
        "classes": _list("ExplainedClass"),
        "others": _list("OtherClass"),
    }
    model = {"name": TEXT, **{name: schema for name, (schema, _) in FACTS.items()}, "needs_token": YES_OR_NO}
    return {
        **validation.COMPONENTS,
        "Error": _object({"error": TEXT}, "error"),
        **{f"{operation.capitalize()}Request": kind.schema for operation, kind in validation.SHAPES.items()},
        "Class": {"type": ["number", "string", "null"], "description": "The number or the name of a class."},
        "Prediction": {
            "description": "A class, a number, or a list of labels; null if there is nothing to predict yet.",
            "anyOf": [{"type": "number"}, TEXT, {"type": "null"}, _list("Class")],
        },
        "Predicted": _object({"prediction": _ref("Prediction"), "top": _list("ListedClass")}, "prediction"),
        "ListedClass": _object({"class": _ref("Class"), "probability": {"type": "number"}}, "class", "probability"),
        "PredictAnswer": _object({"predictions": _list("Predicted"), "warnings": warnings}, "predictions"),
        "LearnAnswer": _object(
            {"learned": COUNT, "predictions": _list("Predicted"), "warnings": warnings}, "learned", "predictions"
        ),
        "Share": _object(
            {
                "name": {"type": "string", "description": "A feature, or a part of the learner such as (trees)."},
                "share": {**NULLABLE, "description": "What it adds to the score."},
                "parts": {**parts, "description": "What the share is the sum of."},
                "others": {
                    **COUNT,
                    "description": "Number of features that this share adds up; absent for a single feature.",
                },
            },
            "name",
            "share",
        ),
        "Turn": {"type": "object", "properties": {"shares": _list("Share")}},
        "ExplainedClass": _object(explained, *explained),
        "OtherClass": _object(scores, *scores),
        "Explanation": _object(explanation, *explanation),
        "ExplainAnswer": _object({"explanations": _list("Explanation"), "warnings": warnings}, "explanations"),
        "Latency": _object({"median": {"type": "number"}, "p99": {"type": "number"}}, "median", "p99"),
        "SaveAnswer": _object({"examples": COUNT}, "examples"),
        "Model": _object(model, *model),
    }
