"""The table of implementations: who may compute which operations, in which order.

Generated kernels come after all of them and take what is left.
"""

from __future__ import annotations

from headrace_cpu.for_backends import Matcher
from headrace_cuda.convolution import match as convolution
from headrace_cuda.matmul import match as matmul
from headrace_cuda.matmul import match_convolution as flat
from headrace_cuda.pooling import match as pooling

MATCHERS: tuple[Matcher, ...] = (
    # Before cuDNN, for which filters have to be transposed.
    Matcher(
        name="flat convolution",
        priority=60,
        types=convolution.CONVOLUTIONS,
        wants=flat.wants,
        make=flat.make,
    ),
    Matcher(
        name="convolution",
        priority=50,
        types=convolution.CONVOLUTIONS,
        wants=convolution.wants,
        make=convolution.make,
    ),
    Matcher(
        name="matmul",
        priority=40,
        types=matmul.MATMULS,
        wants=matmul.wants,
        make=matmul.make,
    ),
    Matcher(
        name="pool",
        priority=30,
        types=pooling.POOLED,
        wants=pooling.wants,
        make=pooling.make,
    ),
)
