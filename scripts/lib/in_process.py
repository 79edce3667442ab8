"""Execute command lines of xclass in this process."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from xclass.cli import command as cli


class Result(NamedTuple):
    """How one command line ended."""

    status: int
    out: bytes
    err: str
    trace: str  # empty where no exception left the command


def xclass(words: Sequence[str], folder: Path | None = None, stdin: bytes | None = None) -> Result:
    """Execute a command line, in a folder if one is given, with an empty standard input if `stdin` is None."""
    streams, before = (sys.stdin, sys.stdout, sys.stderr), os.getcwd()
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    status, trace = -1, ""
    with open(os.devnull) as nothing:
        sys.stdin = nothing if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
        sys.stdout, sys.stderr = out, err
        try:
            os.chdir(folder or before)
            status = cli.status(list(words))
        except BaseException:
            trace = traceback.format_exc()
        finally:
            os.chdir(before)
            sys.stdin, sys.stdout, sys.stderr = streams
    out.flush()
    err.flush()
    return Result(status, out.buffer.getvalue(), err.buffer.getvalue().decode("utf-8", "replace"), trace)
