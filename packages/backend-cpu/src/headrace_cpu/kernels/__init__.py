"""Kernels of the cpu device, in tables that packages of other array modules can take, too.

``ARRAY_KERNELS`` are functions of an array module like NumPy, and ``STATE_KERNELS`` keep arrays of
such a module in variables. ``random_kernels`` makes kernels upon a device's random bits.
"""

from __future__ import annotations

from headrace.extend.kernels import Kernel
from headrace_cpu.kernels import (
    activation,
    array,
    bits,
    candidate_sampling,
    checks,
    complex,
    constant,
    conv,
    conversion,
    ctc,
    cumulative,
    decompositions,
    edit_distance,
    elementwise,
    fourier,
    gather,
    histogram,
    identity,
    image,
    indexing,
    joining,
    linalg,
    matrix_functions,
    nn,
    padding,
    pool,
    quantization,
    quantized,
    random,
    rearrange,
    reduce,
    report,
    sampling,
    segment,
    solving,
    sort,
    sparse,
    special,
    state,
    stateless,
    tensor_list,
    transcendental,
    unique,
)

ARRAY_KERNELS: tuple[Kernel, ...] = (
    *elementwise.KERNELS,
    *transcendental.KERNELS,
    *special.KERNELS,
    *activation.KERNELS,
    *complex.KERNELS,
    *conversion.KERNELS,
    *bits.KERNELS,
    *checks.KERNELS,
    *reduce.KERNELS,
    *segment.KERNELS,
    *histogram.KERNELS,
    *unique.KERNELS,
    *sort.KERNELS,
    *cumulative.KERNELS,
    *fourier.KERNELS,
    *array.KERNELS,
    *identity.KERNELS,
    *joining.KERNELS,
    *padding.KERNELS,
    *gather.KERNELS,
    *edit_distance.KERNELS,
    *rearrange.KERNELS,
    *sparse.KERNELS,
    *constant.KERNELS,
    *indexing.KERNELS,
    *linalg.KERNELS,
    *decompositions.KERNELS,
    *solving.KERNELS,
    *matrix_functions.KERNELS,
    *sampling.KERNELS,
    *nn.KERNELS,
    *ctc.KERNELS,
    *conv.KERNELS,
    *pool.KERNELS,
    *quantization.KERNELS,
    *quantized.KERNELS,
    *image.KERNELS,
    *candidate_sampling.ARRAY_KERNELS,
)
STATE_KERNELS: tuple[Kernel, ...] = (
    *state.KERNELS,
    *indexing.STATE_KERNELS,
    *tensor_list.KERNELS,
    *candidate_sampling.KERNELS,
)
# Kernels that prepare something for each node, for any array module.
PREPARED_KERNELS: tuple[Kernel, ...] = (
    *candidate_sampling.PREPARED_KERNELS,
    *indexing.PREPARED_KERNELS,
)
# Kernels that NumPy alone can run, of families that most programs use some of.
HOST_KERNELS: tuple[Kernel, ...] = (
    *decompositions.HOST_KERNELS,
    *matrix_functions.HOST_KERNELS,
    *report.KERNELS,
)


def random_kernels(random_bits: random.RandomBits) -> tuple[Kernel, ...]:
    """Return the kernels of random ops, upon a device's random bits."""
    return (
        *random.kernels(random_bits),
        *sampling.kernels(random_bits),
        *stateless.kernels(random_bits),
    )


# All that the cpu device has, but for the families in ``rare``.
CPU_KERNELS: tuple[Kernel, ...] = (
    *ARRAY_KERNELS,
    *STATE_KERNELS,
    *PREPARED_KERNELS,
    *HOST_KERNELS,
    *random_kernels(random.host_bits),
)
