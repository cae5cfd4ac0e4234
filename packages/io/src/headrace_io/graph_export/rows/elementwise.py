"""Arithmetic, comparisons and other operations that work element by element."""

from __future__ import annotations

import headrace as hr
from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same(
    "Abs Acos Acosh Add Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e Betainc BitwiseAnd "
    "BitwiseOr BitwiseXor Ceil Cos Cosh Digamma Div DivNoNan Erf Erfc Exp Expm1 Floor "
    "FloorDiv FloorMod Greater GreaterEqual Igamma Igammac IgammaGradA Invert IsFinite IsInf "
    "IsNan LeftShift Less LessEqual Lgamma Log Log1p Maximum Minimum Mul MulNoNan Neg NextAfter "
    "Polygamma PopulationCount Pow Reciprocal Relu RightShift Rint Rsqrt Sigmoid Sign Sin Sinh "
    "Softplus Sqrt Square Sub Tan Tanh TruncateMod Xdivy Xlogy Zeta Equal NotEqual "
    "Identity L2Loss StopGradient InvertPermutation"
)
ROWS.same("LogicalAnd LogicalOr LogicalNot", types="")
ROWS.same("CheckNumerics", attrs="message")
ROWS.same("Bitcast", attrs="type")
ROWS.same("Cast", types="SrcT", attrs="DstT=dtype")
ROWS.same("Select", "SelectV2", types="- T")


@ROWS.add("Conj")
def _conj(node: ExportedNode) -> str:
    kind = "Conj" if node.dtype().is_complex else "Identity"
    return node.emit(kind, *node.inputs, T=node.dtype())


@ROWS.add("TruncateDiv")
def _truncate_div(node: ExportedNode) -> str:
    if not node.dtype().is_integer:
        raise node.refused(f"of {node.dtype().name} TensorFlow's gives the quotient as it is")
    return node.emit("TruncateDiv", *node.inputs, T=node.dtype())


@ROWS.add("LogicalXor")
def _logical_xor(node: ExportedNode) -> str:
    return node.emit("NotEqual", *node.inputs, T=hr.bool)


@ROWS.add("AddN")
def _add_n(node: ExportedNode) -> str:
    return node.emit("AddN", *node.inputs, N=len(node.inputs), T=node.dtype())


@ROWS.add("IdentityN")
def _identity_n(node: ExportedNode) -> list[str]:
    made = node.emit("IdentityN", *node.inputs, T=[t.dtype for t in node.op.inputs])
    return [made, *(f"{made}:{i}" for i in range(1, len(node.inputs)))]


@ROWS.add("Complex", "ComplexAbs", "Real", "Imag", "Angle")
def _complex(node: ExportedNode) -> str:
    tout = node.op.outputs[0].dtype
    return node.emit(node.op.type, *node.inputs, T=node.dtype(), Tout=tout)
