"""Generate the machine instructions for `tagged_lines`.

Names     i32x16 a line, in the order of its lanes | i32x8, f32x8 one number for each regressor q of a block | twist the
          lowest three bits of a tag: the word of regressor q belongs into lane q ^ twist or (q ^ twist) + 8.

A processor with AVX2 permutes eight numbers by one instruction; elsewhere three exchanges of halves do the same.
"""

from __future__ import annotations

from typing import Any

from . import tagged_format as fmt
from .intrinsics import generated


def intrinsics() -> dict[str, Any]:
    """Return the numba intrinsics that replace the functions of `tagged_lines`, by name."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    i8, i16, i32, i64, f32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
    i32x16, i32x8, f32x8 = ir.VectorType(i32, 16), ir.VectorType(i32, 8), ir.VectorType(f32, 8)
    lane = [i & fmt.NUMBER_MASK for i in range(fmt.LANES)]

    def constant(kind: Any, value: Any) -> Any:
        values = value if isinstance(value, list) else [value] * kind.count
        return ir.Constant(kind, values)

    def splat(builder: Any, scalar: Any, count: int) -> Any:
        undefined = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
        first = builder.insert_element(undefined, scalar, ir.Constant(i32, 0))
        return builder.shuffle_vector(first, undefined, constant(ir.VectorType(i32, count), 0))

    def address(context: Any, builder: Any, kind: Any, array: Any, position: Any, vector: Any) -> Any:
        """Return a pointer to a vector within an array, or behind a pointer."""
        if isinstance(kind, types.CPointer):
            data = array
        else:
            data = context.make_array(kind)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [position]), vector.as_pointer())

    def load(context: Any, builder: Any, kind: Any, array: Any, position: Any, vector: Any) -> Any:
        return builder.load(address(context, builder, kind, array, position, vector), align=4)

    def half(builder: Any, vector: Any, which: int) -> Any:
        undefined = ir.Constant(vector.type, ir.Undefined)
        return builder.shuffle_vector(vector, undefined, constant(i32x8, [8 * which + i for i in range(8)]))

    def join(builder: Any, low: Any, high: Any) -> Any:
        return builder.shuffle_vector(low, high, constant(i32x16, list(range(16))))

    def permute(context: Any, builder: Any, vector: Any, order: Any) -> Any:
        """Return the i32x8 whose element q is element q ^ twist; `order` (i32x8) holds q ^ twist in its low bits."""
        return permd(builder, vector, order) if has_avx2(context, builder) else exchange(builder, vector, order)

    def has_avx2(context: Any, builder: Any) -> bool:
        return "+avx2" in context.codegen()._tm_features and builder.module.triple.startswith("x86_64")

    def permd(builder: Any, vector: Any, order: Any) -> Any:
        """Return the i32x8 whose element q is element `order[q]`, of which the lowest three bits count, by AVX2."""
        kind = ir.FunctionType(i32x8, [i32x8, i32x8])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.permd")
        return builder.call(function, [vector, order])

    def exchange(builder: Any, vector: Any, order: Any) -> Any:
        """Return the same as `permute` by instructions that all processors have."""
        undefined = ir.Constant(i32x8, ir.Undefined)
        twisted = builder.xor(order, constant(i32x8, list(range(8))))
        for bit in (1, 2, 4):
            other = builder.shuffle_vector(vector, undefined, constant(i32x8, [q ^ bit for q in range(8)]))
            moved = builder.icmp_unsigned("!=", builder.and_(twisted, constant(i32x8, bit)), constant(i32x8, 0))
            vector = builder.select(moved, other, vector)
        return vector

    def bits_of(builder: Any, flags: Any, kind: Any) -> Any:
        """Return the bits of a vector of truth values as int64."""
        return builder.zext(builder.bitcast(flags, kind), i64)

    class LoadedLine:
        """Hold a line that was loaded, or given as `words`, and which of its words belong to a feature and block."""

        def __init__(self, context: Any, builder: Any, pointer: Any, tag: Any, words: Any = None) -> None:
            self.context, self.builder = context, builder
            self.pointer, self.words = pointer, builder.load(pointer, align=4) if words is None else words
            self.expected = builder.xor(constant(i32x16, lane), splat(builder, tag, 16))
            self.order = half(builder, self.expected, 0)
            difference = builder.xor(self.words, self.expected)
            zero = constant(i32x16, 0)
            self.empty = builder.icmp_unsigned("==", self.words, zero)
            same = builder.icmp_unsigned("==", builder.and_(difference, constant(i32x16, fmt.TAG_MASK)), zero)
            of_block = builder.icmp_unsigned(
                "==", builder.and_(difference, constant(i32x16, fmt.TAG_MASK & ~fmt.NUMBER_MASK)), zero
            )
            self.home = same
            self.elsewhere = builder.and_(of_block, builder.not_(same))
            self.low, self.high = half(builder, self.words, 0), half(builder, self.words, 1)
            self.home_low, self.home_high = half(builder, self.home, 0), half(builder, self.home, 1)

        def by_number(self) -> Any:
            """Return the words at home in the order of the regressors (i32x8), 0 where there is none."""
            high = self.builder.select(self.home_high, self.high, constant(i32x8, 0))
            return self.permuted(self.builder.select(self.home_low, self.low, high))

        def permuted(self, vector: Any) -> Any:
            return permute(self.context, self.builder, vector, self.order)

        def wide_permuted(self, flags: Any) -> Any:
            """Return eight truth values in the other order, as i32x8 of 0 and -1."""
            return self.permuted(self.builder.sext(flags, i32x8))

        def write(self, words: Any, in_low: Any, in_high: Any) -> None:
            """Store words (i32x8, by number) into the lanes of the low and the high half that are flagged.

            Bits are exchanged under a mask, because a masked store is slower than storing all lanes.
            """
            words = self.permuted(words)
            change = join(
                self.builder,
                self.builder.and_(self.builder.xor(words, self.low), self.builder.sext(in_low, i32x8)),
                self.builder.and_(self.builder.xor(words, self.high), self.builder.sext(in_high, i32x8)),
            )
            self.builder.store(self.builder.xor(self.words, change), self.pointer, align=4)

    def weights(builder: Any, words: Any) -> Any:
        """Return the weights of words (i32x8) divided by W_SCALE, as f32x8."""
        shifted = builder.ashr(words, constant(i32x8, fmt.W_FIELD - fmt.W_SHIFT))
        sign_and_code = 1 << 31 | fmt.W_CODES - 1 << fmt.W_SHIFT
        return builder.bitcast(builder.and_(shifted, constant(i32x8, sign_and_code)), f32x8)

    def scaled(builder: Any, vector: Any, scale: Any) -> Any:
        return builder.fmul(vector, constant(f32x8, float(scale)))

    def randoms(builder: Any, number: Any, multiplier: int, bits: int) -> Any:
        """Return the highest bits of eight random numbers (i32x8), see `tagged_format.random32`."""
        steps = constant(i32x8, [q * fmt.LANE_STEP % 2**32 for q in range(8)])
        product = builder.mul(builder.add(splat(builder, number, 8), steps), constant(i32x8, multiplier))
        return builder.lshr(product, constant(i32x8, 32 - bits))

    @generated(types.CPointer(types.float32))
    def new_sums(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        memory = cgutils.alloca_once(builder, f32x8)
        memory.align = 32
        builder.store(constant(f32x8, 0.0), memory, align=32)
        return builder.bitcast(memory, f32.as_pointer())

    @generated(types.void, None, None, types.intp)
    def store_sums(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = builder.load(builder.bitcast(args[0], f32x8.as_pointer()), align=32)
        builder.store(vector, address(context, builder, signature.args[1], args[1], args[2], f32x8), align=4)
        return context.get_dummy_value()

    @generated(types.void, None, types.int64, types.float32)
    def add_to_sum(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        memory = builder.bitcast(args[0], f32x8.as_pointer())
        number = splat(builder, builder.trunc(args[1], i32), 8)
        chosen = builder.icmp_unsigned("==", number, constant(i32x8, list(range(8))))
        value = builder.select(chosen, splat(builder, args[2], 8), constant(f32x8, 0.0))
        builder.store(builder.fadd(builder.load(memory, align=32), value), memory, align=32)
        return context.get_dummy_value()

    def add_products(builder: Any, sums: Any, line: Any, x: Any) -> Any:
        """Add w * x of the words at home to `sums`; return the bits of the lanes with other words of the block."""
        w = scaled(builder, weights(builder, line.by_number()), fmt.W_SCALE)
        product = builder.fmul(w, splat(builder, x, 8))
        memory = builder.bitcast(sums, f32x8.as_pointer())
        builder.store(builder.fadd(builder.load(memory, align=32), product), memory, align=32)
        return bits_of(builder, line.elsewhere, i16)

    def expanded(context: Any, builder: Any, pointer: Any, lanes: Any) -> Any:
        """Return eight lanes (i32x8), of which those with a bit in `lanes` (i32) have the words at a pointer to i32."""
        bits = splat(builder, lanes, 8)
        before = builder.and_(bits, constant(i32x8, [(1 << q) - 1 for q in range(8)]))
        kind = ir.FunctionType(i32x8, [i32x8])
        order = builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.v8i32"), [before])
        words = gathered(context, builder, pointer, order)
        own = builder.and_(bits, constant(i32x8, [1 << q for q in range(8)]))
        used = builder.icmp_unsigned("!=", own, constant(i32x8, 0))
        return builder.select(used, words, constant(i32x8, 0))

    def gathered(context: Any, builder: Any, pointer: Any, order: Any) -> Any:
        """Return the i32x8 whose element q is word `order[q]`, 0 to 7, behind a pointer to i32."""
        if has_avx2(context, builder):
            return permd(builder, builder.load(builder.bitcast(pointer, i32x8.as_pointer()), align=4), order)
        words = constant(i32x8, 0)
        for q in range(8):
            number = ir.Constant(i32, q)
            word = builder.load(builder.gep(pointer, [builder.extract_element(order, number)]))
            words = builder.insert_element(words, word, number)
        return words

    @generated(types.int64, None, None, types.intp, types.uint32, types.float32)
    def add_line(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = address(context, builder, signature.args[1], args[1], args[2], i32x16)
        return add_products(builder, args[0], LoadedLine(context, builder, pointer, args[3]), args[4])

    @generated(types.int64, None, None, types.intp, types.int64, types.uint32, types.float32)
    def add_packed_line(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = address(context, builder, signature.args[1], args[1], args[2], i32x16)
        pointer = builder.bitcast(vector, i32.as_pointer())
        lanes = builder.trunc(args[3], i32)
        low = builder.and_(lanes, ir.Constant(i32, 255))
        second = builder.gep(pointer, [builder.ctpop(low)])
        high = builder.lshr(lanes, ir.Constant(i32, 8))
        halves = [expanded(context, builder, pointer, low), expanded(context, builder, second, high)]
        line = LoadedLine(context, builder, vector, args[4], join(builder, *halves))
        return add_products(builder, args[0], line, args[5])

    @generated(
        types.int64, None, types.intp, types.uint32, None, types.float32, types.uint32, None, types.intp, None, None
    )
    def learn_line(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        pointer = address(context, builder, kinds[0], args[0], args[1], i32x16)
        line = LoadedLine(context, builder, pointer, args[2])
        zero, zeros = constant(i32x8, 0), constant(f32x8, 0.0)
        squares = load(context, builder, kinds[3], args[3], ir.Constant(i64, 0), f32x8)
        active = builder.fcmp_ordered(">", squares, zeros)
        words = line.by_number()
        present = builder.icmp_unsigned("!=", words, zero)
        g_code = builder.and_(
            builder.shl(words, constant(i32x8, fmt.G_SHIFT - fmt.G_FIELD)),
            constant(i32x8, fmt.G_CODES - 1 << fmt.G_SHIFT),
        )
        g = scaled(builder, builder.bitcast(g_code, f32x8), fmt.G_SCALE)
        x = splat(builder, args[4], 8)
        square_x = splat(builder, builder.fmul(args[4], args[4]), 8)
        total = builder.fadd(builder.fmul(squares, square_x), g)
        # what can be done in this line: lanes whose words learn, and new words, if no word is elsewhere
        all_home = builder.icmp_unsigned("==", bits_of(builder, line.elsewhere, i16), ir.Constant(i64, 0))
        allowed = builder.icmp_unsigned("!=", splat(builder, builder.sext(all_home, i32), 8), zero)
        active_lane = builder.icmp_unsigned("!=", line.wide_permuted(active), zero)
        absent = builder.not_(builder.or_(line.home_low, line.home_high))
        new = builder.and_(builder.and_(active_lane, absent), allowed)
        empty_low, empty_high = half(builder, line.empty, 0), half(builder, line.empty, 1)
        new_low = builder.and_(new, empty_low)
        new_high = builder.and_(new, builder.and_(empty_high, builder.not_(empty_low)))
        only_high = builder.and_(line.home_high, builder.not_(line.home_low))
        in_low = builder.or_(builder.and_(active_lane, line.home_low), new_low)
        in_high = builder.or_(builder.and_(active_lane, only_high), new_high)
        done = builder.icmp_unsigned("!=", line.wide_permuted(builder.or_(in_low, in_high)), zero)
        missing = builder.and_(active, builder.not_(done))
        if isinstance(kinds[9], types.NoneType):
            halved = builder.lshr(builder.bitcast(total, i32x8), constant(i32x8, 1))
            factor = builder.bitcast(builder.sub(constant(i32x8, fmt.ROOT_BITS), halved), f32x8)
        else:
            r = splat(builder, args[9], 8)
            factor = builder.fdiv(r, builder.fadd(r, g))
        rate = builder.fmul(x, factor)
        rate = builder.select(builder.and_(done, builder.fcmp_ordered(">", total, zeros)), rate, zeros)
        builder.store(rate, address(context, builder, kinds[6], args[6], args[7], f32x8), align=4)
        reach = builder.bitcast(args[8], f32x8.as_pointer())
        builder.store(builder.fadd(builder.load(reach, align=32), builder.fmul(x, rate)), reach, align=32)
        bits = builder.bitcast(scaled(builder, total, fmt.G_UNIT), i32x8)
        rounded = builder.add(bits, randoms(builder, args[5], fmt.G_RANDOM, fmt.G_SHIFT))
        code = builder.ashr(rounded, constant(i32x8, fmt.G_SHIFT))
        for sign, bound in (("<", constant(i32x8, 1)), (">", constant(i32x8, fmt.G_CODES - 1))):
            code = builder.select(builder.icmp_signed(sign, code, bound), bound, code)
        code = builder.shl(code, constant(i32x8, fmt.G_FIELD))
        kept = builder.and_(words, constant(i32x8, ~(fmt.G_CODES - 1 << fmt.G_FIELD) & 0xFFFFFFFF))
        key = builder.or_(
            splat(builder, builder.and_(args[2], ir.Constant(i32, ~fmt.NUMBER_MASK & 0xFFFFFFFF)), 8),
            constant(i32x8, list(range(8))),
        )
        words = builder.or_(builder.select(present, kept, key), code)
        line.write(words, in_low, in_high)
        left = bits_of(builder, missing, i8)
        elsewhere = builder.shl(bits_of(builder, line.elsewhere, i16), ir.Constant(i64, 8))
        new = builder.shl(bits_of(builder, builder.or_(new_low, new_high), i8), ir.Constant(i64, 24))
        return builder.or_(left, builder.or_(elsewhere, new))

    @generated(types.int64, None, types.intp, types.uint32, None, types.uint32, None, types.intp)
    def move_line(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        pointer = address(context, builder, kinds[0], args[0], args[1], i32x16)
        line = LoadedLine(context, builder, pointer, args[2])
        zero, zeros = constant(i32x8, 0), constant(f32x8, 0.0)
        steps = load(context, builder, kinds[3], args[3], ir.Constant(i64, 0), f32x8)
        rates = load(context, builder, kinds[5], args[5], args[6], f32x8)
        active = builder.fcmp_unordered("!=", rates, zeros)
        words = line.by_number()
        present = builder.icmp_unsigned("!=", words, zero)
        w = scaled(builder, weights(builder, words), fmt.W_SCALE)
        w = builder.fsub(w, builder.fmul(steps, rates))
        bits = builder.bitcast(scaled(builder, w, fmt.W_UNIT), i32x8)
        magnitude = builder.and_(bits, constant(i32x8, 0x7FFFFFFF))
        rounded = builder.add(magnitude, randoms(builder, args[4], fmt.W_RANDOM, fmt.W_SHIFT))
        code = builder.lshr(rounded, constant(i32x8, fmt.W_SHIFT))
        large = builder.icmp_unsigned(">", code, constant(i32x8, fmt.W_CODES - 1))
        code = builder.select(large, constant(i32x8, fmt.W_CODES - 1), code)
        sign = builder.and_(bits, constant(i32x8, 1 << 31))
        sign = builder.select(builder.icmp_unsigned("!=", code, zero), sign, zero)
        code = builder.or_(sign, builder.shl(code, constant(i32x8, fmt.W_FIELD)))
        words = builder.or_(builder.and_(words, constant(i32x8, (1 << fmt.W_FIELD) - 1)), code)
        moved = builder.icmp_unsigned("!=", line.wide_permuted(active), zero)
        only_high = builder.and_(line.home_high, builder.not_(line.home_low))
        line.write(words, builder.and_(moved, line.home_low), builder.and_(moved, only_high))
        return bits_of(builder, builder.and_(active, builder.not_(present)), i8)

    @generated(types.int64, None, types.intp, types.uint32)
    def match_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line = load(context, builder, signature.args[0], args[0], args[1], i32x16)
        tags = builder.and_(line, constant(i32x16, fmt.TAG_MASK))
        return bits_of(builder, builder.icmp_unsigned("==", tags, splat(builder, args[2], 16)), i16)

    @generated(types.int64, None, types.intp)
    def weakest_lane(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line = load(context, builder, signature.args[0], args[0], args[1], i32x16)
        codes = builder.and_(
            builder.lshr(line, constant(i32x16, fmt.G_FIELD - 4)),
            constant(i32x16, fmt.G_CODES - 1 << 4),
        )
        keys = builder.or_(codes, constant(i32x16, list(range(16))))
        kind = ir.FunctionType(i32, [i32x16])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.umin.v16i32")
        least = builder.call(function, [keys])
        return builder.zext(builder.and_(least, ir.Constant(i32, 15)), i64)

    return {
        "new_sums": new_sums, "store_sums": store_sums, "add_to_sum": add_to_sum,
        "add_line": add_line, "add_packed_line": add_packed_line, "learn_line": learn_line, "move_line": move_line,
        "match_lanes": match_lanes, "weakest_lane": weakest_lane,
    }  # fmt: skip
