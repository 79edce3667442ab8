"""Serve a learner in a thread of this process, or by a command in a fork of it, and talk to the server by sockets."""

import asyncio
import contextlib
import functools
import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from command import start_process

from xclass.serving import server
from xclass.serving.models import OneModel
from xclass.serving.options import ServerOptions
from xclass.serving.service import LineJob, Service

SECONDS = 60
JSON = {"Content-Type": "application/json"}


class Messages(list[str]):
    """Keep the messages for the operator, as a console that is not quiet writes them."""

    info = line = warn = list.append


class Served:
    """Hold a server that runs in a thread; `stop` ends it and raises its error."""

    def __init__(self, learner, options: dict, arguments: dict) -> None:
        self.messages = Messages()
        self.ready = threading.Event()
        self.error: BaseException | None = None
        self.service = Service(learner, console=self.messages, **arguments)
        self.options = ServerOptions(**{"port": 0, **options})
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        assert self.ready.wait(SECONDS)

    def _serve(self) -> None:
        try:
            server.run(
                server.serve(OneModel(self.service, self.messages), self.options, self.messages, ready=self._began)
            )
        except BaseException as error:
            self.error = error
        self.ready.set()

    def _began(self, began: server.Server) -> None:
        self.server, self.port = began, began.lines.port
        self.ready.set()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self.server.stop_soon()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def ask(self, text: bytes, piece: int | None = None) -> bytes:
        """Return the answers to lines, sent on a connection of their own, `piece` bytes at a time."""
        return ask(self.port, text, piece)


async def answers(service: Service, text: bytes) -> bytes:
    """Return the answers of a service to lines, each of which ends with a newline."""
    parts: list[bytes] = []
    done = asyncio.Event()

    def deliver(part: bytes, last: bool) -> None:
        parts.append(part)
        if last:
            done.set()

    service.ask(LineJob(deliver, done, text, text.count(b"\n")))
    await done.wait()
    return b"".join(parts)


def in_event_loop(test):
    """Return a test that executes an asynchronous one."""

    @functools.wraps(test)
    def execute(*given, **named) -> None:
        asyncio.run(test(*given, **named))

    return execute


def result(steps, between=lambda: None):
    """Take the steps of a generator, call a function between them, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        between()


def wait_for(condition) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextlib.contextmanager
def served(learner, options: dict | None = None, **arguments) -> Iterator[Served]:
    """Serve a learner until the block ends; `arguments` are those of `Service`."""
    running = Served(learner, options or {}, arguments)
    if running.error is not None:
        raise running.error
    try:
        yield running
    finally:
        running.stop()


def connected(port: int, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, port), SECONDS)


def received(connection: socket.socket, lines: int | None = None) -> bytes:
    """Return what comes until the other side closes the connection, or until there are so many lines."""
    parts = []
    while lines is None or b"".join(parts).count(b"\n") < lines:
        part = connection.recv(1 << 16)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def ask(port: int, text: bytes, piece: int | None = None) -> bytes:
    """Send a text while its answers are read, as netcat does, and return them."""

    def send() -> None:
        step = piece or len(text)
        for at in range(0, len(text), step):
            connection.sendall(text[at : at + step])
        connection.shutdown(socket.SHUT_WR)

    with connected(port) as connection:
        sender = threading.Thread(target=send)
        sender.start()
        answers = received(connection)
        sender.join()
    return answers


def asked(port, method, path, body=None, headers=None):
    """Return the status, the headers and the body of an answer; a body that is no bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    sent = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method, path, sent, {**({} if body is None else JSON), **(headers or {})})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.headers["content-type"] == "application/json":
        content = json.loads(content)
    return answer.status, answer.headers, content


@contextlib.contextmanager
def command(folder: Path, *words: str) -> Iterator[tuple[object, int]]:
    """Execute a command that serves, with `--port 0`, and give its process and its port; it is ended at last."""
    file = folder / "port"
    file.unlink(missing_ok=True)
    process = start_process(*words, "--port", "0", "--port_file", str(file), cwd=folder)
    try:
        deadline = time.monotonic() + SECONDS
        while not (file.exists() and file.read_text()):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.01)
        yield process, int(file.read_text().split()[0])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
