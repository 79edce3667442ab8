"""The one `jit` decorator, and where compiled code is kept.

A kernel is a plain module-level function marked with `@jit`. Nothing is compiled and numba is not even
imported until `activate()`, so that a room can declare its options beside its kernels and `--help` stays
quick. `activate()` readies every marked function of the package: at its first call from Python a numba dispatcher
takes its place. Kernels that are called by kernels alone get theirs when something has to be compiled, which a warm
start does not: making one takes .3 ms, and there are some three hundred. For the same reason numba is told of its
types and functions only then (.08 s). Kernels call each other by module name
(`gd.score(...)`), never by `from gd import score`.

Compiled code is kept by `kernel_cache`, in a folder for each version of Python and numba. NUMBA_CACHE_DIR overrides the
place.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from ..errors import XclassError
from ..system import address_space, leftovers
from . import kernel_cache

F = TypeVar("F", bound=Callable[..., Any])  # a decorator leaves a kernel the type it has

_marked: list[FunctionType] = []
_waiting: list[_Kernel] = []  # kernels whose dispatchers may not be made yet
_making = threading.RLock()  # stages on several threads call kernels for the first time
_active = False
_quick = True  # whether SciPy is hidden
_can_compile = False
_folder: Path | None = None
_tidied = False  # whether files that another process did not finish are removed
_unkept = ""

FLAGS: dict[str, dict[str, bool]] = {  # of numba, by kind
    "": {},
    "bare": {"_nrt": False, "forceinline": True},
    "allocating": {"_nrt": True},
    "inlined": {"forceinline": True},
}
COMMON = {"nogil": True, "error_model": "numpy"}  # flags of every kernel
KEPT_FOLDERS = 3  # of the latest versions of Python and numba; older ones are removed


def jit(function: F) -> F:
    """Mark a function as a kernel: compiled by `activate()`, without the interpreter's lock."""
    assert isinstance(function, FunctionType)
    _marked.append(function)
    return function


def bare(function: F) -> F:
    """`jit` for a kernel that makes no array: it does not count references to the arrays it is handed.

    Counting is an atomic operation or two wherever an array is taken out of a tuple, a quarter of the time of a kernel
    that walks down a tree.
    """
    vars(function)["kernel_kind"] = "bare"
    return jit(function)


def inlined(function: F) -> F:
    """`jit` for a part of one long kernel, which becomes part of its code again."""
    vars(function)["kernel_kind"] = "inlined"
    return jit(function)


def allocating(function: F) -> F:
    """`jit` for a kernel that makes arrays and is called by bare ones, whose way of compiling it would inherit."""
    vars(function)["kernel_kind"] = "allocating"
    return jit(function)


def activate(quick: bool = True) -> None:
    """Make every function marked so far a compiled one; later calls take what was marked since.

    Parameters
    ----------
    quick : start sooner by hiding SciPy while numba is imported and while kernels are loaded or compiled. Only for a
        process that is the command: elsewhere another thread may import SciPy at that time.
    """
    global _active, _quick
    _quick = _quick and quick
    if not _active:
        address_space.check_run()
        _choose_folder()
        _active = True
    with _without_scipy():
        import numba  # noqa: F401

    for function in _marked:
        _Kernel(function)
    _marked.clear()


class _Kernel:
    """Stands in a kernel's place until its dispatcher is made."""

    def __init__(self, function: FunctionType) -> None:
        self.py_func = function  # as numba's dispatchers call it
        self._dispatcher: Callable[..., Any] | None = None
        self._place(self)
        _waiting.append(self)

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher()(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """The compiled kernel, which takes this one's place."""
        with _making:
            if self._dispatcher is None:
                import numba

                more = FLAGS[getattr(self.py_func, "kernel_kind", "")]
                made = numba.njit(**COMMON, **more)(self.py_func)
                if hasattr(made, "_compiler"):  # not where numba is told to compile nothing
                    compiling = made._compiler.compile
                    made._compiler.compile = functools.partial(_compile, compiling)
                    if _folder is not None:
                        made._cache = _new_cache(self.py_func, _folder)
                self._dispatcher = made
                self._place(made)
            return self._dispatcher

    def _place(self, what: Callable[..., Any]) -> None:
        setattr(sys.modules[self.py_func.__module__], self.py_func.__name__, what)


def _compile(compiling: Callable[..., Any], *args: Any) -> Any:
    """Compile one kernel, which may call any other."""
    _make_all()
    return compiling(*args)


def _new_cache(function: FunctionType, folder: Path) -> Any:
    from numba import config

    settings = repr((COMMON, FLAGS, config.BOUNDSCHECK, config.OPT))
    cache = kernel_cache.new_cache(function, folder, settings, _save)
    loading = cache.load_overload

    def load(*args: Any) -> Any:
        with _making, _without_scipy():
            return loading(*args)

    cache.load_overload = load
    return cache


def _save(saving: Callable[[], None]) -> None:
    """Put a compiled kernel into the cache while no other process does.

    numba reads a kernel's list of versions, adds a file, and writes the list: two processes that do so at once may give
    two versions the same file, and either would then run the other's code. Where a file cannot be locked or written
    nothing is kept, and the next run compiles again.
    """
    global _tidied
    import fcntl

    assert _folder is not None  # or there would be no cache to save to
    with contextlib.suppress(OSError), open(_folder / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _tidied:
            _tidied = True
            for path in _folder.glob("*.tmp.*"):  # numba's, of a process that was killed: none other holds the lock
                path.unlink()
        saving()


def _make_all() -> None:
    """Make numba and the dispatchers of all kernels ready: one of them is compiled, and may call any other."""
    global _can_compile
    with _making:
        if not _can_compile:
            from numba.core.registry import cpu_target

            from . import intrinsics

            with _without_scipy():
                cpu_target.target_context.refresh()
            intrinsics.install()
            _can_compile = True
        while _waiting:
            _waiting.pop().dispatcher()


@contextlib.contextmanager
def _without_scipy() -> Iterator[None]:
    """SciPy cannot be imported: numba asks for its BLAS, which no kernel here uses, and importing it takes 0.2 s."""
    absent = _quick and "scipy" not in sys.modules
    if absent:
        sys.modules["scipy"] = None  # type: ignore[assignment]  # what Python documents to forbid an import
    try:
        yield
    finally:
        if absent:
            del sys.modules["scipy"]


def folder() -> Path | None:
    """Where compiled code is kept; None before `activate()` and where numba is told to compile nothing."""
    return _folder


def unkept() -> str:
    """Return why what is compiled cannot be kept for later runs, and what to do; empty where it is kept."""
    return _unkept


def is_first_run(what: str) -> bool:
    """Tell whether `what` (a name given to `note_compiled`) has yet to be compiled on this machine."""
    return _folder is None or not _ready(_folder, what).exists()


def note_compiled(what: str) -> None:
    """Remember that everything `what` needs is compiled."""
    if _folder is not None:
        with contextlib.suppress(OSError):  # only the announcement depends on it
            ready = _ready(_folder, what)
            ready.touch()
            for path in _folder.glob(f"{what}-*.ready"):  # of earlier versions
                if path != ready:
                    path.unlink(missing_ok=True)


def _ready(folder: Path, what: str) -> Path:
    """The file that says that `what` is compiled, in this version of the package."""
    return folder / f"{what}-{_source_hash()}.ready"


@functools.cache
def _source_hash() -> str:
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _choose_folder() -> None:
    global _folder, _unkept
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return
    if os.environ.get("NUMBA_CACHE_DIR"):
        _folder = Path(os.environ["NUMBA_CACHE_DIR"])
        try:
            _make_writable(_folder)
        except OSError as error:
            raise XclassError(
                f"NUMBA_CACHE_DIR={_folder}: compiled kernels cannot be kept there ({error.strerror or error}); give "
                "that variable a folder that can be made and written, or unset it"
            ) from None
        return
    kind = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
    base = Path("~/.cache/xclass")
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xclass"
        folder = base / f"python-{sys.version_info[0]}.{sys.version_info[1]}-numba-{metadata.version('numba')}{kind}"
        _make_writable(folder)
        os.utime(folder)
        _remove_old(base, folder)
    except (OSError, RuntimeError) as error:  # a read-only home, or none: compile into a folder of this process
        why = getattr(error, "strerror", None) or error
        _unkept = (
            f"compiled kernels cannot be kept in {base} ({why}), so that every run compiles them again; set "
            "XDG_CACHE_HOME to a folder that can be written"
        )
        try:
            folder = leftovers.private_folder()
        except OSError:  # no room there either: every run compiles
            return
        import atexit

        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _folder = folder


def _make_writable(folder: Path) -> None:
    """Make a folder where there is none, and make sure that files can be written there; OSError where not."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _remove_old(base: Path, current: Path) -> None:
    others = sorted((p for p in base.iterdir() if p.is_dir() and p != current), key=lambda p: p.stat().st_mtime)
    for folder in others[: max(0, len(others) - KEPT_FOLDERS)]:
        shutil.rmtree(folder, ignore_errors=True)
