"""Elementary functions that loops over arrays vectorise, for generated kernels.

Each is straight-line code that LLVM's loop vectoriser widens, with NumPy's results for NaN,
infinities, signed zeros and subnormal numbers. Kernels that use them must not be compiled with
`fastmath`, which would undo the compensated sums. Their errors are in the reference.

``WRITTEN`` has what writes their instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from headrace_cpu.fusion.functions import (
    bessel,
    error_function,
    exponential,
    gamma,
    incomplete,
    inverse_trig,
    logarithm,
    power,
    quantile,
    selection,
    trigonometric,
    zeta,
)
from headrace_cpu.fusion.functions.emitter import FLOAT32, FLOAT64, Value

# Writes the instructions of one function of one or two numbers.
Written: TypeAlias = Callable[..., Value]

_DTYPES = (FLOAT32.dtype, FLOAT64.dtype)

# Each op's function, how many numbers it takes, and about how many instructions it has for each of
# the dtypes float32 and float64.
_WRITTEN: dict[str, tuple[Written, int, int, int]] = {
    "Abs": (selection.absolute, 1, 1, 1),
    "Acos": (inverse_trig.acos, 1, 30, 70),
    "Acosh": (logarithm.acosh, 1, 85, 110),
    "Asin": (inverse_trig.asin, 1, 26, 70),
    "Asinh": (logarithm.asinh, 1, 100, 120),
    "Atan": (inverse_trig.atan, 1, 36, 50),
    "Atan2": (inverse_trig.atan2, 2, 65, 80),
    "Atanh": (logarithm.atanh, 1, 85, 110),
    "Betainc": (incomplete.betainc, 3, 1500, 1500),
    "BesselI0": (bessel.bessel_i0, 1, 80, 120),
    "BesselI0e": (bessel.bessel_i0e, 1, 50, 90),
    "BesselI1": (bessel.bessel_i1, 1, 80, 120),
    "BesselI1e": (bessel.bessel_i1e, 1, 50, 90),
    "Ceil": (selection.ceil, 1, 1, 1),
    "Cos": (trigonometric.cos, 1, 42, 42),
    "Cosh": (exponential.cosh, 1, 42, 60),
    "Digamma": (gamma.digamma, 1, 75, 110),
    "DivNoNan": (selection.divide_no_nan, 2, 8, 16),
    "Erf": (error_function.erf, 1, 45, 130),
    "Erfc": (error_function.erfc, 1, 95, 130),
    "Erfinv": (quantile.erfinv, 1, 80, 130),
    "Exp": (exponential.exp, 1, 30, 36),
    "Expm1": (exponential.expm1, 1, 30, 35),
    "Floor": (selection.floor, 1, 1, 1),
    "FloorDiv": (selection.floor_divide, 2, 8, 16),
    "Igamma": (incomplete.igamma, 2, 800, 800),
    "IgammaGradA": (incomplete.igamma_grad_a, 2, 800, 800),
    "Igammac": (incomplete.igammac, 2, 800, 800),
    "IsFinite": (selection.is_finite, 1, 2, 2),
    "IsInf": (selection.is_infinite, 1, 2, 2),
    "IsNan": (selection.is_nan, 1, 1, 1),
    "Lgamma": (gamma.lgamma, 1, 75, 120),
    "Log": (logarithm.log, 1, 40, 50),
    "Log1p": (logarithm.log1p, 1, 45, 60),
    "Maximum": (selection.maximum, 2, 3, 3),
    "Minimum": (selection.minimum, 2, 3, 3),
    "MulNoNan": (selection.multiply_no_nan, 2, 3, 3),
    "Ndtri": (quantile.ndtri, 1, 85, 135),
    "Polygamma": (zeta.polygamma, 2, 150, 200),
    "Pow": (power.power, 2, 180, 160),
    "Reciprocal": (selection.reciprocal, 1, 8, 16),
    "Relu": (selection.relu, 1, 1, 1),
    "Rint": (selection.rint, 1, 1, 1),
    "Rsqrt": (selection.rsqrt, 1, 20, 40),
    "Sigmoid": (exponential.sigmoid, 1, 50, 60),
    "Sign": (selection.sign, 1, 6, 6),
    "Sin": (trigonometric.sin, 1, 42, 42),
    "Sinh": (exponential.sinh, 1, 55, 70),
    "Softplus": (logarithm.softplus, 1, 75, 95),
    "Sqrt": (selection.sqrt, 1, 12, 24),
    "Square": (selection.square, 1, 1, 1),
    "Tan": (trigonometric.tan, 1, 50, 48),
    "Tanh": (exponential.tanh, 1, 45, 60),
    "TruncateDiv": (selection.truncate_divide, 2, 8, 16),
    "Xdivy": (selection.xdivy, 2, 9, 17),
    "Xlogy": (power.xlogy, 2, 41, 51),
    "Zeta": (zeta.zeta, 2, 2500, 2500),
}

# From the type of an op and the name of a dtype to what writes the instructions that compute it.
WRITTEN: Mapping[tuple[str, str], Written] = MappingProxyType(
    {(op, dtype): written for op, (written, *_) in _WRITTEN.items() for dtype in _DTYPES}
)

# From the same to about how many floating-point additions one element costs, in time.
COST: Mapping[tuple[str, str], int] = MappingProxyType(
    {
        (op, dtype): cost
        for op, (_, _, *costs) in _WRITTEN.items()
        for dtype, cost in zip(_DTYPES, costs, strict=True)
    }
)

__all__ = ["COST", "WRITTEN"]
