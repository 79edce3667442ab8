"""Keep compiled kernels on disk, each under a fingerprint of all that its machine code depends on.

numba's own check sees an edit of a kernel's file only, and not of the kernels it calls. Here a kernel's fingerprint is
a hash of its bytecode, of the values of the globals it uses, and of the same of every function it may call. So an edit
of a comment, or elsewhere, compiles nothing again, and code of another version is never found.

Records (named tuples) that a kernel is handed are part of the key as well, by the names of their fields: numba itself
goes by the name of the class and the types of its fields, and would not see two of one type change places.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

KEPT_VERSIONS = 4  # of one kernel; older ones are removed
# of an index that is damaged, or made when a class was somewhere else
UNREADABLE = (EOFError, ImportError, AttributeError, IndexError, KeyError, ValueError, pickle.UnpicklingError)
_PACKAGE = __name__.partition(".")[0]


def fingerprint(function: FunctionType, settings: str = "") -> str:
    """Return a hash of what the machine code of a kernel depends on, the types of its arguments apart.

    Parameters
    ----------
    settings : of the compiler
    """
    digest = hashlib.sha256(settings.encode())
    for one in sorted(_closure(function), key=_name):
        digest.update(_own_hash(one))
    return digest.hexdigest()[:16]


def _name(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _closure(function: FunctionType) -> set[FunctionType]:
    """Return a function and all functions that it may call, directly or not."""
    found, waiting = {function}, [function]
    while waiting:
        for called in _parts(waiting.pop())[1]:
            if called not in found:
                found.add(called)
                waiting.append(called)
    return found


def _own_hash(function: FunctionType) -> bytes:
    return _parts(function)[0]


@functools.cache
def _parts(function: FunctionType) -> tuple[bytes, tuple[FunctionType, ...]]:
    """Return a hash of a function without those it calls, and the functions it may call."""
    digest = hashlib.sha256(f"{_name(function)} {vars(function)}".encode())
    called: list[FunctionType] = []
    names: set[str] = set()
    for code in _codes(function.__code__):
        digest.update(code.co_code)
        shape = (code.co_varnames, code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_names)
        constants = [one for one in code.co_consts if not isinstance(one, CodeType) and one != function.__doc__]
        digest.update(repr((shape, constants, function.__defaults__, function.__kwdefaults__)).encode())
        names.update(code.co_names)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] != _PACKAGE:
                continue  # changes with numba's and Python's version only
            if getattr(value, "BY_SOURCE", False):
                digest.update(_source_hash(value))
            else:
                for inner in sorted(names & vars(value).keys()):
                    _note(digest, f"{name}.{inner}", vars(value)[inner], called)
        else:
            _note(digest, name, value, called)
    return digest.digest(), tuple(called)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _note(digest: Any, name: str, value: Any, called: list[FunctionType]) -> None:
    """Take a global into a hash; what can be called is added to `called`."""
    function = getattr(value, "py_func", value)
    if isinstance(value, ModuleType):
        return  # of a name that means something else in the module at hand
    if isinstance(function, FunctionType):
        if function.__module__.partition(".")[0] == _PACKAGE:
            called.append(function)
        return
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        what: object = (value.__qualname__, value._fields)
    elif isinstance(value, np.ndarray):
        what = (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, (int, float, complex, str, bytes, tuple, type(None), np.generic, np.dtype)):
        what = (type(value).__name__, value)
    elif isinstance(value, type) or callable(value):
        what = getattr(value, "__qualname__", type(value).__qualname__)
    else:
        raise TypeError(f"{name}: a kernel uses {value!r}, and it is not known how its code depends on that")
    digest.update(f"{name}={what!r}".encode())


@functools.cache
def _source_hash(module: ModuleType) -> bytes:
    """Return a hash of a module's file, for modules whose functions are not what numba compiles."""
    return hashlib.sha256(Path(module.__file__ or "").read_bytes()).digest()


def _fields(kind: Any) -> Any:
    """Return the names of the fields of records in a numba type."""
    inner = tuple(_fields(one) for one in getattr(kind, "types", ()) or ())
    record = getattr(kind, "instance_class", None)
    return (getattr(record, "_fields", None), inner) if record is not None or inner else None


def new_cache(function: FunctionType, folder: Path, settings: str, saving: Callable[[Callable[[], None]], None]) -> Any:
    """Return the cache that a dispatcher of numba's is to use for a kernel.

    Parameters
    ----------
    folder : where compiled code is kept
    settings : of the compiler
    saving : called with the function that writes to `folder`, which it calls where that is safe
    """
    return _cache_class()(function, folder, settings, saving)


@functools.cache
def _cache_class() -> type:
    from numba.core import caching
    from numba.core.runtime import rtsys

    class Code(caching.CompileResultCacheImpl):  # type: ignore[misc]  # numba is not looked into
        """How compiled code is written and read, which numba knows."""

        def __init__(self) -> None:
            pass

    class Cache(caching.Cache):  # type: ignore[misc]  # numba is not looked into
        """The compiled versions of one kernel, by the types of its arguments."""

        def __init__(
            self, function: FunctionType, folder: Path, settings: str, saving: Callable[[Callable[[], None]], None]
        ) -> None:
            self._py_func, self._folder, self._settings, self._saving = function, folder, settings, saving
            self._name, self._cache_path, self._impl = _name(function), str(folder), Code()
            self.enable()

        @functools.cached_property
        def _cache_file(self) -> Any:
            name = f"{self._name}-{fingerprint(self._py_func, self._settings)}"
            return caching.IndexDataCacheFile(self._cache_path, name, source_stamp=None)

        def load_overload(self, signature: Any, context: Any) -> Any:
            """Return a compiled version, None where there is none or it cannot be read."""
            # Before numba looks it up, it has the context learn of all that numba can compile, which takes .08 s.
            # Code that is compiled needs no more of the context than the counting of references.
            context.refresh = functools.partial(rtsys.initialize, context)
            try:
                context.refresh()
                return self._load_overload(signature, context)
            except (OSError, *UNREADABLE):
                return None  # it is compiled again
            finally:
                del context.refresh  # the class's own is back

        def save_overload(self, signature: Any, compiled: Any) -> None:
            """Write a compiled version."""
            self._saving(lambda: self._save(signature, compiled))

        def _save(self, signature: Any, compiled: Any) -> None:
            if compiled.library.has_dynamic_globals:  # addresses in this process
                return
            key, code = self._index_key(signature, compiled.codegen), self._impl.reduce(compiled)
            try:
                self._cache_file.save(key, code)
            except UNREADABLE:
                self._cache_file.flush()
                self._cache_file.save(key, code)
            _remove_old(self._folder, self._name)

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            return signature, codegen.magic_tuple(), tuple(_fields(one) for one in signature)

    return Cache


def _remove_old(folder: Path, name: str) -> None:
    """Remove all but the latest versions of a kernel."""
    with contextlib.suppress(OSError):
        indexes = sorted(folder.glob(f"{name}-*.nbi"), key=lambda path: path.stat().st_mtime)
        for index in indexes[:-KEPT_VERSIONS]:
            for path in folder.glob(f"{index.stem}.*"):
                path.unlink()
