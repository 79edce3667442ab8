"""Leave out what numba does several times when it compiles a kernel together with the kernels that it calls.

Code      numba optimises each function and turns it into machine code, although a function that only kernels call is
          linked into these as intermediate code and optimised there again. Here this is done for the outermost kernel
          alone, with all that is linked into it.
Types     numba looks up the result of each operation, such as the sum of two integers, wherever it occurs: it tries all
          functions of that name in turn. Here the result is remembered by the types of the operands.

Both replace private members of numba, and act only while a kernel of this package is compiled, see `jit`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

_outermost: str | None = None  # the function that becomes machine code, "" for none; None while nothing is compiled


@contextlib.contextmanager
def within(name: str) -> Iterator[None]:
    """Turn only the function of a qualified name into machine code, none if it is empty; needs numba's lock."""
    global _outermost
    before, _outermost = _outermost, name
    try:
        yield
    finally:
        _outermost = before


@functools.cache
def library_classes() -> tuple[type, type]:
    """Return the classes of the code of the outermost kernel and of a function that it calls, which need numba's."""
    from numba.core import codegen, environment

    class Outermost(codegen.JITCodeLibrary):  # type: ignore[misc]  # numba has no types
        """Hold machine code; numba would set the environments of the functions in it where these are compiled."""

        def _finalize_specific(self) -> None:
            super()._finalize_specific()
            for variable in self._final_module.global_variables:
                if used := environment.lookup_environment(variable.name):
                    self._codegen.set_env(variable.name, used)

    class Intermediate(codegen.JITCodeLibrary):  # type: ignore[misc]  # numba has no types
        """Hold intermediate code alone, to be linked into kernels."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0  # which says that there is no function that Python could call

        def serialize_using_object_code(self) -> Any:
            return self.name, "object", (b"", self._get_module_for_linking().as_bitcode())

    return Outermost, Intermediate


def install(codegen: Any) -> None:
    """Let numba leave out these steps while a kernel is compiled inside `within`."""
    from numba.core import types
    from numba.core.targetconfig import ConfigStack

    create_library, set_environment = codegen.create_library, codegen.set_env
    outermost, intermediate = library_classes()
    results: dict[Any, tuple[Any, Any]] = {}  # by function, types of the arguments, and flags of the caller

    def create(name: str, **options: Any) -> Any:
        if _outermost is None:
            return create_library(name, **options)
        return (outermost if name == _outermost else intermediate)(codegen, name, **options)

    def set_env(name: str, used: Any) -> None:
        if codegen._engine.get_global_value_address(name):  # intermediate code has no addresses
            set_environment(name, used)

    codegen.create_library, codegen.set_env = create, set_env
    look_up = types.functions.BaseFunction.get_call_type

    def remembered(function: Any, context: Any, args: Any, names: Any) -> Any:
        if _outermost is None or names:
            return look_up(function, context, args, names)
        flags = ConfigStack.top_or_none()
        key = function, args, None if flags is None else flags.summary()
        if key not in results:
            found: Any = look_up(function, context, args, names)
            results[key] = found, function._impl_keys[found.args]
        signature, function._impl_keys[signature.args] = results[key]
        return signature

    types.functions.BaseFunction.get_call_type = remembered  # type: ignore[assignment]  # numba has few types
