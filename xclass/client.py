"""Ask a server that `xclass serve` has started, from a program that needs nothing but Python.

from xclass.client import Client

with Client(port=26542) as client:
    client.learn(["1 | sunny warm", "2 | rainy cold"])
    print(client.predict(["| warm", "| cold rainy"]))
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

AT_ONCE = 1 << 15  # bytes that are sent before their answers are read: they fit into the buffers of a connection
# The first line that the client sends. The server answers whether it learns, and from then on marks errors and blanks
# in names by control characters, which no name contains.
GREETING = b"'xclass-client |\n"
ERROR, BLANK = "\x15error: ", "\x1f"
ONLY_PREDICTS = ERROR + "only predicts\n"  # the answer of a server that does not learn


class _Received(io.RawIOBase):
    """Read from a socket up to a moment, `deadline`; the time limit of a socket begins anew with each byte."""

    deadline = 0.0

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket.recv_into(buffer)


class Client:
    """Hold a connection to the port of a server, or to its Unix socket `path`.

    Methods raise OSError if there is no connection, it ends, or an answer takes longer than `timeout` seconds, and
    ValueError for a line that the server cannot read; lines after it may have been learned, too. After any other
    exception, such as KeyboardInterrupt, answers may be on their way, so the next call makes a new connection. So does
    the first call in a process that was forked, and one after the server has ended the connection, which was idle.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 26542, path: str | None = None, timeout: float = 60.0
    ) -> None:
        if path is None and (
            not isinstance(port, int) or not 0 < port < 1 << 16
        ):  # a larger one would be cut to 16 bits
            raise ValueError(f"port: {port!r} is not a whole number from 1 to 65535")
        self._address, self._path, self._timeout = (host, port), path, timeout
        self._closed, self._lock = False, threading.Lock()
        self._connect()

    @contextlib.contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Name the server, the limit and what to do in an error because the `with` block takes too long."""
        try:
            yield
        except TimeoutError:
            raise TimeoutError(
                f"{self._place}: the server has not answered within {self._timeout:g} seconds; check that xclass serve "
                f"runs there, send fewer lines at once, or give Client a larger timeout"
            ) from None

    @property
    def _place(self) -> str:
        return self._path or "{}:{}".format(*self._address)

    def _connect(self) -> None:
        with self._time_limit():
            self._open()

    def _open(self) -> None:
        try:
            if self._path is None:
                self._socket = socket.create_connection(self._address, self._timeout)
            else:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(self._timeout)
                self._socket.connect(self._path)
        except TimeoutError:
            raise
        except OSError as error:
            reason = f"{self._place}: {error.strerror or error}; check that xclass serve runs there"
            raise type(error)(*filter(None, (error.errno,)), reason) from None  # some have no number
        self._received = _Received(self._socket)
        self._answers: io.BufferedReader | None = io.BufferedReader(self._received)
        self._process = os.getpid()
        try:
            self._socket.sendall(GREETING)
            answer = self._line(self._answers)
            if answer and not answer.startswith((ERROR, ERROR[1:])):
                raise ConnectionError(
                    f"the server has answered {answer[:60]!r}; give the port of lines, which xclass serve prints first"
                )
            if not answer.startswith(ERROR):
                raise ConnectionError(answer.removeprefix(ERROR[1:]).strip() or "the server has closed the connection")
        except BaseException:
            self._end()
            raise
        self._learns = answer != ONLY_PREDICTS

    def _line(self, answers: io.BufferedReader) -> str:
        """Return the next answer, with its newline unless the server has closed the connection."""
        self._received.deadline = time.monotonic() + self._timeout
        return answers.readline().decode("utf-8", "surrogateescape")

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[io.BufferedReader]:
        """Give the answers to what is sent in the `with` block; end the connection if they are not all read."""
        if self._process != os.getpid():
            self._lock = threading.Lock()
            self._end()
        with self._lock:
            if self._closed:
                raise ConnectionError("the client is closed; make another one")
            if self._answers is not None and self._is_stale():
                self._end()
            if self._answers is None:
                self._connect()
            assert self._answers is not None
            try:
                yield self._answers
            except BaseException as error:
                self._end()
                if self._closed and isinstance(error, (OSError, ValueError)):
                    raise ConnectionError(
                        "another thread has closed the client before all lines were answered"
                    ) from None
                raise

    def _is_stale(self) -> bool:
        """Return whether the server has ended the connection, or sent what no line has asked for."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._socket.settimeout(self._timeout)
        return True

    def predict(self, lines: Iterable[str]) -> list[str]:
        """Return the predictions for lines of VW text as `-p` writes them; lines with a label are learned, too."""
        return [answer.replace(BLANK, " ") for _, answer in self._ask(lines)]

    def learn(self, lines: Iterable[str]) -> list[str]:
        """Learn labelled lines, `label | features`, and return the predictions made before each was learned."""
        if not self._learns:
            raise ValueError(
                "the server only predicts, because it was started with -t; to learn, start it with -f FILE instead"
            )
        return self.predict(lines)

    def predict_top_k(self, lines: Iterable[str]) -> list[list[tuple[str, float]]]:
        """Return the most probable classes with their probabilities, from a server with `--top_k K`.

        The last pair of a list may have the class "", which stands for all other classes.
        """
        found = []
        for line, answer in self._ask(lines):
            head, words = line.partition("|")[0], answer.split(" ")
            if head.split() and (not head.endswith(" ") or head.split()[-1].startswith("'")):  # the tag
                words.pop()
            pairs = [word.replace(BLANK, " ").rpartition(":") for word in words if word]
            if not all(colon for _, colon, _ in pairs):
                raise ValueError(f"{answer[:60]!r} is no list of classes; start the server with --top_k K")
            found.append([(label, float(p)) for label, _, p in pairs])
        return found

    def _ask(self, lines: Iterable[str]) -> list[tuple[str, str]]:
        """Return each line with its answer."""
        if isinstance(lines, str):
            raise ValueError(f"the lines are the text {lines[:60]!r}; give a list of lines")
        lines = list(lines)
        if wrong := [line for line in lines if not isinstance(line, str)]:
            raise ValueError(f"{str(wrong[0])[:60]} is {type(wrong[0]).__name__}; give each line as text")
        if any("\n" in line for line in lines):
            raise ValueError("an example is one line, and a text of these holds a newline")
        sent = [f"{line}\n".encode("utf-8", "surrogateescape") for line in lines]
        ends, found = itertools.accumulate(map(len, sent)), list[tuple[str, str]]()
        for _, part in itertools.groupby(zip(sent, ends, strict=True), lambda one: one[1] // AT_ONCE):
            texts = [text for text, _ in part]
            with self._exchange() as received:
                with self._time_limit():
                    self._socket.sendall(b"".join(texts))
                    answers = [self._line(received) for _ in texts]
                if not all(answer.endswith("\n") for answer in answers):
                    raise ConnectionError("the server has closed the connection before it has answered all lines")
            for line, answer in zip(lines[len(found) :], answers, strict=False):
                if answer.startswith(ERROR):
                    raise ValueError(f"{line[:60]!r}: {answer[len(ERROR) : -1]}")
                found.append((line, answer[:-1]))
        return found

    def _end(self) -> None:
        if self._answers is not None:
            self._answers.close()
            self._socket.close()
        self._answers = None

    def close(self) -> None:
        """End the connection."""
        self._closed = True
        if self._process == os.getpid():  # a process that was forked leaves the connection to its parent
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # what another thread waits for ends
        self._end()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
