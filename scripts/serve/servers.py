"""Start servers of xclass, of VW and of others as processes of their own, and make the lines that clients send."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import quantiles

from scripts.lib.processes import BenchError, environment

SECONDS = 120
# VW's Python module parses what a daemon is sent only in `run_parser`
VW = "import sys, pylibvw, vowpalwabbit; pylibvw.vw.run_parser(vowpalwabbit.Workspace(arg_list=sys.argv[1:]))"


def lines(count: int, classes: int, features: int, seed: int, labelled: bool) -> list[bytes]:
    """Return lines, each with its newline; half of the features of an example depend on its class."""
    chance, made = random.Random(seed), []
    for _ in range(count):
        label = chance.randrange(classes) + 1
        own = [f"f{(label * 7 + j * 13) % 50_000}" for j in range(features // 2)]
        words = own + [f"f{chance.randrange(50_000)}" for _ in range(features - len(own))]
        made.append(f"{f'{label} ' if labelled else ''}|a {' '.join(words)}\n".encode())
    return made


@contextlib.contextmanager
def xclass(folder: Path, *words: str, log=None) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start `xclass serve` in a folder, and give its process and its port; `log` is the file of its standard error."""
    file = folder / "port"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "xclass", "serve", *words, "--quiet", "--port", "0", "--port_file", str(file)]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=log)
    with _ended(process):
        wait(process, lambda: file.exists() and file.read_text().endswith("\n"))
        yield process, int(file.read_text().split()[0])


@contextlib.contextmanager
def vw(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a daemon of VW, and give its process and its port; `words` say by how many processes it serves."""
    port = free_port()
    listening = f":{port:04X} 00000000:0000 0A"  # in /proc/net/tcp; to connect would take its only child
    command = [sys.executable, "-c", VW, *words, "--daemon", "--foreground", "--quiet", "--port", str(port)]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, stdin=nothing, stdout=nothing, start_new_session=True)
    try:
        with _ended(process):
            wait(process, lambda: listening in Path("/proc/net/tcp").read_text())
            yield process, port
    finally:
        with contextlib.suppress(ProcessLookupError):  # those that serve, if VW has not ended them itself
            os.killpg(process.pid, signal.SIGKILL)


def accepts(port: int) -> bool:
    """Return whether a port accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def memory(process: subprocess.Popen[bytes]) -> int:
    """Return the resident bytes of a process."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        if process.poll() is None:
            process.kill()
        process.wait()


def wait(process: subprocess.Popen[bytes], ready) -> None:
    """Wait until a server that was started is ready."""
    deadline = time.monotonic() + SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise BenchError("a server did not start")
        time.sleep(0.02)


def trained(folder: Path, command: Sequence[str]) -> None:
    """Execute a command that learns a model in a folder."""
    subprocess.run([sys.executable, *command], cwd=folder, env=environment(), check=True)


def connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answered(port: int, requests: list[bytes], clients: int, complete: Callable[[bytes], bool]) -> list[float]:
    """Send requests on so many connections, each of which has one on its way; return the seconds that each took.

    `complete` says whether what has come is a whole answer.
    """
    times: list[float] = []
    waiting = iter(requests)
    with selectors.DefaultSelector() as selector:
        for request in itertools.islice(waiting, clients):
            connection = connected(port)
            selector.register(connection, selectors.EVENT_READ, [time.perf_counter(), b""])
            connection.sendall(request)
        while selector.get_map():
            for key, _ in selector.select(SECONDS):
                connection, state = key.fileobj, key.data
                part = connection.recv(1 << 16)
                state[1] += part
                if not part:
                    raise BenchError("a server closed a connection")
                if not complete(state[1]):
                    continue
                times.append(time.perf_counter() - state[0])
                following = next(waiting, None)
                if following is None:
                    selector.unregister(connection)
                    connection.close()
                else:
                    state[:] = [time.perf_counter(), b""]
                    connection.sendall(following)
    return times


def milliseconds(times: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile of seconds."""
    cuts = quantiles(times, n=100)
    return {"p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3}


def received(connection: socket.socket, count: int) -> bytes:
    """Return what comes until there are so many lines, or until the other side closes the connection."""
    parts, found = [], 0
    while found < count:
        part = connection.recv(1 << 16)
        if not part:
            break
        parts.append(part)
        found += part.count(b"\n")
    return b"".join(parts)
