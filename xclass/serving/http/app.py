"""Answer HTTP requests: an ASGI application on Starlette's routes.

    POST /v1/predict  /v1/learn  /v1/save  /v1/explain      GET /v1/model  /v1/models
    POST /v1/NAME/predict ...                               GET /v1/NAME/model
    GET  /healthz  /readyz  /metrics  /openapi.json  /  /page.css  /page.js

Every error is answered by {"error": "..."}. A request is parsed in the event loop if it is short, and by a thread
otherwise, so a long one does not hold the others. Names of models are looked up in a dictionary: no path of a request
reaches the file system.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ... import __version__
from ...api import configuration
from ...api.learner import Learner
from ...errors import ModelError, XclassError
from ...system import memory
from ...system.bounded_json import Malformed
from ..models import Models
from ..service import ONLY_PREDICTS, Service, Unavailable
from . import bodies, description, guard
from .desk import Busy, Desk
from .guard import Guard
from .metrics import Metrics

T = TypeVar("T")

PAGE = Path(__file__).parent.parent / "page"
LONG = 1 << 14  # bytes of a body that a thread parses, and examples times classes of an answer that it writes
BODIES = 1 << 25  # bytes from which on long bodies are refused; once they are parsed they take ten times as much
MOST_COLUMNS = 100  # of a table that are listed among the facts
MOST_BYTES = 1 << 25  # of an answer, whose names of classes may have thousands each
CLOSE = {"connection": "close"}
GIVEN_UP = "the client sends no more, so it may be gone, and what takes long is given up; keep the connection open"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [  # of every answer
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
]
PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}


class Gone(Exception):
    """Report that the client has closed the connection, or will send no more."""


class App:
    """Answer HTTP requests.

    Parameters
    ----------
    models : what is asked
    guard : who may ask
    longest_body, longest_line : limits in bytes
    log : called with messages for the operator
    """

    def __init__(
        self,
        models: Models,
        guard: Guard,
        longest_body: int,
        longest_line: int,
        log: Callable[[str], object],
    ) -> None:
        self._models, self._guard, self._log = models, guard, log
        self._longest_body, self._longest_line = longest_body, longest_line
        self._held = 0  # bytes of bodies that are not answered
        self._incomplete: dict[asyncio.Task[Any] | None, int] = {}  # bytes of long bodies by those who receive them
        self._desks: dict[str, Desk] = {}
        self.metrics = Metrics(self.desks)
        routes = []
        for before in ("/v1", "/v1/{name}"):
            for operation in bodies.SHAPES:
                routes.append(Route(f"{before}/{operation}", _Endpoint(self, operation), methods=["POST"]))
            routes.append(Route(f"{before}/model", self._model))
        routes += [
            Route("/v1/models", self._list),
            Route("/healthz", self._healthy),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            Route("/openapi.json", _file(description.text(), "application/json")),
            *(Route(path, _file((PAGE / name).read_bytes(), kind)) for path, (name, kind) in PAGES.items()),
        ]
        handlers: Any = {HTTPException: _of_exception, Exception: self._of_defect}
        self._routes = Starlette(routes=routes, exception_handlers=handlers)
        self._routes.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["xclass.headers"] = headers = dict(scope["headers"])
        try:
            if len(headers) < len(scope["headers"]):
                guard.check_repeated(scope["headers"])
            self._guard.check_site(headers)
            if scope["query_string"] and scope["path"].startswith("/v1/"):
                guard.refuse_query(scope["query_string"])
        except HTTPException as error:
            await _error(error)(scope, receive, send)
        else:
            await self._routes(scope, receive, send)

    def desks(self) -> dict[str, Desk]:
        """Return the desks of all models by their names."""
        self._desks = {name: self._of_service(name, one) for name, one in self._models.services.items()}
        return self._desks

    def _of_service(self, name: str, service: Service) -> Desk:
        desk = self._desks.get(name)
        if desk is None or desk.service is not service:
            desk = self._desks[name] = Desk(service)
        return desk

    def _desk(self, scope: Mapping[str, Any]) -> tuple[str, Desk]:
        """Return the name of the model that the path names, and its desk."""
        name, services = scope["path_params"].get("name"), self._models.services
        if name is None and len(services) == 1:
            (name,) = services
        if not services:
            raise HTTPException(404, "this server has no model")
        if name is None:
            raise HTTPException(
                404, f"this server has several models; ask /v1/NAME/..., where NAME is {_either(services)}"
            )
        if name not in services:
            raise HTTPException(404, f"there is no model {name[:100]!r}; there is {_either(services)}")
        return name, self._of_service(name, services[name])

    # operations

    async def answer(self, operation: str, scope: Scope, receive: Receive) -> bytes:
        """Return the answer to a request as JSON; raise HTTPException, Gone, Busy, Malformed or an error of xclass."""
        headers = scope["xclass.headers"]
        _, desk = self._desk(scope)
        self._guard.check_content(headers)
        if operation in ("learn", "save"):
            self._guard.check_change(headers)
        if operation == "learn" and not desk.service.learns:
            raise HTTPException(403, ONLY_PREDICTS)
        began = time.perf_counter()
        encoding = guard.encoding(headers)
        body = await self._body(receive, headers)
        size = len(body)
        try:
            if encoding:
                body = await asyncio.to_thread(bodies.decompressed, body, encoding, self._longest_body)
                self._held += len(body) - size
                size = len(body)
                self._make_room(None)
            if size < LONG:
                question = bodies.read(operation, body, self._longest_line)
            else:
                question = await asyncio.to_thread(bodies.read, operation, body, self._longest_line)
            del body  # the question holds what it needs
            if question is None:
                return _json(await desk.save())
            do = {"predict": desk.predict, "learn": desk.learn, "explain": desk.explain}[operation]
            if operation == "explain" or (operation == "predict" and size >= LONG):  # what is learned has an order
                answer = await _unless_disconnected(receive, do(question))
            else:
                answer = await do(question)
            if len(question.examples) * (question.k or 1) < LONG // 16 and operation != "explain":
                content = _json(answer)
            else:
                content = await asyncio.to_thread(_json_in_parts, answer)
        finally:
            self._held -= size
        if operation == "predict":
            desk.latest.append(time.perf_counter() - began)
        return content

    async def _body(self, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        """Return the body of a request, whose bytes the caller takes off `_held`.

        Short bodies are never refused for the bytes of others: `--max_connections` bounds them.
        """
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._longest_body:
            raise self.too_long()
        parts, size, task = [], 0, asyncio.current_task()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                self._held += len(part)
                if size > self._longest_body:
                    raise self.too_long()
                if size >= LONG:
                    self._incomplete[task] = size
                    self._make_room(task)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and size >= LONG and task not in self._incomplete:
                raise Busy from None  # `_make_room` has cancelled it, and taken its bytes off
            self._held -= size
            raise
        finally:
            self._incomplete.pop(task, None)

    def _make_room(self, task: asyncio.Task[Any] | None) -> None:
        """Let the oldest incomplete bodies give way if there are too many bytes; raise Busy if that is the task's."""
        while self._held > max(BODIES, self._longest_body):
            oldest = next(iter(self._incomplete), None)
            if oldest is None or oldest is task:
                raise Busy
            self._held -= self._incomplete.pop(oldest)
            oldest.cancel()

    def too_long(self) -> HTTPException:
        """Return the refusal of a body that is too long."""
        message = f"the body is longer than {self._longest_body} bytes; send fewer examples at once"
        return HTTPException(413, message, CLOSE)

    def defect(self, error: Exception) -> HTTPException:
        """Tell the operator of an error that should not happen, and return the answer to the client."""
        self._log("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())
        return HTTPException(500, "the server could not answer because of a defect, which its log describes")

    async def _of_defect(self, request: Request, error: Exception) -> Response:
        return _error(self.defect(error))

    # facts

    async def _model(self, request: Request) -> Response:
        name, desk = self._desk(request.scope)
        return _answered({"name": name, **self._facts(desk)})

    def _facts(self, desk: Desk) -> dict[str, Any]:
        learner = desk.service.learner
        record, average_loss = learner.core.config.reduction, learner.average_loss
        return {
            "reduction": configuration.chosen_name(learner.core.config),
            "labels": record.labels,
            "classes": None if record.labels == "simple" else number_of_classes(learner),
            "examples": learner.examples,
            "average_loss": average_loss,
            "columns": dict(itertools.islice(learner.core.schema.columns.items(), MOST_COLUMNS)),
            "width": learner.core.schema.width,
            "probabilities": bool(record.probabilities),
            "learns": desk.service.learns,
            "needs_token": self._guard.needs_token,
            "options": chosen_options(learner),
            "predicted": desk.predicted,
            "latency_ms": desk.latency(),
            "memory_bytes": memory.taken(),
            "version": __version__,
        }

    async def _list(self, request: Request) -> Response:
        return _answered({"models": sorted(self.desks())})

    async def _healthy(self, request: Request) -> Response:
        return _answered({"status": "alive"})

    async def _ready(self, request: Request) -> Response:
        services = {name: desk.service for name, desk in self.desks().items()}
        failed = [name for name, service in services.items() if service.failure is not None]
        loading = [name for name, service in services.items() if not service.is_loaded]
        if not self._models.are_loaded:
            why = "the models are being loaded"
        elif not services:
            why = "there is no model"
        elif failed:
            why = f"{_either(failed)} has failed"
        elif loading:
            why = "the kernels are being loaded, or compiled"
        else:
            return _answered({"status": "ready"})
        raise HTTPException(503, f"not ready: {why}")

    async def _metrics(self, request: Request) -> Response:
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _unless_disconnected(receive: Receive, answering: Coroutine[Any, Any, T]) -> T:
    """Return an answer, which takes long; give it up and raise Gone if the client closes the connection before."""
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(receive())  # the body is complete, so nothing else can come
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise Gone
    finally:
        for task in (answer, gone):
            task.cancel()


class _Endpoint:
    """Answer the requests of an operation; a class, because Starlette wraps a function in more calls."""

    def __init__(self, app: App, operation: str) -> None:
        self._app, self._operation = app, operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        try:
            content = await self._app.answer(self._operation, scope, receive)
        except Gone:  # or perhaps it reads an answer still
            refusal = HTTPException(408, GIVEN_UP, CLOSE)
        except bodies.TooLong:
            refusal = self._app.too_long()
        except HTTPException as error:
            refusal = error
        except (Malformed, XclassError) as error:
            refusal = HTTPException(500 if isinstance(error, ModelError) else 400, str(error))
            _forget_frames(error)
        except Unavailable as error:
            refusal = HTTPException(503, str(error), CLOSE)
        except Busy:
            refusal = HTTPException(503, "too many requests wait; ask again later", {"retry-after": "1", **CLOSE})
        except Exception as error:
            refusal = self._app.defect(error)
        else:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": content})
            self._app.metrics.count(self._operation, 200, time.perf_counter() - began)
            return
        await _error(refusal)(scope, receive, send)
        self._app.metrics.count(self._operation, refusal.status_code, time.perf_counter() - began)


def _forget_frames(error: BaseException | None) -> None:
    """Take the traceback off an error: its frames hold the request, and some the error, which would be a cycle."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


def number_of_classes(learner: Learner) -> int | None:
    """Return the number of classes, without the list of their names that `Learner.classes` makes."""
    names = learner.core.names
    if names.class_list is not None:
        return names.highest_seen
    return learner.core.spec.classes or learner.core.reduction.classes_seen


def chosen_options(learner: Learner) -> dict[str, Any]:
    """Return the options of the model whose values are not the defaults."""
    declared = {name: o.default for name, o in configuration.declared_options().items()}
    return {
        name: value
        for name, value in learner.core.config.stored().items()
        if value not in (None, False, [], declared.get(name)) and name != "named_labels"
    }


def _either(names: Any) -> str:
    shown = sorted(names)
    return " or ".join(shown[:10]) + (f" or one of {len(shown) - 10} others" if len(shown) > 10 else "")


def _json(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _json_in_parts(answer: Mapping[str, Any]) -> bytes:
    """Return the same as `_json`, for a thread; other threads have to wait for one part at a time only."""
    fields = []
    for name, value in answer.items():
        parts, room = [], MOST_BYTES
        for one in value if isinstance(value, list) else ():
            parts.append(_json(one))
            room -= len(parts[-1])
            if room < 0:
                raise HTTPException(
                    413, f"the answer is longer than {MOST_BYTES} bytes; ask for fewer examples or classes"
                )
        text = b"[%b]" % b",".join(parts) if isinstance(value, list) else _json(value)
        fields.append(b"%b:%b" % (_json(name), text))
    return b"{%b}" % b",".join(fields)


def _answered(content: Any) -> Response:
    return Response(_json(content), media_type="application/json")


def _error(error: HTTPException) -> Response:
    return Response(_json({"error": error.detail}), error.status_code, error.headers, "application/json")


def _file(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers by the contents of a file."""

    async def answer(request: Request) -> Response:
        return Response(content, headers={"content-security-policy": POLICY}, media_type=kind)

    return answer


async def _of_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = error.detail
    if error.status_code == 404 and message == "Not Found":
        message = "there is nothing at this path; /openapi.json describes what there is"
    if error.status_code == 405:
        message = f"the method {request.method[:20]} is not allowed here; /openapi.json describes what is"
    return _error(HTTPException(error.status_code, message, error.headers))
