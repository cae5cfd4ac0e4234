"""Cases of rules for reductions, products and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from tests.core.passes.rules.case import case, f32, f64, i8, i32, op

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

# -- pools


def _pool_gradient_sum(kind: str, axis: tuple[int, ...]) -> Callable[..., Any]:
    attrs: dict[str, Any] = {"ksize": (3, 3), "strides": (2, 2), "padding": "SAME"}
    attrs |= {"data_format": "NHWC", "dilations": None}

    def build(x: Any, g: Any) -> Any:
        images = hr.shape(x) if kind == "AvgPoolGrad" else x
        return hr.reduce_sum(op(kind, images, g, **attrs), axis)

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
        pooled = op("MaxPool", x, **attrs)
        masked = hr.where_v2(x > 0, op("MaxPoolGrad", x, g, **attrs), 0)
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
