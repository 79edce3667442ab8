"""Run a server: listen, write the files that say so, and end when a signal comes.

SIGTERM and SIGINT let the server answer what it has received, save the model and end; a second one does not wait for
clients that do not read their answers. SIGHUP loads the model anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.learner import Learner
from ..errors import UsageError, XclassError, install_extra
from ..run.report.console import Console
from ..system import output_file
from .door import Door, remove_own
from .options import LOOPBACK, Options
from .service import Service

if TYPE_CHECKING:
    from .http.app import Models as HttpModels
    from .http.door import Door as HttpDoor
    from .models import Models

PATIENCE = 10.0  # seconds for clients to read their answers when the server ends
LOOK_SECONDS = 2.0  # between two looks at the folder of the models
OTHER_FILES = 64  # open files besides those of connections


class Server:
    """Serve a service until `stop` is called.

    Parameters
    ----------
    service : what answers; it belongs to the server
    options : where to listen, and the limits
    console : where messages for the operator go
    reload : loads the model anew for SIGHUP; None if it does not come from a file

    Attributes
    ----------
    door : the line protocol, with its port
    http : HTTP, with its port; None without --http
    """

    def __init__(
        self,
        service: Service,
        options: Options,
        console: Console,
        reload: Callable[[], Learner] | None = None,
        name: str = "model",
    ) -> None:
        self.service, self.options, self._console, self._reload = service, options, console, reload
        self.door = Door(service, options)
        self.http = None if options.http is None else http_door(self, options, console)
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._patience = PATIENCE
        self._hurry = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None

    @property
    def services(self) -> Mapping[str, Service]:
        """Return the services by the names of their models."""
        return {self._name: self.service}

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
        """Load the model anew; the server goes on with the old one if that fails. Call it in the event loop."""
        if self._reload is None:
            self._console.line("the learner comes from no file, so there is nothing to load")
        elif self._reloading is None or self._reloading.done():
            self._reloading = asyncio.ensure_future(self._replace(self._reload))

    async def _replace(self, load: Callable[[], Learner]) -> None:
        try:
            await self.service.replace(load)
        except (XclassError, OSError) as error:
            self._console.line(f"the model was not loaded, and the old one serves on: {error}")
        else:
            self._console.info("the model was loaded anew")

    async def serve(self, ready: Callable[[Server], object] | None = None) -> None:
        """Serve until `stop` is called, or the task is cancelled; `ready` is called when clients may connect."""
        o = self.options
        _allow_files(o.max_connections + OTHER_FILES)
        self.service.failed = self.stop
        self.service.start()
        with contextlib.ExitStack() as files:
            try:
                await self.door.open()
                try:
                    port = self.door.port
                    if port is not None:
                        files.enter_context(_file(o.port_file, "the port", port))
                    files.enter_context(_file(o.pid_file, "the number of the process", os.getpid()))
                    self._console.info(f"serving at {o.socket or f'{o.host}:{port}'}")
                    if self.http is not None:
                        await self.http.open()
                        self._console.info(f"serving HTTP at {self.http.url}")
                    if ready is not None:
                        ready(self)
                    await self._stopping.wait()
                finally:
                    await self._close()
            finally:
                await self.service.end()

    async def _close(self) -> None:
        """Close the door, patiently at first."""
        doors: list[Door | HttpDoor] = [self.door] if self.http is None else [self.door, self.http]
        closing = asyncio.ensure_future(_closed(doors, PATIENCE))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((closing, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not closing.done():
            closing.cancel()
            await _closed(doors, 0.0)


async def _closed(doors: Sequence[Door | HttpDoor], patience: float) -> None:
    await asyncio.gather(*(door.close(patience) for door in doors))


class FolderServer:
    """Serve the models of a folder over HTTP until `stop` is called; a file that is new or changed is taken up."""

    def __init__(self, models: Models, options: Options, console: Console) -> None:
        self._models, self._options, self._console = models, options, console
        self.http = http_door(models, options, console)
        self._stopping, self._looking = asyncio.Event(), asyncio.Event()

    def stop(self) -> None:
        """End the server: what was received is answered. Call it in the event loop."""
        self._stopping.set()
        self._looking.set()

    def reload(self) -> None:
        """Look for files at once. Call it in the event loop."""
        self._looking.set()

    async def serve(self, ready: Callable[[FolderServer], object] | None = None) -> None:
        """Serve until `stop` is called; `ready` is called when clients may connect."""
        o = self._options
        _allow_files(o.max_connections + OTHER_FILES)
        with contextlib.ExitStack() as files:
            try:
                try:
                    await self._models.refresh()
                except OSError as error:
                    raise UsageError(
                        f"--models {self._models.folder}: the folder cannot be read: {error.strerror}; give that of "
                        "the model files"
                    ) from None
                await self.http.open()
                files.enter_context(_file(o.port_file, "the port", self.http.port))
                files.enter_context(_file(o.pid_file, "the number of the process", os.getpid()))
                self._console.info(f"serving HTTP at {self.http.url}")
                if ready is not None:
                    ready(self)
                while not self._stopping.is_set():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._looking.wait(), LOOK_SECONDS)
                    self._looking.clear()
                    try:
                        await self._models.refresh()
                    except OSError as error:  # of the folder
                        self._console.line(f"the models were not looked at: {error}")
            finally:
                await self.http.close(PATIENCE)
                await self._models.end()


def http_door(models: HttpModels, options: Options, console: Console) -> HttpDoor:
    """Return the door for HTTP; raise UsageError if its packages are not installed, or if an option is not allowed."""
    try:
        from .http import site
    except ImportError as error:
        raise UsageError(f"--http needs {error.name}, which is not installed; {install_extra('serve')}") from None
    return site.door(models, options, console.line)


@contextlib.contextmanager
def _file(path: str | None, description: str, number: int) -> Iterator[None]:
    """Write a number to a file, if one is named, and remove it at the end."""
    if path is None:
        yield
        return
    output_file.replace(path, description, [b"%d\n" % number])
    made = os.lstat(path)
    try:
        yield
    finally:
        remove_own(path, made)


def _allow_files(count: int) -> None:
    """Raise the limit of open files of this process to `count`, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def _signals(server: Server | FolderServer) -> Iterator[None]:
    """Let signals end the server or load its model anew; only the main thread can receive them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGTERM: server.stop, signal.SIGINT: server.stop, signal.SIGHUP: server.reload}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Execute `serve` or `serve_models` in an event loop: uvloop's if it is installed, which takes half the time."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


async def serve(
    service: Service,
    options: Options,
    console: Console,
    reload: Callable[[], Learner] | None = None,
    ready: Callable[[Server], object] | None = None,
    signals: bool = True,
    name: str = "model",
) -> None:
    """Serve until a signal comes, see `Server`; `signals` says whether to handle them."""
    server = Server(service, options, console, reload, name)
    if options.socket is None and options.host not in LOOPBACK:
        console.warn(f"everyone who reaches {options.host} can use the learner; the line protocol has no passwords")
    with _signals(server) if signals else contextlib.nullcontext():
        await server.serve(ready)


async def serve_models(
    models: Models,
    options: Options,
    console: Console,
    ready: Callable[[FolderServer], object] | None = None,
) -> None:
    """Serve the models of a folder until a signal comes, see `FolderServer`."""
    server = FolderServer(models, options, console)
    with _signals(server):
        await server.serve(ready)
