"""Run the command in tests: `xclass(...)` in this process, or `xclass_process(...)` in a fork of it."""

import atexit
import contextlib
import io
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn
from unittest import mock

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


class Forked(subprocess.Popen):
    """Execute `python -c CODE ...` or `python -m xclass ...` in a fork of this process, as if in a new process.

    Arguments, folder, environment, streams and signals are those of a new process. Modules and kernels are those of
    this process; a new one would take a second to import and load them.
    """

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        ends = others[3:9]  # what reads and what writes standard input, then output, then errors
        self.pid = os.fork()
        if not self.pid:
            _execute([os.fspath(arg) for arg in args], ends, cwd, env, preexec_fn)
        self._child_created = True
        self._close_pipe_fds(*ends)


def _execute(words, ends, cwd, env, prepare) -> NoReturn:
    """Execute `python -c CODE ...` or `python -m xclass ...` in this process, a new fork, and end it."""
    status = 1
    try:
        for number, end in enumerate((ends[0], ends[3], ends[5])):
            if end >= 0:
                os.dup2(end, number)
        for end in {end for end in ends if end > 2}:
            os.close(end)
        # closefd=False: in a fork of a fork, the streams before these would close the files of these
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
        atexit._clear()
        weakref.finalize._registry.clear()  # of this process, which has to clean up itself
        weakref.finalize._registered_with_atexit = False
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(cwd or ".")
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        tempfile.tempdir = None  # TMPDIR may have changed
        if prepare is not None:
            prepare()
        sys.argv = [words[1], *words[3:]]
        if words[1:3] == ["-m", "xclass"]:
            cli.main()
        exec(words[2], {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
        os._exit(status)


def run_forked(words, **more) -> subprocess.CompletedProcess:
    """Execute `python -c CODE ...` or `python -m xclass ...` as `subprocess.run` does, in a fork of this process."""
    with mock.patch.object(subprocess, "Popen", Forked):
        return subprocess.run(words, **{"timeout": SECONDS, **more})


def xclass_process(*args, stdin: str | bytes | None = None, cwd: str | os.PathLike | None = None, **more) -> Result:
    """Execute a command line in a fork and wait for its end; `more` is passed to `subprocess.run`."""
    result = run_forked(_words(args), input=_bytes(stdin), cwd=cwd, capture_output=True, **more)
    return Result(result.returncode, _decoded(result.stdout), _decoded(result.stderr))


def start_process(*args, cwd: str | os.PathLike | None = None, **more) -> subprocess.Popen:
    """Start a fork with pipes for its standard streams; `more` is passed to `subprocess.Popen`."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Forked(_words(args), cwd=cwd, **{**pipes, **more})


def on_a_terminal(words, streams: tuple[str, ...] = ("stdout", "stderr"), **more) -> bytes:
    """Execute `python -c CODE ...` or `python -m xclass ...` in a fork, and return what these streams show."""
    controller, terminal = pty.openpty()
    child = Forked([sys.executable, *words], **dict.fromkeys(streams, terminal), **more)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while part := os.read(controller, 1 << 16):
            shown += part
    os.close(controller)
    child.wait()
    return shown


def script(body: str, *args, cwd: str | os.PathLike | None = None, new: bool = False) -> Result:
    """Execute the Python code `body` and then the command in a fork, or in a new process, which has loaded nothing."""
    program = f"{body}\nfrom xclass.cli import command as cli\ncli.main()"
    words = [sys.executable, "-c", program, *map(str, args)]
    paths = [str(Path(cli.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run if new else run_forked
    result = run(words, cwd=cwd, env=environment, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
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
