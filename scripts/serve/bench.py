"""Measure the speed of `xclass serve`: by lines, beside a daemon of VW with one process, and by HTTP.

    python -m scripts.serve.bench
    python -m scripts.serve.bench --learner='--multiclass' --alone --rounds 5

All serve models of the same data, with `-t`: `--oaa K`, unless `--learner` says otherwise. The systems take turns. A
round sends all lines on one connection without waiting for answers (pipelined), then some lines one at a time on one
connection, and, to xclass alone, on 50 connections, each of which sends a line when its last one is answered. By HTTP,
each request has one example, and each client sends one when its last one is answered.

Prints Markdown tables of medians over the rounds: lines or predictions a second, milliseconds until the answer, and CPU
microseconds of the server for a request. --json keeps the rounds, of which `python -m scripts.measure serving_lines
--json FILE --page`, and the same with serving_http, make the tables of docs/serving.md.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.lib.command_line import new_parser, run
from scripts.lib.processes import BenchError, cpu_seconds, machine
from scripts.lib.results import lines_of
from scripts.lib.tables import Record, of_page
from scripts.serve import servers

CONNECTIONS, CLIENTS = 50, (1, 8)


# -- lines


def pipelined(port: int, lines: list[bytes]) -> float:
    """Return how many lines a second are answered if they are sent without waiting."""
    with servers.connected(port) as connection:
        sender = threading.Thread(target=connection.sendall, args=[b"".join(lines)])
        began = time.perf_counter()
        sender.start()
        servers.received(connection, len(lines))
        seconds = time.perf_counter() - began
        sender.join()
    return len(lines) / seconds


def times(port: int, lines: list[bytes], clients: int) -> dict[str, float]:
    """Return the milliseconds from a line to its answer, where each connection has one line on its way."""
    return servers.milliseconds(servers.answered(port, lines, clients, lambda answer: answer.endswith(b"\n")))


def by_lines(given: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Measure the line protocols."""
    lines = servers.lines(given.lines, given.classes, given.features, 2, labelled=False)
    systems = {"xclass": (servers.xclass, ("-i", "model", "-t"))}
    if not given.alone and importlib.util.find_spec("vowpalwabbit"):
        words = ["--oaa", str(given.classes), "-b", str(given.bits), "-d", "train.vw", "--quiet", "-f", "vw"]
        servers.trained(folder, ["-m", "vowpalwabbit", *words])
        systems["VW"] = (servers.vw, ("-i", "vw", "-t"))
    for _ in range(given.rounds):
        for system, (start, words) in systems.items():
            with start(folder, *words) as (_, port):
                pipelined(port, lines[:200])
                figures = {"a_second": pipelined(port, lines), **times(port, lines[: given.single], 1)}
                if system == "xclass":
                    figures |= {f"many_{key}": value for key, value in times(port, lines, CONNECTIONS).items()}
                yield {"set": "lines", "method": system, **figures}


# -- HTTP


def request(path: str, content: object) -> bytes:
    """Return a request to POST JSON."""
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def length(answer: bytes) -> int | None:
    """Return the number of bytes of an answer that begins so, None if its head is not complete."""
    head, end, _ = answer.partition(b"\r\n\r\n")
    if not end:
        return None
    if not head.startswith(b"HTTP/1.1 200 "):
        raise BenchError(f"a server answered {answer[:300]!r}")
    (size,) = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(head) + len(end) + int(size)


def load(port: int, requests: list[bytes], clients: int) -> list[float]:
    """Return the seconds that each request took, on so many connections."""
    return servers.answered(port, requests, clients, lambda answer: len(answer) == length(answer))


@contextlib.contextmanager
def xclass_by_http(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start `xclass serve --http`, and give its process and its port."""
    port = servers.free_port()
    with servers.xclass(folder, "-i", "model", "-t", "--http", str(port)) as (process, _):
        servers.wait(process, lambda: servers.accepts(port))
        yield process, port


def by_http(given: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Measure single predictions over HTTP, by the number of clients."""
    lines = servers.lines(given.single, given.classes, given.features, 2, labelled=False)
    requests = [request("/v1/predict", {"lines": [line.decode().strip()]}) for line in lines]
    for _ in range(given.rounds):
        with xclass_by_http(folder) as (process, port):
            load(port, requests[:50], 1)
            for clients in CLIENTS:
                began, used = time.perf_counter(), cpu_seconds(process.pid)
                figures = servers.milliseconds(load(port, requests, clients))
                seconds, used = time.perf_counter() - began, cpu_seconds(process.pid) - used
                figures |= {"a_second": len(requests) / seconds, "cpu_us": used / len(requests) * 1e6}
                yield {"set": "http", "method": "xclass", "value": clients, **figures}


def main() -> None:
    """Measure and print the tables."""
    parser = new_parser(__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured")
    parser.add_argument("--alone", action="store_true", help="measure xclass without VW")
    parser.add_argument("--classes", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--features", type=int, default=20, help="words of an example (default: 20)")
    parser.add_argument("--trained", type=int, default=10_000, help="examples learned before (default: 10000)")
    parser.add_argument("--lines", type=int, default=5_000, help="lines of a round (default: 5000)")
    parser.add_argument("--single", type=int, default=1_000, help="lines and requests sent singly (default: 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--bits", type=int, default=24, help="of the table of weights (default: 24)")
    parser.add_argument("--learner", help="options of xclass (default: --oaa K)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = servers.lines(given.trained, given.classes, given.features, 1, labelled=True)
        (folder / "train.vw").write_bytes(b"".join(train))
        learner = (given.learner or f"--oaa {given.classes}").split()
        words = ["-b", str(given.bits), "-d", "train.vw", "--quiet", "-f", "model"]
        servers.trained(folder, ["-m", "xclass", *learner, *words])
        about = {"command": shlex.join(["scripts.serve.bench", *sys.argv[1:]]), **machine()}
        found = [{**one, **about} for one in (*by_lines(given, folder), *by_http(given, folder))]
    print(of_page("serving_lines", found), of_page("serving_http", found), sep="\n\n")
    if given.json:
        given.json.write_text(lines_of(found))


if __name__ == "__main__":
    run(main)
