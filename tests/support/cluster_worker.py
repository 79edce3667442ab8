"""Define a worker for tests of the cluster; worker processes import it."""

import os
import signal
from pathlib import Path

from xclass.errors import DataError


class Worker:
    """A worker that says what it is."""

    def __init__(self, number, folder):
        self.number, self.folder = number, Path(folder)

    def ping(self):
        """Return the process."""
        return os.getpid()

    def die_once(self):
        """End this process the first time that the method runs on any worker with this number."""
        marker = self.folder / f"died-{self.number}"
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.number

    def fail(self):
        """Raise an error of xclass."""
        raise DataError(f"x.vw:{self.number}: wrong", "second line")
