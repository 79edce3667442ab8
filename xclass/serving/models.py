"""Hold the models of a server by their names: one that may learn, or those of a folder, which only predict.

Each model has a service of its own. In a folder, the model of `spam.bin` is `spam`. A file that cannot be loaded is
refused, and the model that was loaded under its name before is served on.
"""

from __future__ import annotations

import asyncio
import errno
import os
import traceback
from collections.abc import Callable
from functools import partial

from ..api.learner import Learner
from ..errors import UsageError, XclassError
from ..run.report.console import OperatorConsole
from ..system.printable import printable
from .service import Service, Unavailable

SUFFIX = ".bin"  # of the files that are taken for models


class Models:
    """Hold services by the names of their models.

    Parameters
    ----------
    console : where messages for the operator go

    Attributes
    ----------
    services : service by the name of its model
    of_lines : the one that answers the line protocol; None if there are several
    pause : seconds between two looks for changes; None for none
    are_loaded : whether all models were loaded that were there at the beginning
    ending : is set when the server ends, so that no more models are loaded
    """

    of_lines: Service | None = None
    pause: float | None = None
    are_loaded = True
    ending = False

    def __init__(self, console: OperatorConsole) -> None:
        self.services: dict[str, Service] = {}
        self._console = console

    async def refresh(self, asked: bool) -> None:
        """Load what is new, at the beginning and after each pause, or because the operator has `asked` for it."""
        raise NotImplementedError

    async def end(self) -> None:
        """Answer all requests that wait, and end all services."""
        raise NotImplementedError


class OneModel(Models):
    """Hold one service, which answers lines, too.

    Parameters
    ----------
    service : the service
    load : loads the model anew; None if it does not come from a file
    name : of the model in HTTP requests
    """

    def __init__(
        self, service: Service, console: OperatorConsole, load: Callable[[], Learner] | None = None, name: str = "model"
    ) -> None:
        super().__init__(console)
        self.of_lines = self._service = self.services[name] = service
        self._load = load

    async def refresh(self, asked: bool) -> None:
        if not asked:
            return
        if self._load is None:
            self._console.line("the learner comes from no file, so there is nothing to load")
            return
        try:
            await self._service.replace(self._load)
        except Exception as error:
            self._console.line(f"the model was not loaded, and the old one serves on: {_reason(error)}")
        else:
            self._console.info("the model was loaded anew")

    async def end(self) -> None:
        """Answer all requests that wait, and save the model; raise the error of the worker or of saving."""
        await self._service.end()


class FolderModels(Models):
    """Hold the services of the models in a folder.

    Parameters
    ----------
    folder : path of the folder
    load : loads a learner that only predicts from the path of a file

    Raises
    ------
    UsageError
        If the folder cannot be read.
    """

    pause = 2.0

    def __init__(self, folder: str, load: Callable[[str], Learner], console: OperatorConsole) -> None:
        super().__init__(console)
        self._folder, self._load = folder, load
        self.are_loaded = False
        self._seen: dict[str, object] = {}  # name of a model -> identity of its file when it was last loaded
        self._told: dict[str, str] = {}  # name of a model that was not loaded, "" for the folder -> why
        try:
            self._files()
        except OSError as error:
            raise UsageError(
                f"--models {folder}: the folder cannot be read: {error.strerror}; give a folder of model files"
            ) from None

    async def refresh(self, asked: bool) -> None:
        """Load files that are new or changed and models that have failed, and end the services of files that are gone.

        A file that cannot be loaded is tried again when it has changed, when the operator has `asked`, and after a
        pause if the system could not read it.
        """
        if asked:
            for name in self._told:
                self._seen.pop(name, None)
            self._told.clear()
        try:
            found = await asyncio.to_thread(self._files)
        except OSError as error:
            self._tell("", f"{printable(self._folder)}: the folder cannot be read: {error.strerror}")
            return
        for name in self.services.keys() - found.keys():
            await self._end(name, self.services.pop(name))
            self._console.info(f"{printable(name)}: the file is gone, so the model is not served any more")
        for known in (self._seen, self._told):
            for name in known.keys() - found.keys():
                del known[name]
        for name, identity in found.items():
            if self.ending:
                return
            old = self.services.get(name)
            if self._seen.get(name) != identity or (old is not None and old.failure is not None):
                self._seen[name] = identity
                await self._take(name, old)
        self.are_loaded = True

    def _files(self) -> dict[str, object]:
        """Return the identity of each model file, which changes with its contents, by the name of its model."""
        found: dict[str, object] = {}
        with os.scandir(self._folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                stem, suffix = os.path.splitext(entry.name)
                if suffix != SUFFIX or stem.startswith("."):
                    continue
                try:
                    if entry.is_file():
                        status = entry.stat()
                        found[stem] = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
                    elif entry.is_symlink() and not os.path.exists(entry.path):  # loading refuses it and says so
                        found[stem] = errno.ENOENT
                except FileNotFoundError:  # it may be gone by now
                    pass
                except OSError as error:  # such as a link to itself: loading refuses this file alone
                    found[stem] = error.errno
        return found

    async def _take(self, name: str, old: Service | None) -> None:
        """Load the model of a name and serve it, in place of the one that was served before or has failed."""
        load = partial(self._load, os.path.join(self._folder, name + SUFFIX))
        failed = old if old is not None and old.failure is not None else None
        try:
            if old is None or failed is not None:
                self.services[name] = await self._started(name, load)
            else:
                await old.replace(load)
        except Exception as error:
            if failed is not None:
                del self.services[name]
            if _is_of_the_system(error):
                del self._seen[name]
            served = "; the model that was loaded before is served on" if name in self.services else ""
            self._tell(name, f"{printable(name)}: the model was not loaded: {_reason(error)}{served}")
        else:
            self._told.pop(name, None)
            self._console.info(f"{printable(name)}: the model was loaded")
        if failed is not None:
            await self._end(name, failed)

    async def _started(self, name: str, load: Callable[[], Learner]) -> Service:
        """Return a new service whose kernels are loaded."""
        service = Service(await asyncio.to_thread(load), learns=False, console=self._console)
        service.start()
        try:
            await service.call(lambda learner: None, learns=False)  # is called when they are
        except BaseException:
            await self._end(name, service)
            raise
        return service

    def _tell(self, name: str, why: str) -> None:
        """Tell the operator why something was not loaded, once."""
        if self._told.get(name) != why:
            self._told[name] = why
            self._console.line(why)

    async def end(self) -> None:
        for name in list(self.services):
            await self._end(name, self.services.pop(name))

    async def _end(self, name: str, service: Service) -> None:
        try:
            await service.end()
        except Exception as error:  # of a worker; other models are served on
            self._console.line(f"{printable(name)}: the learner has failed because of a defect of xclass:")
            for line in "".join(traceback.format_exception(error)).splitlines():
                self._console.line(line)
        finally:
            service.learner.close()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, (XclassError, Unavailable, OSError)) else repr(error)


def _is_of_the_system(error: BaseException | None) -> bool:
    """Return whether a file could not be read for a reason that may pass, such as too many open files."""
    while error is not None and not isinstance(error, OSError):
        error = error.__context__
    return error is not None
