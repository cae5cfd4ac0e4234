"""Kernels of functions of matrices.

References:
    N. J. Higham, The scaling and squaring method for the matrix exponential revisited, SIAM
    Journal on Matrix Analysis and Applications 26, 2005, https://doi.org/10.1137/04061101X
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.decompositions import blotted, check_square, set_apart
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()
# Logarithms and square roots are made of Schur decompositions, which GPUs lack.
HOST_KERNELS = KernelTable()

# Higham's coefficients of the Padé approximant of degree 13, and the norm up to which its error is
# below the rounding of float64.
_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_LIMIT = 5.371920351148152
# Beyond this power of two every exponential has overflowed or vanished.
_MOST_SQUARINGS = 1100


@KERNELS.plain("MatrixExponential")
def matrix_exponential(xp: Any, x: Array) -> Array:
    """Compute exponentials: a Padé approximant of scaled matrices, squared as often as needed."""
    size = check_square(x, "input")
    if not x.size:
        return xp.zeros(x.shape, x.dtype)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64, copy=False)
    matrices, lost = set_apart(xp, wide)
    norm = xp.abs(matrices).sum(axis=-2).max(axis=-1)
    squarings = xp.ceil(xp.log2(xp.maximum(norm / _LIMIT, 1.0)))
    squarings = xp.minimum(squarings, float(_MOST_SQUARINGS))
    # In two steps, since 2**-1074 is the smallest number.
    half = xp.floor(squarings / 2)
    scaled = matrices * (2.0**-half)[..., None, None] * (2.0 ** (half - squarings))[..., None, None]
    unit = xp.eye(size, dtype=wide.dtype)
    a2 = xp.matmul(scaled, scaled)
    a4 = xp.matmul(a2, a2)
    a6 = xp.matmul(a4, a2)
    b = _PADE
    odd = xp.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = xp.matmul(scaled, odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * unit)
    even = xp.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * unit
    result = xp.linalg.solve(even - odd, even + odd)
    for turn in range(int(squarings.max())):
        more = (squarings > turn)[..., None, None]
        result = xp.where(more, xp.matmul(result, result), result)
    return blotted(xp, result, lost, 2).astype(x.dtype, copy=False)


@HOST_KERNELS.plain("MatrixLogarithm")
def matrix_logarithm(xp: Any, x: Array) -> Array:
    """Compute principal logarithms."""
    from scipy.linalg import logm

    def logarithm(matrix: Array) -> Array:
        try:
            return logm(matrix)
        except ValueError:
            raise ValueError("the logarithm of a matrix does not fit floats") from None

    return _each(x, logarithm)


@HOST_KERNELS.plain("MatrixSquareRoot")
def matrix_square_root(xp: Any, x: Array) -> Array:
    """Compute principal square roots; NaN where a real matrix has none that is real."""
    from scipy.linalg import sqrtm

    return _each(x, sqrtm)


def _each(x: Array, function: Any) -> Array:
    """Apply a function of one matrix to each, in double precision."""
    check_square(x, "input")
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    result = np.empty(x.shape, x.dtype)
    for at in np.ndindex(x.shape[:-2]):
        matrix = x[at].astype(wide)
        if not matrix.size:
            continue
        made = np.full_like(matrix, np.nan)
        if np.isfinite(matrix).all():
            with warnings.catch_warnings():
                # Of singular matrices, which have what comes out, or NaN.
                warnings.simplefilter("ignore")
                made = np.asarray(function(matrix))
        if made.dtype.kind == "c" and x.dtype.kind != "c":
            real = np.abs(made.imag).max() <= 1e-12 * max(1.0, np.abs(made).max())
            made = made.real if real else np.full_like(matrix, np.nan)
        result[at] = made
    return result
