"""Let kernels call a kernel by its address, so that it is compiled only if it is called.

A kernel is compiled together with all kernels that it calls, even those for rare input. One that is marked with
`jit.on_demand` is left out: its caller has a variable for its address, and asks for the address when it calls it for
the first time. The kernel is compiled then, or loaded.

    caller                                    this module
    if variable is null:                      _find(name and types of the arguments, place of the variable)
        _find(...)                                compiles or loads the kernel
        if variable is null: return an error      stores the address of its machine code in the variable
    call variable

If the kernel cannot be compiled, or Ctrl-C interrupts this, the kernel that Python has called ends with that error.

The types of the result are those of the annotation, because they have to be known before the kernel is compiled. Such
a kernel is not inlined, and each argument takes time: arrays, and the arrays in a record, count as seven numbers each.
"""

from __future__ import annotations

import ctypes
import pickle
import threading
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

FIND = "xclass_find_kernel"  # name by which machine code calls `_find`

Addresses = Callable[[str, str, tuple[Any, ...]], int]  # from the module and name of a kernel and types of arguments
_kept: list[Any] = []  # what machine code calls
_own = threading.local()  # `error` is why the last kernel was not found in this thread


class NotFoundError(Exception):
    """Stand for the error because of which a kernel was not found: to create an instance raises that error."""

    def __init__(self) -> None:
        raise _own.__dict__.pop("error", KeyboardInterrupt())  # an interruption just before `_find` stores no error


def install(address_of: Addresses) -> None:
    """Let machine code find kernels by `address_of`."""
    from llvmlite import binding

    def _find(begin: int, size: int, place: int) -> None:
        try:
            ctypes.c_void_p.from_address(place).value = address_of(*pickle.loads(ctypes.string_at(begin, size)))
        except BaseException as error:
            _own.error = error

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(_find)
    _kept.append(function)
    binding.add_symbol(FIND, ctypes.cast(function, ctypes.c_void_p).value)


def result_of(function: Any) -> Any:
    """Return the type in numba of the result of a kernel, which its annotation says."""
    from numba import types

    def typed(annotation: Any) -> Any:
        if annotation is None:
            return types.none
        if elements := get_args(annotation):
            return types.Tuple([typed(element) for element in elements])
        return {bool: types.boolean, int: types.int64, float: types.float64}.get(annotation) or getattr(
            types, np.dtype(annotation).name
        )

    annotation = function.__annotations__["return"]
    return typed(eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation)


def call_by_address(dispatcher: Any) -> None:
    """Let kernels call the kernel of a dispatcher by its address; Python calls it as any other."""
    from numba.core import typing
    from numba.core.registry import cpu_target
    from numba.core.types.misc import unliteral

    function = dispatcher.py_func
    callers: dict[tuple[Any, ...], Callable[..., Any]] = {}  # generate a call with arguments of some types

    def get_call_template(args: Any, keywords: Any) -> Any:
        signature, args = dispatcher._compiler.fold_argument_types(args, keywords)
        args = tuple(map(unliteral, args))
        result = result_of(function)
        if args not in callers:
            callers[args] = _caller(pickle.dumps((function.__module__, function.__name__, args)), result, args)
            cpu_target.target_context.insert_func_defn([(callers[args], callers[args], args)])
        template = typing.make_concrete_template(
            function.__name__, function.__name__, [typing.signature(result, *args)]
        )
        return template, signature, args, {}

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = lambda args: callers[tuple(args)]


def _caller(name: bytes, result: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that generates the call of a kernel, for numba."""
    from llvmlite import ir
    from numba.core import cgutils

    byte, size = ir.IntType(8).as_pointer(), ir.IntType(64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        variable = cgutils.add_global_variable(builder.module, byte, "xclass.address")
        variable.linkage, variable.initializer = "internal", ir.Constant(byte, None)
        convention = context.call_conv
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, builder.load(variable))):
            kind = ir.FunctionType(ir.VoidType(), [byte, size, variable.type])
            find = cgutils.get_or_insert_function(builder.module, kind, FIND)
            builder.call(find, [context.insert_const_bytes(builder.module, name), size(len(name)), variable])
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, builder.load(variable))):
                convention.return_user_exc(builder, NotFoundError, ())
        kind = convention.get_function_type(result, arguments).as_pointer()
        kernel = builder.bitcast(builder.load(variable), kind)
        status, value = convention.call_function(builder, kernel, result, arguments, args)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return value

    return generate
