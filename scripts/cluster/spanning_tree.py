"""Run Vowpal Wabbit on several nodes of one machine, which average their models by its spanning tree.

Source    The server that VW's `spanning_tree` program is. The Python package has no such program, so the part of its
          protocol that nodes need is written here. Each node sends the number of the run, the number of nodes and its
          own number, 8 bytes each. It receives 4 bytes that say whether it is accepted and, when all nodes have come,
          2 bytes with the number of its children. It sends the 2 bytes of the port at which it waits for them, in
          network order, and receives 4 and 2 bytes with the address and the port of its parent, all ones at the root.
          The nodes then talk to each other. Integers without a note are in the order of the machine.
Tree      As in VW, the node in the middle of a range of nodes is the root of its two halves.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.cluster.runs import cpu_of
from scripts.lib.processes import TOOLS, BenchError

ROOT_ADDRESS = b"\xff" * 4, b"\xff" * 2


class Tree(NamedTuple):
    """Hold a tree of nodes."""

    parents: list[int]  # -1 for the root
    children: list[int]  # number of children of each node


def tree_of(count: int) -> Tree:
    """Return the tree that VW's server builds for some nodes."""
    parents, children = [-1] * count, [0] * count

    def build(first: int, end: int) -> int:
        middle = (first + end) // 2
        for low, high in ((first, middle), (middle + 1, end)):
            if low < high:
                parents[build(low, high)] = middle
                children[middle] += 1
        return middle

    build(0, count)
    return Tree(parents, children)


class Server:
    """Bring the nodes of one run together; leave the `with` block to end it.

    Parameters
    ----------
    count : number of nodes

    Attributes
    ----------
    port : at which it listens
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        nodes: dict[int, tuple[socket.socket, str]] = {}
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:  # the listener is closed at the end
            while len(nodes) < self._count:
                connection, address = self._listener.accept()
                stack.enter_context(connection)
                _, total, node = struct.unpack("=QQQ", _received(connection, 24))
                accepted = total == self._count and node < self._count and node not in nodes
                connection.sendall(struct.pack("=i", accepted))
                if accepted:
                    nodes[node] = connection, address[0]
            tree = tree_of(self._count)
            for i in range(self._count):
                nodes[i][0].sendall(struct.pack("=H", tree.children[i]))
            ports = [_received(nodes[i][0], 2) for i in range(self._count)]
            for i, parent in enumerate(tree.parents):
                place = ROOT_ADDRESS if parent < 0 else (socket.inet_aton(nodes[parent][1]), ports[parent])
                nodes[i][0].sendall(b"".join(place))


def _received(connection: socket.socket, count: int) -> bytes:
    """Return so many bytes; raise OSError if the connection ends before."""
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise OSError("a node has closed its connection")
        data += more
    return data


def learn(shards: Sequence[Path], words: Sequence[str], folder: Path) -> Path:
    """Learn each shard on a node, all at once; return the file of the averaged model.

    Raises
    ------
    BenchError
        if a node fails.
    """
    with Server(len(shards)) as server:
        nodes = _start(shards, words, folder, server.port)
        for i, node in enumerate(nodes):
            if node.wait():
                _end(nodes)
                raise BenchError(f"node {i} of Vowpal Wabbit ended with status {node.returncode}; see {folder}")
    return folder / "node0.model"


def left_waiting(shards: Sequence[Path], words: Sequence[str], folder: Path, patience: float) -> list[int]:
    """Kill the last node while it learns, and return the numbers of those that have not ended some time after it.

    Parameters
    ----------
    patience : seconds without use of a processor after which the others count as waiting

    Raises
    ------
    BenchError
        if the last node has ended before it could be killed.
    """
    with Server(len(shards)) as server:
        nodes = _start(shards, words, folder, server.port)
        while nodes[-1].poll() is None and cpu_of(nodes[-1].pid) < 1.0:
            time.sleep(0.05)
        if nodes[-1].poll() is not None:
            raise BenchError("the node that is to be killed ended before; give more lines")
        nodes[-1].send_signal(signal.SIGKILL)
        nodes[-1].wait()
        used, since = 0.0, time.monotonic()
        while time.monotonic() - since < patience and any(node.poll() is None for node in nodes):
            now = sum(cpu_of(node.pid) for node in nodes if node.poll() is None)
            if now > used + 0.05:
                used, since = now, time.monotonic()
            time.sleep(0.2)
        waiting = [i for i, node in enumerate(nodes) if node.poll() is None]
        _end(nodes)
    return waiting


def _start(shards: Sequence[Path], words: Sequence[str], folder: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """Start a node for each shard."""
    nodes = []
    for i, shard in enumerate(shards):
        place = ["--span_server", "127.0.0.1", "--span_server_port", str(port), "--unique_id", "1"]
        place += ["--total", str(len(shards)), "--node", str(i)]
        command = [*TOOLS["vw"], "-d", str(shard), *words, *place, "-f", str(folder / f"node{i}.model")]
        with open(folder / f"node{i}.err", "wb") as errors:
            nodes.append(subprocess.Popen(command, stdout=errors, stderr=errors))
    return nodes


def _end(nodes: Sequence[subprocess.Popen[bytes]]) -> None:
    for node in nodes:
        node.kill()
        node.wait()
