"""The table of implementations: who may compute which operations, in which order.

Generated kernels come after all of them and take what is left.
"""

from __future__ import annotations

from headrace_cpu.program.matching import Matcher
from headrace_cuda.matmul import match as matmul

MATCHERS = (
    Matcher(
        name="matmul",
        priority=40,
        types=matmul.MATMULS,
        wants=matmul.wants,
        make=matmul.make,
    ),
)
