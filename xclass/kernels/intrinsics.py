"""Provide machine instructions that numba lacks: prefetching, the bits of a float, loads of several bytes of text.

The plain functions below define what the instructions return, and are used if numba is switched off. `install()`
replaces them by numba intrinsics, so that loops that use them can be vectorised.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..array_types import AnyArray, Int, UInt8s

Array = TypeVar("Array")

# tells `kernel_cache` to hash this file, because numba compiles the intrinsics, not these functions
BY_SOURCE = ("intrinsics.py",)


def prefetch(array: AnyArray, position: Int) -> None:
    """Prefetch the cache line of `array[position]`; values do not change, and the position is not checked."""


def bits_of(x: float) -> int:
    """Return the 64 bits of a float64 as int64."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def from_bits(i: Int) -> float:
    """Return the float64 whose bits are those of the int64 `i`."""
    return float(struct.unpack("<d", struct.pack("<Q", int(i) % 2**64))[0])


def bits_of32(x: np.float32) -> int:
    """Return the 32 bits of a float32 as int32."""
    return int(struct.unpack("<i", struct.pack("<f", x))[0])


def from_bits32(i: Int) -> np.float32:
    """Return the float32 whose bits are the lowest 32 bits of the integer `i`."""
    return np.float32(struct.unpack("<f", struct.pack("<I", int(i) % 2**32))[0])


def pointer(array: Array) -> Array:
    """Return a pointer to the elements of a contiguous array, for small kernels; it is indexed like the array.

    Passing an array to a kernel changes its reference count, which costs more than hashing a word; a pointer is a plain
    number. Indices are not checked and must not be negative, and the array has to stay alive.
    """
    return array


def load32(text: UInt8s, position: Int) -> np.uint32:
    """Return the four bytes `text[position:position + 4]` of a pointer to uint8 as a little-endian uint32."""
    return np.uint32(int.from_bytes(bytes(text[position : position + 4]), "little"))


def equal64(text: UInt8s, position: Int, byte: Int) -> np.uint64:
    """Compare the 64 bytes `text[position:position + 64]` of a pointer with `byte`.

    Returns
    -------
    uint64 whose bit i is set if byte i is equal.
    """
    equal = text[position : position + 64] == byte
    return np.uint64(np.packbits(equal, bitorder="little").view(np.uint64)[0])


def trailing_zeros(mask: Int) -> int:
    """Return the position of the lowest bit set in the uint64 `mask`, 64 if there is none."""
    return (int(mask) & -int(mask)).bit_length() - 1 if mask else 64


def count_ones(mask: Int) -> int:
    """Return the number of bits set in the uint64 `mask`."""
    return bin(int(mask)).count("1")


def generated(result: Any, *kinds: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that turns a function which generates code into a numba intrinsic of its name.

    `kinds` are numba's types of the arguments, None for that which the caller passes; `result` is the type that is
    returned, or a function from the types of the arguments to numba's signature.
    """
    from numba.extending import intrinsic

    def decorated(codegen: Callable[..., Any]) -> Any:
        def typed(typingctx: Any, *given: Any) -> tuple[Any, Callable[..., Any]]:
            return result(*(own if kind is None else kind for own, kind in zip(given, kinds, strict=True))), codegen

        names = ("typingctx", *(f"argument{i}" for i in range(len(kinds))))
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        vars(typed).update(__signature__=inspect.Signature(parameters))
        typed.__name__ = codegen.__name__
        return intrinsic(typed)

    return decorated


def install() -> None:
    """Replace the plain functions of this module by numba intrinsics."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    @generated(types.void, None, types.intp)
    def prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        address = cgutils.get_item_pointer(context, builder, kind, view, [args[1]])
        byte = builder.bitcast(address, ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        call = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte.type], ir.FunctionType(ir.VoidType(), [byte.type, i32, i32, i32])
        )
        builder.call(call, [byte, i32(1), i32(3), i32(1)])  # write access, keep in all cache levels, data cache
        return context.get_dummy_value()

    def cast(source: Any, target: Any) -> Any:
        """Return an intrinsic that reinterprets the bits of a number of type `source` as type `target`."""

        @generated(target, source)
        def cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(signature.return_type))

        return cast

    @generated(lambda array: types.CPointer(array.dtype)(array), None)
    def pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    @generated(types.uint32, None, types.intp)
    def load32(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.bitcast(builder.gep(args[0], [args[1]]), ir.IntType(32).as_pointer())
        return builder.load(address, align=1)

    @generated(types.uint64, None, types.intp, types.uint8)
    def equal64(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(8), 64)
        address = builder.bitcast(builder.gep(args[0], [args[1]]), lanes.as_pointer())
        loaded = builder.load(address, align=1)
        first = builder.insert_element(ir.Constant(lanes, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
        all_lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        target = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), all_lanes)
        return builder.bitcast(builder.icmp_unsigned("==", loaded, target), ir.IntType(64))

    @generated(types.int64, types.uint64)
    def trailing_zeros(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    @generated(types.int64, types.uint64)
    def count_ones(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    globals().update(
        prefetch=prefetch,
        bits_of=cast(types.float64, types.int64),
        from_bits=cast(types.int64, types.float64),
        bits_of32=cast(types.float32, types.int32),
        from_bits32=cast(types.int32, types.float32),
        pointer=pointer,
        load32=load32,
        equal64=equal64,
        trailing_zeros=trailing_zeros,
        count_ones=count_ones,
    )
