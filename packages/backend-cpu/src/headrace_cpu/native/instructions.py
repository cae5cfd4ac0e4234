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
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from headrace_cpu.native.source import MAX_BUFFERS

TYPES: dict[str, Any] = {
    "b8": ir.IntType(1),
    "u8": ir.IntType(8),
    "i32": ir.IntType(32),
    "i64": ir.IntType(64),
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
}
FLOATS = frozenset({"f32", "f64"})


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
    for prefix, maker in (("load_", _load), ("store_", _store), ("to_", _convert)):
        if name.startswith(prefix):
            return maker(name.removeprefix(prefix))
    return _INSTRUCTIONS.get(name)


# -- memory


def _load(code: str) -> Maker:
    stored = ir.IntType(8) if code == "b8" else TYPES[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        found = m.builder.load(m.place(args[0].value, args[1].value, stored))
        m.mark(found, args[2].value.constant)
        if code == "b8":
            found = m.builder.icmp_unsigned("!=", found, ir.Constant(stored, 0))
        return Held(code, found)

    return make


def _store(code: str) -> Maker:
    stored = ir.IntType(8) if code == "b8" else TYPES[code]

    def make(m: Machine, args: Sequence[Held]) -> Held:
        value = args[2].value
        if code == "b8":
            value = m.builder.zext(value, stored)
        place = m.place(args[0].value, args[1].value, stored)
        m.mark(m.builder.store(value, place), args[3].value.constant)
        return args[2]

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
            unsigned = source in ("b8", "u8")
            return Held(code, (b.uitofp if unsigned else b.sitofp)(value, target))
        if source in FLOATS:
            # As on the hardware: a number out of range gives some number, nothing worse.
            wide = target if code != "u8" else TYPES["i32"]
            found = _frozen(b, b.fptosi(value, wide))
            return Held(code, found if wide is target else b.trunc(found, target))
        if target.width < value.type.width:
            return Held(code, b.trunc(value, target))
        unsigned = source in ("b8", "u8")
        return Held(code, (b.zext if unsigned else b.sext)(value, target))

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
        return Held(code, m.builder.select(m.builder.icmp_signed(sign, x, y), x, y))

    return make


def _of_two(sign: str) -> Maker:
    """Return the larger or smaller one of two elements, NaN if one is."""

    def make(m: Machine, args: Sequence[Held]) -> Held:
        code, x, y = args[0].code, args[0].value, args[1].value
        if code not in FLOATS:
            return Held(code, m.builder.select(m.builder.icmp_signed(sign, x, y), x, y))
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
        if code == "u8":
            over = m.builder.icmp_unsigned(">", count, most)
        else:
            count = m.builder.select(m.builder.icmp_signed("<", count, zero), zero, count)
            over = m.builder.icmp_signed(">", count, most)
        count = m.builder.select(over, most, count)
        shift = "lshr" if (name, code) == ("ashr", "u8") else name
        return Held(code, getattr(m.builder, shift)(x, count))

    return make


def _rounded(name: str) -> Maker:
    return lambda m, args: Held(args[0].code, m.call(name, args[0].code, args[0].value))


_INSTRUCTIONS: dict[str, Maker] = {
    "word": _word,
    "set_word": _set_word,
    "ask": _ask,
    "wait": _wait,
    "total": _total,
    "product": _product,
    "largest": _extreme("maximum", ">"),
    "smallest": _extreme("minimum", "<"),
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
    "divide": _plain("fdiv"),
    "sqrt": _rounded("sqrt"),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "trunc": _rounded("trunc"),
    "rint": _rounded("rint"),
    "abs": _abs,
    "negative": _negative,
    "where": _where,
}
