"""Ask a server that `xclass serve` has started, from a program that needs nothing but Python.

from xclass.client import Client

with Client(port=26542) as client:
    client.learn(["1 | sunny warm", "2 | rainy cold"])
    print(client.predict(["| warm", "| cold rainy"]))
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Sequence

AT_ONCE = 1 << 15  # bytes that are sent before their answers are read: they fit into the buffers of a connection


class Client:
    """Hold a connection to the port of a server, or to its Unix socket `path`; only one thread at a time may use it.

    Methods raise OSError if there is no connection, it ends, or an answer takes longer than `timeout` seconds, and
    ValueError for a line that the server cannot read; lines after it may have been learned, too.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 26542, path: str | None = None, timeout: float = 60.0
    ) -> None:
        if path is None:
            self._socket = socket.create_connection((host, port), timeout)
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(timeout)
            self._socket.connect(path)
        self._answers = self._socket.makefile(encoding="utf-8", errors="surrogateescape", newline="\n")

    def predict(self, lines: Sequence[str]) -> list[str]:
        """Return the predictions for lines of VW text as `-p` writes them; lines with a label are learned, too."""
        if any("\n" in line for line in lines):
            raise ValueError("an example is one line, and a text of these holds a newline")
        sent = [f"{line}\n".encode("utf-8", "surrogateescape") for line in lines]
        ends, found = itertools.accumulate(map(len, sent)), list[str]()
        for _, part in itertools.groupby(zip(sent, ends, strict=True), lambda one: one[1] // AT_ONCE):
            texts = [text for text, _ in part]
            self._socket.sendall(b"".join(texts))
            answers = [self._answers.readline() for _ in texts]
            for line, answer in zip(lines[len(found) :], answers, strict=False):
                if not answer.endswith("\n"):
                    raise ConnectionError("the server has closed the connection before it has answered all lines")
                if answer.startswith("error: "):
                    raise ValueError(f"{line[:60]!r}: {answer[7:-1]}")
                found.append(answer[:-1])
        return found

    def learn(self, lines: Sequence[str]) -> list[str]:
        """Learn labelled lines, `label | features`, and return the predictions made before each was learned."""
        return self.predict(lines)

    def predict_top_k(self, lines: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return the most probable classes with their probabilities, from a server with `--top_k K`.

        The last pair of a list may have the class "", which stands for all other classes.
        """
        found = []
        for line, answer in zip(lines, self.predict(lines), strict=True):
            head, words = line.partition("|")[0].split(), answer.split()
            if head and words[-1] == head[-1].removeprefix("'"):  # the tag
                words.pop()
            pairs = [word.rpartition(":") for word in words]
            found.append([(label, float(p)) for label, _, p in pairs])
        return found

    def close(self) -> None:
        """End the connection."""
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
