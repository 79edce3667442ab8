"""Answer HTTP requests: what each path does, and who may ask for it.

    POST /v1/predict  /v1/learn  /v1/save  /v1/explain      GET /v1/model  /v1/models
    POST /v1/NAME/predict ...                               GET /v1/NAME/model
    GET  /healthz  /readyz  /metrics  /openapi.json  /  /page.css  /page.js

Every error is answered by {"error": "..."}. A body is parsed in the event loop if it is short, and by a thread
otherwise, so a long one does not hold the others. Names of models are looked up in a dictionary: no path of a request
reaches the file system.
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import ModelError, XclassError
from ...system.bounded_json import Malformed
from ..models import Models
from ..options import ServerOptions
from ..service import ONLY_PREDICTS, Busy, Service, Unavailable
from . import interface, messages
from .interface import FACTS, Metrics
from .messages import CLOSE, LONG, Access, Buffers, HttpRequest, Refusal, Response, to_json

PAGE = Path(__file__).parent.parent / "page"
MOST_BYTES = 1 << 25  # of an answer, whose names of classes may have thousands each
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
OF_A_MODEL = re.compile(rf"/v1/(?:([^/]+)/)?(model|{'|'.join(interface.SHAPES)})")  # paths


class Endpoints:
    """Answer HTTP requests.

    Parameters
    ----------
    models : what is asked
    options : who may ask, and the limits; raise UsageError if one is not allowed
    log : called with messages for the operator
    """

    def __init__(self, models: Models, options: ServerOptions, log: Callable[[str], object]) -> None:
        self._models, self._options, self._log = models, options, log
        self._access = Access(options)
        self.buffers = Buffers(options.max_body)
        self._metrics = Metrics(models.services)
        pages: dict[str, Response] = {"/openapi.json": Response(interface.openapi())}
        for path, (name, kind) in PAGES.items():
            pages[path] = Response((PAGE / name).read_bytes(), kind, more={"content-security-policy": POLICY})
        self._unasked: dict[str, Callable[[], Response]] = {
            "/v1/models": lambda: _json_response({"models": sorted(models.services)}),
            "/healthz": lambda: _json_response({"status": "alive"}),
            "/readyz": self._ready,
            "/metrics": lambda: Response(self._metrics.text(), "text/plain; version=0.0.4; charset=utf-8"),
            **{path: partial(_same, page) for path, page in pages.items()},
        }

    def begin(self, request: HttpRequest) -> None:
        """Find what answers a request; raise Refusal if it is refused by its head."""
        headers, path = request.headers, request.path
        if request.repeated:
            messages.refuse_repeated(request.repeated)
        self._access.check_site(headers)
        if request.query and path.startswith("/v1/"):
            messages.refuse_query(request.query)
        facts, of_model = self._unasked.get(path), OF_A_MODEL.fullmatch(path)
        if facts is None and of_model is None:
            raise Refusal(404, "there is nothing at this path; /openapi.json describes what there is")
        asks = of_model is not None and of_model[2] != "model"
        methods = ("POST",) if asks else ("GET", "HEAD")
        if request.method not in methods:
            message = f"the method {request.method[:20]} is not allowed here; /openapi.json describes what is"
            raise Refusal(405, message, {"allow": ", ".join(methods)})
        if facts is not None:
            request.facts = facts
            return
        assert of_model is not None
        name, service = self._service(of_model[1])
        request.facts = partial(self._facts, name, service)
        if asks:
            request.operation, request.service = of_model[2], service
            messages.check_content(headers)
            if request.operation in ("learn", "save"):
                self._access.check_change(headers)
            if request.operation == "learn" and not service.learns:
                raise Refusal(403, ONLY_PREDICTS)

    def _service(self, name: str | None) -> tuple[str, Service]:
        """Return the name of the model that a path names, and its service."""
        services = self._models.services
        if name not in services and not self._models.are_loaded:
            raise Refusal(503, "the models are being loaded; ask again later", {"retry-after": "1"})
        if name is None and len(services) == 1:
            (name,) = services
        if not services:
            raise Refusal(404, "this server has no model")
        if name is None:
            raise Refusal(404, f"this server has several models; ask /v1/NAME/..., where NAME is {_either(services)}")
        if name not in services:
            raise Refusal(404, f"there is no model {name[:100]!r}; there is {_either(services)}")
        return name, services[name]

    async def answer(self, request: HttpRequest) -> Response:
        """Return the answer to a request whose body is complete."""
        try:
            return request.facts() if not request.operation else await self._execute(request)
        except Refusal as error:
            refusal = error
        except (Malformed, XclassError) as error:
            refusal = Refusal(500 if isinstance(error, ModelError) else 400, str(error))
            _forget_frames(error)
        except Unavailable as error:
            refusal = Refusal(503, str(error), CLOSE)
        except Busy:
            refusal = messages.busy()
        except Exception as error:  # a defect
            self._log("".join(traceback.format_exception(error)).rstrip())
            refusal = Refusal(500, "the server could not answer because of a defect, which its log describes")
        return refusal.response()

    async def _execute(self, request: HttpRequest) -> Response:
        """Do what a request asks with the examples in its body."""
        operation, service = request.operation, request.service
        if request.encoding:
            body = await asyncio.to_thread(self.buffers.decompressed, request)
            self.buffers.hold(request, len(body))
        else:
            body = bytes(request.body)
        request.body, size = bytearray(), len(body)
        read = partial(interface.read, operation, body, self._options.max_line)
        given = read() if size < LONG else await asyncio.to_thread(read)
        del body, read  # `given` holds what it needs
        if given is None:
            return _json_response({"examples": await service.save()})
        execute = {"predict": service.predict, "learn": service.learn, "explain": service.explain}[operation]
        answer = await execute(given)
        if operation == "predict":
            service.latest.append(time.perf_counter() - request.began)
        if len(given.items) * (given.k or 1) < LONG // 16 and operation != "explain":
            return _json_response(answer)
        return Response(await asyncio.to_thread(_json_in_parts, answer))

    def note(self, request: HttpRequest, status: int) -> None:
        """Count a request that is answered."""
        if request.operation:
            self._metrics.count(request.operation, status, time.perf_counter() - request.began)

    # what is answered without a body

    def _facts(self, name: str, service: Service) -> Response:
        """Return the facts of a model."""
        facts = {fact: value(service) for fact, (_, value) in FACTS.items()}
        return _json_response({"name": name, **facts, "needs_token": self._access.needs_token})

    def _ready(self) -> Response:
        services = self._models.services
        failed = [name for name, service in services.items() if service.failure is not None]
        if not self._models.are_loaded:
            why = "the models are being loaded"
        elif not services:
            why = "there is no model"
        elif failed:
            why = f"{_either(failed)} has failed"
        elif not all(service.is_loaded for service in services.values()):
            why = "the kernels are being loaded, or compiled"
        else:
            return _json_response({"status": "ready"})
        raise Refusal(503, f"not ready: {why}")


def _forget_frames(error: BaseException | None) -> None:
    """Take the traceback off an error: its frames hold the request, and some the error, which would be a cycle."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


def _either(names: Any) -> str:
    shown = sorted(names)
    return " or ".join(shown[:10]) + (f" or one of {len(shown) - 10} others" if len(shown) > 10 else "")


def _json_in_parts(answer: Mapping[str, Any]) -> bytes:
    """Return the same as `to_json`, for a thread; other threads have to wait for one part at a time only."""
    fields = []
    for name, value in answer.items():
        parts, room = [], MOST_BYTES
        for one in value if isinstance(value, list) else ():
            parts.append(to_json(one))
            room -= len(parts[-1])
            if room < 0:
                raise Refusal(413, f"the answer is longer than {MOST_BYTES} bytes; ask for fewer examples or classes")
        text = b"[%b]" % b",".join(parts) if isinstance(value, list) else to_json(value)
        fields.append(b"%b:%b" % (to_json(name), text))
    return b"{%b}" % b",".join(fields)


def _same(response: Response) -> Response:
    return response


def _json_response(content: Any) -> Response:
    return Response(to_json(content))
