"""Run VW again and again: `python scripts/fuzzing/vw_server.py SECONDS`, which vw_process.py starts.

SECONDS is what a run may take before it counts as hanging.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import vowpalwabbit


def serve() -> None:
    """Read command lines and folders as JSON, a line each; execute each in a fork and reply with its status."""
    for line in sys.stdin:
        args, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            _carry_out(args, folder)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _carry_out(args: list[str], folder: str) -> None:
    """Do what `python -m vowpalwabbit ARGS` does and end the process."""
    signal.alarm(int(sys.argv[1]))
    os.chdir(folder)
    for number, name in ((1, ".out"), (2, ".err")):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
    status = 0
    try:
        vowpalwabbit.Workspace(arg_list=args).finish()
    except Exception as error:  # VW's message, as its last words
        os.write(2, f"{error}\n".encode("utf-8", "surrogateescape"))
        status = 1
    os._exit(status)


if __name__ == "__main__":
    serve()
