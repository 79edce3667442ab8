"""Compile the kernels of servers before they start: serve a small model of each reduction, and ask it everything.

    python demo/serve_warm.py                                          # the reductions of OPTIONS
    python demo/serve_warm.py --multiclass "--recall_tree 100 -q ab"   # or those of the learners that will be served

The image of serve.Dockerfile is built with it. The kernels are kept in a folder of XDG_CACHE_HOME.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

OPTIONS = (
    *("--multiclass", "--oaa 3", "--recall_tree 3", "--log_multi 3", "--cpt 3", "--ect 3", "--sparse_experts 3"),
    *("--multilabel", "--multilabel_oaa 3", "--plt 3"),
)
LINES = "1 |a kettle leaf\n2 |b bean\n1 |a kettle:2\n2 |b sugar\n"  # with labels that each reduction allows
EXAMPLE = {"features": {"size": 1.5, "colour": "red"}}
UNLABELLED = [{"lines": ["|a leaf"]}, {"texts": ["a leaf"]}, {"examples": [EXAMPLE]}]
LABELLED = [
    {"lines": ["1 |a leaf"]},
    {"texts": ["a leaf"], "labels": [1]},
    {"examples": [{**EXAMPLE, "label": 1}]},
]
XCLASS = (sys.executable, "-m", "xclass")


def main(all_options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, options in enumerate(all_options):
            model = f"{folder}/{number}.bin"
            learn = [*XCLASS, *shlex.split(options), "-f", model, "-p", f"{folder}/predictions", "--quiet"]
            subprocess.run(learn, input=LINES, text=True, check=True)
            with served("-i", model, "-f", f"{folder}/learned", "--port", "0") as port:
                for question in LABELLED:
                    ask(port, "/v1/learn", question)
                ask_to_predict(port, "/v1")
        with served("--models", folder) as port:
            for number in range(len(all_options)):
                ask_to_predict(port, f"/v1/{number}")


@contextlib.contextmanager
def served(*words: str) -> Iterator[int]:
    """Serve until the block ends, and give the port for HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    process = subprocess.Popen([*XCLASS, "serve", *words, "--http", f"{port}", "--timeout", "1000", "--quiet"])
    try:
        while not answers(port):
            if process.poll() is not None:
                raise SystemExit(f"xclass serve {shlex.join(words)}: status {process.returncode}")
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        return ask(port, "/readyz") == 200
    return False


def ask_to_predict(port: int, path: str) -> None:
    for question in UNLABELLED:
        ask(port, f"{path}/predict", question)
        ask(port, f"{path}/predict", {**question, "k": 2})
        ask(port, f"{path}/explain", question)


def ask(port: int, path: str, question: object = None) -> int:
    """Return the status of an answer; 400 is allowed, because not each reduction estimates probabilities."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    method = "GET" if question is None else "POST"
    connection.request(method, path, json.dumps(question), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    status, content = answer.status, answer.read()
    connection.close()
    if status not in (200, 400, 503):
        raise SystemExit(f"{path} {question}: {status} {content.decode()}")
    return status


if __name__ == "__main__":
    main(sys.argv[1:] or list(OPTIONS))
