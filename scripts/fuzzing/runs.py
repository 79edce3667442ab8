"""Run command lines in forked processes that are watched from outside, many in one process.

A process that has loaded the kernels forks a worker for a batch of cases. The worker carries them out one after the
other through `xclass.cli.status` and tells the parent of the beginning and the end of each, so that a crash or a hang
is pinned on one case. The next worker goes on with the case after it.

What a case writes is seen twice: the folder is compared before and after, and Python's audit events name every file
that is opened for writing, anywhere. Only `out` and `tmp` inside the folder, the compile cache and /dev/null may be
written.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import re
import resource
import select
import shutil
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scripts.lib import in_process
from scripts.lib.in_process import Result
from scripts.lib.processes import cpu_seconds
from xclass.kernels import jit
from xclass.system import memory

ACCEPTED, REFUSED, INTERRUPTED = "accepted", "refused", "interrupted"
FAILURES = (
    "traceback", "crash", "hang", "unasked write", "leftover", "too much memory", "non-finite model", "wrong result",
    "bad message",
)  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = (
    "os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown",
    "shutil.rmtree", "shutil.move", "shutil.copyfile", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
    "socket.connect",
)  # fmt: skip
EXCEPTION = re.compile(r"[A-Za-z_.]+(Error|Exception|Interrupt|Exit|Damaged)\b")  # begins the last line of a traceback
THREAD_SECONDS = 10.0  # in which threads of a command end that has ended
GRACE = 15.0  # CPU seconds after Ctrl-C


class Outcome(NamedTuple):
    """What came of a case."""

    kind: str  # ACCEPTED, REFUSED, INTERRUPTED or one of FAILURES
    detail: str = ""  # for people
    signature: str = ""  # equal for failures that probably have the same cause
    lines: int = 0  # of text that were read


def wrong(detail: str, signature: str, lines: int = 0) -> Outcome:
    """Return the outcome of a case whose result is wrong."""
    return Outcome("wrong result", detail, signature, lines)


@dataclass
class Limits:
    """What a case may use."""

    cpu: float = 20.0  # seconds
    memory: int = 256 << 20  # bytes it may take in addition to what the process has
    address_space: int = 3 << 30  # bytes in addition to those of the process
    idle: float = 90.0  # seconds in which a process that computes nothing counts as hanging
    interrupt: bool = False  # whether a case that takes longer than `cpu` is accepted if it ends after Ctrl-C


class Part:
    """One kind of input, and what parts have in common; a case is a named tuple."""

    name = ""

    def __init__(self, only: str = "") -> None:
        self.limits = Limits()

    def prepare(self, bench: Bench) -> None:
        """Make what the cases start from, and load all kernels they use."""

    def cases(self, seed: int, n: int) -> list[Any]:
        """Return about `n` cases, the same for the same seed."""
        raise NotImplementedError

    def run(self, case: Any, bench: Bench) -> Outcome:
        """Carry out a case in the worker."""
        raise NotImplementedError

    def words(self, case: Any) -> tuple[str, ...]:
        """Return the command line of a case."""
        raise NotImplementedError

    def smaller(self, case: Any) -> Iterator[Any]:
        """Yield cases that are a little simpler: without one of several changes."""
        for i in range(len(case.changes)):
            if len(case.changes) > 1:
                yield case._replace(changes=case.changes[:i] + case.changes[i + 1 :])

    def group(self, case: Any) -> str:
        """Return what the case is counted under."""
        raise NotImplementedError

    def reproduction(self, case: Any) -> dict[str, bytes]:
        """Return the files of a case."""
        return {}


@dataclass
class Bench:
    """A folder in which a worker runs commands, and what it sees of them."""

    folder: Path  # `out` and `tmp` in it are emptied before each case
    limits: Limits
    last: tuple[str, ...] = ()  # words of the command that ran last
    watching: bool = False
    written: list[str] = field(default_factory=list)
    files_before: dict[str, tuple] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    allowed_anywhere: str = ""  # in the names of files that may be written elsewhere, too

    def reset(self) -> None:
        """Put the folder in order for the next case."""
        os.chdir(self.folder)
        for name in ("out", "tmp"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        for name in self.inputs:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.folder / name)
        self.inputs.clear()
        self.written.clear()
        _reset_peak()
        self.before = memory.taken()

    def put(self, name: str, content: bytes) -> None:
        """Write an input file. It gets a new inode: an earlier case may still have the old one mapped."""
        path = self.folder / name
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        path.write_bytes(content)
        if name not in self.inputs and not name.startswith("out/"):
            self.inputs.append(name)

    def xclass(self, *words: str, stdin: bytes | None = None) -> Result:
        """Carry out a command line in this process."""
        self.last = words
        self.files_before = self._files()
        self.watching = True
        try:
            result = in_process.xclass(words, stdin=stdin)
        finally:
            self.watching = False
        if not result.trace and "Traceback (most recent call last)" in result.err:  # of a thread
            return result._replace(trace=result.err)
        return result

    def judge(self, result: Result, size: int = 0) -> Outcome:
        """Return what every command is judged by; `size`: bytes of its inputs."""
        if result.trace:
            return Outcome("traceback", result.trace, _signature(result.trace))
        wrong = self._changes()
        if wrong:
            return Outcome("unasked write", "; ".join(wrong), wrong[0].replace(str(self.folder), "FOLDER"))
        leftovers = os.listdir(self.folder / "tmp") + [n for n in os.listdir(self.folder / "out") if n.startswith(".")]
        if leftovers:
            return Outcome("leftover", ", ".join(leftovers), "leftover")
        added = _peak() - self.before
        if added > self.limits.memory + 10 * size:
            return Outcome("too much memory", f"{added >> 20} MB for inputs of {size} bytes", "memory")
        if result.status == 0:
            return Outcome(ACCEPTED)
        if result.status in (130, 143):
            return Outcome(INTERRUPTED)
        messages = [line for line in result.err.splitlines() if line.startswith("xclass: ")]
        if result.status not in (1, 2) or not messages or len(messages[-1]) < 16:
            return Outcome(
                "bad message", f"status {result.status}: {result.err[-2000:]}", f"status {result.status}, no message"
            )
        if any(not (c.isprintable() or c == "\n") for c in result.err):
            return Outcome("bad message", repr(result.err[-2000:]), "unprintable signs in a message")
        return Outcome(REFUSED, messages[-1])

    def _files(self) -> dict[str, tuple]:
        """Return path -> (size, time, inode), which show changes, of all files outside of `out` and `tmp`."""
        files = {}
        folders = [self.folder]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in ("out", "tmp"):
                            folders.append(Path(entry.path))
                        continue
                    info = entry.stat(follow_symlinks=False)
                    files[entry.path] = (info.st_size, info.st_mtime_ns, info.st_ino)
        return files

    def _changes(self) -> list[str]:
        """Return the files that were written, changed or removed without being requested."""
        now = self._files()
        if self.allowed_anywhere:
            for path in [path for path in now if self.allowed_anywhere in os.path.basename(path)]:
                os.unlink(path)
                del now[path]
        wrong = [
            f"{path} {'changed' if path in now else 'removed'}"
            for path in self.files_before
            if now.get(path) != self.files_before[path]
        ]
        wrong += [f"{path} made" for path in now if path not in self.files_before]
        for path in now:
            if path not in self.files_before:
                os.unlink(path)
        allowed = [str(self.folder / "out"), str(self.folder / "tmp"), "/dev/null", "/dev/full", str(jit.folder())]
        for write in dict.fromkeys(self.written):
            event, _, path = write.partition(" ")
            place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if self.allowed_anywhere and self.allowed_anywhere in os.path.basename(path):
                continue
            if not path.startswith("/dev/fd") and not any(place == a or place.startswith(a + "/") for a in allowed):
                wrong.append(f"{event} {path}")
        return wrong

    def on_audit_event(self, event: str, args: tuple) -> None:
        """Record the files that an audit event writes to."""
        if not self.watching:
            return
        if event == "open":
            path, mode, flags = args
            writes = (mode and set(mode) & set("wax+")) or (flags or 0) & WRITES
            if writes and isinstance(path, (str, bytes)):
                path = os.fsdecode(path)
                # A relative one may be in any folder that is open; what is in this folder is compared anyway.
                if os.path.isabs(path) and (flags or 0) & getattr(os, "O_TMPFILE", 0) != getattr(os, "O_TMPFILE", 1):
                    self.written.append(f"open {path}")
        elif event in CHANGES:
            names = [os.fsdecode(arg) for arg in args[:2] if isinstance(arg, (str, bytes))]
            if not names:  # by its handle, which was opened before
                return
            handles = [arg for arg in args[len(names) :] if isinstance(arg, int)][-len(names) :]  # of folders
            places = [
                os.readlink(f"/proc/self/fd/{handle}") if handle >= 0 and not os.path.isabs(name) else os.getcwd()
                for name, handle in zip(names, handles + [-1] * (len(names) - len(handles)), strict=True)
            ]
            paths = [os.path.join(place, name) for place, name in zip(places, names, strict=True)]
            self.written += [f"{event} {path}" for path in paths[event == "os.link" :]]


def _signature(trace: str) -> str:
    """Return the exception and the place in the package where it was raised."""
    lines = [line for line in trace.splitlines() if line.strip()]
    raised = [line.partition(":")[0] for line in lines if EXCEPTION.match(line)]
    places = [line.strip() for line in lines if "/xclass/" in line and line.lstrip().startswith("File ")]
    place = places[-1].partition("/xclass/")[2].replace('"', "") if places else "?"
    return f"{raised[-1] if raised else lines[-1]} in {place}"


def _reset_peak() -> None:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "wb") as file:
        file.write(b"5")


def _peak() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


# -- workers -----------------------------------------------------------------------------------------------------


def outcomes(part: Part, cases: Sequence[Any], folder: Path) -> Iterator[tuple[int, Outcome, tuple[str, ...]]]:
    """Carry out cases in forked workers; yield the number of each, what came of it and its last command."""
    at = 0
    while at < len(cases):
        # Python also lists threads that it has not started, which may have ended
        others = [one for one in threading.enumerate() if type(one) is not threading._DummyThread]
        for thread in others[1:]:
            thread.join(THREAD_SECONDS)
        if any(thread.is_alive() for thread in others[1:]):
            raise RuntimeError(f"threads are running ({others}), forking would be unsafe")
        reading, writing = os.pipe()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(reading)
                _work(part, cases, at, folder, writing)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        try:
            for i, outcome, last in _watch(pid, reading, at, part.limits, folder):
                at = i + 1
                if i < len(cases):  # a worker may die when it has done them all
                    yield i, outcome, last
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _work(part: Part, cases: Sequence[Any], first: int, folder: Path, writing: int) -> None:
    """Carry out the cases from `first` on and send their outcomes."""
    limits = part.limits
    with open("/proc/self/statm", "rb") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + limits.address_space,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(time.process_time())
    most = used + int(len(cases) * (limits.cpu + GRACE)) + 60  # should the parent be gone
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
    bench = Bench(folder / "run", limits)
    os.environ.update(HOME=str(folder / "run" / "home"), TMPDIR=str(folder / "run" / "tmp"))
    import tempfile

    tempfile.tempdir = None
    sys.addaudithook(lambda event, args: bench.on_audit_event(event, args))
    for i in range(first, len(cases)):
        _send(writing, (i, None, ()))
        bench.reset()
        bench.last = ()
        try:
            outcome = part.run(cases[i], bench)
        except MemoryError:
            outcome = Outcome(REFUSED, "no memory outside the command")
        except BaseException:
            outcome = Outcome(
                "wrong result", traceback.format_exc(), "the harness: " + _signature(traceback.format_exc())
            )
        _send(writing, (i, outcome, bench.last))


def _send(writing: int, record: tuple) -> None:
    content = pickle.dumps(record)
    content = struct.pack("<I", len(content)) + content
    while content:
        content = content[os.write(writing, content) :]


def _watch(
    pid: int, reading: int, first: int, limits: Limits, folder: Path
) -> Iterator[tuple[int, Outcome, tuple[str, ...]]]:
    """Yield the outcomes that a worker sends; at its end, yield the outcome of the case that it was carrying out."""
    now, began, used, interrupted = first, time.monotonic(), cpu_seconds(pid), False
    data = b""
    while True:
        ready, _, _ = select.select([reading], [], [], 0.25)
        if ready:
            piece = os.read(reading, 1 << 16)
            if not piece:
                break
            data += piece
            while len(data) >= 4 and len(data) >= 4 + struct.unpack_from("<I", data)[0]:
                size = 4 + struct.unpack_from("<I", data)[0]
                i, outcome, last = pickle.loads(data[4:size])
                data = data[size:]
                if outcome is None:
                    now, began, used, interrupted = i, time.monotonic(), cpu_seconds(pid), False
                else:
                    yield i, outcome, last
                    now = i + 1
            continue
        cpu, passed = cpu_seconds(pid) - used, time.monotonic() - began
        if cpu > limits.cpu and limits.interrupt and not interrupted:
            interrupted = True
            os.kill(pid, signal.SIGINT)
        elif cpu > limits.cpu + (GRACE if limits.interrupt else 0) or (passed > limits.idle and cpu < passed / 100):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            after = "and Ctrl-C " if interrupted else ""
            yield now, Outcome("hang", f"still running {after}after {cpu:.1f} CPU seconds, {passed:.0f} s", "hang"), ()
            return
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        stderr = (folder / "stderr").read_text(errors="replace")[-1000:]
        yield now, Outcome("crash", f"{name} {stderr}", name), ()
    elif os.WEXITSTATUS(status):
        stderr = (folder / "stderr").read_text(errors="replace")[-2000:]
        yield now, Outcome("crash", f"the worker ended with {os.WEXITSTATUS(status)}: {stderr}", "exit"), ()


def smallest(
    part: Part, case: Any, wanted: Outcome, folder: Path, seconds: float, print_line: Callable[[str], None]
) -> Any:
    """Return a simpler case that fails in the same way, as far as it is found in the time."""
    ends = time.monotonic() + seconds
    simpler = True
    while simpler:
        simpler = False
        for other in part.smaller(case):
            if time.monotonic() > ends:
                return case
            for _, outcome, _ in outcomes(part, [other], folder):
                if (outcome.kind, outcome.signature) == (wanted.kind, wanted.signature):
                    case, simpler = other, True
            if simpler:
                print_line(f"  a simpler case fails alike: {case}"[:160])
                break
    return case
