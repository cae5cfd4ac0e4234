"""The functions of which scalar expressions are made: what every compiling backend should know.

All work on real numbers of one dtype, or on truth values, and mean what the op named beside each
means for one element: the same NaN, signed zeros and rounding.
"""

from __future__ import annotations

from headrace.dtypes import DType
from headrace.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFunction:
    """A function of scalars.

    Attributes:
        name: How expressions call it.
        op: The type of the op that computes it for tensors; empty for a function that is no op by
            itself, which array modules have under the same name.
        takes: The kinds of dtypes that its arguments may have. They share one dtype, but for the
            condition of ``where``.
        arity: How many arguments it takes.
        tests: Whether it yields a truth value rather than the dtype of its last argument.
    """

    name: str
    op: str
    takes: frozenset[str]
    arity: int = 1
    tests: bool = False

    def accepts(self, dtype: DType) -> bool:
        """Whether it takes arguments of a dtype."""
        return dtype.kind in self.takes


_FLOAT = frozenset({"float"})
_REAL = frozenset({"float", "int", "uint"})
_INTEGER = frozenset({"int", "uint"})
_BOOL = frozenset({"bool"})
_ANY = _REAL | _BOOL

SCALAR_FUNCTIONS: dict[str, ScalarFunction] = {
    function.name: function
    for function in (
        ScalarFunction("add", "Add", _REAL, 2),
        ScalarFunction("subtract", "Sub", _REAL, 2),
        ScalarFunction("multiply", "Mul", _REAL, 2),
        ScalarFunction("divide", "Div", _FLOAT, 2),
        ScalarFunction("negative", "Neg", _REAL),
        ScalarFunction("abs", "Abs", _REAL),
        ScalarFunction("maximum", "Maximum", _REAL, 2),
        ScalarFunction("minimum", "Minimum", _REAL, 2),
        ScalarFunction("floor", "Floor", _FLOAT),
        ScalarFunction("ceil", "Ceil", _FLOAT),
        ScalarFunction("rint", "Rint", _FLOAT),
        ScalarFunction("trunc", "", _FLOAT),
        ScalarFunction("sqrt", "Sqrt", _FLOAT),
        ScalarFunction("equal", "Equal", _ANY, 2, tests=True),
        ScalarFunction("not_equal", "NotEqual", _ANY, 2, tests=True),
        ScalarFunction("less", "Less", _REAL, 2, tests=True),
        ScalarFunction("less_equal", "LessEqual", _REAL, 2, tests=True),
        ScalarFunction("greater", "Greater", _REAL, 2, tests=True),
        ScalarFunction("greater_equal", "GreaterEqual", _REAL, 2, tests=True),
        ScalarFunction("logical_and", "LogicalAnd", _BOOL, 2, tests=True),
        ScalarFunction("logical_or", "LogicalOr", _BOOL, 2, tests=True),
        ScalarFunction("logical_xor", "LogicalXor", _BOOL, 2, tests=True),
        ScalarFunction("logical_not", "LogicalNot", _BOOL, tests=True),
        ScalarFunction("bitwise_and", "BitwiseAnd", _INTEGER, 2),
        ScalarFunction("bitwise_or", "BitwiseOr", _INTEGER, 2),
        ScalarFunction("bitwise_xor", "BitwiseXor", _INTEGER, 2),
        ScalarFunction("invert", "Invert", _INTEGER),
        ScalarFunction("left_shift", "LeftShift", _INTEGER, 2),
        ScalarFunction("right_shift", "RightShift", _INTEGER, 2),
        ScalarFunction("where", "Select", _ANY, 3),
        ScalarFunction("cast", "Cast", _ANY),
        ScalarFunction("exp", "Exp", _FLOAT),
        ScalarFunction("expm1", "Expm1", _FLOAT),
        ScalarFunction("log", "Log", _FLOAT),
        ScalarFunction("log1p", "Log1p", _FLOAT),
        ScalarFunction("pow", "Pow", _FLOAT, 2),
        ScalarFunction("sigmoid", "Sigmoid", _FLOAT),
        ScalarFunction("erf", "Erf", _FLOAT),
        ScalarFunction("erfc", "Erfc", _FLOAT),
        ScalarFunction("erfinv", "Erfinv", _FLOAT),
        ScalarFunction("ndtri", "Ndtri", _FLOAT),
        ScalarFunction("lgamma", "Lgamma", _FLOAT),
        ScalarFunction("digamma", "Digamma", _FLOAT),
        ScalarFunction("polygamma", "Polygamma", _FLOAT, 2),
        ScalarFunction("zeta", "Zeta", _FLOAT, 2),
        ScalarFunction("igamma", "Igamma", _FLOAT, 2),
        ScalarFunction("igammac", "Igammac", _FLOAT, 2),
        ScalarFunction("igamma_grad_a", "IgammaGradA", _FLOAT, 2),
        ScalarFunction("betainc", "Betainc", _FLOAT, 3),
        ScalarFunction("bessel_i0", "BesselI0", _FLOAT),
        ScalarFunction("bessel_i0e", "BesselI0e", _FLOAT),
        ScalarFunction("bessel_i1", "BesselI1", _FLOAT),
        ScalarFunction("bessel_i1e", "BesselI1e", _FLOAT),
        ScalarFunction("sin", "Sin", _FLOAT),
        ScalarFunction("cos", "Cos", _FLOAT),
        ScalarFunction("tan", "Tan", _FLOAT),
        ScalarFunction("asin", "Asin", _FLOAT),
        ScalarFunction("acos", "Acos", _FLOAT),
        ScalarFunction("atan", "Atan", _FLOAT),
        ScalarFunction("atan2", "Atan2", _FLOAT, 2),
        ScalarFunction("sinh", "Sinh", _FLOAT),
        ScalarFunction("cosh", "Cosh", _FLOAT),
        ScalarFunction("tanh", "Tanh", _FLOAT),
        ScalarFunction("asinh", "Asinh", _FLOAT),
        ScalarFunction("acosh", "Acosh", _FLOAT),
        ScalarFunction("atanh", "Atanh", _FLOAT),
    )
}
