"""Store compiled kernels on disk, each under a fingerprint of everything that its machine code depends on.

numba's own cache compiles a kernel again when its file changes, but not when a kernel that it calls in another file
changes. Here the fingerprint of a kernel is a hash of its bytecode, of the values of the globals that it uses, and of
the same for every function that it may call. So machine code of another version is never used, and a change of a
comment or of unrelated code compiles nothing again.

The names of the fields of the records (named tuples) that a kernel receives are part of the key as well. numba
identifies records by the name of the class and the types of its fields, so it would not notice that two fields of the
same type were exchanged. So is whether Python can call the version, see `jit`.

A version is stored as machine code and as LLVM's intermediate code, from which other kernels are compiled that call it.
Parsing the latter takes most of the time of loading, so it waits until such a kernel is compiled. The name of the file
has the checksum of its contents, because damaged machine code would end the process or compute wrong numbers.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..system import trust

KEPT_VERSIONS = 4  # versions of a kernel that are kept; older ones are removed
# errors of reading an index that is damaged, or that was written when a class was in another module
UNREADABLE = (
    EOFError, ImportError, AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, MemoryError,
    pickle.UnpicklingError,
)  # fmt: skip
_PACKAGE = __name__.partition(".")[0]


def fingerprint(function: FunctionType, settings: str = "") -> str:
    """Return a hash of everything that the machine code of a kernel depends on, except the types of its arguments."""
    digest = hashlib.sha256(settings.encode())
    for callee in sorted(_closure(function), key=_name):
        digest.update(_hash_and_callees(callee)[0])
    return digest.hexdigest()[:16]


def _name(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _closure(function: FunctionType) -> set[FunctionType]:
    closure, waiting = {function}, [function]
    while waiting:
        for callee in _hash_and_callees(waiting.pop())[1]:
            if callee not in closure:
                closure.add(callee)
                waiting.append(callee)
    return closure


@functools.cache
def _hash_and_callees(function: FunctionType) -> tuple[bytes, tuple[FunctionType, ...]]:
    """Return a hash of a function without those it calls, and the functions that it may call."""
    digest = hashlib.sha256(f"{_name(function)} {vars(function)}".encode())
    callees: list[FunctionType] = []
    names: set[str] = set()
    for code in _codes(function.__code__):
        digest.update(code.co_code)
        shape = (code.co_varnames, code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_names)
        constants = [item for item in code.co_consts if not isinstance(item, CodeType) and item != function.__doc__]
        digest.update(repr((shape, constants, function.__defaults__, function.__kwdefaults__)).encode())
        names.update(code.co_names)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] != _PACKAGE:
                continue  # a module of another package; the folder depends on the versions of Python and numba
            if getattr(value, "BY_SOURCE", False):
                digest.update(_source_hash(value))
            else:
                for inner in sorted(names & vars(value).keys()):
                    _add_global(digest, f"{name}.{inner}", vars(value)[inner], callees)
        else:
            _add_global(digest, name, value, callees)
    return digest.digest(), tuple(callees)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _add_global(digest: Any, name: str, value: Any, callees: list[FunctionType]) -> None:
    """Add the value of a global to a hash or, if it is a function of the package, to the list `callees`."""
    function = getattr(value, "py_func", value)
    if isinstance(value, ModuleType):
        return  # the name refers to something else in the kernel's own code
    if isinstance(function, FunctionType):
        if function.__module__.partition(".")[0] == _PACKAGE:
            callees.append(function)
        return
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        content: object = (value.__qualname__, value._fields)
    elif isinstance(value, np.ndarray):
        content = (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, (int, float, complex, str, bytes, tuple, type(None), np.generic, np.dtype)):
        content = (type(value).__name__, value)
    elif isinstance(value, type) or callable(value):
        content = getattr(value, "__qualname__", type(value).__qualname__)
    else:
        raise TypeError(f"{name}: a kernel uses {value!r}, and it is not known how its code depends on that")
    digest.update(f"{name}={content!r}".encode())


@functools.cache
def _source_hash(module: ModuleType) -> bytes:
    """Return a hash of the source files that BY_SOURCE of a module names."""
    folder = Path(module.__file__ or "").parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in module.BY_SOURCE)).digest()


def _fields(kind: Any) -> Any:
    """Return the names of the fields of all records in a numba type, nested like the type; None if it has none."""
    inner = tuple(_fields(element) for element in getattr(kind, "types", ()) or ())
    record = getattr(kind, "instance_class", None)
    return (getattr(record, "_fields", None), inner) if record is not None or inner else None


@functools.cache
def cache_class() -> type:
    """Return the class of the caches of kernels, which needs numba's classes."""
    import llvmlite.binding
    from numba.core import caching, codegen
    from numba.core.runtime import nrtdynmod, rtsys

    class LoadedLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]  # numba has no types
        """Hold machine code that was loaded, and the intermediate code that it was made from."""

        _shared_module: Any  # the intermediate code after it was parsed, else None

        def __init__(self, owner: Any, name: str, machine_code: bytes, intermediate: bytes, symbols: list[str]) -> None:
            super().__init__(owner, name)
            self._intermediate = intermediate
            if machine_code:
                self.enable_object_caching()
                self._set_compiled_object(machine_code)
                self._finalize_final_module()
                owner._engine._defined_symbols.update(symbols)
            self._finalized = True

        def _get_module_for_linking(self) -> Any:
            if self._shared_module is None:
                self._shared_module = llvmlite.binding.parse_bitcode(self._intermediate)
            return self._shared_module

    def defined_symbols(library: Any) -> list[str]:
        """Return the names of the functions and variables that compiled code defines."""
        module = library._get_module_for_linking()
        return [item.name for item in (*module.functions, *module.global_variables) if not item.is_declaration]

    class CodeSerializer(caching.CompileResultCacheImpl):  # type: ignore[misc]  # numba has no types
        """Serialise compiled code as numba does, but with the names of the symbols that it defines."""

        def __init__(self) -> None:
            pass

        def reduce(self, compiled: Any) -> Any:
            (name, kind, (machine_code, intermediate)), *rest, environments = super().reduce(compiled)
            symbols = defined_symbols(compiled.library)
            # an environment holds the Python objects that a function uses; to read one imports the function's module
            environments = tuple(
                used for used in environments if used.consts or used.globals["__name__"].partition(".")[0] != "numba"
            )
            return (name, kind, (machine_code, intermediate, symbols)), *rest, environments

        def rebuild(self, context: Any, stored: Any) -> Any:
            owner = context.codegen()
            read = owner.unserialize_library

            def unserialize(state: Any) -> Any:
                name, _, data = state
                return LoadedLibrary(owner, name, *data) if len(data) == 3 else read(state)

            owner.unserialize_library = unserialize
            try:
                return super().rebuild(context, stored)
            finally:
                del owner.unserialize_library  # restores the method of the class

    class KernelFiles(caching.IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
        """Read and write the files of a kernel, none that another user could have written."""

        def _load_index(self) -> dict[Any, str]:
            try:
                with trust.open_trusted(self._index_path) as file:
                    if pickle.load(file) != self._version:
                        return {}
                    stamp, names = pickle.load(file)
            except (FileNotFoundError, trust.UntrustedError):
                return {}
            return names if stamp == self._source_stamp else {}

        def _load_data(self, name: str) -> Any:
            with trust.open_trusted(self._data_path(name)) as file:
                content = file.read()
            if name != self._data_name(zlib.crc32(content)):
                raise ValueError(f"{name} is damaged")
            return pickle.loads(content)

        def save(self, key: Any, code: Any) -> None:
            """Write compiled code to a file that has the checksum in its name, and then its name to the index."""
            content = self._dump(code)
            name = self._data_name(zlib.crc32(content))
            with self._open_for_write(self._data_path(name)) as file:
                file.write(content)
            self._save_index({**self._load_index(), key: name})

        @contextlib.contextmanager
        def _open_for_write(self, path: str) -> Iterator[Any]:
            with super()._open_for_write(path) as file:
                os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & trust.SAFE_MODE)
                yield file

    class Cache(caching.Cache):  # type: ignore[misc]  # numba has no types
        """Store the compiled versions of one kernel; `run_locked` calls a function when that may write to `folder`."""

        def __init__(
            self, function: FunctionType, folder: Path, settings: str, run_locked: Callable[[Callable[[], None]], None]
        ) -> None:
            self._py_func, self._folder, self._settings, self._run_locked = function, folder, settings, run_locked
            self._name, self._cache_path, self._impl = _name(function), str(folder), CodeSerializer()
            self.callers = ""  # who can call the versions that are loaded and saved, see `jit`
            self.enable()

        @functools.cached_property
        def _cache_file(self) -> Any:
            name = f"{self._name}-{fingerprint(self._py_func, self._settings)}"
            return KernelFiles(self._cache_path, name, source_stamp=None)

        def load_overload(self, signature: Any, context: Any) -> Any:
            # numba's method first registers everything that numba can compile in the context, which takes .08 s.
            # Code that is already compiled needs only the reference counting of the context.
            context.refresh = functools.partial(self._start_reference_counting, context)
            try:
                context.refresh()
                return self._load_overload(signature, context)
            except (OSError, *UNREADABLE):
                return None  # the kernel is compiled again
            finally:
                del context.refresh  # restores the method of the class

        def _start_reference_counting(self, context: Any) -> None:
            """Initialise numba's reference counting with stored code; numba would compile it in every process."""
            if rtsys._init:
                return
            compile_functions = nrtdynmod.compile_nrt_functions
            nrtdynmod.compile_nrt_functions = self._reference_counting
            try:
                rtsys.initialize(context)
            finally:
                nrtdynmod.compile_nrt_functions = compile_functions

        def _reference_counting(self, context: Any) -> Any:
            """Return numba's functions for reference counting, loaded if they are stored, else compiled and stored."""
            file = KernelFiles(self._cache_path, "numba.reference_counting", source_stamp=None)
            key = (context.codegen().magic_tuple(), self._settings)
            with contextlib.suppress(OSError, *UNREADABLE):
                stored = file.load(key)
                if stored is not None:
                    return LoadedLibrary(context.codegen(), *stored)
            module, library = nrtdynmod.create_nrt_module(context)
            library.enable_object_caching()
            library.add_ir_module(module)
            library.finalize()
            name, _, code = library.serialize_using_object_code()
            symbols = defined_symbols(library)
            with contextlib.suppress(*UNREADABLE):  # `run_locked` suppresses errors of writing
                self._run_locked(lambda: file.save(key, (name, *code, symbols)))
            return library

        def save_overload(self, signature: Any, compiled: Any) -> None:
            self._run_locked(lambda: self._save(signature, compiled))

        def _save(self, signature: Any, compiled: Any) -> None:
            """Write a compiled version now, replacing an index that cannot be read."""
            if compiled.library.has_dynamic_globals:  # it contains addresses of this process
                return
            key, code = self._index_key(signature, compiled.codegen), self._impl.reduce(compiled)
            try:
                self._cache_file.save(key, code)
            except UNREADABLE:
                self._cache_file.flush()
                self._cache_file.save(key, code)
            _remove_old(self._folder, self._name)

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            """Return the key of a version: types of the arguments, processor, fields of records, who can call it."""
            return signature, codegen.magic_tuple(), tuple(_fields(argument) for argument in signature), self.callers

    return Cache


def _remove_old(folder: Path, name: str) -> None:
    with contextlib.suppress(OSError):
        indexes = sorted(folder.glob(f"{name}-*.nbi"), key=lambda path: path.stat().st_mtime)
        for index in indexes[:-KEPT_VERSIONS]:
            for path in folder.glob(f"{index.stem}.*"):
                path.unlink()
