"""Operations as nodes: quotients and remainders of whole numbers.

Vectors of the processor do not divide whole numbers. What has 32 bits is divided in float64, whose
rounding moves no quotient to the next whole number: it is nearer to none than 2**-31 of itself,
unless it is one. Of 64 bits, a divisor that is a constant becomes a multiplication in LLVM, and
others take the processor's division, number by number.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace import Operation
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.nodes import Check, Operand, code_of

_CODES = frozenset({"i32", "i64"})
# As the plain kernels say it.
_ZERO = "integer division by zero: a divisor is 0, expected none"


def whole_divisor(op: Operation) -> bool:
    """Whether an operation divides whole numbers that kernels divide."""
    return op.type in DIVISION_RULES and code_of(op.inputs[1].dtype) in _CODES


def _divided(b: Builder, op: Operation, rounded: str) -> tuple[Operand, Operand]:
    """Return the quotient rounded by a function, and what is left."""
    x, y = b.operand(op.inputs[0]), b.operand(op.inputs[1])
    code = y.node.code
    if code not in _CODES:
        raise Unfit("divides what is no whole number")
    if y.node.kind == "const":
        # What always fails is left to the plain kernel.
        if y.node.value == 0:
            raise Unfit("divides by 0")
    else:
        none = b.map("equal", y, b.const(0, code), code="b8")
        b.checks.append(Check(_ZERO, ZeroDivisionError, operand=none))
        y = b.map("where", none, b.const(1, code), y)
    if code == "i32":
        ratio = b.map("divide", *(b.map("to_f64", part, code="f64") for part in (x, y)))
        wide = b.map("to_i64", b.map(rounded, ratio), code="i64")
        # The quotient that has no place in 32 bits becomes the least number there.
        quotient = b.map("to_i32", wide, code="i32")
        return quotient, _left(b, x, y, quotient)
    quotient = _truncated(b, x, y)
    rest = _left(b, x, y, quotient)
    if rounded == "trunc":
        return quotient, rest
    below = _is_below(b, rest, y)
    less = b.map("subtract", quotient, b.const(1, code))
    return b.map("where", below, less, quotient), b.map("where", below, b.map("add", rest, y), rest)


def _left(b: Builder, x: Operand, y: Operand, quotient: Operand) -> Operand:
    return b.map("subtract", x, b.map("multiply", quotient, y))


def _truncated(b: Builder, x: Operand, y: Operand) -> Operand:
    """Return the quotient of 64 bits, rounded towards 0; the processor refuses some by -1."""
    code = y.node.code
    if y.node.kind == "const" and y.node.value != -1:
        return b.map("quotient", x, y)
    turned = b.map("equal", y, b.const(-1, code), code="b8")
    divisor = b.map("where", turned, b.const(1, code), y)
    return b.map("quotient", b.map("where", turned, b.map("negative", x), x), divisor)


def _is_below(b: Builder, rest: Operand, y: Operand) -> Operand:
    """Whether what is left has the other sign than the divisor: one less is the floor."""
    zero = b.const(0, y.node.code)
    if y.node.kind == "const" and y.node.value > 0:
        return b.map("less", rest, zero, code="b8")
    unlike = b.map("less", b.map("bitwise_xor", rest, y), zero, code="b8")
    return b.map("logical_and", unlike, b.map("not_equal", rest, zero, code="b8"), code="b8")


def _rule(rounded: str, place: int) -> Callable[[Builder, Operation], None]:
    def rule(b: Builder, op: Operation) -> None:
        b.values[op.outputs[0]] = _divided(b, op, rounded)[place]

    return rule


DIVISION_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    "FloorDiv": _rule("floor", 0),
    "FloorMod": _rule("floor", 1),
    "TruncateDiv": _rule("trunc", 0),
    "TruncateMod": _rule("trunc", 1),
}
