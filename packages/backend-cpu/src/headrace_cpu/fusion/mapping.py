"""Operations as nodes: elementwise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from headrace.graph.operation import Operation
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.nodes import FLOATS, Operand, Value, View, code_of, element_code
from headrace_cpu.fusion.words import ELEMENTARY

Rule: TypeAlias = Callable[..., Value]

_ANY = frozenset({"b8", "u8", "i32", "i64", "f32", "f64"})
_NUMBERS = frozenset({"i32", "i64", "f32", "f64"})
_SIGNED = _NUMBERS
_BOOL = frozenset({"b8"})


def code_at(value: Value) -> str:
    """Return the code of a value's dtype."""
    if isinstance(value, View):
        found = element_code(value.tensor)
        assert found is not None
        return found
    return value.node.code


def _same(name: str) -> Rule:
    return lambda b, *values: b.map(name, *values)


def _compare(name: str) -> Rule:
    return lambda b, x, y: b.map(name, x, y, code="b8")


def _number(b: Builder, value: Value, number: float) -> Operand:
    return b.const(number, code_at(value))


def _relu(b: Builder, x: Value) -> Value:
    zero = _number(b, x, 0)
    return b.map("choose", b.map("<=", x, zero, code="b8"), zero, x)


def _sign(b: Builder, x: Value) -> Value:
    zero, one, less = (_number(b, x, n) for n in (0, 1, -1))
    below = b.map("choose", b.map("<", x, zero, code="b8"), less, x)
    # What is neither above nor below 0 is 0 or NaN: itself, but not -0.
    level = b.map("choose", b.map("==", x, zero, code="b8"), zero, below)
    return b.map("choose", b.map(">", x, zero, code="b8"), one, level)


def _square(b: Builder, x: Value) -> Value:
    operand = b.load(x)
    return b.map("*", operand, operand)


def _reciprocal(b: Builder, x: Value) -> Value:
    return b.map("quotient", _number(b, x, 1), x)


def _rsqrt(b: Builder, x: Value) -> Value:
    return b.map("quotient", _number(b, x, 1), b.map("root", x))


def _or_zero(rule: Rule, tested: int) -> Rule:
    """Return a rule that gives 0 wherever one argument is 0."""

    def made(b: Builder, x: Value, y: Value) -> Value:
        pair = (b.load(x), b.load(y)) if not isinstance(x, View) or x is y else (x, y)
        zero = _number(b, y, 0)
        test = b.map("==", pair[tested], zero, code="b8")
        return b.map("choose", test, zero, rule(b, *pair))

    return made


def _is_inf(b: Builder, x: Value) -> Value:
    return b.map("==", b.map("magnitude", x), _number(b, x, np.inf), code="b8")


def _is_finite(b: Builder, x: Value) -> Value:
    return b.map("<", b.map("magnitude", x), _number(b, x, np.inf), code="b8")


def _is_nan(b: Builder, x: Value) -> Value:
    operand = b.load(x)
    return b.map("!=", operand, operand, code="b8")


def _softplus(b: Builder, x: Value) -> Value:
    operand = b.load(x)
    away = b.map("opposite", b.map("magnitude", operand))
    tail = b.map("Log1p", b.map("Exp", away))
    return b.map("+", b.map("larger", operand, _number(b, x, 0)), tail)


def _xlogy(b: Builder, x: Value, y: Value) -> Value:
    return b.map("*", x, b.map("Log", y))


def _cast(b: Builder, op: Operation) -> Value:
    value = b.value(op.inputs[0])
    target = code_of(op.outputs[0].dtype)
    if target is None:
        raise Unfit("casts to a dtype that is not computed with")
    if target == code_at(value):
        return value
    return b.map(f"to_{target}", value, code=target)


def _add_all(b: Builder, *values: Value) -> Value:
    total = values[0]
    for value in values[1:]:
        total = b.map("+", total, value)
    return total


def _floored(name: str) -> Rule:
    return lambda b, x, y: b.map(name, b.map("quotient", x, y))


# Type: the dtypes of its first input that are taken, and its rule.
ELEMENTWISE: dict[str, tuple[frozenset[str], Rule]] = {
    "Add": (_NUMBERS, _same("+")),
    "Sub": (_NUMBERS, _same("-")),
    "Mul": (_NUMBERS, _same("*")),
    "Div": (FLOATS, _same("quotient")),
    "FloorDiv": (FLOATS, _floored("floor")),
    "TruncateDiv": (FLOATS, _floored("trunc")),
    "MulNoNan": (FLOATS, _or_zero(_same("*"), 1)),
    "DivNoNan": (FLOATS, _or_zero(_same("quotient"), 1)),
    "Xdivy": (FLOATS, _or_zero(_same("quotient"), 0)),
    "Xlogy": (FLOATS, _or_zero(_xlogy, 0)),
    "AddN": (_NUMBERS, _add_all),
    "Neg": (_SIGNED, _same("opposite")),
    "Abs": (_SIGNED, _same("magnitude")),
    "Sign": (_SIGNED, _sign),
    "Square": (_NUMBERS, _square),
    "Reciprocal": (FLOATS, _reciprocal),
    "Conj": (_NUMBERS, lambda b, x: x),
    "Maximum": (_NUMBERS, _same("larger")),
    "Minimum": (_NUMBERS, _same("smaller")),
    "Floor": (FLOATS, _same("floor")),
    "Ceil": (FLOATS, _same("ceil")),
    "Rint": (FLOATS, _same("rint")),
    "Equal": (_NUMBERS | {"u8"}, _compare("==")),
    "NotEqual": (_NUMBERS | {"u8"}, _compare("!=")),
    "Less": (_NUMBERS | {"u8"}, _compare("<")),
    "LessEqual": (_NUMBERS | {"u8"}, _compare("<=")),
    "Greater": (_NUMBERS | {"u8"}, _compare(">")),
    "GreaterEqual": (_NUMBERS | {"u8"}, _compare(">=")),
    "LogicalAnd": (_BOOL, _same("both")),
    "LogicalOr": (_BOOL, _same("either")),
    "LogicalXor": (_BOOL, _same("differ")),
    "LogicalNot": (_BOOL, _same("inverse")),
    "IsNan": (FLOATS, _is_nan),
    "IsInf": (FLOATS, _is_inf),
    "IsFinite": (FLOATS, _is_finite),
    "Select": (_BOOL, _same("choose")),
    "Sqrt": (FLOATS, _same("root")),
    "Rsqrt": (FLOATS, _rsqrt),
    "Relu": (_NUMBERS, _relu),
    "Softplus": (FLOATS, _softplus),
}

# What rules above compute with.
NEEDS = {"Softplus": ("Exp", "Log1p"), "Xlogy": ("Log",)}


def elementwise(b: Builder, op: Operation) -> None:
    """Add an elementwise operation to a region.

    Raises:
        Unfit: if kernels do not compute it.
    """
    if op.type == "Cast":
        b.values[op.outputs[0]] = _cast(b, op)
        return
    values = [b.value(tensor) for tensor in op.inputs]
    if op.type in ELEMENTARY:
        b.values[op.outputs[0]] = b.map(op.type, *values)
        return
    b.values[op.outputs[0]] = ELEMENTWISE[op.type][1](b, *values)
