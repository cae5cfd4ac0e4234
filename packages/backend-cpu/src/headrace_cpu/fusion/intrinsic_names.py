"""What is known of kernels without importing numba."""

from __future__ import annotations

# Words of a block that the runtime uses: addresses of OpenMP's functions, 0 where a kernel runs on
# one thread, and the number of the check that failed.
COUNT_WORD, THREAD_WORD, BARRIER_WORD, REPORT_WORD, FIRST_WORD = range(5)
# Buffers that a kernel can tell apart.
MAX_BUFFERS = 48
# Where the names come from that kernels use.
ENVIRONMENT = ("headrace_cpu.fusion.intrinsics", "headrace_cpu.fusion.functions")
# Functions that `headrace_cpu.fusion.functions` has, which imports numba.
ELEMENTARY = frozenset({"Exp", "Expm1", "Log", "Log1p", "Sigmoid", "Tanh"})
