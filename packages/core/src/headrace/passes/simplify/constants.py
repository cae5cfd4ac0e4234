"""Rules that compute with constants, and that move constants together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from headrace.dtypes import DType
from headrace.passes.simplify.matching import (
    array_of,
    inner,
    number_and_other,
    only_user,
    uniform,
)
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import UNIFORM, RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Neg": np.negative,
    "Square": np.square,
    "Reciprocal": lambda x: x.dtype.type(1) / x,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}
# Rules make constants of this size at most.
_SMALL = 64


@RULES.add(
    "fold-arithmetic", *_ARITHMETIC, after=("Const",), reason="small constants are computed ahead"
)
def _fold_arithmetic(node: Node, replacement: Replacement) -> Value | None:
    arrays = [array_of(v) for v in node.inputs]
    dtype = node.specs[0].dtype
    if any(a is None or a.size > _SMALL for a in arrays) or not dtype.is_numeric:
        return None
    with np.errstate(all="ignore"):
        value = np.asarray(_ARITHMETIC[node.type](*arrays))
    return replacement.constant(value, dtype) if value.size <= _SMALL else None


@RULES.add("fold-cast", "Cast", after=("Const",), reason="small constants are converted ahead")
def _fold_cast(node: Node, replacement: Replacement) -> Value | None:
    array = array_of(node.inputs[0])
    dtype, source = node.specs[0].dtype, node.inputs[0].dtype
    real = not source.is_complex and source.kind != "string"
    if array is None or array.size > _SMALL or not real:
        return None
    if dtype.is_integer and not (source.is_integer or source.is_bool):
        # Floats beyond an integer's range become what the device makes of them.
        if not (np.abs(array.astype(np.float64)) < 2 ** min(dtype.significand, 53)).all():
            return None
        if dtype.is_unsigned and (array < 0).any():
            return None
    with np.errstate(all="ignore"):
        return replacement.constant(array.astype(dtype.numpy), dtype)


def is_normal(number: Any, dtype: DType) -> bool:
    """Whether a number is finite and has the full precision of a floating dtype."""
    size = abs(float(number))
    least = float(ml_dtypes.finfo(dtype.numpy).tiny)  # type: ignore[no-untyped-call]
    return least <= size <= float(dtype.max)


def _product(x: Any, y: Any, dtype: DType) -> Any:
    """Return the product of two numbers in a dtype, None where it loses range."""
    with np.errstate(all="ignore"):
        product = np.multiply(x, y)
    if dtype.is_integer:
        return product
    fits = dtype.is_floating and all(is_normal(n, dtype) for n in (x, y, product))
    return product if fits else None


@RULES.add(
    *("merge-factors", "Mul"),
    after=(UNIFORM,),
    reason="c1 * (c2 * x) is (c1 * c2) * x with one rounding less, where the product of the "
    "constants is a normal number; integers wrap around alike",
)
def _merge_factors(node: Node, replacement: Replacement) -> Value | None:
    for number, _, other in number_and_other(node):
        product = inner(other, "Mul")
        if product is None:
            continue
        for factor, _, x in number_and_other(product):
            merged = _product(number, factor, x.dtype)
            if merged is not None and _same_shapes(node, product, x):
                return replacement.add("Mul", x, replacement.constant(merged, x.dtype))
    return None


def _same_shapes(node: Node, product: Node, x: Value) -> bool:
    """Whether dropping constants leaves the shape as it was."""
    dims = Value(node, 0).dims
    if dims is not None:
        return dims == x.dims
    return node.specs[0].shape == product.specs[0].shape == x.spec.shape and all(
        v.rank == 0 for v in (*node.inputs, *product.inputs) if uniform(v) is not None
    )


@RULES.add(
    *("merge-summands", "Add", "Sub"),
    after=(UNIFORM,),
    reason="constants added to integers one after the other are added at once: integers wrap "
    "around alike; floats would round differently",
)
def _merge_summands(node: Node, replacement: Replacement) -> Value | None:
    if not node.specs[0].dtype.is_integer:
        return None
    number, base = _summand(node)
    found = None if base is None else inner(base, "Add", "Sub")
    if found is None:
        return None
    more, x = _summand(found)
    if x is None or not _same_shapes(node, found, x):
        return None
    with np.errstate(all="ignore"):
        return replacement.add("Add", x, replacement.constant(np.add(number, more), x.dtype))


def _summand(node: Node) -> tuple[Any, Value | None]:
    """Return the number that is added to the other input, and that input."""
    for number, source, other in number_and_other(node):
        if node.type == "Add":
            return number, other
        if source == node.inputs[1]:
            with np.errstate(all="ignore"):
                return np.negative(number), other
    return None, None


@RULES.add(
    *("negate-factor", "Neg"),
    after=("Mul", "Div"),
    reason="-(c * x) is (-c) * x, and -(x / c) is x / (-c), exactly",
)
def _negate_factor(node: Node, replacement: Replacement) -> Value | None:
    product = inner(node.inputs[0], "Mul", "Div")
    if product is None or not only_user(product) or product.specs[0].dtype.kind != "float":
        return None
    for number, source, other in number_and_other(product):
        if product.type == "Div" and source != product.inputs[1]:
            continue
        negated = replacement.constant(np.negative(number), other.dtype)
        dims = source.dims
        if dims is not None:
            return replacement.add(product.type, other, replacement.broadcast(negated, dims))
    return None


@RULES.add(
    "factor-of-negated", "Mul", "Div", after=("Neg",), reason="c * (-x) is (-c) * x, exactly"
)
def _factor_of_negated(node: Node, replacement: Replacement) -> Value | None:
    if node.specs[0].dtype.kind != "float":
        return None
    for number, source, other in number_and_other(node):
        negated = inner(other, "Neg")
        if negated is None or source.dims is None:
            continue
        factor = replacement.broadcast(
            replacement.constant(np.negative(number), other.dtype), source.dims
        )
        x = negated.inputs[0]
        if node.type == "Mul" or source == node.inputs[1]:
            return replacement.add(node.type, x, factor)
        return replacement.add(node.type, factor, x)
    return None


@RULES.add(
    *("divide-by-power-of-two", "Div"),
    after=(UNIFORM,),
    reason="x / c is x * (1 / c), exactly, where c is a power of two; 1 / c is rounded elsewhere",
)
def _divide_by_power_of_two(node: Node, replacement: Replacement) -> Value | None:
    x, y = node.inputs
    if not x.dtype.is_floating:
        return None
    array = array_of(y)
    if array is None:
        number = uniform(y)
        array = None if number is None else np.asarray(number)
        if array is None or y.dims is None:
            return None
    if not array.size or not all(_has_exact_reciprocal(n, x.dtype) for n in array.reshape(-1)):
        return None
    factor = replacement.constant(array.dtype.type(1) / array, x.dtype)
    return replacement.add(
        "Mul", x, factor if y.dims is None else replacement.broadcast(factor, y.dims)
    )


def _has_exact_reciprocal(number: Any, dtype: DType) -> bool:
    size = abs(float(number))
    # 1 and -1 have rules of their own.
    if size in (0, 1) or not np.isfinite(size) or np.frexp(size)[0] != 0.5:
        return False
    return is_normal(size, dtype) and is_normal(1 / size, dtype)


@RULES.add(
    *("constant-condition", "Select"),
    after=(UNIFORM,),
    reason="a constant condition chooses ahead",
)
def _constant_condition(node: Node, replacement: Replacement) -> Value | None:
    condition, x, y = node.inputs
    chosen = uniform(condition)
    dims = Value(node, 0).dims
    if chosen is None or dims is None:
        return None
    return replacement.broadcast(x if chosen else y, dims)


@RULES.add("same-choices", "Select", reason="both choices are the same")
def _same_choices(node: Node, replacement: Replacement) -> Value | None:
    _, x, y = node.inputs
    dims = Value(node, 0).dims
    return replacement.broadcast(x, dims) if x == y and dims is not None else None
