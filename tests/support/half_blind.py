"""Define a worker of exact mode that is not permitted to read a file."""

from __future__ import annotations

from mortal_worker import MortalWorker

from xclass.text import urls


class HalfBlindWorker(MortalWorker):
    """A worker that cannot open the file that `blind-NUMBER` names."""

    def begin(self, epoch, step, clock, place, *states):
        marker = self.place / f"blind-{self._number}"
        hidden = marker.read_text() if marker.exists() else None
        opened = urls.opened

        def opened_if_allowed(path):
            if path == hidden:
                raise PermissionError(13, "Permission denied")
            return opened(path)

        urls.opened = opened_if_allowed
        return super().begin(epoch, step, clock, place, *states)
