"""Operations as nodes: those that state what an element is as a scalar expression."""

from __future__ import annotations

import functools
from typing import Any

from headrace import Operation
from headrace.extend.scalars import (
    CONSTANT,
    INPUT,
    Expression,
    Scalar,
    expression_of,
)
from headrace_cpu.fusion.build import Builder, Unfit, shape_of_value
from headrace_cpu.fusion.constants import ELEMENTARY
from headrace_cpu.fusion.nodes import CODES, FLOATS, Value, shape_of

_NUMBERS = frozenset({"i32", "i64", "f32", "f64"})
_COMPARED = _NUMBERS | {"u8"}
_INTEGERS = frozenset({"u8", "i32", "i64"})
_BOOL = frozenset({"b8"})
_ANY = frozenset(CODES.values())

# The scalar functions that kernels have, and for which dtypes of their last argument.
_TAKEN: dict[str, frozenset[str]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "negative", "abs"), _NUMBERS),
    **dict.fromkeys(("maximum", "minimum"), _NUMBERS),
    **dict.fromkeys(("divide", "sqrt", "floor", "ceil", "rint", "trunc"), FLOATS),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal"), _COMPARED),
    **dict.fromkeys(("greater", "greater_equal"), _COMPARED),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), _BOOL),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "invert"), _INTEGERS),
    **dict.fromkeys(("left_shift", "right_shift"), _INTEGERS),
    **dict.fromkeys(("where", "cast"), _ANY),
    **dict.fromkeys(ELEMENTARY, FLOATS),
}


def computed_expression(op: Operation) -> Expression | None:
    """Return the expression of an operation if kernels can compute it, else None.

    Raises:
        PluginError: if what the op's declaration states is wrong.
    """
    found = expression_of(op)
    return found if found is not None and _is_computed(found) else None


@functools.lru_cache(maxsize=1024)
def _is_computed(expression: Expression) -> bool:
    return all(map(_is_known, expression.steps))


def _is_known(step: Scalar) -> bool:
    if step.dtype.name not in CODES:
        return False
    if step.function in (INPUT, CONSTANT):
        return True
    return CODES.get(step.args[-1].dtype.name) in _TAKEN.get(step.function, ())


def add_expression(b: Builder, op: Operation) -> None:
    """Add the nodes of an operation that states an expression.

    Raises:
        Unfit: if kernels do not compute it.
    """
    expression = computed_expression(op)
    if expression is None:
        raise Unfit("no expression of functions that kernels have")
    made: list[Value] = []
    lines = _lines(expression)
    for function, code, args, number in lines:
        if function == INPUT:
            value = b.value(op.inputs[number])
            # Where the input itself is the value, a view of memory stays one.
            made.append(value if len(made) + 1 == len(lines) else b.load(value))
        elif function == CONSTANT:
            made.append(b.const(number, code))
        else:
            made.append(b.map(function, *[b.load(made[i]) for i in args], code=code))
    (result,), shape = op.outputs, shape_of(op.outputs[0])
    value = made[-1]
    if shape_of_value(value) != shape:
        # Some input has no part in it, but for its shape.
        value = b.broadcast(value, shape)
    b.values[result] = value


@functools.lru_cache(maxsize=1024)
def _lines(expression: Expression) -> tuple[tuple[str, str, tuple[int, ...], Any], ...]:
    """Return for each step its function, the code of its dtype, its arguments, and its value."""
    place = {step: i for i, step in enumerate(expression.steps)}
    lines = []
    for step in expression.steps:
        code = CODES[step.dtype.name]
        name = f"to_{code}" if step.function == "cast" else step.function
        lines.append((name, code, tuple([place[arg] for arg in step.args]), step.value))
    return tuple(lines)
