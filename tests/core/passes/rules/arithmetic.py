"""Cases of rules for functions of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from tests.core.passes.rules.case import case, f32, i8, op, u8

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
