"""Discrete Fourier transforms over the last one, two or three dimensions.

References:
    J. W. Cooley, J. W. Tukey, An algorithm for the machine calculation of complex Fourier series,
    1965, https://doi.org/10.1090/S0025-5718-1965-0178586-1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.schema import Kind
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.array import rank, shape
from headrace.ops.constant import constant, zeros, zeros_like
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import maximum
from headrace.ops.joining import concat, stack
from headrace.ops.kinds import ComplexNumber
from headrace.ops.padding import pad
from headrace.shapes import Dim, Shape

# What transforms of real numbers take. Functions take float32 alone, as TensorFlow's do.
_Signal: TypeAlias = Annotated[
    Any, Kind("float32 or float64", lambda d: d in (dtypes.float32, dtypes.float64))
]
_Length: TypeAlias = Annotated[Any, Kind("int32", lambda d: d == dtypes.int32, unify=False)]


def _over_last(x: TensorSpec, count: int) -> TensorSpec:
    if x.rank is not None and x.rank < count:
        raise ShapeError(f"input must have at least {count} dimensions, got shape {x.shape}")
    return like(x)


@op("FFT", public="")
def _fft(input: ComplexNumber) -> Spec:
    """The discrete Fourier transform over the last dimension.

    ``y[k] = sum over n of x[n] * exp(-2j * pi * n * k / size)``.

    Args:
        input: [..., size], complex64 or complex128.

    Returns:
        [..., size], the dtype of ``input``.
    """
    return _over_last(input, 1)


def fft(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last dimension.

    ``y[k] = sum over n of x[n] * exp(-2j * pi * n * k / size)``.

    Args:
        input: [..., size], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., size], the dtype of ``input``.
    """
    return _fft(_complex(input), name=name)


@op("IFFT", public="")
def _ifft(input: ComplexNumber) -> Spec:
    """The inverse discrete Fourier transform over the last dimension; ``ifft(fft(x)) == x``.

    Args:
        input: [..., size], complex64 or complex128.

    Returns:
        [..., size], the dtype of ``input``.
    """
    return _over_last(input, 1)


def ifft(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last dimension; ``ifft(fft(x)) == x``.

    Args:
        input: [..., size], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., size], the dtype of ``input``.
    """
    return _ifft(_complex(input), name=name)


@op("FFT2D", public="")
def _fft2d(input: ComplexNumber) -> Spec:
    """The discrete Fourier transform over the last two dimensions.

    Args:
        input: [..., rows, columns], complex64 or complex128.

    Returns:
        [..., rows, columns], the dtype of ``input``.
    """
    return _over_last(input, 2)


def fft2d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last two dimensions.

    Args:
        input: [..., rows, columns], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., rows, columns], the dtype of ``input``.
    """
    return _fft2d(_complex(input), name=name)


@op("IFFT2D", public="")
def _ifft2d(input: ComplexNumber) -> Spec:
    """The inverse discrete Fourier transform over the last two dimensions.

    Args:
        input: [..., rows, columns], complex64 or complex128.

    Returns:
        [..., rows, columns], the dtype of ``input``.
    """
    return _over_last(input, 2)


def ifft2d(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last two dimensions.

    Args:
        input: [..., rows, columns], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., rows, columns], the dtype of ``input``.
    """
    return _ifft2d(_complex(input), name=name)


@op("FFT3D", public="")
def _fft3d(input: ComplexNumber) -> Spec:
    """The discrete Fourier transform over the last three dimensions.

    Args:
        input: [..., depth, rows, columns], complex64 or complex128.

    Returns:
        [..., depth, rows, columns], the dtype of ``input``.
    """
    return _over_last(input, 3)


def fft3d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last three dimensions.

    Args:
        input: [..., depth, rows, columns], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., depth, rows, columns], the dtype of ``input``.
    """
    return _fft3d(_complex(input), name=name)


@op("IFFT3D", public="")
def _ifft3d(input: ComplexNumber) -> Spec:
    """The inverse discrete Fourier transform over the last three dimensions.

    Args:
        input: [..., depth, rows, columns], complex64 or complex128.

    Returns:
        [..., depth, rows, columns], the dtype of ``input``.
    """
    return _over_last(input, 3)


def ifft3d(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last three dimensions.

    Args:
        input: [..., depth, rows, columns], complex; numbers of Python become complex64.
        name: Name of the operation.

    Returns:
        [..., depth, rows, columns], the dtype of ``input``.
    """
    return _ifft3d(_complex(input), name=name)


def _complex(input: Any) -> Tensor:
    """Return a tensor; numbers that are none become complex64."""
    return convert_to_tensor(input, preferred_dtype=dtypes.complex64)


def half_size(length: int) -> int:
    """Return how many coefficients of a real signal of so many samples are not redundant."""
    return length // 2 + 1 if length else 0


def _lengths(fft_length: TensorSpec, count: int) -> list[Dim]:
    """Return the lengths of a transform as far as they are known.

    Raises:
        AttributeValueError: if one is negative.
        ShapeError: if they are not ``count`` numbers.
    """
    if not Shape([count]).is_compatible_with(fft_length.shape):
        raise ShapeError(f"fft_length must have shape [{count}], got {fft_length.shape}")
    if fft_length.value is None:
        return [None] * count
    known = [int(length) for length in fft_length.value]
    if min(known) < 0:
        raise AttributeValueError(f"fft_length must not be negative, got {known}")
    return list(known)


def _real_spec(input: TensorSpec, fft_length: TensorSpec, count: int, *, inverse: bool) -> Spec:
    lengths = _lengths(fft_length, count)
    last = None if lengths[-1] is None else half_size(lengths[-1])
    halved = [*lengths[:-1], last]
    needed, given = (halved, lengths) if inverse else (lengths, halved)
    dtype = input.dtype.real_dtype
    if not inverse:
        dtype = dtypes.complex64 if dtype == dtypes.float32 else dtypes.complex128
    if input.shape.dims is None:
        return TensorSpec(dtype, Shape(None))
    _over_last(input, count)
    batch, found = input.shape.dims[:-count], input.shape.dims[-count:]
    for size, least in zip(found, needed, strict=True):
        # Where there is nothing, there is nothing to transform.
        if size is not None and least is not None and size < least and 0 not in found:
            raise ShapeError(
                f"for fft_length {_shown(lengths)} the last dimensions of input must be at least "
                f"{_shown(needed)}, got shape {input.shape}"
            )
    return TensorSpec(dtype, Shape([*batch, *given]))


def _shown(sizes: list[Dim]) -> str:
    return str(Shape(sizes))


@op("RFFT", public="", host_inputs=["fft_length"])
def _rfft(input: _Signal, fft_length: _Length) -> Spec:
    """The discrete Fourier transform of real numbers over the last dimension.

    Args:
        input: [..., at least fft_length], float32 or float64; what is beyond is not used.
        fft_length: [1], int32, how many samples are transformed.

    Returns:
        [..., fft_length // 2 + 1], complex: the other coefficients are conjugates of these.
    """
    return _real_spec(input, fft_length, 1, inverse=False)


@op("IRFFT", public="", host_inputs=["fft_length"])
def _irfft(input: ComplexNumber, fft_length: _Length) -> Spec:
    """The inverse of ``RFFT``: the real signal of some coefficients.

    Args:
        input: [..., at least fft_length // 2 + 1], complex.
        fft_length: [1], int32, how many samples there are.

    Returns:
        [..., fft_length], real.
    """
    return _real_spec(input, fft_length, 1, inverse=True)


@op("RFFT2D", public="", host_inputs=["fft_length"])
def _rfft2d(input: _Signal, fft_length: _Length) -> Spec:
    """The discrete Fourier transform of real numbers over the last two dimensions.

    Args:
        input: [..., rows, columns], float32 or float64, at least as large as ``fft_length``.
        fft_length: [2], int32, how many rows and columns are transformed.

    Returns:
        [..., rows, columns // 2 + 1], complex.
    """
    return _real_spec(input, fft_length, 2, inverse=False)


@op("IRFFT2D", public="", host_inputs=["fft_length"])
def _irfft2d(input: ComplexNumber, fft_length: _Length) -> Spec:
    """The inverse of ``RFFT2D``.

    Args:
        input: [..., rows, at least columns // 2 + 1], complex.
        fft_length: [2], int32, how many rows and columns there are.

    Returns:
        [..., rows, columns], real.
    """
    return _real_spec(input, fft_length, 2, inverse=True)


@op("RFFT3D", public="", host_inputs=["fft_length"])
def _rfft3d(input: _Signal, fft_length: _Length) -> Spec:
    """The discrete Fourier transform of real numbers over the last three dimensions.

    Args:
        input: [..., depth, rows, columns], float32 or float64, at least as large as
            ``fft_length``.
        fft_length: [3], int32, what is transformed.

    Returns:
        [..., depth, rows, columns // 2 + 1], complex.
    """
    return _real_spec(input, fft_length, 3, inverse=False)


@op("IRFFT3D", public="", host_inputs=["fft_length"])
def _irfft3d(input: ComplexNumber, fft_length: _Length) -> Spec:
    """The inverse of ``RFFT3D``.

    Args:
        input: [..., depth, rows, at least columns // 2 + 1], complex.
        fft_length: [3], int32, what there is.

    Returns:
        [..., depth, rows, columns], real.
    """
    return _real_spec(input, fft_length, 3, inverse=True)


# By how many dimensions they transform.
_FORWARD: dict[int, Callable[..., Tensor]] = {1: _rfft, 2: _rfft2d, 3: _rfft3d}
_BACKWARD: dict[int, Callable[..., Tensor]] = {1: _irfft, 2: _irfft2d, 3: _irfft3d}


def rfft_of(count: int) -> Callable[..., Tensor]:
    """Return the op that transforms real numbers of any precision over the last dimensions.

    Args:
        count: Over how many dimensions, from 1 to 3.
    """
    return _FORWARD[count]


@names_result
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers over the last dimension.

    Only coefficients that are not conjugates of others are returned.

    Args:
        input_tensor: [..., size], float32.
        fft_length: [1], int32, how many samples to transform: shorter signals are padded with
            zeros, longer ones cut; the last dimension if None.
        name: Name of the result.

    Returns:
        [..., fft_length // 2 + 1], complex64.
    """
    return _forward(input_tensor, fft_length, name, "rfft", 1)


@names_result
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers over the last two dimensions.

    Args:
        input_tensor: [..., rows, columns], float32.
        fft_length: [2], int32, how many rows and columns to transform; as for ``rfft``.
        name: Name of the result.

    Returns:
        [..., fft_length[0], fft_length[1] // 2 + 1], complex64.
    """
    return _forward(input_tensor, fft_length, name, "rfft2d", 2)


@names_result
def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers over the last three dimensions.

    Args:
        input_tensor: [..., depth, rows, columns], float32.
        fft_length: [3], int32, what to transform; as for ``rfft``.
        name: Name of the result.

    Returns:
        [..., fft_length[0], fft_length[1], fft_length[2] // 2 + 1], complex64.
    """
    return _forward(input_tensor, fft_length, name, "rfft3d", 3)


@names_result
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real signal whose ``rfft`` this is.

    Args:
        input_tensor: [..., size], complex64.
        fft_length: [1], int32, how many samples the signal has; ``2 * (size - 1)`` if None.
        name: Name of the result.

    Returns:
        [..., fft_length], float32.
    """
    return _backward(input_tensor, fft_length, name, "irfft", 1)


@names_result
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real numbers whose ``rfft2d`` this is.

    Args:
        input_tensor: [..., rows, size], complex64.
        fft_length: [2], int32, their rows and columns; as for ``irfft``.
        name: Name of the result.

    Returns:
        [..., fft_length[0], fft_length[1]], float32.
    """
    return _backward(input_tensor, fft_length, name, "irfft2d", 2)


@names_result
def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real numbers whose ``rfft3d`` this is.

    Args:
        input_tensor: [..., depth, rows, size], complex64.
        fft_length: [3], int32, their sizes; as for ``irfft``.
        name: Name of the result.

    Returns:
        [..., fft_length[0], fft_length[1], fft_length[2]], float32.
    """
    return _backward(input_tensor, fft_length, name, "irfft3d", 3)


def _forward(signal: Any, fft_length: Any, name: str | None, label: str, count: int) -> Tensor:
    with name_scope(name, label, [signal, fft_length]):
        signal = _over(convert_to_tensor(signal, dtypes.float32), count)
        if fft_length is None:
            length = _constant(shape(signal)[-count:])
        else:
            length = convert_to_tensor(fft_length, dtypes.int32)
        return _FORWARD[count](_at_least(signal, length, count), length)


def _backward(spectrum: Any, fft_length: Any, name: str | None, label: str, count: int) -> Tensor:
    with name_scope(name, label, [spectrum, fft_length]):
        spectrum = _over(convert_to_tensor(spectrum, dtypes.complex64), count)
        if fft_length is None:
            sizes = shape(spectrum)[-count:]
            length = _constant(concat([sizes[:-1], maximum(2 * (sizes[-1:] - 1), 0)], 0))
        else:
            length = convert_to_tensor(fft_length, dtypes.int32)
        needed = _constant(concat([length[:-1], length[-1:] // 2 + 1], 0))
        return _BACKWARD[count](_at_least(spectrum, needed, count), length)


def _constant(sizes: Tensor) -> Tensor:
    """Return sizes as a constant, where they are known, so that shapes follow from them."""
    known = static_value(sizes)
    return sizes if known is None else constant(known)


def _over(tensor: Tensor, count: int) -> Tensor:
    _over_last(tensor.spec, count)
    return tensor


def _at_least(tensor: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Pad the last dimensions with zeros to some sizes, where they are smaller."""
    dims, known = tensor.spec.shape.dims, static_value(sizes)
    if dims is not None and 0 in dims:
        return tensor
    if dims is not None and known is not None and None not in dims[-count:]:
        pairs = zip(dims[-count:], known, strict=False)
        if all(d is not None and d >= size for d, size in pairs):
            return tensor
    missing = maximum(sizes - shape(tensor)[-count:], 0)
    before = zeros([rank(tensor) - count, 2], dtypes.int32)
    return pad(tensor, concat([before, stack([zeros_like(missing), missing], 1)], 0))
