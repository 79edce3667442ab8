"""Run the command in tests: `xclass(...)` in this process, which is faster, or `xclass_process(...)` in a new one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from xclass.cli import command as cli
from xclass.system import output_file

MODEL_OF_YESTERDAY = bytes(8) + output_file.MODEL_PREFIX + b"of yesterday"  # a damaged one, which may be replaced
SECONDS = 120  # time limit of a process, which may have to compile kernels


class Result(NamedTuple):
    """Hold the exit status of a run and what it wrote to standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Return the lines of standard output."""
        return self.out.splitlines()


def xclass(*args, stdin: str | bytes | None = None, cwd: str | os.PathLike | None = None) -> Result:
    """Execute a command line in this process; arguments that are not strings are converted by `str`."""
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = _text(b""), _text(b"")
    sys.stdin, sys.stdout, sys.stderr = _text(_bytes(stdin)), out, err
    try:
        with _folder(cwd):
            status = cli.status([str(arg) for arg in args])
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    return Result(status, _written(out), _written(err))


def learn(*args, stdin: str | bytes | None = None, cwd: str | os.PathLike | None = None) -> Result:
    """Execute a command line as `xclass` does, and check that it ends with status 0."""
    result = xclass(*args, stdin=stdin, cwd=cwd)
    assert result.status == 0, result.err
    return result


def xclass_process(*args, stdin: str | bytes | None = None, cwd: str | os.PathLike | None = None, **more) -> Result:
    """Execute a command line in a new process and wait for its end; `more` is passed to `subprocess.run`."""
    result = subprocess.run(
        _words(args), input=_bytes(stdin), cwd=cwd, env=_environment(), capture_output=True, timeout=SECONDS, **more
    )
    return Result(result.returncode, _decoded(result.stdout), _decoded(result.stderr))


def start_process(*args, cwd: str | os.PathLike | None = None, **more) -> subprocess.Popen:
    """Start a process with pipes for its standard streams; `more` is passed to `subprocess.Popen`."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(_words(args), cwd=cwd, env=_environment(), **{**pipes, **more})


def script(body: str, *args, cwd: str | os.PathLike | None = None) -> Result:
    """Execute the Python code `body` and then the command in a new process."""
    program = f"{body}\nfrom xclass.cli import command as cli\ncli.main()"
    words = [sys.executable, "-c", program, *map(str, args)]
    result = subprocess.run(
        words, cwd=cwd, env=_environment(), capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    return Result(result.returncode, _decoded(result.stdout), _decoded(result.stderr))


def forked(prepare: Callable[[], object], *args, cwd: str | os.PathLike | None = None) -> int:
    """Call `prepare` and execute a command line in a fork of this process, which has all modules and kernels already.

    Return the exit status as `subprocess` does: negative if a signal ended the process.
    """
    child = os.fork()
    if not child:
        status = 70
        try:
            prepare()
            status = xclass(*args, cwd=cwd).status
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _words(args) -> list[str]:
    return [sys.executable, "-m", "xclass", *map(str, args)]


def _environment() -> dict[str, str]:
    """Return this environment, with the package that the tests import first on the import path."""
    root = str(Path(cli.__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": ""}


@contextlib.contextmanager
def _folder(path: str | os.PathLike | None) -> Iterator[None]:
    before = os.getcwd()
    try:
        if path is not None:
            os.chdir(path)
        yield
    finally:
        os.chdir(before)


def _bytes(text: str | bytes | None) -> bytes:
    return text.encode() if isinstance(text, str) else text or b""


def _text(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), "utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return _decoded(stream.buffer.getvalue())


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
