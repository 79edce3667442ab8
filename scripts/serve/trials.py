"""Try what `xclass serve` promises on a large scale.

    python -m scripts.serve.trials connections --count 1000
    python -m scripts.serve.trials hour --count 3600 --seed 1
    python -m scripts.serve.trials description --count 100

connections   Clients ask at the same time, each for its own tags; a tenth dies in the middle of a line, and some
              send a byte at a time or read nothing. No answer of another is lost or has the tag of another.
hour          For so many seconds, clients of all kinds ask a server that learns: some send lines, a part of them of
              random bytes or with some bytes changed, some send JSON on connections of 1 to 100 requests, a fifth of
              them with some bytes, paths or headers changed, some die in the middle of a line or a request, and one
              sends names that are always new, asks for metrics, and saves the model. Each line gets one answer, valid
              requests are answered by 200, others by 4xx, all in JSON, and the server ends with status 0 and without a
              traceback in its standard error. Its memory grows by at most 16 MB, by ten times the median of its growth
              in tenths of the time; after ten minutes, it is in the last fifth at most 8 MB above that in the first.
description   schemathesis, which has to be installed, sends what the OpenAPI description allows and what it forbids,
              and finds nothing wrong; see `valid_requests`.

Prints a line about what was found. The exit status is 1 if a promise is broken.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from scripts.lib.command_line import new_parser, run
from scripts.lib.processes import BenchError, cpu_seconds, environment
from scripts.serve import servers
from xclass.serving.http import interface

CLASSES = 20
ASKED = 30  # lines of a client
JSON = "application/json"
MOST_GROWTH = 16e6  # bytes of memory
VOCABULARY = 5000  # words of valid requests; a server caches the names of 65,536 features
WARM_UP = 10  # minutes until all kernels are loaded and all caches are full
MOST_RISE = 8e6  # bytes of memory after that; a dictionary of cached names that is made anew takes 5 MB
SLOW = 20  # clients that send a byte at a time, and as many that read nothing


def model(folder: Path) -> None:
    """Learn a small model in a folder."""
    (folder / "train.vw").write_bytes(b"".join(servers.lines(2000, CLASSES, 6, 1, labelled=True)))
    command = ["-m", "xclass", "--oaa", str(CLASSES), "-b", "14", "-d", "train.vw", "-f", "model", "--quiet"]
    servers.trained(folder, command)


def connections(folder: Path, count: int, seed: int) -> str:
    """Let many clients ask at the same time."""
    chance = random.Random(seed)
    with servers.xclass(folder, "-i", "model", "-t") as (_, port):
        slow = [servers.connected(port) for _ in range(2 * SLOW)]
        for connection in slow[SLOW:]:
            connection.sendall(b"| a\n" * 2000)  # and read nothing
        dying = set(chance.sample(range(count), count // 10))
        selector = selectors.DefaultSelector()
        got: dict[int, bytearray] = {number: bytearray() for number in range(count)}
        for number in range(count):
            connection = servers.connected(port)
            selector.register(connection, selectors.EVENT_READ, number)
        began = time.perf_counter()
        for key in list(selector.get_map().values()):
            number, connection = key.data, key.fileobj
            assert isinstance(connection, socket.socket)
            text = "".join(f"c{number}-{i}| f{chance.randrange(99)}\n" for i in range(ASKED)).encode()
            if number in dying:
                connection.sendall(text[: chance.randrange(len(text))].rstrip(b"\n"))
                selector.unregister(connection)
                reset(connection)
            else:
                connection.sendall(text)
            if number % 25 == 0:
                for other in slow[:SLOW]:
                    other.sendall(b"|")
        while selector.get_map():
            ready = selector.select(60)
            if not ready:
                raise BenchError(f"{len(selector.get_map())} clients got no answer within a minute")
            for key, _ in ready:
                connection, answers = key.fileobj, got[key.data]
                assert isinstance(connection, socket.socket)
                part = connection.recv(1 << 16)
                answers += part
                if not part or answers.count(b"\n") == ASKED:
                    selector.unregister(connection)
                    connection.close()
        seconds = time.perf_counter() - began
        for number in set(range(count)) - dying:
            tags = [line.split()[1].decode() for line in got[number].splitlines()]
            if tags != [f"c{number}-{i}" for i in range(ASKED)]:
                raise BenchError(f"client {number} got other answers than its own: {tags}")
        for connection in slow:
            connection.close()
    answered = (count - len(dying)) * ASKED
    return f"{count} connections, {len(dying)} died: {answered} answers in {seconds:.1f} s, none lost or crossed"


def reset(connection: socket.socket) -> None:
    """Close a connection as the death of a client does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def fuzzed(chance: random.Random, lines: list[bytes]) -> bytes:
    """Return a line that may be malformed, with its newline."""
    line = bytearray(chance.choice(lines)[:-1])
    kind = chance.randrange(4)
    if kind == 0:
        line = bytearray(chance.randbytes(chance.randrange(80)))
    elif kind == 1:
        for _ in range(chance.randrange(1, 6)):
            line[chance.randrange(len(line))] = chance.choice(b"|: \t'\r\0,.-+e0129\xff")
    elif kind == 2:
        line = line[: chance.randrange(len(line))] + line[chance.randrange(len(line)) :]
    return bytes(line).replace(b"\n", b" ") + b"\n"


@contextlib.contextmanager
def watched(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int, list[int]]]:
    """Start a server, and give a list for its memory, too; it has to stay as small, and to end without an error."""
    used: list[int] = []
    with (folder / "log").open("w+b") as log:
        with servers.xclass(folder, *words, log=log) as (process, port):
            yield process, port, used
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
        told = (folder / "log").read_text(errors="replace")
    if "Traceback" in told:
        raise BenchError(f"the server had a defect:\n{told[-4000:]}")
    if status or growth(used) > MOST_GROWTH:
        raise BenchError(f"status {status}, memory grew by {growth(used) / 1e6:.1f} MB")


def growth(used: list[int]) -> float:
    """Return by how many bytes the memory grew, without what a kernel takes when it is compiled at its first use."""
    parts = used[:: max(1, len(used) // 10)]
    return len(parts) * median([later - earlier for earlier, later in itertools.pairwise(parts)] or [0])


def question(chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a random operation and a valid body for it."""
    operation = chance.choices(["predict", "learn", "explain"], [8, 3, 1])[0]
    kind, n = chance.choice(["lines", "examples", "texts"]), chance.randrange(1, 6)
    words = [[f"f{chance.randrange(VOCABULARY)}" for _ in range(chance.randrange(1, 12))] for _ in range(n)]
    labels = [chance.randrange(1, CLASSES + 1) for _ in range(n)]
    body: dict[str, Any] = {}
    if kind == "lines":
        starts = [f"{label} " if operation == "learn" else "" for label in labels]
        body["lines"] = [f"{start}|a {' '.join(one)}" for start, one in zip(starts, words, strict=True)]
    elif kind == "examples":
        body["examples"] = [{"features": {"a": dict.fromkeys(one, chance.random())}} for one in words]
        if operation == "learn":
            for one, label in zip(body["examples"], labels, strict=True):
                one["label"] = label
    else:
        body["texts"] = [" ".join(one) for one in words]
        if operation == "learn":
            body["labels"] = labels
    if operation == "explain" and chance.random() < 0.5:
        body["k"] = chance.randint(1, interface.MOST_CLASSES_EXPLAINED)
    return operation, body


def spoiled(chance: random.Random, path: str, body: bytes, headers: dict[str, str]) -> tuple[str, bytes]:
    """Return a path and a body with something wrong in them, or in the headers."""
    kind = chance.randrange(6)
    if kind == 0:
        return f"/v1/{''.join(chance.choices('abc%2F.~?', k=9))}/predict", body
    if kind == 1:
        name = chance.choice(["Host", "Origin", "Content-Type", "Authorization"])
        headers[name] = chance.choice(["", "example.org", "http://evil.example", "text/plain", "Bearer x", "0" * 999])
        return path, body
    if kind == 2:
        return path, body[: chance.randrange(len(body))]
    if kind == 3:
        return path, b"[" * chance.randrange(1, 5000) + body
    spoilt = bytearray(body)
    for _ in range(chance.randrange(1, 6)):
        spoilt[chance.randrange(len(spoilt))] = chance.choice(b'{}[]",:\\\0\xff 0-eE.n|')
    return path, bytes(spoilt)


def requests(port: int, chance: random.Random) -> Iterator[int]:
    """Send valid and spoiled requests, one after the other, and yield the status of each answer."""
    while True:
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=servers.SECONDS)) as connection:
            for _ in range(chance.randrange(1, 101)):
                operation, asked = question(chance)
                path, body, headers = f"/v1/{operation}", json.dumps(asked).encode(), {"Content-Type": JSON}
                is_valid = chance.random() < 0.8
                if not is_valid:
                    path, body = spoiled(chance, path, body, headers)
                connection.putrequest("POST", path, skip_host="Host" in headers)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = json.loads(answer.read())
                expected = {200} if is_valid else {200, 400, 403, 404, 405, 413, 415}
                if answer.status not in expected or ("error" in content) != (answer.status != 200):
                    raise BenchError(f"{path} {body[:500]!r}: {answer.status} {str(content)[:500]}")
                yield answer.status


def hour(folder: Path, count: int, seed: int) -> str:
    """Let clients of all kinds ask at the same time, for `count` seconds."""
    port, over, asked = servers.free_port(), threading.Event(), Counter[str]()
    words = ("-i", "model", "-f", "new", "--checkpoint", "20000", "--http", str(port))
    with watched(folder, *words) as (process, lines_port, used), futures.ThreadPoolExecutor(8) as threads:
        servers.wait(process, lambda: servers.accepts(port))
        clients = [  # what one does, and the seconds until it does it again
            *(("lines", _lines(lines_port, random.Random(seed + i)), 0.2) for i in range(3)),
            *(("requests", requests(port, random.Random(seed + i)), 0.05) for i in range(3)),
            ("requests", _other_requests(port), 1.0),
            ("deaths", _deaths(lines_port, port, random.Random(seed)), 0.5),
        ]

        def repeat(kind: str, steps: Iterator[int], pause: float) -> tuple[str, int]:
            done = 0
            for step in steps:
                done += step if kind == "lines" else 1
                if over.wait(pause):
                    break
            return kind, done

        tasks = [threads.submit(repeat, *client) for client in clients]
        end = time.monotonic() + count
        try:
            while (left := end - time.monotonic()) > 0 and not any(task.done() for task in tasks):
                futures.wait(tasks, min(60, left), futures.FIRST_COMPLETED)
                used.append(servers.memory(process))
        finally:
            over.set()
        for task in tasks:
            kind, done = task.result()
            asked[kind] += done
        cpu = cpu_seconds(process.pid)
    shown = ", ".join(f"{size / 1e6:.1f}" for size in used[9::10] or used[-1:])
    later, fifth = used[WARM_UP - 1 :], max(1, (len(used) - WARM_UP) // 5)
    rise = median(later[-fifth:]) - median(later[:fifth]) if later else 0.0
    if rise > MOST_RISE:
        raise BenchError(f"the memory rose by {rise / 1e6:.1f} MB after {WARM_UP} minutes; it was {shown} MB")
    return (
        f"{count} seconds: {asked['requests']} requests, {asked['lines']} lines, {asked['deaths']} deaths in "
        f"{cpu:.0f} s of CPU time; memory after each ten minutes {shown} MB, rise {rise / 1e6:+.1f} MB"
    )


def _lines(port: int, chance: random.Random) -> Iterator[int]:
    """Send lines, some of them malformed, on one connection after the other, and yield how many were answered."""
    while True:
        lines = servers.lines(100, CLASSES, 6, chance.randrange(1 << 32), labelled=chance.random() < 0.5)
        with servers.connected(port) as connection:
            connection.sendall(b"| a\n")  # a first line that is malformed may be that of another protocol
            servers.received(connection, 1)
            for _ in range(chance.randrange(1, 101)):
                connection.sendall(b"".join(fuzzed(chance, lines) for _ in range(100)))
                if servers.received(connection, 100).count(b"\n") != 100:
                    raise BenchError("a line got no answer")
                yield 100


def _other_requests(port: int) -> Iterator[int]:
    """Send a thousand names that are new, look at the server, and save its model, again and again."""
    for number in itertools.count():
        features = {f"new{number}-{i}": 1 for i in range(1000)}
        bodies = {"predict": {"examples": [{"features": features}]}, "save": {}}
        for path in ("/v1/predict", "/metrics", "/v1/model", "/readyz", "/v1/save"):
            body = bodies.get(path.removeprefix("/v1/"))
            with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=servers.SECONDS)) as connection:
                if body is None:
                    connection.request("GET", path)
                else:
                    connection.request("POST", path, json.dumps(body), {"Content-Type": JSON})
                answer = connection.getresponse()
                answer.read()
            if answer.status != 200:
                raise BenchError(f"{path}: {answer.status}")
            yield answer.status


def _deaths(lines_port: int, port: int, chance: random.Random) -> Iterator[int]:
    """Begin to send lines or a request, and die; yield the port."""
    lines = b"".join(servers.lines(20, CLASSES, 6, 5, labelled=True))
    while True:
        operation, asked = question(chance)
        body = json.dumps(asked)
        head = f"POST /v1/{operation} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        to, text = chance.choice([(lines_port, lines), (port, request)])
        connection = servers.connected(to)
        connection.sendall(text[: chance.randrange(len(text))])
        reset(connection) if chance.random() < 0.5 else connection.close()
        yield to


def description(folder: Path, count: int, seed: int) -> str:
    """Let schemathesis try what the OpenAPI description allows and what it forbids."""
    from scripts.serve import valid_requests

    port, config = servers.free_port(), folder / "schemathesis.toml"
    config.write_text(
        f'hooks = "{valid_requests.__name__}"\n[parameters]\n"path.name" = "model"\n'
        '[checks]\nnegative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "413", "415"]\n'
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", "--no-color"]
    options = [f"--max-examples={count}", f"--seed={seed}", f"http://127.0.0.1:{port}/openapi.json"]
    with watched(folder, "-i", "model", "-f", "new", "--http", str(port)) as (process, _, _):
        servers.wait(process, lambda: servers.accepts(port))
        result = subprocess.run([*command, *options], capture_output=True, text=True, cwd=folder, env=environment())
    if result.returncode:
        raise BenchError(f"schemathesis:\n{result.stdout[:4000]}\n...\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    (cases,) = re.findall(r"([0-9]+) generated", result.stdout)
    return f"{count} examples at most of an operation: {cases} cases passed"


TRIALS: dict[str, Any] = {
    "connections": (connections, 1000),
    "hour": (hour, 3600),
    "description": (description, 100),
}


def main() -> None:
    """Carry out a trial."""
    parser = new_parser(__doc__)
    parser.add_argument("trial", choices=list(TRIALS))
    parser.add_argument("--count", type=int, help="(default: 1000, 3600 or 100)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    given = parser.parse_args()
    trial, count = TRIALS[given.trial]
    with tempfile.TemporaryDirectory() as name:
        model(Path(name))
        print(trial(Path(name), given.count or count, given.seed))


if __name__ == "__main__":
    run(main)
