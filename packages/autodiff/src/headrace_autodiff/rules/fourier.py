"""Gradients of Fourier transforms: the adjoint of each, which is a transform again.

The gradient of a complex tensor is the conjugate of the derivative, as everywhere here.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace import (
    Operation,
    Tensor,
    cast,
    concat,
    fft,
    fft2d,
    fft3d,
    ifft,
    ifft2d,
    ifft3d,
    maximum,
    ones,
    pad,
    rank,
    real,
    reduce_prod,
    shape,
    stack,
    zeros,
    zeros_like,
)
from headrace.extend import GradientTable
from headrace.extend.primitives import rfft_of

RULES = GradientTable()

_FORWARD: dict[int, Callable[..., Tensor]] = {1: fft, 2: fft2d, 3: fft3d}
_BACKWARD: dict[int, Callable[..., Tensor]] = {1: ifft, 2: ifft2d, 3: ifft3d}


def _complex(count: int) -> None:
    name = "FFT" if count == 1 else f"FFT{count}D"

    @RULES.add(name)
    def forward(op: Operation, grad: Tensor) -> tuple[Tensor]:
        return (_BACKWARD[count](grad) * cast(_size(grad, count), grad.dtype),)

    @RULES.add(f"I{name}")
    def backward(op: Operation, grad: Tensor) -> tuple[Tensor]:
        return (_FORWARD[count](grad) / cast(_size(grad, count), grad.dtype),)

    @RULES.add(f"R{name}")
    def real_forward(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
        """Transform back, with zeros for the coefficients that are left out."""
        signal, length = op.inputs
        whole = _padded(grad, length, count)
        back = real(_BACKWARD[count](whole)) * cast(_size(whole, count), signal.dtype)
        return _padded(back, shape(signal)[-count:], count), None

    @RULES.add(f"IR{name}")
    def real_backward(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
        """Transform, with weight 2 for the coefficients that stand for their conjugates, too."""
        spectrum, length = op.inputs
        there = rfft_of(count)(grad, length)
        last, half = length[-1], shape(there)[-1]
        # The first one is its own conjugate, and of an even number the last one.
        odd = last % 2
        twice = 2 * ones([maximum(half - 2 + odd, 0)], grad.dtype)
        weights = concat([ones([1], grad.dtype), twice, ones([1 - odd], grad.dtype)], 0)[:half]
        there = there * cast(weights / cast(_size(grad, count), grad.dtype), spectrum.dtype)
        return _padded(there, shape(spectrum)[-count:], count), None


def _size(tensor: Tensor, count: int) -> Tensor:
    return reduce_prod(shape(tensor)[-count:])


def _padded(tensor: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Pad the last dimensions with zeros to some sizes, none of them smaller."""
    missing = sizes - shape(tensor)[-count:]
    before = zeros([rank(tensor) - count, 2], missing.dtype)
    return pad(tensor, concat([before, stack([zeros_like(missing), missing], 1)], 0))


for _count in (1, 2, 3):
    _complex(_count)
