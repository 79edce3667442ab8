"""Define a worker of exact mode that reads small batches, and dies when a test wants it to."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from xclass.cluster.exact import worker
from xclass.text import reader


class MortalWorker(worker.Worker):
    """A worker that dies once, at the step for which there is a file `die-NUMBER-STEP` beside the model."""

    def __init__(self, number, folder, config, use, count, schema):
        reader.FIRST_BLOCK = reader.LARGEST_BLOCK = 3000
        worker.STEP_TASKS = 4
        self.place = Path(folder)
        super().__init__(number, folder, config, use, count, schema)

    def learn(self, epoch, step, released):
        self._die_at(step)
        return super().learn(epoch, step, released)

    def go_on(self, epoch, step, number, *received):
        self._die_at(step + 0.5)
        return super().go_on(epoch, step, number, *received)

    def advance(self, epoch, step, stopped, *received):
        self._die_at(step)
        return super().advance(epoch, step, stopped, *received)

    def _die_at(self, step):
        marker = self.place / f"die-{self._number}-{step}"
        if marker.exists():
            marker.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
