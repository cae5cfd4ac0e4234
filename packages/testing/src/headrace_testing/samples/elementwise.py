"""Samples of elementwise ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array, booleans, integers, strings, uniform, whole
from headrace_testing.sample import Reject, Row, Sample

FLOATS = ("float16", "bfloat16", "float32", "float64")
INEXACT = (*FLOATS, "complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
COMPLEX = INEXACT[4:]
NUMERIC = (*INEXACT, *INTEGERS)
# Integers that floats hold exactly.
NARROW = tuple(name for name in INTEGERS if "64" not in name)

Oracle = Callable[..., Any]
_NAN, _INF = float("nan"), float("inf")
SPECIAL = array([_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -1.0])


def pairs(values: list[float]) -> tuple[Input, Input]:
    """Return two vectors in which each value meets each other one."""
    left, right = np.meshgrid(values, values)
    return array(left.ravel()), array(right.ravel())


SPECIAL_PAIRS = pairs([_NAN, _INF, -_INF, 0.0, -0.0, 1.0, -2.0])


def unary(op: str, oracle: Oracle, low: float, high: float, **options: Any) -> list[Sample]:
    """Return a typical sample of a function of one tensor, and one of special values.

    Args:
        op: The op.
        oracle: What it computes.
        low: The lower bound of typical values.
        high: The upper bound.
        **options: Of the typical sample; ``away_from``, and ``special``, an oracle that is right
            for special values where ``oracle`` is not.
    """
    away = options.pop("away_from", None)
    special = options.pop("special", oracle)
    typical = Sample(op, [uniform((4, 5), low, high, away_from=away)], oracle=oracle, **options)
    edges = Sample(op, [SPECIAL], oracle=special, dtypes=FLOATS, grad=False, label="special")
    return [typical, edges]


def binary(op: str, oracle: Oracle, low: float, high: float, **options: Any) -> list[Sample]:
    """Return samples of a function of two tensors: one shape, and shapes that broadcast."""
    away = options.pop("away_from", None)

    def pair(*shapes: tuple[int, ...]) -> list[Input]:
        return [uniform(shape, low, high, away_from=away) for shape in shapes]

    label = options.pop("label", "")
    tail = f"-{label}" if label else ""
    return [
        Sample(op, pair((4, 5), (4, 5)), oracle=oracle, label=f"same{tail}", **options),
        Sample(op, pair((3, 1, 4), (2, 1)), oracle=oracle, label=f"broadcast{tail}", **options),
        Sample(op, pair((1,), (0, 2)), oracle=oracle, label=f"none{tail}", **options),
    ]


def limits(op: str, oracle: Oracle) -> list[Sample]:
    """Return samples at the ends of the ranges of integers, where results wrap around."""
    rows = []
    for name in ("int8", "int64", "uint8", "uint64"):
        dtype = hr.as_dtype(name)
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
    *binary("Add", np.add, -3, 3),
    *limits("Add", _wrapping(lambda x, y: x + y)),
    Sample("Add", SPECIAL_PAIRS, oracle=np.add, dtypes=FLOATS, grad=False, label="special"),
    *binary("Sub", np.subtract, -3, 3),
    *limits("Sub", _wrapping(lambda x, y: x - y)),
    Sample("Sub", SPECIAL_PAIRS, oracle=np.subtract, dtypes=FLOATS, grad=False, label="special"),
    *binary("Mul", np.multiply, -3, 3),
    *limits("Mul", _wrapping(lambda x, y: x * y)),
    Sample("Mul", SPECIAL_PAIRS, oracle=np.multiply, dtypes=FLOATS, grad=False, label="special"),
    *binary("Div", np.divide, -3, 3, away_from=0.0),
    Sample("Div", SPECIAL_PAIRS, oracle=np.divide, dtypes=FLOATS, grad=False, label="special"),
    *binary("FloorDiv", _quotient, -7, 7, away_from=0.0, dtypes=INTEGERS),
    Sample(
        "FloorDiv",
        [array([-7.0, 7.0, -7.5, 0.25]), array([2.0, -2.0, 0.5, 4.0])],
        oracle=lambda x, y: np.floor(x / y),
        dtypes=FLOATS,
        label="floats",
    ),
    *binary("FloorMod", _remainder, -7, 7, away_from=0.0, dtypes=INTEGERS),
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
    *binary("TruncateDiv", lambda x, y: np.trunc(x / y), -7, 7, away_from=0.0, dtypes=NARROW),
    Sample(
        "TruncateDiv",
        [array([-7.0, 7.0, -7.5, 0.25]), array([2.0, -2.0, 0.5, 4.0])],
        oracle=lambda x, y: np.trunc(x / y),
        dtypes=FLOATS,
        label="floats",
    ),
    Sample(
        "TruncateDiv",
        [array([2**62 + 1, -(2**62) - 1, -(2**63) + 1], "int64"), array([3, 3, 2], "int64")],
        oracle=lambda x, y: np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y)),
        label="wide",
    ),
    *binary("TruncateMod", np.fmod, -7, 7, away_from=0.0, dtypes=INTEGERS),
    Sample(
        "TruncateMod",
        [array([[-7.3], [5.2]]), array([[2.1, -3.4, 0.8]])],
        oracle=lambda x, y: x - np.trunc(x / y) * y,
        dtypes=("float32", "float64"),
        label="fractions",
    ),
    *binary("MulNoNan", np.multiply, -3, 3),
    Sample(
        "MulNoNan",
        SPECIAL_PAIRS,
        oracle=lambda x, y: np.where(y == 0, 0, x * y),
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    *binary("DivNoNan", np.divide, -3, 3, away_from=0.0),
    Sample(
        "DivNoNan",
        SPECIAL_PAIRS,
        oracle=lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)),
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    Sample(
        "AddN",
        [[uniform((3, 4)), uniform((3, 4)), uniform((3, 4))]],
        oracle=lambda arrays: arrays[0] + arrays[1] + arrays[2],
    ),
    Sample("AddN", [[uniform((2,))]], oracle=lambda arrays: arrays[0], label="one"),
    Sample("AddN", [[uniform((0, 2)), uniform((0, 2))]], oracle=sum, label="none"),
    *binary("Pow", np.power, 0.5, 2.5, dtypes=INEXACT),
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
    *binary("NextAfter", np.nextafter, -3, 3, dtypes=("float64",), grad=False),
    Sample(
        "NextAfter",
        [
            array([0.0, 1.0, 1.0, _INF, _NAN], "float32"),
            array([1.0, 0.0, 1.0, 0.0, 1.0], "float32"),
        ],
        oracle=lambda x1, x2: np.nextafter(x1.astype(np.float32), x2.astype(np.float32)),
        label="float32",
        tolerance=0.0,
    ),
    *binary("Maximum", np.maximum, -3, 3),
    Sample("Maximum", SPECIAL_PAIRS, oracle=np.maximum, dtypes=FLOATS, grad=False, label="special"),
    *binary("Minimum", np.minimum, -3, 3),
    Sample("Minimum", SPECIAL_PAIRS, oracle=np.minimum, dtypes=FLOATS, grad=False, label="special"),
]

FUNCTIONS = [
    *unary("Neg", np.negative, -3, 3),
    *unary("Abs", np.abs, -3, 3, away_from=0.0),
    *unary("Sign", np.sign, -3, 3, away_from=0.0),
    *unary("Square", lambda x: x * x, -3, 3),
    *unary("Reciprocal", lambda x: 1 / x, 0.3, 3),
    *unary("Conj", np.conj, -3, 3),
    *unary("Floor", np.floor, -3, 3),
    *unary("Ceil", np.ceil, -3, 3),
    *unary("Rint", np.rint, -3, 3),
    Sample(
        "Rint", [array([-1.5, -0.5, 0.5, 1.5, 2.5])], oracle=np.rint, dtypes=FLOATS, label="halves"
    ),
    *unary("IsNan", np.isnan, -3, 3),
    *unary("IsInf", np.isinf, -3, 3),
    *unary("IsFinite", np.isfinite, -3, 3),
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
        Sample(op, SPECIAL_PAIRS, oracle=oracle, dtypes=FLOATS, label="special"),
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
        [booleans((7,)), SPECIAL, array([0.0] * 7)],
        oracle=np.where,
        dtypes=FLOATS,
        grad=False,
        label="special",
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
    Reject("Neg", [strings((2,))], error=DTypeError, match="numeric, got string"),
    Reject("Less", [array([1j], "complex64")] * 2, error=DTypeError, match="a real number"),
    Reject("LogicalAnd", [integers((2,), 0, 2)] * 2, error=DTypeError, match="bool, got int32"),
    Reject(
        "Select",
        [booleans((3,)), strings((3,)), integers((3,), 0, 9)],
        error=DTypeError,
        match="string",
    ),
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
        "TruncateDiv",
        [integers((2,), 1, 9), array([1, 0], "int32")],
        error=ExecutionError,
        match="(?i)zero",
        when="run",
    ),
    Reject(
        "TruncateMod",
        [integers((2,), 1, 9), array([1, 0], "int32")],
        error=ExecutionError,
        match="(?i)zero",
        when="run",
    ),
    Reject(
        "NextAfter", [array([1.0], "float16")] * 2, error=DTypeError, match="float32 or float64"
    ),
    Reject("Floor", [integers((2,), 1, 9)], error=DTypeError, match="floating, got int32"),
    Reject(
        "AddN",
        [[integers((2, 3), 0, 9), integers((3,), 0, 9)]],
        error=ShapeError,
        match="one shape",
    ),
    Reject(
        "Pow",
        [integers((2,), 1, 9), array([1, -1], "int32")],
        error=ExecutionError,
        match="(?i)negative",
        when="run",
    ),
]

SAMPLES: list[Row] = [*ARITHMETIC, *FUNCTIONS, *COMPARISONS, *LOGIC, *SELECT, *REJECTS]
