"""Each rewrite rule has cases; each case has two halves, the structure and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import call_op
from headrace.passes.prune import extract
from headrace.passes.simplify.engine import simplify
from headrace.passes.simplify.table import RULES
from headrace_testing.rules import (
    RuleCase,
    check_numbers,
    check_structure,
    check_without_elements,
    check_without_shapes,
    rule_case,
)

pytestmark = pytest.mark.needs("backend-cpu")

f32, f64, f16, i32, i8, u8 = "float32", "float64", "float16", "int32", "int8", "uint8"


CASES: list[RuleCase] = []


def case(rule: str, build: Callable[..., Any], expected: str, **options: Any) -> None:
    """Add a case; placeholders are float32[n, 3] unless options say otherwise."""
    CASES.append(rule_case(rule, build, expected, label=f"{rule}-{len(CASES)}", **options))


def op(type_name: str, *args: Any, **attrs: Any) -> Any:
    return call_op(type_name, *args, **attrs)


# -- identities, shapes

case("identity", lambda x: hr.identity(hr.stop_gradient(hr.identity(x))) + 1.0, "Add(x, 1.0)")
case("identity", lambda x, y: hr.identity_n([x, y])[1], "y")
case("default-value", lambda x: hr.placeholder_with_default(x, [None, 3]), "x")
case("ensured-shape", lambda x: hr.ensure_shape(x, [None, 3]), "x")
# The functions yield constants where the shape is known when the graph is built.
case("known-shape", lambda x: op("Shape", x, out_type=i32), "[4, 3]")
case("known-shape", lambda x: op("Size", x, out_type=hr.int64), "12")
case("known-shape", lambda x: op("Rank", x) + 1, "3")
case(
    "known-shape-part",
    lambda x, y: hr.concat([hr.shape(x), hr.shape(y)[1:]], 0),
    "[4, 3, 3]",
    known_only=True,
)
case("cast-to-same", lambda x: op("Cast", x, hr.float32), "x")
case(
    "cast-of-cast", lambda x: hr.cast(hr.cast(x, hr.float64), hr.float16), "Cast(x, dtype=float16)"
)
case("cast-of-cast", lambda x: hr.cast(hr.cast(x, hr.float64), hr.float32), "x")
case(
    "cast-of-cast",
    lambda x: hr.cast(hr.cast(x, i32), i8),
    "Cast(x, dtype=int8)",
    x=("int16", ("n",)),
)
case(
    "cast-of-cast",
    lambda x: hr.cast(hr.cast(x, f32), "bool"),
    "Cast(x, dtype=bool)",
    x=(i8, ("n", 9)),
)
case("reshape-nothing", lambda x: hr.reshape(x, [-1, 3]), "x")
case(
    "reshape-nothing",
    lambda x: hr.squeeze(hr.squeeze(x)),
    "Squeeze(x)",
    known_only=True,
    x=(f32, ("n", 1, 3)),
)
case("reshape-of-reshape", lambda x: hr.reshape(hr.reshape(x, [-1]), [3, -1]), "Reshape(x, [3, 4])")
case("reshape-of-reshape", lambda x: hr.squeeze(hr.expand_dims(x, 0), [0]), "x")
case("stack-of-one", lambda x: hr.stack([x], axis=1), "Reshape(x, [4, 1, 3])")
case("stack-of-one", lambda x: hr.unstack(x)[0], "Reshape(x, [3])", x=(f32, (1, 3)))
case("concat-of-one", lambda x: op("Concat", [x], 0), "x")
case(
    "concat-of-one",
    lambda x, y: hr.concat([y, x, y], 1),
    "x",
    y=(f32, ("n", 0)),
)
case(
    "concat-of-concat",
    lambda x, y: hr.concat([hr.concat([x, y], 1), x], -1),
    "Concat(x, y, x, axis=-1)",
)
case("split-into-one", lambda x: hr.split(x, 1)[0], "x")
case("pad-nothing", lambda x: hr.pad(x, [[0, 0], [0, 0]]), "x")
case("pad-nothing", lambda x: hr.pad(x, [[0, 0], [0, 0]], mode="REFLECT"), "x")
case("slice-everything", lambda x: hr.slice(x, [0, 0], [-1, 3]), "x")
case("index-everything", lambda x: x[:], "x")
case("index-everything", lambda x: x[:, None, 0:3], "Reshape(x, [4, 1, 3])")
case("index-everything", lambda x: x[0], "Reshape(x, [3])", x=(f32, (1, 3)))
case("tile-once", lambda x: hr.tile(x, [1, 1]), "x")
case("tile-units", lambda x: hr.tile(x, [1, 5]), "BroadcastTo(x, [4, 5])", x=(f32, ("n", 1)))
case("reverse-nothing", lambda x: hr.reverse(x, [1]), "x", x=(f32, ("n", 1)))


def slice_grad(shape: list[int], dy: Any, *index: Any) -> Any:
    """Return the gradient for a tensor of which ``x[index]`` was taken."""
    entries = "".join("e" if i is ... else "i" if isinstance(i, int) else "s" for i in index)
    begin = [i if isinstance(i, int) else 0 for i in index]
    end = [i + 1 if isinstance(i, int) else 0 for i in index]
    open_ = "".join("1" if isinstance(i, slice) else "0" for i in index)
    options = {"entries": entries, "open_begin": open_, "open_end": open_}
    return op("StridedSliceGrad", shape, begin, end, [1] * len(index), dy, **options)


case(
    "gradients-of-all-slices",
    lambda x, y: slice_grad([2, 4, 3], x, 0) + slice_grad([2, 4, 3], y, -1),
    "Stack(x, y)",
    known_only=True,
    signs=False,
)
case(
    "gradients-of-all-slices",
    lambda x, y: (
        slice_grad([4, 2, 3], hr.exp(y), slice(None), 1)
        + hr.ones([4, 2, 3]) * hr.reduce_sum(y)
        + slice_grad([4, 2, 3], x, ..., 0, slice(None))
    ),
    "Add(Stack(x, Exp(y), axis=1), ReduceSum(y))",
    known_only=True,
    signs=False,
)


def looked_up(x, y):
    distinct, places = hr.unique(hr.floormod(y, 4))
    return hr.gather(hr.gather(x, distinct), places)


case(
    "picks-of-distinct",
    looked_up,
    "Gather(x, FloorMod(y, 4))",
    y=(i32, (7,)),
    known_only=True,
)

# -- broadcasts

case("broadcast-nothing", lambda x: hr.broadcast_to(x, hr.shape(x)), "x")
case(
    "broadcast-of-broadcast",
    lambda x: hr.broadcast_to(hr.broadcast_to(x, [3, 3]), [2, 3, 3]),
    "BroadcastTo(x, [2, 3, 3])",
    x=(f32, (3,)),
)
case(
    "broadcast-units",
    lambda x: hr.broadcast_to(x, [1, 1, 4, 3]),
    "Reshape(x, [1, 1, 4, 3])",
    known_only=True,
)
case(
    "reshape-of-scalar",
    lambda x: hr.transpose(hr.fill([4, 3], x)),
    "BroadcastTo(x, [3, 4])",
    x=(f32, ()),
)
case(
    "hoist-broadcast",
    lambda x, y: x * hr.broadcast_to(y, [4, 3]),
    "Mul(x, y)",
    y=(f32, (3,)),
    known_only=True,
)
case(
    "hoist-broadcast",
    lambda x: hr.exp(hr.broadcast_to(x, [4, 3])),
    "BroadcastTo(Exp(x), [4, 3])",
    x=(f32, (3,)),
)
case(
    "hoist-broadcast",
    lambda x, y: hr.fill([4, 3], y) + hr.broadcast_to(x, [4, 3]),
    "BroadcastTo(Add(y, x), [4, 3])",
    x=(f32, (3,)),
    y=(f32, ()),
)
case(
    "scalar-constant",
    lambda x: x * hr.constant(np.full((4, 3), 2.5, "f")),
    "Mul(x, 2.5)",
    known_only=True,
)
case(
    "uniform-constant",
    lambda x: hr.matmul(x, hr.transpose(hr.constant(np.full((4, 3), 2.5, "f")))),
    "MatMul(x, BroadcastTo(2.5, [3, 4]))",
    known_only=True,
    exact=False,
)

# -- constants

case("fold-arithmetic", lambda x: x * -hr.constant(2.0), "Mul(x, -2.0)")
case("fold-cast", lambda x: x + hr.cast(hr.constant(2), f32), "Add(x, 2.0)")
case("merge-factors", lambda x: 3.0 * (x * 0.5), "Mul(x, 1.5)")
case("merge-factors", lambda x: 100 * (x * 77), "Mul(x, 20)", x=(i8, ("n",)))
case("merge-summands", lambda x: (x - 100) + 28, "Add(x, -72)", x=(i8, ("n", 9)))
case("negate-factor", lambda x: -(x * 3.0), "Mul(x, -3.0)")
case("negate-factor", lambda x: -(x / 3.0), "Div(x, -3.0)")
case("factor-of-negated", lambda x: 3.0 * -x, "Mul(x, -3.0)")
case("factor-of-negated", lambda x: 3.0 / -x, "Div(-3.0, x)")
case("divide-by-power-of-two", lambda x: x / 128.0, "Mul(x, 0.0078125)")
case("divide-by-power-of-two", lambda x: x / [2.0, -4.0, 0.125], "Mul(x, [0.5, -0.25, 8.0])")
case("constant-condition", lambda x, y: hr.where_v2(True, x, y), "x", known_only=True)
case(
    "constant-condition",
    lambda x, y: hr.where_v2(hr.constant([False]), x, y),
    "BroadcastTo(y, [4, 3])",
    y=(f32, ()),
    known_only=True,
)
case("same-choices", lambda c, x: hr.where_v2(c, x, x), "x", c=("bool", ("n", 3)))

# -- softmax, sigmoid

case(
    "log-softmax",
    lambda x: hr.log(hr.nn.softmax(x, 0)),
    "LogSoftmax(x, axis=0)",
    exact=False,
    better=True,
)
case("exp-log-softmax", lambda x: hr.exp(hr.nn.log_softmax(x)), "Softmax(x)", exact=False)


def _naive_gradient(g: Any, x: Any, axis: int = -1) -> Any:
    p = hr.nn.softmax(x, axis)
    slope = g / p
    return (slope - hr.reduce_sum(slope * p, axis, keepdims=True)) * p


case(
    "softmax-log-gradient",
    lambda g, x: _naive_gradient(g, x),
    "Sub(g, Mul(Softmax(x, axis=-1), ReduceSum(g, axis=(1,), keepdims=True)))",
    exact=False,
    better=True,
    feeds={"g": np.linspace(-1, 1, 12)},
)
case(
    "softmax-log-gradient",
    lambda g, x: _naive_gradient(g, x, 0),
    "Sub(g, Mul(Softmax(x, axis=0), Mul(Reshape(g, [1, 3]), 4.0)))",
    exact=False,
    better=True,
    g=(f32, (3,)),
    feeds={"g": np.linspace(-1, 1, 3)},
)
case(
    "softmax-gradient-scale",
    lambda g, x: _naive_gradient(0.25 * g, x),
    "Mul(Sub(Mul(Softmax(x, axis=-1), ReduceSum(g, axis=(1,), keepdims=True)), g), -0.25)",
    exact=False,
    better=True,
    feeds={"g": np.linspace(-1, 1, 12)},
)
case(
    "log-sigmoid",
    lambda x: hr.log(hr.sigmoid(x)),
    "Neg(Softplus(Neg(x)))",
    exact=False,
    better=True,
)
case(
    "log-one-minus-sigmoid",
    lambda x: hr.log(1 - hr.sigmoid(x)),
    "Neg(Softplus(x))",
    exact=False,
    better=True,
    feeds={"x": np.linspace(-9, 4, 12)},
)
case(
    "sigmoid-log-gradient",
    lambda g, x: (g / hr.sigmoid(x)) * (hr.sigmoid(x) * (1 - hr.sigmoid(x))),
    "Mul(g, Sub(1.0, Sigmoid(x)))",
    exact=False,
    better=True,
    feeds={"g": np.linspace(-1, 1, 12)},
)
case(
    "sigmoid-log-gradient",
    lambda g, x: -(g / (1 - hr.sigmoid(x))) * (hr.sigmoid(x) * (1 - hr.sigmoid(x))),
    "Mul(Neg(g), Sigmoid(x))",
    exact=False,
    better=True,
    feeds={"g": np.linspace(-1, 1, 12)},
)

# -- arithmetic

case("add-zero", lambda x: x + np.float32(-0.0), "x")
case("add-zero", lambda x: hr.square(x) + 0.0, "Square(x)")
case("add-zero", lambda x: 0 + x, "x", x=(i8, ("n", 9)))
case("subtract-zero", lambda x: x - 0.0, "x")
case("multiply-one", lambda x: x * hr.ones([3]), "x")
case("divide-one", lambda x: x / 1.0, "x")
case("divide-one", lambda x: x // 1, "x", x=(i8, ("n", 9)))
case("multiply-minus-one", lambda x: -1.0 * x, "Neg(x)")
case("multiply-minus-one", lambda x: x / -1.0, "Neg(x)")
case("multiply-zero", lambda x: x * 0, "BroadcastTo(0, [4, 9])", x=(i8, ("n", 9)))
case("subtract-itself", lambda x: x - x, "BroadcastTo(0, [4, 9])", x=(u8, ("n", 9)))
case("double-negation", lambda x: hr.negative(-x), "x")
case("double-negation", lambda x: hr.negative(-x), "x", x=(i8, ("n", 9)))
case("double-not", lambda x: ~(~x), "x", x=("bool", ("n",)))
case("double-not", lambda x: hr.bitwise.invert(hr.bitwise.invert(x)), "x", x=(u8, ("n", 9)))
case("not-equal", lambda x, y: hr.logical_not(hr.equal(x, y)), "NotEqual(x, y)")
case("add-negated", lambda x, y: -x + y, "Sub(y, x)")
case("subtract-negated", lambda x, y: x - (-y), "Add(x, y)")
case("signs-cancel", lambda x, y: (-x) * (-y), "Mul(x, y)")
case("signs-cancel", lambda x, y: (-x) / (-y), "Div(x, y)")
case("even-function", lambda x: hr.square(-x), "Square(x)")
case("even-function", lambda x: hr.square(abs(x)), "Square(x)")
case("even-function", lambda x: abs(-x), "Abs(x)", x=(i8, ("n", 9)))
case("idempotent", lambda x: hr.nn.relu(hr.nn.relu(x)), "Relu(x)")
case("idempotent", lambda x: hr.floor(hr.floor(x)), "Floor(x)")
case("idempotent", lambda x: op("Sign", op("Sign", x)), "Sign(x)")
case("same-operands", lambda x: hr.maximum(x, x), "x")
case("same-operands", lambda x: hr.logical_or(x, x), "x", x=("bool", ("n",)))
case("logical-constant", lambda x: hr.logical_and(x, True), "x", x=("bool", ("n",)))
case(
    "logical-constant",
    lambda x: hr.logical_or(True, x),
    "BroadcastTo(True, [4])",
    x=("bool", ("n",)),
)
case("twice", lambda x: x + x, "Mul(x, 2.0)")
case("add-n-of-few", lambda x: hr.add_n([x]), "x")
case("add-n-of-few", lambda x, y: hr.add_n([x, y]), "Add(x, y)")
case(
    "add-n-in-turn",
    lambda x, y: hr.add_n([x, y, hr.exp(x), y]),
    "Add(Add(Add(x, y), Exp(x)), y)",
    x=(f32, (300, 300)),
    y=(f32, (300, 300)),
)
case("multiply-itself", lambda x: x * x, "Square(x)")
case("whole-power", lambda x: x**2.0, "Square(x)", exact=False)
case("whole-power", lambda x: x**3.0, "Mul(x, Square(x))", exact=False)
case("whole-power", lambda x: x**-1.0, "Reciprocal(x)", exact=False)
case("whole-power", lambda x: x**1.0, "x", exact=False)
case("whole-power", lambda x: x**0.0, "BroadcastTo(1.0, [4, 3])")
case("whole-power", lambda x: x**3, "Mul(x, Square(x))", x=(i8, ("n", 9)))
case("one-over", lambda x: 1.0 / x, "Reciprocal(x)")
case("reciprocal-root", lambda x: hr.reciprocal(hr.sqrt(x)), "Rsqrt(x)")
case(
    "divide-by-small-root",
    lambda x, y: x / hr.sqrt(y),
    "Mul(x, Rsqrt(y))",
    x=(f32, (9, 20)),
    y=(f32, (20,)),
    exact=False,
)

# -- reductions

case("reduce-single", lambda x: hr.reduce_sum(x, []), "x", signs=False)
case(
    "reduce-single",
    lambda x: hr.reduce_mean(x, 1),
    "Reshape(x, [4, 3])",
    signs=False,
    x=(f32, ("n", 1, 3)),
)
case("reduce-single", lambda x: hr.reduce_max(x, 1, keepdims=True), "x", x=(f32, ("n", 1, 3)))
case("reduce-single", lambda x: hr.reduce_all(x, 1, keepdims=True), "x", x=("bool", ("n", 1)))
case(
    "reduce-of-reduce",
    lambda x: hr.reduce_max(hr.reduce_max(x, 0), 0),
    "ReduceMax(x, axis=(0, 1))",
)
case(
    "reduce-of-reduce",
    lambda x: hr.reduce_sum(hr.reduce_sum(x, [0, 2], keepdims=True), 1),
    "Reshape(ReduceSum(x, axis=(0, 1, 2)), [1, 1])",
    x=(f32, ("n", 3, 2)),
    exact=False,
)
case(
    "sum-of-broadcast",
    lambda x: hr.reduce_sum(hr.broadcast_to(x, [4, 3]), 0),
    "Mul(x, 4.0)",
    x=(f32, (3,)),
    exact=False,
)
case(
    "sum-of-broadcast",
    lambda x: hr.reduce_sum(hr.broadcast_to(x, [2, 4, 3]), [0, 1], keepdims=True),
    "Mul(Reshape(ReduceSum(x, axis=(0,), keepdims=True), [1, 1, 3]), 2.0)",
    x=(f32, (4, 3)),
    exact=False,
)
case(
    "sum-of-broadcast",
    lambda x: hr.reduce_sum(hr.fill([4, 3], x)),
    "Mul(x, 12)",
    x=(i8, ()),
)
case(
    "fold-of-broadcast",
    lambda x: hr.reduce_max(hr.broadcast_to(x, [4, 3]), 0),
    "x",
    x=(f32, (3,)),
)
case(
    "fold-of-broadcast",
    lambda x: hr.reduce_mean(hr.broadcast_to(x, [4, 3]), 0, keepdims=True),
    "Reshape(x, [1, 3])",
    x=(f32, (3,)),
    better=True,
    exact=False,
)
case(
    "reduce-of-transpose",
    lambda x: hr.reduce_max(hr.transpose(x), 0),
    "ReduceMax(x, axis=(1,))",
)
case(
    "reduce-of-transpose",
    lambda x: hr.reduce_sum(hr.transpose(x, [0, 2, 1]), 2, keepdims=False),
    "ReduceSum(x, axis=(1,))",
    x=(f32, ("n", 3, 2)),
    exact=False,
)
case(
    "sum-to-shape",
    lambda x: op("SumToShape", x, [1, 3]),
    "ReduceSum(x, axis=(0,), keepdims=True)",
    exact=False,
)
case("sum-to-shape", lambda x: op("SumToShape", x, hr.shape(x)), "x")
case(
    "sum-to-shape",
    lambda x: op("SumToShape", x, [3]),
    "Reshape(ReduceSum(x, axis=(0,), keepdims=True), [3])",
    exact=False,
)

# -- transpositions

case("known-order", lambda x: op("TransposeBy", x, [1, 0]), "Transpose(x, perm=(1, 0))")
case("transpose-nothing", lambda x: hr.transpose(x, [0, -1]), "x")
case(
    "transpose-of-transpose",
    lambda x: hr.transpose(hr.transpose(x, [1, 2, 0]), [0, 2, 1]),
    "Transpose(x, perm=(1, 0, 2))",
    x=(f32, ("n", 3, 2)),
)
case("transpose-of-transpose", lambda x: hr.transpose(hr.transpose(x)), "x")
case(
    "transpose-units",
    lambda x: hr.transpose(x, [1, 0, 2]),
    "Reshape(x, [1, 4, 3])",
    x=(f32, ("n", 1, 3)),
)
case(
    "transposed-operand",
    lambda x, y: hr.matmul(hr.transpose(x), y, transpose_b=True),
    "MatMul(x, y, transpose_a=True, transpose_b=True)",
    y=(f32, (5, "n")),
    exact=False,
)
case(
    "transposed-operand",
    lambda x, y: hr.matmul(x, hr.transpose(y, [0, 2, 1]), transpose_b=True),
    "MatMul(x, y)",
    x=(f32, (2, "n", 3)),
    y=(f32, (2, 3, 5)),
    exact=False,
)
case(
    "transposed-product",
    lambda x, y: hr.transpose(hr.matmul(x, y)),
    "MatMul(y, x, transpose_a=True, transpose_b=True)",
    y=(f32, (3, 5)),
    exact=False,
)
case(
    "transpose-past-elementwise",
    lambda x, y: hr.transpose(hr.transpose(x) * hr.cast(y, f32)),
    "Mul(x, Cast(y, dtype=float32))",
    y=(i32, ()),
)
case(
    "transposed-operands",
    lambda x, y: hr.transpose(x) * hr.transpose(y),
    "Transpose(Mul(x, y), perm=(1, 0))",
)
case(
    "small-products",
    lambda x, y: hr.matmul(x, y),
    "Add(Mul(Slice(x, [0, 0, 0], [32, 2, 1]), Slice(y, [0, 0, 0], [32, 1, 3])), "
    "Mul(Slice(x, [0, 0, 1], [32, 2, 1]), Slice(y, [0, 1, 0], [32, 1, 3])))",
    x=(f32, (32, 2, 2)),
    y=(f32, (32, 2, 3)),
    exact=False,
)
case(
    "small-products",
    lambda x, y: hr.matmul(x, y, transpose_a=True, transpose_b=True),
    "Mul(Reshape(x, [40, 2, 1]), Reshape(y, [40, 1, 3]))",
    x=(f64, (40, 1, 2)),
    y=(f64, (40, 3, 1)),
    exact=False,
)


# -- the two halves


def _pool_gradient_sum(kind: str, axis: tuple[int, ...]) -> Callable[..., Any]:
    attrs: dict[str, Any] = {"ksize": (3, 3), "strides": (2, 2), "padding": "SAME"}
    attrs |= {"data_format": "NHWC", "dilations": None}

    def build(x: Any, g: Any) -> Any:
        images = hr.shape(x) if kind == "AvgPoolGrad" else x
        return hr.reduce_sum(call_op(kind, images, g, **attrs), axis)

    return build


for _kind, _axis in (("MaxPoolGrad", (0, 1, 2)), ("AvgPoolGrad", (1, 2))):
    case(
        "sum-of-pool-grad",
        _pool_gradient_sum(_kind, _axis),
        f"ReduceSum(g, axis={_axis})",
        x=(f32, ("n", 4, 4, 2)),
        g=(f32, ("n", 2, 2, 2)),
        exact=False,
        better=True,
    )


def _rectified_pool(size: int, padding: str) -> Callable[..., Any]:
    attrs: dict[str, Any] = {"ksize": (size, size), "strides": (2, 2), "padding": padding}
    attrs |= {"data_format": "NHWC", "dilations": None}

    def build(x: Any, g: Any) -> Any:
        pooled = call_op("MaxPool", x, **attrs)
        masked = hr.where_v2(x > 0, call_op("MaxPoolGrad", x, g, **attrs), 0)
        return hr.concat([hr.reshape(pooled, [-1]), hr.reshape(masked, [-1])], 0)

    return build


for _size, _padding in ((2, "VALID"), (3, "SAME")):
    _attrs = f"ksize=({_size}, {_size}), strides=(2, 2), padding={_padding}, data_format=NHWC"
    case(
        "mask-of-max-pool-grad",
        _rectified_pool(_size, _padding),
        f"Concat(Reshape(MaxPool(x, {_attrs}), [-1]), Reshape(MaxPoolGrad(x, "
        f"Select(Greater(MaxPool(x, {_attrs}), 0.0), g, 0.0), {_attrs}), [-1]), axis=0)",
        x=(f32, ("n", 4, 4, 2)),
        g=(f32, ("n", 2, 2, 2)),
    )


@pytest.mark.parametrize("given", CASES, ids=[c.label for c in CASES])
def test_structure(given: RuleCase) -> None:
    check_structure(given)


@pytest.mark.parametrize("given", CASES, ids=[c.label for c in CASES])
def test_numbers(given: RuleCase) -> None:
    check_numbers(given)


DYNAMIC = [c for c in CASES if c.varies]


@pytest.mark.parametrize("given", DYNAMIC, ids=[c.label for c in DYNAMIC])
def test_numbers_without_elements(given: RuleCase) -> None:
    check_without_elements(given)


@pytest.mark.parametrize("given", DYNAMIC, ids=[c.label for c in DYNAMIC])
def test_numbers_without_known_shapes(given: RuleCase) -> None:
    check_without_shapes(given)


def test_every_rule_has_cases_and_a_reason():
    assert {rule.name for rule in RULES} == {c.rule for c in CASES}
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert len(rule.reason) > 5, rule.name
        assert rule.ops


def test_gradients_of_slices_out_of_range_stay() -> None:
    with hr.Graph().as_default():
        x = hr.placeholder(f32, (4, 3))
        total = slice_grad([2, 4, 3], x, 0) + slice_grad([2, 4, 3], x, 5)
        step = extract([x], [total], [])
    _, rewrites = simplify(step)
    assert "gradients-of-all-slices" not in {r.rule for r in rewrites}
