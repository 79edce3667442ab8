"""Mark kernels with `@jit`, compile them on demand, and choose the folder of compiled code.

A kernel is a plain module-level function marked with `@jit`. Before `activate()` nothing is compiled and numba is not
imported, so that a module can contain both options and kernels while `--help` stays fast. `activate()` prepares all
marked functions: when Python calls a kernel for the first time, the function is replaced by a numba dispatcher, the
object that loads or compiles the kernel for the types of its arguments and then calls it.

A run that finds all its compiled code on disk starts faster, because two steps are left out until something has to be
compiled: creating dispatchers for the kernels that only other kernels call (0.3 ms each, for some three hundred), and
registering numba's types and functions (0.08 s).

Kernels call each other through the module name (`gd.score(...)`), never by `from gd import score`, because the compiled
form replaces the attribute of the module.

`kernel_cache` stores compiled code, in a folder for each version of Python and numba. NUMBA_CACHE_DIR overrides the
folder. A folder that other users can write to is not used, see `system.trust`. One that this user cannot write to, such
as that of a container image, is read if it contains compiled code.

`_Versions`, `kernel_cache`, `demand` and `fewer_steps` replace private members of numba, which any version of it may
change. `activate()` tries them. If they fail, numba compiles and stores the kernels without them: slower, with the same
results.
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
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO, TypeVar

import numpy as np

from ..array_types import Float64s
from ..errors import XclassError, XclassWarning
from ..system import exclusive, garbage, memory, trust
from . import compiling, demand, fewer_steps, kernel_cache

F = TypeVar("F", bound=Callable[..., Any])  # a decorator does not change the type of a kernel

_marked: list[FunctionType] = []
installers: list[Callable[[], None]] = []  # called before a kernel is compiled; they replace functions by intrinsics
_without_dispatcher: list[_Kernel] = []  # kernels that may have no dispatcher yet
_dispatcher_lock = threading.RLock()  # stages on different threads may call kernels for the first time at once
_import_lock = threading.RLock()  # of `importing`
_active = False
in_command = False  # whether this process is the command `xclass`
_hide_scipy = True  # whether SciPy is hidden while numba is imported and kernels are loaded
_can_compile = False  # whether numba's types and functions are registered
_folder: Path | None = None
_is_kept = True  # whether `_folder` can be written to
_tidied = False  # whether incomplete files of other processes have been removed
_cache_problem = ""  # see `cache_problem`
_save_problem = ""  # see `save_problem`
_plain = False  # whether kernels are compiled and stored without the private members of numba
_turns: BinaryIO | None = None  # see `take_turns`

# numba's flags for each kind of kernel, by the name of its decorator. A kernel that has none of its own, as `jit` has,
# inherits those of the caller with which it is compiled first; so what the other kinds call must not be `jit`, or the
# speed of a run would depend on which reduction was compiled first
KIND_FLAGS: dict[str, dict[str, bool]] = {
    "": {},  # `jit`
    # creates no arrays; it is inlined, and compiled without counting references to its arrays. Counting costs one or
    # two atomic operations wherever an array is taken out of a tuple: a quarter of the time to descend a tree
    "bare": {"_nrt": False, "forceinline": True},
    # creates arrays but is called by bare kernels, whose flags it would otherwise inherit
    "allocating": {"_nrt": True, "forceinline": False},
    # is part of a longer one, and inlined where it is called
    "inlined": {"forceinline": True},
    # is rarely called, and not inlined, as other kernels are that an inlined one calls. This keeps the code short that
    # surrounds the call: it is faster, and is compiled in a fraction of the time
    "apart": {"forceinline": False},
    # is not called by most runs, and compiled when a kernel calls it for the first time, see `demand`
    "on_demand": {"_nrt": True, "forceinline": False},
}
VERSIONS = 7  # to be raised if versions of kernels are kept in another way; part of their fingerprint
COMMON_FLAGS = {"nogil": True, "error_model": "numpy"}  # flags of every kernel
NEWEST = "0.68.1"  # version of numba with which this was tried
SETTINGS = ".numba_config.yaml"  # file of settings that numba reads
KEPT_NOTES = 8  # of `note_compiled` for a component, since several installations of xclass may take turns
KEPT_FOLDERS = 3  # folders of the latest versions of Python and numba; older ones are removed


_held: list[Any] = []  # locks of the thread that forks the process; only a thread that has them all changes this


def _before_fork() -> None:
    """Wait until no thread compiles or loads a kernel: it would not exist in the child, which waits for its locks."""
    module = sys.modules.get("numba.core.compiler_lock")
    of_numba = getattr(module, "global_compiler_lock", None)
    locks = [_import_lock, *([] if of_numba is None else [of_numba]), _dispatcher_lock]
    for lock in locks:
        lock.acquire()
    _held.extend(locks)


def _after_fork() -> None:
    """Release the locks that `_before_fork` has taken, in the parent and in the child."""
    locks = _held.copy()
    _held.clear()
    for lock in reversed(locks):
        lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _marker(kind: str) -> Callable[[F], F]:
    """Return a decorator that marks a function as a kernel of a kind, see `KIND_FLAGS`."""

    def mark(function: F) -> F:
        assert isinstance(function, FunctionType)
        if kind:
            vars(function)["kernel_kind"] = kind
        _marked.append(function)
        return function

    return mark


jit, bare, allocating = _marker(""), _marker("bare"), _marker("allocating")
inlined, apart, on_demand = _marker("inlined"), _marker("apart"), _marker("on_demand")


def activate(hide_scipy: bool = True) -> None:
    """Prepare every function marked so far to be compiled; later calls include functions marked since.

    `hide_scipy` makes the start faster by hiding SciPy while numba is imported and while kernels are loaded or
    compiled. Only the command `xclass` may set this: in other programs another thread may import SciPy at the same
    time.
    """
    global _active, _hide_scipy
    _hide_scipy = _hide_scipy and hide_scipy
    if not _active:
        memory.check_address_space(memory.RUN)
        with _without_scipy(), _without_settings(), garbage.kept(for_good=True):
            import numba  # noqa: F401
        _choose_folder()
        fewer_steps.know_arrays()
        demand.install(_address_of)
        _try_numba()
        _active = True
        if _cache_problem and not hide_scipy:
            warnings.warn(_cache_problem, XclassWarning, stacklevel=3)
    with _import_lock:
        for function in _marked:
            _Kernel(function)
        _marked.clear()


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import modules with kernels in this block; they are prepared at its end if `activate()` was called before.

    Meanwhile no other thread prepares kernels, because one would be lost whose module is about to define it.
    """
    with _import_lock:
        yield
        if _active:
            activate()


def _try_numba() -> None:
    """Find out whether the private members of numba are as expected; a note in the folder says so to later runs."""
    global _plain, _cache_problem
    from numba import __version__, config

    if config.DISABLE_JIT or not _is_kept or not is_first_run("numba"):
        return  # a folder that is only read has such a note of the version of numba that is part of its name
    problem = _trial_problem()
    if not problem:
        note_compiled("numba")
        return
    _plain = True
    advice = f"install a newer xclass, or a version of numba that was tried (pip install 'numba<={NEWEST}')"
    if failure := _trial_problem():
        raise XclassError(f"numba {__version__}: it cannot compile the kernels ({failure}); {advice}")
    warning = (
        f"numba {__version__}: parts of it that xclass replaces are not as expected ({problem}), so kernels are "
        f"compiled and stored without these; results are the same, but runs start and learn more slowly; {advice}"
    )
    _cache_problem = "; ".join(filter(None, (_cache_problem, warning)))


def _trial_problem() -> str:
    """Return why two small kernels cannot be compiled, stored and loaded again; empty if they can."""
    functions = _sum, _sum_of_ones
    vars(_sum)["kernel_kind"] = "on_demand"
    try:
        for _ in ("compile", "load"):
            inner, outer = map(_Kernel, functions)
            if (outer(3), inner(np.ones(2))) != (3, 2):
                return "a wrong sum"
        loaded = _plain or sum(outer.dispatcher().stats.cache_hits.values())
        if not loaded and _folder is not None and any(_folder.glob(f"{__name__}._sum_of_ones-*.nbc")):
            return "a stored kernel was not loaded"
    except MemoryError:
        raise
    except Exception as error:  # whatever follows from a member that is not as expected
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    finally:
        _without_dispatcher.clear()
        globals().update({function.__name__: function for function in functions})
    return ""


def _sum(array: Float64s) -> float:
    """Return the sum of an array."""
    total = 0.0
    for x in array:
        total += x
    return total


def _sum_of_ones(n: int) -> float:
    """Return the sum of n ones, through a kernel of another kind."""
    return _sum(np.ones(n))


class _Kernel:
    """Take a kernel's place in its module until its dispatcher is created."""

    def __init__(self, function: Any) -> None:
        self.py_func: FunctionType = function  # the name that numba's dispatchers use
        self._dispatcher: Any = None
        self._put_in_module(self)
        _without_dispatcher.append(self)

    def __call__(self, *args: Any) -> Any:
        if _plain:  # numba compiles what the kernel calls without asking `_Versions`
            exclusive.to_its_end(_create_dispatchers)
        return self.dispatcher()(*args)

    def dispatcher(self) -> Any:
        """Return the compiled kernel, and put it in the place of this object."""

        def made() -> Any:
            with _dispatcher_lock:
                if self._dispatcher is None:
                    self._dispatcher = (_plain_dispatcher if _plain else _new_dispatcher)(self.py_func)
                    self._put_in_module(self._dispatcher)
                return self._dispatcher

        return exclusive.to_its_end(made)  # numba must not be interrupted

    def _put_in_module(self, kernel: Callable[..., Any]) -> None:
        setattr(sys.modules[self.py_func.__module__], self.py_func.__name__, kernel)


def _new_dispatcher(function: FunctionType) -> Any:
    import numba

    kind = getattr(function, "kernel_kind", "")
    compiled = numba.njit(**COMMON_FLAGS, **KIND_FLAGS[kind])(function)
    if compiled is not function:  # as it is if NUMBA_DISABLE_JIT is set
        compiled.address_of = _Versions(compiled).address_of
        # numba looks for extensions of itself among all installed packages, which takes longer than loading a kernel
        compiled._compilation_chain_init_hook = lambda: None
        if kind == "on_demand":
            demand.call_by_address(compiled)
        if _folder is not None:
            compiled._cache = _new_cache(function, _folder)
    return compiled


def _address_of(module: str, name: str, types: tuple[Any, ...]) -> int:
    """Return the address of the machine code of a kernel for some types of arguments."""
    kernel: Any = getattr(sys.modules[module], name)
    address: int = (kernel.dispatcher() if isinstance(kernel, _Kernel) else kernel).address_of(types)
    return address


def _plain_dispatcher(function: FunctionType) -> Any:
    """Return the compiled form of a kernel, which numba stores by itself if it can.

    numba does not notice when a function in another file changes, so each version of the package has its own folder.
    """
    import numba
    from numba import config

    if _folder is not None:
        folder = _folder / f"plain-{_stamp(read=True)}"
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            if not folder.exists():
                folder.mkdir(0o700)
                _remove_old(_folder, folder)
            compiled = numba.njit(cache=True, **COMMON_FLAGS)(function)
            if Path(compiled.stats.cache_path).is_relative_to(folder):
                write = compiled._cache.save_overload
                compiled._cache.save_overload = lambda *args: _save(lambda: write(*args))
                return compiled
        except (AttributeError, OSError, RuntimeError):
            pass  # it cannot be stored
        finally:
            config.CACHE_DIR = before
    return numba.njit(**COMMON_FLAGS)(function)


class _Versions:
    """Compile or load the versions of a kernel for the types of its arguments, by replacing methods of its dispatcher.

    A version that only another kernel calls is compiled without the functions by which Python would call it. These
    unpack every array of every record; compiling them takes half of the time. If Python later calls such a version,
    one with these functions is compiled or loaded.

    A literal argument (the 3 of `f(3)`) counts as any number of its type; numba would compile a version for each
    literal.
    """

    # who can call a version: Python, only kernels that contain it, or only kernels that know its address
    PYTHON, CONTAINING, BY_ADDRESS = "Python", "containing", "by address"
    depth = 0  # kernels that are being compiled, each called by the one before; protected by numba's lock

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._compile_or_load, self._add, self._compile = (
            dispatcher.compile, dispatcher.add_overload, dispatcher._compiler.compile,
        )  # fmt: skip
        self._internal: set[tuple[Any, ...]] = set()  # types of the versions that Python cannot call
        dispatcher.compile = self.compile_or_load
        dispatcher.add_overload = self.add
        dispatcher._compiler.compile = self.compile

    def compile_or_load(self, types: tuple[Any, ...]) -> Any:
        """Return the function for some types of arguments; an interruption within numba could crash the process."""
        return exclusive.to_its_end(lambda: self._compiled_or_loaded(types, self.PYTHON))

    def address_of(self, types: tuple[Any, ...]) -> int:
        """Return the address of the function for some types of arguments, by which kernels call it."""
        exclusive.to_its_end(lambda: self._compiled_or_loaded(types, self.BY_ADDRESS))
        compiled = self._dispatcher.overloads[types]
        expected = demand.result_of(self._dispatcher.py_func)
        if compiled.signature.return_type != expected:
            raise TypeError(f"{self._dispatcher.py_func}: {compiled.signature.return_type} instead of {expected}")
        address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return address

    def _compiled_or_loaded(self, types: tuple[Any, ...], callers: str) -> Any:
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.types.misc import unliteral

        types = tuple(unliteral(kind) for kind in types)
        cache = self._dispatcher._cache
        with _turn(cache, types), global_compiler_lock:
            if _Versions.depth > 0:
                callers = self.CONTAINING
            if callers == self.PYTHON and types in self._internal:
                self._internal.remove(types)
                del self._dispatcher.overloads[types]
            before = getattr(cache, "callers", "")  # differs if the kernel is being compiled for other types
            cache.callers = callers
            internal = callers != self.PYTHON
            self._dispatcher.targetoptions.update(no_cpython_wrapper=internal, no_cfunc_wrapper=internal)
            _Versions.depth += 1
            try:
                return self._compile_or_load(types)
            finally:
                _Versions.depth -= 1
                cache.callers = before

    def add(self, compiled: Any) -> None:
        if self._dispatcher._cache.callers != self.PYTHON:
            types = tuple(compiled.signature.args)
            self._internal.add(types)
            self._dispatcher.overloads[types] = compiled
        else:
            self._add(compiled)

    def compile(self, *args: Any) -> Any:
        """Compile a version, after creating the dispatchers of all kernels that it may call."""
        outermost = "" if self._dispatcher._cache.callers == self.CONTAINING else self._dispatcher.py_func.__qualname__
        with compiling.under_way(), fewer_steps.within(outermost):
            _create_dispatchers()
            try:
                with garbage.kept():
                    return self._compile(*args)
            finally:
                compiling.add_one()


def take_turns(path: Path) -> None:
    """Let this process wait for a kernel that another one is compiling, and then load it.

    `path` is a file that the processes have in common; each version of a kernel has a byte of it, which is locked while
    the version is compiled or loaded. Kernels do not call each other in a circle, so no two processes wait for each
    other. In a run of the command, the lock would be a risk: a process that was stopped would stop all others.
    """
    global _turns
    _turns = path.open("wb")


@contextlib.contextmanager
def _turn(cache: Any, types: tuple[Any, ...]) -> Iterator[None]:
    """Wait until no other process that takes turns with this one compiles or loads a version of a kernel."""
    if _turns is None:
        yield
        return
    import fcntl

    place = zlib.crc32(repr((cache._cache_file._index_name, types)).encode())
    with contextlib.suppress(OSError):  # a circle after all
        fcntl.lockf(_turns, fcntl.LOCK_EX, 1, place)
    try:
        yield
    finally:
        fcntl.lockf(_turns, fcntl.LOCK_UN, 1, place)


def _new_cache(function: FunctionType, folder: Path) -> Any:
    """Return the cache of a kernel, which loads compiled code while SciPy is hidden."""
    from numba import config

    settings = repr((COMMON_FLAGS, KIND_FLAGS, VERSIONS, config.BOUNDSCHECK, config.OPT))
    cache = kernel_cache.cache_class()(function, folder, settings, _save)
    load_compiled = cache.load_overload

    def load(*args: Any) -> Any:
        with _dispatcher_lock, _without_scipy():
            return load_compiled(*args)

    cache.load_overload = load
    return cache


def _save(write: Callable[[], None]) -> None:
    """Write a compiled kernel to the cache while no other process does.

    numba reads a kernel's list of versions, adds a file and writes the list. Two processes that do so at once could
    give two versions the same file, and one would then run the code of the other. If a file cannot be locked or
    written, nothing is stored, the next run compiles again, and `save_problem` says why.
    """
    global _tidied, _save_problem
    import fcntl

    assert _folder is not None  # otherwise there is no cache
    try:
        with open(_folder / "lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _tidied:
                _tidied = True
                for path in _folder.glob("*.tmp.*"):  # left by killed processes, since this one has the lock
                    path.unlink()
            write()
    except OSError as error:
        _save_problem = (
            f"{_folder}: compiled kernels cannot be kept there ({error.strerror or error}); make room or let this user "
            "write there, or set NUMBA_CACHE_DIR to another folder"
        )


def _create_dispatchers() -> None:
    """Initialise numba and create the dispatchers of all kernels; a kernel that is compiled may call any of them."""
    global _can_compile
    with _dispatcher_lock:
        if not _can_compile:
            from . import intrinsics

            if not _plain:
                from numba.core.registry import cpu_target

                with _without_scipy():
                    cpu_target.target_context.refresh()
                fewer_steps.install(cpu_target.target_context.codegen())
            intrinsics.install()
            _can_compile = True
        while installers:
            installers.pop()()
        while _without_dispatcher:
            _without_dispatcher.pop().dispatcher()


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    loaded = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]  # the documented way to prevent an import
    try:
        yield
    finally:
        del sys.modules[name]
        if loaded is not None:
            sys.modules[name] = loaded


def _without_scipy() -> AbstractContextManager[None]:
    """Hide SciPy from imports if `activate` was called with `hide_scipy`.

    numba imports SciPy, which takes 0.2 s, only for its linear algebra (BLAS), which no kernel uses.
    """
    return _hidden("scipy") if _hide_scipy and "scipy" not in sys.modules else contextlib.nullcontext()


@contextlib.contextmanager
def _without_settings() -> Iterator[None]:
    """Keep numba, unless it is imported, from reading settings in the current folder, which may be a stranger's.

    numba takes `.numba_config.yaml` from there when it is imported and before it compiles. It cannot without PyYAML.
    """
    if "numba" in sys.modules:
        yield
        return
    with contextlib.ExitStack() as hiding:
        if _hide_scipy or os.path.exists(SETTINGS):  # otherwise not: another thread may import PyYAML at the same time
            hiding.enter_context(_hidden("yaml"))
            hiding.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "A Numba config file is found")
        yield
    from numba.core import config

    config._config_fname = ""


def folder() -> Path | None:
    """Return the folder of compiled code; None before `activate()`, and if there is none."""
    return _folder


def is_kept() -> bool:
    """Return whether what is compiled is kept in the folder."""
    return _folder is not None and _is_kept


def cache_problem() -> str:
    """Return why later runs compile again, or why all are slower, and what to do; empty if there is no problem."""
    return _cache_problem


def save_problem() -> str:
    """Return why a kernel was not kept that this process has compiled; empty if all are kept."""
    return _save_problem


def is_first_run(component: str) -> bool:
    """Return whether the kernels for `component` (see `note_compiled`) have yet to be compiled on this machine."""
    return _folder is None or not _ready_file(_folder, component).exists()


def note_compiled(component: str) -> None:
    """Record that all kernels for `component`, the name of a reduction or another user of kernels, are compiled."""
    if _folder is not None:
        with contextlib.suppress(OSError):  # only an announcement depends on this file
            ready = _ready_file(_folder, component)
            known = ready.exists()
            ready.touch()
            if known:  # to list the folder would take milliseconds of every run
                return
            others = [path for path in _folder.glob(f"{component}-*.ready") if path != ready]
            for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-KEPT_NOTES]:  # of earlier versions
                path.unlink(missing_ok=True)


def _ready_file(folder: Path, component: str) -> Path:
    return folder / f"{component}-{_stamp()}.ready"


@functools.cache
def _stamp(read: bool = False) -> str:
    """Return a hash of the names and sizes of the package's source files, of its version, and of the processor.

    If `read`, the contents of the files are part of it; to read them takes four times as long. The folder of the
    package and the times of the files are not, because they change when it is installed again.
    """
    from llvmlite import binding
    from numba.core import codegen, config

    processor = config.CPU_NAME or binding.get_host_cpu_name()
    features = codegen.get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    digest = hashlib.sha256(f"{processor} {features}\n".encode())
    package = str(Path(__file__).parents[1])
    digest.update(Path(package, "__init__.py").read_bytes())  # which has the version
    folders = [package]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py"):
                    digest.update(f"{entry.path[len(package) :]} {entry.stat().st_size}\n".encode())
                    if read:
                        digest.update(Path(entry.path).read_bytes())
                elif entry.is_dir():
                    folders.append(entry.path)
    return digest.hexdigest()[:16]


def _choose_folder() -> None:
    """Choose and create the folder of compiled code: the first one that can be used and that no other changes."""
    global _folder, _cache_problem
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        try:
            _folder = _usable(Path(named))
            return
        except trust.UntrustedError as error:
            _cache_problem = _untrusted(f"NUMBA_CACHE_DIR={named}", error)
        except OSError as error:
            raise XclassError(
                f"NUMBA_CACHE_DIR={named}: compiled kernels cannot be kept there ({error.strerror or error}); set "
                "that variable to a folder that can be created and written to, or unset it"
            ) from None
    kind = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
    from numba import __version__

    base = Path("~/.cache/xclass")
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xclass"
        name = f"python-{sys.version_info[0]}.{sys.version_info[1]}-numba-{__version__}{kind}"
        _folder = _usable(base / name)
        if _is_kept:
            os.utime(_folder)
            _remove_old(_folder.parent, _folder)
        return
    except trust.UntrustedError as error:
        _cache_problem = _untrusted(f"{base}", error)
    except (OSError, RuntimeError) as error:  # home is missing or read-only
        problem = getattr(error, "strerror", None) or error
        _cache_problem = (
            f"compiled kernels cannot be kept in {base} ({problem}), so every run compiles them again; set "
            "XDG_CACHE_HOME to a folder that can be written to"
        )


def _usable(folder: Path) -> Path:
    """Create a folder if it is missing, and return it without symbolic links; raise OSError if it cannot be used."""
    global _is_kept
    folder.mkdir(trust.SAFE_MODE, parents=True, exist_ok=True)
    folder = trust.trusted_folder(folder)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        if not any(folder.glob("numba-*.ready")):  # see `_try_numba`
            raise
        _is_kept = False
    return folder


def _untrusted(place: str, error: OSError) -> str:
    return (
        f"{place}: {error}, and a user who writes compiled kernels chooses code that this process executes; they are "
        "neither read nor kept there. Take the permission to write from others (chmod go-w), or set NUMBA_CACHE_DIR to "
        "a folder that only you can write to, so that not every run compiles them again"
    )


def _remove_old(base: Path, current: Path) -> None:
    """Remove the folders of older versions, except the KEPT_FOLDERS latest ones."""
    others = sorted((p for p in base.iterdir() if p.is_dir() and p != current), key=lambda p: p.stat().st_mtime)
    for folder in others[: max(0, len(others) - KEPT_FOLDERS)]:
        shutil.rmtree(folder, ignore_errors=True)
