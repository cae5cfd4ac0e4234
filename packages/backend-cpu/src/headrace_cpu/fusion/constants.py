"""Facts about kernels that many modules go by."""

from __future__ import annotations

# Words of a block that the runtime uses: addresses of OpenMP's functions, 0 where a kernel runs on
# one thread, and the number of the check that failed.
COUNT_WORD, THREAD_WORD, BARRIER_WORD, REPORT_WORD, FIRST_WORD = range(5)
# Scalar functions that `headrace_cpu.fusion.functions` has; it is imported to compile only.
ELEMENTARY = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e",
        "bessel_i1", "bessel_i1e", "betainc", "cos", "cosh", "digamma", "erf", "erfc", "erfinv",
        "exp", "expm1", "igamma", "igamma_grad_a", "igammac", "lgamma", "log", "log1p", "ndtri",
        "polygamma", "pow", "sigmoid", "sin", "sinh", "tan", "tanh", "zeta",
    }
)  # fmt: skip
# Those of one number with f(-x) = -f(x), bit for bit.
ODD = frozenset(
    {
        "asin", "asinh", "atan", "atanh", "bessel_i1", "bessel_i1e", "erf", "erfinv", "sin",
        "sinh", "tan", "tanh",
    }
)  # fmt: skip
