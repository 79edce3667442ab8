"""Compile the kernels of servers before they start: serve a small model of each reduction until it is ready.

    python demo/serve_warm.py                                          # the reductions of OPTIONS
    python demo/serve_warm.py --multiclass "--recall_tree 100 -q ab"   # or those of the learners that will be served

The image of serve.Dockerfile is built with it. The kernels are kept in a folder of XDG_CACHE_HOME.
"""

from __future__ import annotations

import contextlib
import http.client
import shlex
import socket
import subprocess
import sys
import tempfile
import time

OPTIONS = (
    *("--multiclass", "--oaa 3", "--recall_tree 3", "--log_multi 3", "--cpt 3", "--ect 3", "--sparse_experts 3"),
    *("--multilabel", "--multilabel_oaa 3", "--plt 3"),
)
LINES = "1 |a kettle leaf\n2 |b bean\n1 |a kettle:2\n2 |b sugar\n"  # with labels that each reduction allows
XCLASS = (sys.executable, "-m", "xclass")


def main(all_options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, options in enumerate(all_options):
            model = f"{folder}/{number}.bin"
            learn = [*XCLASS, *shlex.split(options), "-f", model, "-p", f"{folder}/predictions", "--quiet"]
            subprocess.run(learn, input=LINES, text=True, check=True)
            serve("-i", model, "-f", f"{folder}/learned", "--port", "0")
        serve("--models", folder)


def serve(*words: str) -> None:
    """Serve until all kernels are compiled."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    process = subprocess.Popen([*XCLASS, "serve", *words, "--http", f"{port}", "--timeout", "1000", "--quiet"])
    try:
        while not is_ready(port):
            if process.poll() is not None:
                raise SystemExit(f"xclass serve {shlex.join(words)}: status {process.returncode}")
            time.sleep(0.1)
    finally:
        process.terminate()
        process.wait()


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


if __name__ == "__main__":
    main(sys.argv[1:] or list(OPTIONS))
