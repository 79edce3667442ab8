"""Machine instructions numba does not offer: prefetch, and the bits of a float.

The functions below are their plain meaning, used when numba is switched off; `install()` puts the compiled
forms in their place. All of them vectorise.
"""

from __future__ import annotations

import struct


def prefetch(array, position):
    """Ask for the cache line of `array[position]`; no effect on any value, no check of the bound."""


def bits_of(x):
    """The 64 bits of a float64 as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


def from_bits(i):
    """The float64 whose bits are the int64 `i`."""
    return struct.unpack("<d", struct.pack("<Q", int(i) % 2**64))[0]


_installed = False


def install() -> None:
    """Replace the plain functions by numba intrinsics (once)."""
    global _installed
    from numba import config

    if _installed or config.DISABLE_JIT:
        return
    _installed = True
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typingctx, array, position):
        def codegen(context, builder, signature, args):
            kind = signature.args[0]
            view = context.make_array(kind)(context, builder, args[0])
            where = cgutils.get_item_pointer(context, builder, kind, view, [args[1]])
            byte = builder.bitcast(where, ir.IntType(8).as_pointer())
            i32 = ir.IntType(32)
            call = builder.module.declare_intrinsic(
                "llvm.prefetch", [byte.type], ir.FunctionType(ir.VoidType(), [byte.type, i32, i32, i32])
            )
            builder.call(call, [byte, i32(1), i32(3), i32(1)])  # for writing, keep near, data
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen

    @intrinsic
    def bits_of(typingctx, x):
        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], ir.IntType(64))

        return types.int64(types.float64), codegen

    @intrinsic
    def from_bits(typingctx, i):
        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], ir.DoubleType())

        return types.float64(types.int64), codegen

    globals().update(prefetch=prefetch, bits_of=bits_of, from_bits=from_bits)
