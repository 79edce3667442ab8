"""Measure single predictions over HTTP: `xclass serve --http` beside FastAPI around scikit-learn's SGDClassifier.

    python -m venv peer; peer/bin/pip install 'fastapi[standard]' scikit-learn
    python -m scripts.serve.http_bench --python peer/bin/python --json serving.json

Both learn the same examples: `--oaa K` and SGDClassifier(loss="log_loss"), the latter by partial_fit from words that a
HashingVectorizer maps to 2 ** --hashed_bits features. Its server answers in the event loop, which takes less time than
a pool of threads. It is measured a second time with its coefficients in a better order, see `fastapi_server`. One load
generator asks all servers in turns: each request has one example, and each client sends one when its last one is
answered. Prints a Markdown table: predictions a second, milliseconds from a request to its answer, and CPU
microseconds of the server for a request, all as medians over the rounds. With --json, they are also kept in a file,
which `scripts.serve.plot` draws.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

from scripts.lib.command_line import run
from scripts.lib.processes import BenchError
from scripts.serve import servers

CLIENTS = (1, 8)
PEER = Path(__file__).with_name("fastapi_server.py")


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
    """Send requests on so many connections, each of which has one on its way; return the seconds that each took."""
    times: list[float] = []
    waiting = iter(requests)
    with selectors.DefaultSelector() as selector:
        for _ in range(clients):
            connection = servers.connected(port)
            selector.register(connection, selectors.EVENT_READ, [time.perf_counter(), b""])
            connection.sendall(next(waiting))
        while selector.get_map():
            for key, _ in selector.select(servers.SECONDS):
                connection, state = key.fileobj, key.data
                part = connection.recv(1 << 16)
                state[1] += part
                if not part:
                    raise BenchError("a server closed a connection")
                if len(state[1]) != length(state[1]):
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


def measured(process: subprocess.Popen[bytes], port: int, requests: list[bytes], clients: int) -> dict[str, float]:
    """Return what a number of clients found at a server."""
    began, used = time.perf_counter(), servers.cpu_seconds(process)
    cuts = quantiles(load(port, requests, clients), n=100)
    seconds, used = time.perf_counter() - began, servers.cpu_seconds(process) - used
    n = len(requests)
    return {"a_second": n / seconds, "p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3, "cpu_us": used / n * 1e6}


def table(found: dict[str, dict[str, list[dict[str, float]]]]) -> Iterator[str]:
    """Yield the lines of the table: medians over the rounds."""
    yield "| server | clients | predictions/s | p50 ms | p99 ms | CPU us of a request |"
    yield "| --- | --: | --: | --: | --: | --: |"
    for system, of_clients in found.items():
        for clients, rounds in of_clients.items():
            speed, p50, p99, cpu = (median(one[key] for one in rounds) for key in rounds[0])
            yield f"| {system} | {clients} | {speed:,.0f} | {p50:.2f} | {p99:.2f} | {cpu:,.0f} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--python", default=sys.executable, help="with fastapi (default: this one)")
    parser.add_argument("--no_peer", action="store_true", help="measure xclass alone")
    parser.add_argument("--classes", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--features", type=int, default=20, help="words of an example (default: 20)")
    parser.add_argument("--trained", type=int, default=10_000, help="examples learned before (default: 10000)")
    parser.add_argument("--requests", type=int, default=1000, help="of a round (default: 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--bits", type=int, default=24, help="of xclass (default: 24)")
    parser.add_argument("--hashed_bits", type=int, default=12, help="of the HashingVectorizer (default: 12)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for what was measured; it is added to")
    given = parser.parse_args()
    lines = [one.decode().strip() for one in servers.lines(given.requests, given.classes, given.features, 2, False)]
    for_xclass = [request("/v1/predict", {"lines": [line]}) for line in lines]
    for_peer = [request("/predict", {"text": line.removeprefix("|a ")}) for line in lines]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = folder / "train.vw"
        train.write_bytes(b"".join(servers.lines(given.trained, given.classes, given.features, 1, labelled=True)))
        common = ["-b", str(given.bits), "-d", "train.vw", "--quiet", "-f", "model"]
        servers.trained(folder, ["-m", "xclass", "--oaa", str(given.classes), *common])
        peer, model = [given.python, str(PEER)], str(folder / "peer")

        @contextlib.contextmanager
        def xclass() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
            port = servers.free_port()
            with servers.xclass(folder, "-i", "model", "-t", "--http", str(port)) as (process, _):
                servers.wait(process, lambda: servers.accepts(port))
                yield process, port

        def fastapi(*order: str):
            port = servers.free_port()
            return servers.listening([*peer, "serve", model, str(port), *order], port)

        systems: dict[str, tuple[Callable, list[bytes]]] = {"xclass": (xclass, for_xclass)}
        if not given.no_peer:
            subprocess.run([*peer, "train", str(train), model, str(given.classes), str(given.hashed_bits)], check=True)
            systems["FastAPI, SGDClassifier"] = fastapi, for_peer
            systems["the same, ordered by feature"] = lambda: fastapi("by_feature"), for_peer
        found: dict[str, dict[str, list[dict[str, float]]]] = {
            system: {str(clients): [] for clients in CLIENTS} for system in systems
        }
        for _ in range(given.rounds):
            for system, (start, requests) in systems.items():
                with start() as (process, port):
                    load(port, requests[:50], 1)
                    for clients in CLIENTS:
                        some = requests
                        if system == "FastAPI, SGDClassifier":  # each takes a tenth of a second
                            some = requests[: max(100, len(requests) // 10)]
                        found[system][str(clients)].append(measured(process, port, some, clients))
    print("\n".join(table(found)))
    print(f"\nload of the machine (1, 5, 15 minutes): {' '.join(f'{one:.1f}' for one in os.getloadavg())}")
    if given.json is not None:
        servers.keep(given.json, "http", found)


if __name__ == "__main__":
    run(main)
