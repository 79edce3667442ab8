"""Serve several models by their names: the stems of the model files of a folder, `spam.bin` as `spam`.

Each model has a service of its own, which only predicts. `refresh` looks for files that are new, changed or gone. A
file that cannot be loaded is refused, and the model that was loaded under its name before is served on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial

from ..api.learner import Learner
from ..errors import XclassError
from ..run.report.console import Console
from ..system.printable import printable
from .service import Service

SUFFIX = ".bin"  # of the files that are taken for models


class Models:
    """Hold the services of the models in a folder.

    Parameters
    ----------
    folder : path of the folder
    load : loads a learner that only predicts from the path of a file
    console : where messages for the operator go

    Attributes
    ----------
    folder : as given
    services : service by the name of its model
    """

    def __init__(self, folder: str, load: Callable[[str], Learner], console: Console) -> None:
        self.folder, self._load, self._console = folder, load, console
        self.services: dict[str, Service] = {}
        self._seen: dict[str, object] = {}  # name of a model -> identity of its file when it was last looked at

    async def refresh(self) -> None:
        """Load what is new or changed, and end the services of files that are gone.

        Raise OSError if the folder cannot be read.
        """
        found = await asyncio.to_thread(self._files)
        for name in self._seen.keys() - found.keys():
            del self._seen[name]
            if name in self.services:
                await self._end(name)
        for name, identity in found.items():
            if self._seen.get(name) != identity:
                self._seen[name] = identity
                await self._take(name)

    def _files(self) -> dict[str, object]:
        """Return the identity of each model file, which changes with its contents, by the name of its model."""
        found: dict[str, object] = {}
        with os.scandir(self.folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                stem, suffix = os.path.splitext(entry.name)
                with contextlib.suppress(FileNotFoundError):  # it may be gone by now
                    if suffix == SUFFIX and not stem.startswith(".") and entry.is_file():
                        status = entry.stat()
                        found[stem] = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        return found

    async def _take(self, name: str) -> None:
        """Load the model of a name and serve it, in place of the one that was served before."""
        load = partial(self._load, os.path.join(self.folder, name + SUFFIX))
        try:
            if name in self.services:
                await self.services[name].replace(load)
            else:
                service = Service(await asyncio.to_thread(load), learns=False, console=self._console)
                service.start()
                with contextlib.suppress(Exception):  # of the worker, which its requests are answered by
                    await service.call(lambda learner: None, learns=False)  # its kernels are loaded first
                self.services[name] = service
        except (XclassError, OSError) as error:
            served = "; the model that was loaded before is served on" if name in self.services else ""
            self._console.line(f"{printable(name)}: the model was not loaded: {error}{served}")
        else:
            self._console.info(f"{printable(name)}: the model was loaded")

    async def _end(self, name: str) -> None:
        await self._end_service(name)
        self._console.info(f"{printable(name)}: the file is gone, so the model is not served any more")

    async def end(self) -> None:
        """Answer all requests that wait, and end all services."""
        for name in list(self.services):
            await self._end_service(name)

    async def _end_service(self, name: str) -> None:
        service = self.services.pop(name)
        try:
            await service.end()
        except Exception as error:  # of a worker that failed before; other models are served on
            self._console.line(f"{printable(name)}: the server of the model has failed: {error}")
        finally:
            service.learner.close()
