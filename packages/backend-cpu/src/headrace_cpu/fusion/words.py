"""Facts about kernels that many modules go by."""

from __future__ import annotations

# Words of a block that the runtime uses: addresses of OpenMP's functions, 0 where a kernel runs on
# one thread, and the number of the check that failed.
COUNT_WORD, THREAD_WORD, BARRIER_WORD, REPORT_WORD, FIRST_WORD = range(5)
# Buffers that a kernel can tell apart.
MAX_BUFFERS = 48
# Functions that `headrace_cpu.fusion.functions` has; it is imported to compile only.
ELEMENTARY = frozenset(
    {
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos", "Cosh", "Erf", "Erfc",
        "Exp", "Expm1", "Log", "Log1p", "Pow", "Sigmoid", "Sin", "Sinh", "Tan", "Tanh",
    }
)  # fmt: skip
