"""Measure the speed of `xclass serve`, beside a daemon of VW with one process, on this machine.

    python -m scripts.serve.bench
    python -m scripts.serve.bench --learner='--multiclass' --no_vw --rounds 5

Both serve a model of the same data, with `-t`: `--oaa K`, unless `--learner` says otherwise. A round sends all lines on
one connection without waiting for answers (pipelined), then some lines one at a time on one connection, and, to
xclass alone, some on 50 connections, each of which sends a line when its last one is answered. The systems take turns.
Prints a Markdown table: lines a second when pipelined, and times from a line to its answer in milliseconds, as medians
over the rounds. With --json, they are also kept in a file, which `scripts.serve.plot` draws.
"""

from __future__ import annotations

import argparse
import selectors
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles

from scripts.lib.command_line import run
from scripts.serve import servers

CONNECTIONS = 50


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


def one_at_a_time(port: int, lines: list[bytes]) -> list[float]:
    """Return the seconds from each line to its answer, on one connection."""
    times = []
    with servers.connected(port) as connection:
        for line in lines:
            began = time.perf_counter()
            connection.sendall(line)
            servers.received(connection, 1)
            times.append(time.perf_counter() - began)
    return times


def at_many_connections(port: int, lines: list[bytes]) -> list[float]:
    """Return the seconds from each line to its answer; each of the connections has one line on its way."""
    times: list[float] = []
    waiting = iter(lines)
    with selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = servers.connected(port)
            selector.register(connection, selectors.EVENT_READ, time.perf_counter())
            connection.sendall(next(waiting))
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.fileobj
                connection.recv(1 << 16)
                now = time.perf_counter()
                times.append(now - key.data)
                line = next(waiting, None)
                if line is None:
                    selector.unregister(connection)
                    connection.close()
                else:
                    selector.modify(connection, selectors.EVENT_READ, now)
                    connection.sendall(line)
    return times


def milliseconds(times: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile of seconds."""
    cuts = quantiles(times, n=100)
    return {"p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3}


def row(name: str, rounds: list[dict[str, float]]) -> str:
    """Return the row of a system, with medians over the rounds."""
    speed, *times = (median(one[key] for one in rounds) for key in rounds[0])
    cells = [name, f"{speed:,.0f}", *(f"{time:.2f}" for time in times)]
    return f"| {' | '.join(cells)} |{' | |' if len(times) < 4 else ''}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--classes", type=int, default=10_000, help="(default: 10000)")
    parser.add_argument("--features", type=int, default=20, help="words of an example (default: 20)")
    parser.add_argument("--trained", type=int, default=20_000, help="examples learned before (default: 20000)")
    parser.add_argument("--lines", type=int, default=10_000, help="lines of a round (default: 10000)")
    parser.add_argument("--single", type=int, default=1_000, help="lines sent one at a time (default: 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parser.add_argument("--bits", type=int, default=24, help="(default: 24)")
    parser.add_argument("--learner", help="options of xclass (default: --oaa K)")
    parser.add_argument("--no_vw", action="store_true", help="measure xclass alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for what was measured; it is added to")
    given = parser.parse_args()
    lines = servers.lines(given.lines, given.classes, given.features, 2, labelled=False)
    learner = (given.learner or f"--oaa {given.classes}").split()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = servers.lines(given.trained, given.classes, given.features, 1, labelled=True)
        (folder / "train.vw").write_bytes(b"".join(train))
        common = ["-b", str(given.bits), "-d", "train.vw", "--quiet"]
        servers.trained(folder, ["-m", "xclass", *learner, *common, "-f", "model"])
        systems = {"xclass": (servers.xclass, ("-i", "model", "-t"))}
        if not given.no_vw:
            of_vw = ["-m", "vowpalwabbit", "--oaa", str(given.classes), *common, "-f", "vw"]
            servers.trained(folder, of_vw)
            systems["VW"] = (servers.vw, ("-i", "vw", "-t"))
        found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
        for _ in range(given.rounds):
            for system, (start, words) in systems.items():
                with start(folder, *words) as (_, port):
                    pipelined(port, lines[:200])
                    speed = pipelined(port, lines)
                    one = milliseconds(one_at_a_time(port, lines[: given.single]))
                    many = milliseconds(at_many_connections(port, lines)) if system == "xclass" else {}
                found[system].append({"a_second": speed, **one, **{f"many_{key}": many[key] for key in many}})
    print(f"| system | lines/s | one: p50 ms | p99 ms | {CONNECTIONS} connections: p50 ms | p99 ms |")
    print("| --- | --: | --: | --: | --: | --: |")
    for system, rounds in found.items():
        print(row(system, rounds))
    if "VW" in systems:
        pairs = zip(found["xclass"], found["VW"], strict=True)
        ratio = median(ours["a_second"] / theirs["a_second"] for ours, theirs in pairs)
        print(f"\nxclass answers {ratio:.2f} times as many lines a second (median of the rounds)")
    if given.json is not None:
        servers.keep(given.json, "lines", found)


if __name__ == "__main__":
    run(main)
