"""Ask a server that `xclass serve` has started, from a program that needs nothing but Python.

from xclass.client import Client

with Client(port=26542) as client:
    client.learn(["1 | sunny warm", "2 | rainy cold"])
    print(client.predict(["| warm", "| cold rainy"]))
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from types import TracebackType

AT_ONCE = 1 << 15  # bytes that are sent before their answers are read: they fit into the buffers of a connection


class Client:
    """Hold a connection to a server; only one thread at a time may use it.

    Parameters
    ----------
    host, port : str, int
        Where the server listens.
    path : str, optional
        Its Unix socket instead, `--socket`.
    timeout : float, default 60
        Seconds to wait for an answer.

    Raises
    ------
    OSError
        If there is no connection, or it ends before all lines are answered.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 26542, path: str | None = None, timeout: float = 60.0
    ) -> None:
        if path is None:
            self._socket = socket.create_connection((host, port), timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(timeout)
            try:
                self._socket.connect(path)
            except OSError:
                self._socket.close()
                raise
        self._answers = self._socket.makefile("rb")

    def ask(self, lines: Sequence[str]) -> Iterator[str]:
        """Send lines of VW text, and yield their answers, as `-p` writes them; ValueError is raised for an error."""
        if any("\n" in line for line in lines):
            raise ValueError("an example is one line, and a text of these holds a newline")
        sent = [f"{line}\n".encode("utf-8", "surrogateescape") for line in lines]
        end = 0
        while end < len(lines):
            begin, size = end, 0
            while end < len(lines) and (end == begin or size + len(sent[end]) <= AT_ONCE):
                size += len(sent[end])
                end += 1
            self._socket.sendall(b"".join(sent[begin:end]))
            some = lines[begin:end]
            answers = [self._answers.readline().decode("utf-8", "surrogateescape") for _ in some]
            for line, answer in zip(some, answers, strict=True):
                if not answer.endswith("\n"):
                    raise ConnectionError("the server has closed the connection before it has answered all lines")
                if answer.startswith("error: "):
                    raise ValueError(f"{line[:60]!r}: {answer[7:-1]}")
                yield answer[:-1]

    def predict(self, lines: Sequence[str]) -> list[str]:
        """Return the predictions for lines without labels, `| features`, as texts.

        Raises ValueError for a line that the server cannot read, after it has answered the lines before it.
        """
        return list(self.ask(lines))

    def learn(self, lines: Sequence[str]) -> list[str]:
        """Learn labelled lines, `label | features`, and return the predictions made before each was learned."""
        return list(self.ask(lines))

    def predict_top_k(self, lines: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return the most probable classes with their probabilities, from a server with `--top_k K`.

        The last pair of a list may have the class "", which stands for all other classes.
        """
        pairs = [[pair.rpartition(":") for pair in answer.split()] for answer in self.ask(lines)]
        return [[(label, float(p)) for label, _, p in some] for some in pairs]

    def close(self) -> None:
        """End the connection."""
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
