"""Translations of arithmetic, comparisons and other ops that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr

ROWS = TranslationTable()


def same(name: str) -> Callable[..., Any]:
    """Return the function that adds a node of the op ``name``."""

    def build(*inputs: Any, **attrs: Any) -> Any:
        return call_op(name, *inputs, **attrs)

    return build


# Ops that are the same here, name and inputs.
for _name in (
    *("Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BesselI0e"),
    *("BesselI1e", "Betainc", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Ceil", "Cos", "Cosh"),
    *("Digamma", "DivNoNan", "Erf", "Erfc", "Exp", "Expm1", "Floor", "FloorDiv", "FloorMod"),
    *("Greater", "GreaterEqual", "Igamma", "IgammaGradA", "Igammac", "Invert", "IsFinite", "IsInf"),
    *("IsNan", "LeftShift", "Less", "LessEqual", "Lgamma", "Log", "Log1p", "LogicalAnd"),
    *("LogicalNot", "LogicalOr", "NextAfter", "Polygamma", "PopulationCount", "Pow", "Reciprocal"),
    *("RightShift", "Rint", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Sub"),
    *("Tan", "Tanh", "TruncateDiv", "TruncateMod", "Xdivy", "Xlogy", "Zeta", "Conj"),
):
    ROWS.call(_name, same(_name))
for _name, _function in (
    ("AddV2", hr.add),
    ("Mul", hr.multiply),
    ("MulNoNan", hr.math.multiply_no_nan),
    ("Neg", hr.negative),
    ("Maximum", hr.maximum),
    ("Minimum", hr.minimum),
    ("Round", hr.round),
    ("SquaredDifference", hr.squared_difference),
    ("Inv", hr.reciprocal),
    ("ClipByValue", hr.clip_by_value),
    ("Select", hr.where),
    ("SelectV2", hr.where_v2),
    ("Cross", hr.cross),
):
    ROWS.call(_name, _function)
# The remainder of C, not that of Python.
ROWS.call("Mod", same("TruncateMod"))
ROWS.call("AddN", hr.add_n, listed=True)
ROWS.call("AccumulateNV2", hr.add_n, listed=True, ignored="shape")
ROWS.call("ApproximateEqual", hr.approximate_equal, "tolerance")
ROWS.call("Bitcast", hr.bitcast, "type")
ROWS.call("Cast", hr.cast, "DstT=dtype", ignored="Truncate")
ROWS.call("CheckNumerics", hr.check_numerics, "message")
for _name, _function in (
    ("Complex", hr.complex),
    ("ComplexAbs", hr.abs),
    ("Real", hr.real),
    ("Imag", hr.imag),
    ("Angle", hr.angle),
):
    ROWS.call(_name, _function)


@ROWS.add("Div", "RealDiv")
def _div(node: Any) -> Any:
    # Of integers the quotient of C, as their kernels have it.
    whole = node.tensor(0).dtype.is_integer
    return hr.truncatediv(*node.tensors) if whole else hr.realdiv(*node.tensors)


@ROWS.add("Equal", "NotEqual")
def _equal(node: Any) -> Any:
    x, y = node.tensors
    checked = node.attr("incompatible_shape_error", True)
    if not checked and not _may_broadcast(x.shape, y.shape):
        return hr.constant(node.op == "NotEqual")
    return call_op(node.op, x, y)


def _may_broadcast(x: Any, y: Any) -> bool:
    if x.rank is None or y.rank is None:
        return True
    pairs = zip(reversed(x.as_list()), reversed(y.as_list()), strict=False)
    return all(a == b or a in (1, None) or b in (1, None) for a, b in pairs)


@ROWS.add("InvGrad", "ReciprocalGrad")
def _reciprocal_grad(node: Any) -> Any:
    y, dy = node.tensors
    return -dy * hr.conj(y * y)


@ROWS.add("SigmoidGrad")
def _sigmoid_grad(node: Any) -> Any:
    y, dy = node.tensors
    y = hr.conj(y)
    return dy * y * (1 - y)


@ROWS.add("TanhGrad")
def _tanh_grad(node: Any) -> Any:
    y, dy = node.tensors
    return dy * (1 - hr.square(hr.conj(y)))


@ROWS.add("SqrtGrad")
def _sqrt_grad(node: Any) -> Any:
    y, dy = node.tensors
    return dy * hr.cast(0.5, y.dtype) / hr.conj(y)


@ROWS.add("RsqrtGrad")
def _rsqrt_grad(node: Any) -> Any:
    y, dy = node.tensors
    y = hr.conj(y)
    return dy * hr.cast(-0.5, y.dtype) * y * y * y
