"""The table of implementations: who may compute which operations, in which order.

Generated kernels come after all of them and take what is left.
"""

from __future__ import annotations

from headrace_cpu.for_backends import Matcher
from headrace_cuda.convolution import match as convolution
from headrace_cuda.gathering import match as gathering
from headrace_cuda.matmul import match as matmul
from headrace_cuda.matmul import match_convolution as flat
from headrace_cuda.pooling import match as pooling
from headrace_cuda.scattering import match as scattering

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
    Matcher(
        name="gather",
        priority=20,
        types=gathering.GATHERED,
        wants=gathering.wants,
        make=gathering.make,
    ),
    Matcher(
        name="add rows",
        priority=10,
        types=scattering.SCATTERED,
        wants=scattering.wants,
        make=scattering.make,
    ),
)
