"""Samples of elementwise ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace.testing.inputs import Input, array, booleans, integers, strings, uniform, whole
from headrace.testing.sample import Reject, Row, Sample

FLOATS = ("float16", "bfloat16", "float32", "float64")
INEXACT = (*FLOATS, "complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
NUMERIC = (*INEXACT, *INTEGERS)

Oracle = Callable[..., Any]
_NAN, _INF = float("nan"), float("inf")
_SPECIAL = array([_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -1.0])


def _pairs(values: list[float]) -> tuple[Input, Input]:
    """Return two vectors in which each value meets each other one."""
    left, right = np.meshgrid(values, values)
    return array(left.ravel()), array(right.ravel())


_SPECIAL_PAIRS = _pairs([_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -2.0])


def _unary(op: str, oracle: Oracle, low: float, high: float, **options: Any) -> list[Sample]:
    """Return a typical sample of a function of one tensor, and one of special values."""
    away = options.pop("away_from", None)
    typical = Sample(op, [uniform((4, 5), low, high, away_from=away)], oracle=oracle, **options)
    special = Sample(op, [_SPECIAL], oracle=oracle, dtypes=FLOATS, grad=False, label="special")
    return [typical, special]


def _binary(op: str, oracle: Oracle, low: float, high: float, **options: Any) -> list[Sample]:
    """Return samples of a function of two tensors: one shape, and shapes that broadcast."""
    away = options.pop("away_from", None)

    def pair(*shapes: tuple[int, ...]) -> list[Input]:
        return [uniform(shape, low, high, away_from=away) for shape in shapes]

    label = options.pop("label", "")
    tail = f"-{label}" if label else ""
    return [
        Sample(op, pair((4, 5), (4, 5)), oracle=oracle, label=f"same{tail}", **options),
        Sample(op, pair((3, 1, 4), (2, 1)), oracle=oracle, label=f"broadcast{tail}", **options),
        Sample(op, pair((), (2, 3)), oracle=oracle, label=f"scalar_left{tail}", **options),
        Sample(op, pair((1,), (0, 2)), oracle=oracle, label=f"none{tail}", **options),
    ]


def _limits(op: str, oracle: Oracle) -> list[Sample]:
    """Return samples at the ends of the ranges of integers, where results wrap around."""
    rows = []
    for name in INTEGERS:
        dtype = dtypes.as_dtype(name)
        info = np.iinfo(dtype.numpy)
        inputs = [
            array(np.array([info.min, info.max, info.max, 1], dtype.numpy), name),
            array(np.array([1, 1, info.max, info.max], dtype.numpy), name),
        ]
        rows.append(Sample(op, inputs, oracle=oracle, label=f"limits_{name}"))
    return rows


def _wrapping(function: Oracle) -> Oracle:
    """Return a function whose integers wrap around, as the dtype's own arithmetic does."""

    def wrapped(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arrays)

    return wrapped


def _quotient(x: Any, y: Any) -> Any:
    return np.floor(x / y) if x.dtype == np.float64 else x // y


def _remainder(x: Any, y: Any) -> Any:
    return x - np.floor(x / y) * y if x.dtype == np.float64 else x - (x // y) * y


ARITHMETIC = [
    *_binary("Add", np.add, -3, 3),
    *_limits("Add", _wrapping(lambda x, y: x + y)),
    Sample("Add", _SPECIAL_PAIRS, oracle=np.add, dtypes=FLOATS, grad=False, label="special"),
    *_binary("Sub", np.subtract, -3, 3),
    *_limits("Sub", _wrapping(lambda x, y: x - y)),
    Sample("Sub", _SPECIAL_PAIRS, oracle=np.subtract, dtypes=FLOATS, grad=False, label="special"),
    *_binary("Mul", np.multiply, -3, 3),
    *_limits("Mul", _wrapping(lambda x, y: x * y)),
    Sample("Mul", _SPECIAL_PAIRS, oracle=np.multiply, dtypes=FLOATS, grad=False, label="special"),
    *_binary("Div", np.divide, -3, 3, away_from=0.0),
    Sample("Div", _SPECIAL_PAIRS, oracle=np.divide, dtypes=FLOATS, grad=False, label="special"),
    *_binary("FloorDiv", _quotient, -7, 7, away_from=0.0, dtypes=INTEGERS),
    Sample(
        "FloorDiv",
        [array([-7.0, 7.0, -7.5, 0.25]), array([2.0, -2.0, 0.5, 4.0])],
        oracle=lambda x, y: np.floor(x / y),
        dtypes=FLOATS,
        label="floats",
    ),
    *_binary("FloorMod", _remainder, -7, 7, away_from=0.0, dtypes=INTEGERS),
    Sample(
        "FloorMod",
        [array([-7.0, 7.0, -7.25, 0.25, 5.0]), array([2.0, -2.0, 0.5, 4.0, -3.0])],
        oracle=lambda x, y: x - np.floor(x / y) * y,
        dtypes=FLOATS,
        label="floats",
        grad=False,
    ),
    Sample(
        "FloorMod",
        [array([[-7.3], [5.2]]), array([[2.1, -3.4, 0.8]])],
        oracle=lambda x, y: x - np.floor(x / y) * y,
        dtypes=("float32", "float64"),
        label="fractions",
    ),
    *_binary("Pow", np.power, 0.5, 2.5, dtypes=INEXACT),
    Sample(
        "Pow",
        [whole((4, 5), -3, 3), whole((5,), 0, 3)],
        oracle=lambda x, y: np.power(x, y),
        dtypes=INTEGERS,
        label="integers",
    ),
    Sample(
        "Pow",
        [array([-2.0, -0.5, 0.0, 0.0, 2.0, 3.0]), array([3.0, -2.0, 0.0, 2.0, 0.0, 1.0])],
        oracle=np.power,
        dtypes=FLOATS,
        grad=False,
        label="signs",
    ),
    Sample(
        "Pow",
        [array([-2.0, -0.5, 1.5]), array([3.0, 2.0, 1.0], "float64")],
        oracle=np.power,
        dtypes=("float64",),
        grad=("x",),
        label="negative_base",
    ),
    *_binary("Maximum", np.maximum, -3, 3),
    Sample(
        "Maximum", _SPECIAL_PAIRS, oracle=np.maximum, dtypes=FLOATS, grad=False, label="special"
    ),
    *_binary("Minimum", np.minimum, -3, 3),
    Sample(
        "Minimum", _SPECIAL_PAIRS, oracle=np.minimum, dtypes=FLOATS, grad=False, label="special"
    ),
]

FUNCTIONS = [
    *_unary("Neg", np.negative, -3, 3),
    *_unary("Abs", np.abs, -3, 3, away_from=0.0),
    *_unary("Sign", np.sign, -3, 3, away_from=0.0),
    *_unary("Square", lambda x: x * x, -3, 3),
    *_unary("Sqrt", np.sqrt, 0.2, 4),
    Sample("Sqrt", [uniform((3, 4), -2, 2)], oracle=np.sqrt, dtypes=INEXACT[4:], label="plane"),
    *_unary("Exp", np.exp, -3, 3),
    Sample(
        "Exp",
        [array([-1e4, -50.0, 0.0, 50.0, 1e4])],
        oracle=np.exp,
        dtypes=("float32", "float64"),
        grad=False,
        label="large",
    ),
    *_unary("Log", np.log, 0.2, 4),
    Sample("Log", [uniform((3, 4), -2, 2)], oracle=np.log, dtypes=INEXACT[4:], label="plane"),
    *_unary("Log1p", np.log1p, -0.8, 3),
    Sample(
        "Log1p",
        [array([1e-10, -1e-7, 1e-5])],
        oracle=np.log1p,
        dtypes=("float32", "float64"),
        grad=False,
        label="small",
    ),
    *_unary("Sin", np.sin, -3, 3),
    *_unary("Cos", np.cos, -3, 3),
    *_unary("Tanh", np.tanh, -2, 2),
    *_unary("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), -4, 4),
    Sample(
        "Sigmoid",
        [array([-1e4, -80.0, 80.0, 1e4])],
        oracle=lambda x: np.where(x > 0, 1.0, 0.0),
        grad=False,
        label="large",
    ),
    *_unary("Conj", np.conj, -3, 3),
]

# Comparisons, on values of which many are equal.
_COMPARISONS: dict[str, Oracle] = {
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}
_EQUALITIES: dict[str, Oracle] = {"Equal": np.equal, "NotEqual": np.not_equal}
_LOGIC: dict[str, Oracle] = {
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalXor": np.logical_xor,
}

COMPARISONS = [
    row
    for op, oracle in {**_COMPARISONS, **_EQUALITIES}.items()
    for row in (
        Sample(op, [whole((4, 5), -2, 2), whole((4, 5), -2, 2)], oracle=oracle, label="same"),
        Sample(op, [whole((3, 1), -2, 2), whole((4,), -2, 2)], oracle=oracle, label="broadcast"),
        Sample(op, [whole((), 0, 1), whole((0, 2), 0, 1)], oracle=oracle, label="none"),
        Sample(op, _SPECIAL_PAIRS, oracle=oracle, dtypes=FLOATS, label="special"),
    )
] + [
    Sample(op, [strings((3, 4)), strings((4,))], oracle=oracle, label="strings")
    for op, oracle in _EQUALITIES.items()
]

LOGIC = [
    row
    for op, oracle in _LOGIC.items()
    for row in (
        Sample(op, [booleans((4, 5)), booleans((4, 5))], oracle=oracle, label="same"),
        Sample(op, [booleans((3, 1)), booleans((2, 1, 4))], oracle=oracle, label="broadcast"),
    )
] + [Sample("LogicalNot", [booleans((4, 5))], oracle=np.logical_not)]

SELECT = [
    Sample(
        "Select",
        [booleans((4, 5)), uniform((4, 5)), uniform((4, 5))],
        oracle=np.where,
        label="same",
    ),
    Sample(
        "Select",
        [booleans((3, 1)), uniform((2, 1, 4)), uniform(())],
        oracle=np.where,
        label="broadcast",
    ),
    Sample(
        "Select",
        [booleans((7,)), _SPECIAL, array([0.0] * 7)],
        oracle=np.where,
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
]


def _converted(x: Any, dtype: Any) -> Any:
    """Convert by truncation towards zero, comparison with zero, or dropping the imaginary part."""
    kind = dtypes.as_dtype(dtype)
    if kind.is_bool:
        return x != 0
    if not kind.is_complex and np.iscomplexobj(x):
        x = x.real
    return np.trunc(x).astype(np.int64) if kind.is_integer and x.dtype == np.float64 else x


CAST = [
    *(
        Sample(
            "Cast",
            [uniform((3, 4), 0, 100)],
            attrs={"dtype": target},
            oracle=_converted,
            dtypes=(*NUMERIC, "bool"),
            grad=target == "float64",
            label=target,
        )
        for target in (*NUMERIC, "bool")
    ),
    Sample(
        "Cast",
        [array([-2.7, -0.5, 0.0, 0.5, 2.7])],
        attrs={"dtype": "int32"},
        oracle=_converted,
        dtypes=FLOATS,
        grad=False,
        label="fractions",
    ),
    Sample(
        "Cast",
        [_SPECIAL],
        attrs={"dtype": "float32"},
        oracle=_converted,
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    Sample(
        "Cast",
        [array([-1, 255, 256, -128], "int64")],
        attrs={"dtype": "uint8"},
        oracle=lambda x, dtype: x,
        label="wrapping",
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Add",
        [integers((2,), 0, 9, "float32"), integers((2,), 0, 9, "int32")],
        error=DTypeError,
        match="neither holds every value",
        label="dtypes",
    ),
    Reject(
        "Add",
        [integers((2, 3), 0, 9), integers((2,), 0, 9)],
        error=ShapeError,
        match="broadcast",
        label="shapes",
    ),
    Reject("Exp", [integers((2,), 0, 9)], error=DTypeError, match="floating or complex, got int32"),
    Reject("Neg", [strings((2,))], error=DTypeError, match="numeric, got string"),
    Reject("Less", [array([1j], "complex64")] * 2, error=DTypeError, match="a real number"),
    Reject("LogicalAnd", [integers((2,), 0, 2)] * 2, error=DTypeError, match="bool, got int32"),
    Reject(
        "Select",
        [booleans((3,)), strings((3,)), integers((3,), 0, 9)],
        error=DTypeError,
        match="string",
    ),
    Reject("Cast", [strings((2,))], {"dtype": "int32"}, DTypeError, "strings are not converted"),
    Reject(
        "FloorDiv",
        [integers((2,), 1, 9), array([1, 0], "int32")],
        error=ExecutionError,
        match="(?i)zero",
        when="run",
    ),
    Reject(
        "FloorMod",
        [integers((2,), 1, 9), array([1, 0], "int32")],
        error=ExecutionError,
        match="(?i)zero",
        when="run",
    ),
    Reject(
        "Pow",
        [integers((2,), 1, 9), array([1, -1], "int32")],
        error=ExecutionError,
        match="(?i)negative",
        when="run",
    ),
]

SAMPLES: list[Row] = [*ARITHMETIC, *FUNCTIONS, *COMPARISONS, *LOGIC, *SELECT, *CAST, *REJECTS]
