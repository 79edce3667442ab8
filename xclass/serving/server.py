"""Run a server: listen, write the files that say so, and end when a signal comes.

SIGTERM and SIGINT let the server answer what it has received, save the model and end; a second one does not wait for
clients that do not read their answers. SIGHUP loads the model anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import os
import resource
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ..errors import UsageError, install_extra
from ..run.report.console import OperatorConsole
from ..system import output_file
from . import line_protocol
from .listener import SWEEP_SECONDS, Listener, remove_own
from .models import Models
from .options import LOOPBACK, ServerOptions
from .service import Service

PATIENCE = 10.0  # seconds for clients to read their answers when the server ends
OTHER_FILES = 64  # open files besides those of connections


class Server:
    """Serve models until `stop` is called.

    Parameters
    ----------
    models : what answers; they belong to the server
    options : where to listen, and the limits
    console : where messages for the operator go

    Attributes
    ----------
    lines : what listens for the line protocol, with its port; None if there are several models
    http : what listens for HTTP, with its port; None without --http
    options : those given, with as many connections as the system allows
    """

    def __init__(self, models: Models, options: ServerOptions, console: OperatorConsole) -> None:
        options = _with_open_files(options, (models.of_lines is not None) + (options.http is not None), console)
        self._models, self.options, self._console = models, options, console
        self.lines = None if models.of_lines is None else line_listener(models.of_lines, options)
        self.http = None if options.http is None else http_listener(models, options, console)
        self._listeners = [listener for listener in (self.lines, self.http) if listener is not None]
        self._loop = asyncio.get_running_loop()
        self._stopping, self._hurry, self._asked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def stop(self) -> None:
        """End the server: what was received is answered, and the model is saved. Call it in the event loop."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def stop_soon(self) -> None:
        """End the server as `stop` does; call it in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.stop)

    def reload(self) -> None:
        """Load models anew; the server goes on with the old ones if that fails. Call it in the event loop."""
        self._asked.set()

    async def serve(self, ready: Callable[[Server], object] | None = None) -> None:
        """Serve until `stop` is called, or the task is cancelled; `ready` is called when clients may connect."""
        refreshing = None
        with contextlib.ExitStack() as files:
            try:
                for listener in self._listeners:
                    await listener.open()
                self._tell_places(files)
                for service in self._models.services.values():  # only now, so that a start that fails changes no model
                    service.failed = self.stop
                    service.start()
                refreshing = asyncio.ensure_future(self._refresh())
                if ready is not None:
                    ready(self)
                await self._stopping.wait()
            finally:
                self._models.ending = True
                self._stopping.set()
                self._asked.set()
                try:
                    patience = 0.0 if refreshing is None else PATIENCE
                    await asyncio.gather(*(listener.close(patience, self._hurry) for listener in self._listeners))
                    if refreshing is not None:
                        await refreshing
                finally:
                    await self._models.end()

    def _tell_places(self, files: contextlib.ExitStack) -> None:
        """Tell the operator, and programs by files that the stack removes, where the server is."""
        o = self.options
        ports = [listener.port for listener in self._listeners if listener.port is not None]
        for path, description, numbers in (
            (o.pid_file, "the number of the process", [os.getpid()]),
            (o.port_file, "the port", ports),  # whoever has read it may connect, and read the other file
        ):
            if path is not None:
                output_file.replace(path, description, [b"%d\n" % number for number in numbers])
                if os.path.exists(path):  # `stdout` is no file
                    files.callback(remove_own, path, os.lstat(path))
        if self.lines is not None:
            self._console.info(f"serving at {self.lines.address}")
        if self.http is not None:
            self._console.info(f"serving HTTP at http://{self.http.address}/")

    async def _refresh(self) -> None:
        """Load models at the beginning, when that is asked for, and after each pause."""
        while not self._stopping.is_set():
            asked = self._asked.is_set()
            self._asked.clear()
            await self._models.refresh(asked)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._asked.wait(), self._models.pause)


def line_listener(service: Service, options: ServerOptions) -> Listener:
    """Return what listens for the line protocol, which is not open yet."""
    is_path = options.socket is not None
    return Listener(
        lambda listener: line_protocol.LineConnection(listener, service, options),
        options.socket if options.socket is not None else (options.host, options.port),
        "--socket" if is_path else "--host or --port",
    )


def http_listener(models: Models, options: ServerOptions, console: OperatorConsole) -> Listener:
    """Return what listens for HTTP; raise UsageError if its packages are not installed or an option is not allowed."""
    try:
        from .http import connection, endpoints, messages
    except ImportError as error:
        raise UsageError(f"--http needs {error.name}, which is not installed; {install_extra('serve')}") from None
    answering = endpoints.Endpoints(models, options, console.line)
    assert options.http is not None
    return Listener(
        lambda listener: connection.HttpConnection(listener, answering, options),
        messages.address(options.http),
        "--http",
        min(SWEEP_SECONDS, options.timeout),
    )


def _with_open_files(options: ServerOptions, kinds: int, console: OperatorConsole) -> ServerOptions:
    """Raise the limit of open files of this process as far as the connections of all kinds need it.

    If the system does not allow that, return options that allow fewer connections, so that models can still be saved.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.max_connections * kinds + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return options
    with contextlib.suppress(OSError, ValueError):
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    if soft == wanted:
        return options
    most = max(1, (soft - OTHER_FILES) // kinds)
    console.line(
        f"there are at most {most} connections {'of each kind ' if kinds > 1 else ''}at the same time, because the "
        f"system allows {soft} open files; for --max_connections {options.max_connections}, allow {wanted}, as by "
        f"`ulimit -n {wanted}`"
    )
    return dataclasses.replace(options, max_connections=most)


@contextlib.contextmanager
def _signals(server: Server) -> Iterator[None]:
    """Let signals end the server or load its model anew; only the main thread can receive them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGTERM: server.stop, signal.SIGINT: server.stop, signal.SIGHUP: server.reload}
    before = signal.getsignal(signal.SIGHUP)
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)  # the loop sets the default, which ends the process


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Execute `serve` in an event loop: uvloop's if it is installed, which takes half the time."""
    execute: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        execute = uvloop.run
    gc.collect()
    freezes = not gc.get_freeze_count()  # what a program has frozen itself stays so
    if freezes:
        gc.freeze()  # otherwise the garbage collector looks through all objects now and then, which takes 60 ms
    try:
        execute(serving)
    finally:
        if freezes:
            gc.unfreeze()


async def serve(
    models: Models,
    options: ServerOptions,
    console: OperatorConsole,
    ready: Callable[[Server], object] | None = None,
    signals: bool = True,
) -> None:
    """Serve until a signal comes, see `Server`; `signals` says whether to handle them."""
    server = Server(models, options, console)
    if server.lines is not None and options.socket is None and options.host not in LOOPBACK:
        console.warn(f"everyone who reaches {options.host} can use the learner; the line protocol has no passwords")
    with _signals(server) if signals else contextlib.nullcontext():
        await server.serve(ready)
