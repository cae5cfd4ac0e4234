"""Rules for sums, products, signs and powers.

Floating zeros have a sign, and ``-0 + 0`` is ``+0``: adding ``+0`` is left alone where the other
summand may be ``-0``. Infinities and NaN survive every rule here: ``x * 0``, ``x - x`` and
``x / x`` are simplified for integers only.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.passes.simplify.matching import (
    array_of,
    inner,
    is_zero,
    keeps_shape,
    number_and_other,
    pairs,
    uniform,
)
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import UNIFORM, RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()
# Bytes of the summands from which on it matters how many of them are kept.
_LARGE_SUM = 1 << 20


def _never_negative_zero(value: Value) -> bool:
    node = value.node
    if not value.dtype.is_floating:
        return not value.dtype.is_complex
    if node.type == "Const":
        found = array_of(value)
        return found is not None and not bool((np.signbit(found) & (found == 0)).any())
    return node.schema.nonnegative


@RULES.add(
    *("add-zero", "Add"),
    after=(UNIFORM,),
    reason="x + (-0) is x; x + 0 is x where x cannot be -0",
)
def _add_zero(node: Node, replacement: Replacement) -> Value | None:
    if not node.specs[0].dtype.is_numeric:
        return None
    for number, _, other in number_and_other(node):
        if is_zero(number) and keeps_shape(node, other):
            inexact = other.dtype.is_floating or other.dtype.is_complex
            if not inexact or is_zero(number, negative=True) or _never_negative_zero(other):
                return other
    return None


@RULES.add("subtract-zero", "Sub", after=(UNIFORM,), reason="x - 0 is x, also for -0")
def _subtract_zero(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    number = uniform(y)
    exact = x.dtype.is_integer or is_zero(number, negative=False)
    return x if exact and is_zero(number) and keeps_shape(node, x) else None


@RULES.add("multiply-one", "Mul", after=(UNIFORM,), reason="x * 1 is x")
def _multiply_one(node: Node, replacement: Replacement) -> Value | None:
    if node.specs[0].dtype.is_complex:
        # (a + bi)(1 + 0i) makes NaN of an infinite part.
        return None
    for number, _, other in number_and_other(node):
        if number == 1 and keeps_shape(node, other):
            return other
    return None


@RULES.add(*("divide-one", "Div", "FloorDiv", "TruncateDiv"), after=(UNIFORM,), reason="x / 1 is x")
def _divide_one(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    if node.type != "Div" and not x.dtype.is_integer:
        return None
    one = uniform(y)
    fits = one is not None and one == 1 and not x.dtype.is_complex
    return x if fits and keeps_shape(node, x) else None


@RULES.add(
    *("multiply-minus-one", "Mul", "Div"), after=(UNIFORM,), reason="x * -1 and x / -1 are -x"
)
def _multiply_minus_one(node: Node, replacement: Replacement) -> Value | None:
    dtype = node.specs[0].dtype
    if dtype.kind not in ("float", "int"):
        return None
    for number, source, other in number_and_other(node):
        if number == -1 and keeps_shape(node, other):
            if node.type == "Div" and source != node.inputs[1]:
                continue
            return replacement.add("Neg", other)
    return None


@RULES.add(
    *("multiply-zero", "Mul"),
    after=(UNIFORM,),
    reason="integers times 0 are 0; floats may be infinite or NaN",
)
def _multiply_zero(node: Node, replacement: Replacement) -> Value | None:
    out = Value(node, 0)
    if not out.dtype.is_integer or out.dims is None:
        return None
    for number, _, _ in number_and_other(node):
        if number == 0:
            return replacement.broadcast(replacement.constant(0, out.dtype), out.dims)
    return None


@RULES.add("subtract-itself", "Sub", reason="an integer less itself is 0; a float may be NaN")
def _subtract_itself(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    if x != y or not x.dtype.is_integer or x.dims is None:
        return None
    return replacement.broadcast(replacement.constant(0, x.dtype), x.dims)


@RULES.add("double-negation", "Neg", "Conj", reason="applied twice it gives back its input")
def _double_negation(node: Node, replacement: Replacement) -> Value | None:
    again = inner(node.inputs[0], node.type)
    return None if again is None else again.inputs[0]


@RULES.add("double-not", "LogicalNot", "Invert", reason="applied twice it gives back its input")
def _double_not(node: Node, replacement: Replacement) -> Value | None:
    again = inner(node.inputs[0], node.type)
    return None if again is None else again.inputs[0]


@RULES.add(
    *("not-equal", "LogicalNot"),
    reason="not (x == y) is x != y, also for NaN; the order of floats has no such opposite",
)
def _not_equal(node: Node, replacement: Replacement) -> Value | None:
    found = inner(node.inputs[0], "Equal", "NotEqual")
    if found is None:
        return None
    return replacement.add("NotEqual" if found.type == "Equal" else "Equal", *found.inputs)


@RULES.add("add-negated", "Add", after=("Neg",), reason="a + (-b) is a - b")
def _add_negated(node: Node, replacement: Replacement) -> Value | None:
    for x, y in pairs(node):
        negated = inner(y, "Neg")
        if negated is not None and inner(x, "Neg") is None:
            return replacement.add("Sub", x, negated.inputs[0])
    return None


@RULES.add("subtract-negated", "Sub", after=("Neg",), reason="a - (-b) is a + b")
def _subtract_negated(node: Node, replacement: Replacement) -> Value | None:
    negated = inner(node.inputs[1], "Neg")
    return None if negated is None else replacement.add("Add", node.inputs[0], negated.inputs[0])


@RULES.add(
    *("signs-cancel", "Mul", "Div"),
    after=("Neg",),
    reason="the signs of (-a) * (-b) and (-a) / (-b) cancel",
)
def _signs_cancel(node: Node, replacement: Replacement) -> Value | None:
    x, y = (inner(v, "Neg") for v in node.inputs)
    if x is None or y is None or node.specs[0].dtype.is_complex:
        return None
    return replacement.add(node.type, x.inputs[0], y.inputs[0])


@RULES.add(
    *("even-function", "Square", "Abs", "Cosh", "Cos"),
    after=("Neg", "Abs"),
    reason="the function of -x is that of x",
)
def _even_function(node: Node, replacement: Replacement) -> Value | None:
    if node.specs[0].dtype.is_unsigned:
        return None
    found = inner(node.inputs[0], "Neg")
    if found is None and not node.specs[0].dtype.is_complex and node.type == "Square":
        found = inner(node.inputs[0], "Abs")
    return None if found is None else replacement.add(node.type, found.inputs[0])


@RULES.add(
    *("idempotent", "Abs", "Relu", "Floor", "Ceil", "Rint", "Sign"),
    reason="applied twice it gives what it gives at once",
)
def _idempotent(node: Node, replacement: Replacement) -> Value | None:
    again = inner(node.inputs[0], node.type)
    return None if again is None else node.inputs[0]


@RULES.add("same-operands", "Maximum", "Minimum", "LogicalAnd", "LogicalOr", reason="op(x, x) is x")
def _same_operands(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    return x if x == y else None


@RULES.add(
    *("logical-constant", "LogicalAnd", "LogicalOr"),
    after=(UNIFORM,),
    reason="x and true is x, x or false is x; the other constant decides alone",
)
def _logical_constant(node: Node, replacement: Replacement) -> Value | None:
    neutral = node.type == "LogicalAnd"
    dims = Value(node, 0).dims
    for number, _, other in number_and_other(node):
        if bool(number) == neutral:
            if keeps_shape(node, other):
                return other
        elif dims is not None:
            return replacement.broadcast(replacement.constant(bool(number), other.dtype), dims)
    return None


@RULES.add("twice", "Add", reason="x + x is 2 * x, exactly")
def _twice(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    if x != y or not x.dtype.is_floating:
        return None
    return replacement.add("Mul", x, replacement.constant(2, x.dtype))


@RULES.add("add-n-of-few", "AddN", reason="a sum of one is itself, a sum of two an addition")
def _add_n_of_few(node: Node, replacement: Replacement) -> Value | None:
    if len(node.inputs) == 1:
        return node.inputs[0]
    if len(node.inputs) != 2:
        return None
    x, y = node.inputs
    # An addition broadcasts, which a sum of many refuses.
    return replacement.add("Add", x, y) if x.dims is not None and x.dims == y.dims else None


@RULES.add(
    *("add-n-in-turn", "AddN"),
    reason="a sum of many large tensors from first to last, so that each can go when it was added",
)
def _add_n_in_turn(node: Node, replacement: Replacement) -> Value | None:
    first, *others = node.inputs
    dims, dtype = first.dims, first.dtype
    # The sum of many adds 16-bit floats in float32, and is fine for what is small.
    if len(others) < 3 or dims is None or None in dims or dtype.numpy.itemsize < 4:
        return None
    nbytes = math.prod(dims) * dtype.numpy.itemsize
    if len(node.inputs) * nbytes < _LARGE_SUM or any(x.dims != dims for x in others):
        return None
    total = first
    for x in others:
        total = replacement.add("Add", total, x)
    return total


@RULES.add("multiply-itself", "Mul", reason="x * x is the square of x")
def _multiply_itself(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    return replacement.add("Square", x) if x == y else None


_WHOLE_POWERS = (0, 1, 2, 3, -1)


@RULES.add(
    *("whole-power", "Pow"),
    after=(UNIFORM,),
    reason="powers 0, 1, 2, 3 and -1 are products and quotients, within rounding; 0.5 is no square "
    "root, which differs at -0 and -infinity",
)
def _whole_power(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    power = uniform(y)
    if power is None or power not in _WHOLE_POWERS or x.dtype.is_complex:
        return None
    return _power(node, replacement, x, int(power))


def _power(node: Node, replacement: Replacement, x: Value, power: int) -> Value | None:
    out = Value(node, 0)
    if power == 0:
        if out.dims is None:
            return None
        return replacement.broadcast(replacement.constant(1, x.dtype), out.dims)
    if not keeps_shape(node, x):
        return None
    if power == 1:
        return x
    if power == -1:
        return replacement.add("Reciprocal", x) if x.dtype.is_floating else None
    if power == 3 and x.dtype.is_floating and x.dtype.itemsize < 4:
        # In 16 bits the square would be rounded to them in between.
        return None
    square = replacement.add("Square", x)
    return square if power == 2 else replacement.add("Mul", x, square)


@RULES.add("one-over", "Div", after=(UNIFORM,), reason="1 / x is the reciprocal")
def _one_over(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    number = uniform(x)
    fits = number is not None and number == 1 and not y.dtype.is_complex and keeps_shape(node, y)
    return replacement.add("Reciprocal", y) if fits else None


@RULES.add(
    *("reciprocal-root", "Reciprocal"),
    after=("Sqrt",),
    reason="1 / sqrt(x) is what rsqrt computes, with the same two roundings",
)
def _reciprocal_root(node: Node, replacement: Replacement) -> Value | None:
    root = inner(node.inputs[0], "Sqrt")
    return None if root is None or root.specs[0].dtype.is_complex else _rsqrt(replacement, root)


def _rsqrt(replacement: Replacement, root: Node) -> Value:
    return replacement.add("Rsqrt", root.inputs[0])


@RULES.add(
    *("divide-by-small-root", "Div"),
    after=("Sqrt",),
    reason="x / sqrt(y) is x * rsqrt(y) with one rounding more; done where y is repeated along x, "
    "so that there are fewer divisions",
)
def _divide_by_small_root(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    root = inner(y, "Sqrt")
    if root is None or not x.dtype.is_floating or x.dims is None or y.dims is None:
        return None
    # In 16 bits the reciprocal of the root would be rounded to them in between.
    if x.dtype.itemsize < 4 or int(np.prod(y.dims)) * 8 > int(np.prod(x.dims)):
        return None
    return replacement.add("Mul", x, _rsqrt(replacement, root))
