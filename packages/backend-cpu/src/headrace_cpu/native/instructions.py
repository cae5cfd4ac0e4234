"""What generated kernels call: memory, conversions, folds and choices, a few instructions each.

Each buffer of a kernel has a number, and accesses of buffers with different numbers are marked as
never overlapping (LLVM's scoped alias metadata), so that loops are vectorised without looking at
addresses when they run.

References:
    LLVM Language Reference Manual, "noalias and alias.scope metadata",
    https://llvm.org/docs/LangRef.html#noalias-and-alias-scope-metadata
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from headrace.extend.records import dataclass
from headrace_cpu.native.source import MAX_BUFFERS

TYPES: dict[str, Any] = {
    "b8": ir.IntType(1),
    "i8": ir.IntType(8),
    "u8": ir.IntType(8),
    "i16": ir.IntType(16),
    "u16": ir.IntType(16),
    "i32": ir.IntType(32),
    "u32": ir.IntType(32),
    "i64": ir.IntType(64),
    "u64": ir.IntType(64),
    "u128": ir.IntType(128),
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
}
_BYTES = {
    "b8": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8,
    "u64": 8, "f64": 8, "u128": 16,
}  # fmt: skip
# Vectors of 16, 32 and 64 bytes, such as ``f32x16``, for kernels that say which values stay in
# registers: the dtype of their elements, and how many there are.
VECTORS = {
    f"{code}x{whole // size}": (code, whole // size)
    for code, size in _BYTES.items()
    for whole in (16, 32, 64)
    if code not in ("b8", "u128")
}
TYPES |= {name: ir.VectorType(TYPES[code], lanes) for name, (code, lanes) in VECTORS.items()}


def _with_vectors(*codes: str) -> frozenset[str]:
    return frozenset({*codes, *(name for name, (code, _) in VECTORS.items() if code in codes)})


FLOATS = _with_vectors("f32", "f64")
UNSIGNED = _with_vectors("b8", "u8", "u16", "u32", "u64", "u128")


@dataclass(frozen=True, slots=True)
class Held:
    """A value of a kernel while it is compiled.

    Attributes:
        code: Its dtype.
        value: LLVM's.
    """

    code: str
    value: Any


Maker = Callable[["Machine", Sequence[Held]], Held]


class Machine:
    """Where instructions are written.

    Attributes:
        module: LLVM's module.
        builder: Writes at the end of the current block.
    """

    def __init__(self, module: Any, builder: Any) -> None:
        self.module = module
        self.builder = builder
        self._marks: dict[int, tuple[Any, Any]] = {}

    def call(self, name: str, code: str, *args: Any) -> Any:
        """Call an intrinsic of LLVM on values of one dtype."""
        kind = ir.FunctionType(TYPES[code], [TYPES[code]] * len(args))
        if code in VECTORS:
            element, lanes = VECTORS[code]
            full = f"llvm.{name}.v{lanes}{element}"
            function = self.module.globals.get(full) or ir.Function(self.module, kind, full)
        else:
            function = self.module.declare_intrinsic(f"llvm.{name}", [TYPES[code]], kind)
        return self.builder.call(function, args)

    def place(self, base: Any, index: Any, stored: Any) -> Any:
        """Return a pointer to an element."""
        pointer = self.builder.inttoptr(base, stored.as_pointer())
        return self.builder.gep(pointer, [index], inbounds=True)

    def mark(self, access: Any, number: int) -> None:
        """State that an access touches one buffer and none of the others."""
        marks = self._marks.get(number)
        if marks is None:
            domain = self.module.add_metadata(["headrace"])
            scopes = [
                self.module.add_metadata([f"headrace.{i}", domain]) for i in range(MAX_BUFFERS)
            ]
            others = [scope for i, scope in enumerate(scopes) if i != number]
            marks = self._marks[number] = (
                self.module.add_metadata([scopes[number]]),
                self.module.add_metadata(others),
            )
        access.set_metadata("alias.scope", marks[0])
        access.set_metadata("noalias", marks[1])


def instruction(name: str) -> Maker | None:
    """Return what writes the call of a function of kernels, None where there is none."""
    for prefix, maker in (
        ("load_", _load),
        ("store_", _store),
        ("fetch_", _fetch),
        ("to_", _convert),
        ("bits_", _bits),
        ("above_", _above),
        ("spread_", _spread),
        ("evens_", _blocks(odd=False)),
        ("odds_", _blocks(odd=True)),
    ):
        if name.startswith(prefix):
            return maker(name.removeprefix(prefix))
    return _INSTRUCTIONS.get(name)


# -- memory


def _load(code: str) -> Maker:
    stored = ir.IntType(8) if code == "b8" else TYPES[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        if code in VECTORS:
            place, align = _vector_place(m, code, args)
            found = m.builder.load(place, align=align)
        else:
            found = m.builder.load(m.place(args[0].value, args[1].value, stored))
        m.mark(found, args[2].value.constant)
        if code == "b8":
            found = m.builder.icmp_unsigned("!=", found, ir.Constant(stored, 0))
        return Held(code, found)

    return make


def _fetch(code: str) -> Maker:
    """Return what loads a value from so many bytes behind an address, aligned or not."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        place = m.place(args[0].value, args[1].value, TYPES["u8"])
        found = m.builder.load(m.builder.bitcast(place, TYPES[code].as_pointer()), align=1)
        m.mark(found, args[2].value.constant)
        return Held(code, found)

    return make


def _store(code: str) -> Maker:
    stored = ir.IntType(8) if code == "b8" else TYPES[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        value = args[2].value
        if code == "b8":
            value = m.builder.zext(value, stored)
        if code in VECTORS:
            place, align = _vector_place(m, code, args)
            done = m.builder.store(value, place, align=align)
        else:
            done = m.builder.store(value, m.place(args[0].value, args[1].value, stored))
        m.mark(done, args[3].value.constant)
        return args[2]

    return make


def _vector_place(m: Machine, code: str, args: Sequence[Held]) -> tuple[Any, int]:
    """Return the place of a vector, counted in elements, and the bytes to which it is aligned."""
    element, _ = VECTORS[code]
    place = m.place(args[0].value, args[1].value, TYPES[element])
    return m.builder.bitcast(place, TYPES[code].as_pointer()), _BYTES[element]


def _spread(code: str) -> Maker:
    """Return a vector of equal elements."""
    _, lanes = VECTORS[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        return Held(code, _repeated(m, args[0].value, TYPES[code], lanes))

    return make


def _repeated(m: Machine, value: Any, kind: Any, lanes: int) -> Any:
    none, index = ir.Constant(kind, ir.Undefined), TYPES["i32"]
    one = m.builder.insert_element(none, value, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, lanes), [0] * lanes)
    return m.builder.shuffle_vector(one, none, zeros)


def _blocks(*, odd: bool) -> Callable[[str], Maker]:
    """Return what makes, for a number of elements, what takes blocks of so many of two vectors.

    Those at even places of both, or at odd ones, come in turn: one of the first vector, one of the
    second. So two rows of a matrix exchange parts when it is transposed.
    """

    def sized(count: str) -> Maker:
        size = int(count)

        def make(m: Machine, args: Sequence[Held]) -> Held:
            code, one, other = args[0].code, args[0].value, args[1].value
            _, lanes = VECTORS[code]
            places = []
            for lane in range(lanes):
                pair, within = divmod(lane, 2 * size)
                of_other, at = divmod(within, size)
                places.append(pair * 2 * size + at + odd * size + of_other * lanes)
            mask = ir.Constant(ir.VectorType(TYPES["i32"], lanes), places)
            return Held(code, m.builder.shuffle_vector(one, other, mask))

        return make

    return sized


def _above(code: str) -> Maker:
    """Return which of 64 elements beside one another are larger than a number, NaN with them.

    The result is a u64 with a bit for each, the first one lowest.
    """

    def make(m: Machine, args: Sequence[Held]) -> Held:
        b = m.builder
        base, index, edge, number = (arg.value for arg in args)
        kind = ir.VectorType(TYPES[code], 64)
        place = b.bitcast(m.place(base, index, TYPES[code]), kind.as_pointer())
        found = b.load(place, align=_BYTES[code])
        m.mark(found, number.constant)
        spread = _repeated(m, edge, kind, 64)
        if code in FLOATS:
            larger = b.fcmp_unordered(">", found, spread)
        elif code in UNSIGNED:
            larger = b.icmp_unsigned(">", found, spread)
        else:
            larger = b.icmp_signed(">", found, spread)
        return Held("u64", b.bitcast(larger, TYPES["u64"]))

    return make


def _word(m: Machine, args: Sequence[Held]) -> Held:
    return Held("i64", m.builder.load(m.place(args[0].value, args[1].value, TYPES["i64"])))


def _set_word(m: Machine, args: Sequence[Held]) -> Held:
    m.builder.store(args[2].value, m.place(args[0].value, args[1].value, TYPES["i64"]))
    return args[2]


def _ask(m: Machine, args: Sequence[Held]) -> Held:
    """Call ``int f(void)`` at an address."""
    kind = ir.FunctionType(ir.IntType(32), [])
    found = m.builder.call(m.builder.inttoptr(args[0].value, kind.as_pointer()), [])
    return Held("i64", m.builder.sext(found, TYPES["i64"]))


def _prefetch(m: Machine, args: Sequence[Held]) -> Held:
    """Ask for the cache line at an address, which need not be valid."""
    pointer, number = ir.IntType(8).as_pointer(), TYPES["i32"]
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    function = m.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    hints = [ir.Constant(number, hint) for hint in (0, 3, 1)]
    m.builder.call(function, [m.builder.inttoptr(args[0].value, pointer), *hints])
    return args[0]


def _trailing(m: Machine, args: Sequence[Held]) -> Held:
    """Count the zero bits below the lowest one; all of them where there is none."""
    code, x = args[0].code, args[0].value
    return Held(code, m.builder.cttz(x, ir.Constant(ir.IntType(1), 0)))


def _leading(m: Machine, args: Sequence[Held]) -> Held:
    """Count the zero bits above the highest one; all of them where there is none."""
    code, x = args[0].code, args[0].value
    return Held(code, m.builder.ctlz(x, ir.Constant(ir.IntType(1), 0)))


def _wait(m: Machine, args: Sequence[Held]) -> Held:
    """Call ``void f(void)`` at an address: a barrier."""
    kind = ir.FunctionType(ir.VoidType(), [])
    m.builder.call(m.builder.inttoptr(args[0].value, kind.as_pointer()), [])
    return args[0]


# -- conversions


def _convert(code: str) -> Maker:
    target = TYPES[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        source, value, b = args[0].code, args[0].value, m.builder
        if source == code:
            return args[0]
        if code == "b8":
            zero = ir.Constant(value.type, 0)
            if source in FLOATS:
                return Held(code, b.fcmp_unordered("!=", value, zero))
            return Held(code, b.icmp_unsigned("!=", value, zero))
        if code in FLOATS:
            if source in FLOATS:
                widen = source == "f32"
                return Held(code, (b.fpext if widen else b.fptrunc)(value, target))
            unsigned = source in UNSIGNED
            return Held(code, (b.uitofp if unsigned else b.sitofp)(value, target))
        if source in FLOATS:
            # As on the hardware: a number out of range gives some number, nothing worse.
            wide = target if target.width >= 32 else TYPES["i32"]
            found = _frozen(b, b.fptosi(value, wide))
            return Held(code, found if wide is target else b.trunc(found, target))
        if target.width == value.type.width:
            return Held(code, value)
        if target.width < value.type.width:
            return Held(code, b.trunc(value, target))
        return Held(code, (b.zext if source in UNSIGNED else b.sext)(value, target))

    return make


def _bits(code: str) -> Maker:
    """Return the value of another dtype that has the same bits."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        return Held(code, m.builder.bitcast(args[0].value, TYPES[code]))

    return make


def _frozen(builder: Any, value: Any) -> Any:
    """Return some number in place of an undefined one; llvmlite has no method for it."""
    found = ir.instructions.Instruction(builder.block, value.type, "freeze", [value], "")
    builder.block.instructions.append(found)
    builder.position_at_end(builder.block)
    return found


# -- arithmetic


def _total(m: Machine, args: Sequence[Held]) -> Held:
    """Add, in any order over a loop."""
    code, x, y = args[0].code, args[0].value, args[1].value
    if code in FLOATS:
        return Held(code, m.builder.fadd(x, y, flags=("reassoc",)))
    return Held(code, m.builder.add(x, y))


def _product(m: Machine, args: Sequence[Held]) -> Held:
    """Multiply, in any order over a loop."""
    code, x, y = args[0].code, args[0].value, args[1].value
    if code in FLOATS:
        return Held(code, m.builder.fmul(x, y, flags=("reassoc",)))
    return Held(code, m.builder.mul(x, y))


def _extreme(name: str, sign: str) -> Maker:
    """Return the larger or smaller one in a fold: NaN stays."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, y = args[0].code, args[0].value, args[1].value
        if code in FLOATS:
            return Held(code, m.call(name, code, x, y))
        return Held(code, m.builder.select(_ordered(m, sign, args), x, y))

    return make


def _extreme_number(sign: str) -> Maker:
    """Return the larger or smaller one of two floats of which none is NaN, in any order."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, y = args[0].code, args[0].value, args[1].value
        flags = ("nnan", "nsz")
        which = m.builder.fcmp_ordered(sign, x, y, flags=flags)
        found = m.builder.select(which, x, y, flags=flags)
        return Held(code, found)

    return make


def _is_nan(m: Machine, args: Sequence[Held]) -> Held:
    return Held("b8", m.builder.fcmp_unordered("uno", args[0].value, args[0].value))


def _further(sign: str) -> Maker:
    """Return what there was so far or, where that is larger or smaller, one more: NaN stays.

    It takes a quarter of the time of ``largest`` where each waits for the one before. Of zeros of
    either sign it keeps the first, where ``largest`` has an order. LLVM makes no vectors of a fold
    of it, which it does of ``largest``.
    """

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, y = args[0].code, args[0].value, args[1].value
        if code not in FLOATS:
            return Held(code, m.builder.select(_ordered(m, sign, args), x, y))
        found = m.builder.select(m.builder.fcmp_ordered(sign, y, x), y, x)
        return Held(code, m.builder.select(m.builder.fcmp_unordered("uno", y, y), y, found))

    return make


def _ordered(m: Machine, sign: str, args: Sequence[Held]) -> Any:
    """Return a comparison of two whole numbers."""
    compare = m.builder.icmp_signed
    if args[0].code in UNSIGNED:
        compare = m.builder.icmp_unsigned
    return compare(sign, args[0].value, args[1].value)


def _of_two(sign: str) -> Maker:
    """Return the larger or smaller one of two elements, NaN if one is."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, y = args[0].code, args[0].value, args[1].value
        if code not in FLOATS:
            return Held(code, m.builder.select(_ordered(m, sign, args), x, y))
        found = m.builder.select(m.builder.fcmp_ordered(sign, x, y), x, y)
        missing = m.builder.fcmp_unordered("uno", x, x)
        return Held(code, m.builder.select(missing, x, found))

    return make


def _abs(m: Machine, args: Sequence[Held]) -> Held:
    code, x = args[0].code, args[0].value
    if code in FLOATS:
        return Held(code, m.call("fabs", code, x))
    below = m.builder.icmp_signed("<", x, ir.Constant(x.type, 0))
    return Held(code, m.builder.select(below, m.builder.neg(x), x))


def _negative(m: Machine, args: Sequence[Held]) -> Held:
    code, x = args[0].code, args[0].value
    return Held(code, m.builder.fneg(x) if code in FLOATS else m.builder.neg(x))


def _where(m: Machine, args: Sequence[Held]) -> Held:
    return Held(args[1].code, m.builder.select(*(arg.value for arg in args)))


def _chosen(m: Machine, args: Sequence[Held]) -> Held:
    """Choose as ``where`` does, where nobody can guess which it will be: without a branch."""
    found = m.builder.select(*(arg.value for arg in args))
    found.set_metadata("unpredictable", m.module.add_metadata([]))
    return Held(args[1].code, found)


def _plain(name: str, code: str = "") -> Maker:
    """Return an instruction of LLVM's builder on values as they are."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        found = getattr(m.builder, name)(*(arg.value for arg in args))
        return Held(code or args[0].code, found)

    return make


def _shifted(name: str) -> Maker:
    """Return a shift by a number of bits that is kept from 0 to all bits but one."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, count = args[0].code, args[0].value, args[1].value
        zero, most = ir.Constant(x.type, 0), ir.Constant(x.type, x.type.width - 1)
        if code in UNSIGNED:
            over = m.builder.icmp_unsigned(">", count, most)
        else:
            count = m.builder.select(m.builder.icmp_signed("<", count, zero), zero, count)
            over = m.builder.icmp_signed(">", count, most)
        count = m.builder.select(over, most, count)
        shift = "lshr" if name == "ashr" and code in UNSIGNED else name
        return Held(code, getattr(m.builder, shift)(x, count))

    return make


def _rounded(name: str) -> Maker:
    return lambda m, args: Held(args[0].code, m.call(name, args[0].code, args[0].value))


_INSTRUCTIONS: dict[str, Maker] = {
    "word": _word,
    "set_word": _set_word,
    "ask": _ask,
    "wait": _wait,
    "prefetch": _prefetch,
    "trailing": _trailing,
    "leading": _leading,
    "total": _total,
    "product": _product,
    "largest": _extreme("maximum", ">"),
    "smallest": _extreme("minimum", "<"),
    "largest_number": _extreme_number(">"),
    "smallest_number": _extreme_number("<"),
    "is_nan": _is_nan,
    "larger": _further(">"),
    "smaller": _further("<"),
    "maximum": _of_two(">="),
    "minimum": _of_two("<="),
    "both": _plain("and_"),
    "either": _plain("or_"),
    "logical_and": _plain("and_"),
    "logical_or": _plain("or_"),
    "logical_xor": _plain("xor"),
    "logical_not": _plain("not_"),
    "bitwise_and": _plain("and_"),
    "bitwise_or": _plain("or_"),
    "bitwise_xor": _plain("xor"),
    "invert": _plain("not_"),
    "left_shift": _shifted("shl"),
    "right_shift": _shifted("ashr"),
    "divided": _plain("udiv"),
    "remaining": _plain("urem"),
    "quotient": _plain("sdiv"),
    "divide": _plain("fdiv"),
    "sqrt": _rounded("sqrt"),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "trunc": _rounded("trunc"),
    "rint": _rounded("rint"),
    "abs": _abs,
    "negative": _negative,
    "where": _where,
    "chosen": _chosen,
}
