"""Spectra of signals: over time, on the mel scale, and cosine transforms.

References:
    N. Ahmed, T. Natarajan, K. R. Rao, Discrete cosine transform, 1974,
    https://doi.org/10.1109/T-C.1974.223784
    J. Makhoul, A fast cosine transform in one and two dimensions, 1980,
    https://doi.org/10.1109/TASSP.1980.1163351
    S. Young et al., The HTK Book, 2006, section 5.4, for the mel scale and cepstral coefficients
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items, whole
from headrace.dtypes import as_dtype
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ShapeError,
    UnimplementedError,
    shown,
    told,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.array import expand_dims, rank, shape
from headrace.ops.complex import complex_, real
from headrace.ops.constant import constant, known_value, lin_space, range, zeros
from headrace.ops.conversion import cast
from headrace.ops.elementwise import ceil, maximum, minimum, power
from headrace.ops.fourier import irfft, rfft
from headrace.ops.frames import frame, overlap_and_add, scalar_integer
from headrace.ops.joining import concat, stack
from headrace.ops.padding import pad
from headrace.ops.rearrange import roll
from headrace.ops.signal_windows import WindowFn, hann_window
from headrace.ops.transcendental import exp, log, rsqrt, sqrt

# The break frequency in hertz, and the scale, of the mel scale.
_BREAK_HERTZ, _SCALE = 700.0, 1127.0


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Move the coefficient of frequency zero to the middle.

    Args:
        x: [...], any dtype, of known sizes along ``axes``.
        axes: An axis or several; all if None.
        name: Name of the operation.

    Returns:
        As ``x``.
    """
    return _shifted(x, axes, name, "fftshift", 1)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Undo ``fftshift``; of odd sizes they differ by one place. Arguments as there."""
    return _shifted(x, axes, name, "ifftshift", -1)


def _shifted(x: Any, axes: Any, name: str | None, label: str, sign: int) -> Tensor:
    with name_scope(name, label) as scope:
        x = convert_to_tensor(x)
        dims = x.spec.shape.dims
        if dims is None:
            raise ShapeError(f"{label} needs to know the rank of x")
        chosen = _chosen_axes(axes, len(dims), label)
        if any(dims[axis] is None for axis in chosen):
            sizes = shape(x)
            shift: Any = stack([sign * (sizes[axis] // 2) for axis in chosen])
        else:
            shift = [sign * ((dims[axis] or 0) // 2) for axis in chosen]
        return roll(x, shift, chosen, name=scope) if chosen else x


def _chosen_axes(axes: Any, count: int, label: str) -> list[int]:
    if axes is None:
        return [*builtins.range(count)]
    chosen = items(axes, f"axes of {label}") if isinstance(axes, Sequence) else [axes]
    try:
        numbers = [int(axis) for axis in chosen]
    except (TypeError, ValueError, ArithmeticError):
        raise AttributeValueError(f"axes of {label} must be integers, got {shown(axes)}") from None
    if not all(-count <= axis < count for axis in numbers):
        raise ShapeError(
            f"axes of {label} must be from {-count} to {count - 1}, got {told(numbers)}"
        )
    return numbers


def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform over the last dimension.

    ``y[k] = 2 * sum over m of x[m] * cos(pi * k * (2 * m + 1) / (2 * size))`` for type 2; types 1
    and 3 as in SciPy.

    Args:
        input: [..., size], float32.
        type: 1, 2 or 3.
        n: How many samples to transform: the signal is padded with zeros or cut; all if None.
        axis: -1.
        norm: ``"ortho"`` makes the transform orthonormal; not for type 1.
        name: Name scope of the operations.

    Returns:
        [..., n], float32.

    Raises:
        AttributeValueError: if ``type``, ``n`` or ``norm`` is none of these, or ``input`` of type
            1 has fewer than 2 samples.
        UnimplementedError: if ``axis`` is another one.
    """
    _check_dct(input, type, n, axis, norm)
    with name_scope(name, "dct", [input]):
        signal = convert_to_tensor(input, dtypes.float32)
        if n is not None:
            signal = _of_length(signal, n)
        size = _last_size(signal)
        if type == 1:
            mirrored = concat([signal, signal[..., -2:0:-1]], -1)
            return real(rfft(mirrored))
        count = cast(size, dtypes.float32)
        turns = range(count) * (math.pi * 0.5) / count
        if type == 2:
            there = rfft(signal, [2 * size])[..., :size] * _turned(-turns)
            found = real(there)
            if norm == "ortho":
                found = found * _weights(0.5 * rsqrt(count), math.sqrt(2.0), size)
            return found
        weighted = signal * (
            _weights(sqrt(count), math.sqrt(0.5), size) if norm == "ortho" else count
        )
        there = _turned(turns) * complex_(weighted, 0.0)
        back: Tensor = real(irfft(there, [2 * size]))[..., :size]
        return back


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse discrete cosine transform over the last dimension, up to a factor.

    With ``norm="ortho"`` it undoes ``dct`` of the same type. Without, ``idct(dct(x)) / (2 * size)``
    is ``x`` for types 2 and 3, and ``idct(dct(x)) / (2 * (size - 1))`` for type 1. Arguments as for
    ``dct``.
    """
    _check_dct(input, type, n, axis, norm)
    return dct(input, {1: 1, 2: 3, 3: 2}[type], n, axis, norm, name)


def _check_dct(input: Any, kind: Any, n: Any, axis: Any, norm: Any) -> None:
    if whole(axis, "axis") != -1:
        raise UnimplementedError(f"axis must be -1, got {shown(axis)}; transpose the input")
    if n is not None and whole(n, "n") < 1:
        raise AttributeValueError(f"n should be a positive integer or None, got {shown(n)}")
    if whole(kind, "type") not in (1, 2, 3):
        raise AttributeValueError(f"type must be 1, 2 or 3, got {shown(kind)}")
    if norm not in (None, "ortho"):
        raise AttributeValueError(f"norm must be None or 'ortho', got {shown(norm)}")
    if kind == 1 and norm == "ortho":
        raise AttributeValueError("the transform of type 1 has no norm, got 'ortho'")
    dims = convert_to_tensor(input, dtypes.float32).spec.shape.dims
    if dims is not None and not dims:
        raise ShapeError("input must have at least 1 dimension, got a scalar")
    if kind == 1 and dims is not None and dims[-1] is not None and dims[-1] < 2:
        raise AttributeValueError(
            f"the transform of type 1 needs more than one sample, got shape {list(dims)}"
        )


def _of_length(signal: Tensor, n: int) -> Tensor:
    missing = maximum(n - shape(signal)[-1], 0)
    return pad(signal, _behind(signal, missing))[..., :n]


def _behind(tensor: Tensor, missing: Tensor) -> Tensor:
    """Return paddings that put so many zeros behind the last dimension."""
    return concat([zeros([rank(tensor) - 1, 2], dtypes.int32), stack([[0, missing]])], 0)


def _last_size(tensor: Tensor) -> Any:
    dims = tensor.spec.shape.dims
    return shape(tensor)[-1] if dims is None or dims[-1] is None else dims[-1]


def _turned(angles: Tensor) -> Tensor:
    return 2.0 * exp(complex_(0.0, angles))


def _weights(first: Tensor, factor: float, size: Any) -> Tensor:
    """Return the weights of an orthonormal transform; the first differs by a factor."""
    rest = convert_to_tensor(first * factor)
    return pad(expand_dims(first, 0), stack([[0, size - 1]]), constant_values=rest)


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFn | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: spectra of frames of a signal.

    Args:
        signals: [..., samples], float32.
        frame_length: [], samples in a frame.
        frame_step: [], samples from one frame to the next.
        fft_length: [], how many samples are transformed; the power of two that is not less than
            ``frame_length`` if None.
        window_fn: From a length and ``dtype=`` to the weights of the samples of a frame; None for
            no window.
        pad_end: Whether frames that reach beyond the end are made, too, with zeros there.
        name: Name scope of the operations.

    Returns:
        [..., frames, fft_length // 2 + 1], complex64.
    """
    if window_fn is not None and not callable(window_fn):
        raise ArgumentTypeError(
            f"window_fn must be a function of a length, such as hr.signal.hann_window, got "
            f"{shown(window_fn)}"
        )
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        length = scalar_integer(frame_length, "frame_length")
        step = scalar_integer(frame_step, "frame_step")
        frames = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return rfft(frames, [_fft_length(fft_length, length)])


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFn | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal of a short-time Fourier transform.

    It is that of ``stft`` where ``window_fn`` is what ``inverse_stft_window_fn`` gives.

    Args:
        stfts: [..., frames, fft_length // 2 + 1], complex64.
        frame_length: [], samples in a frame.
        frame_step: [], samples from one frame to the next.
        fft_length: [], as for ``stft``.
        window_fn: As for ``stft``.
        name: Name scope of the operations.

    Returns:
        [..., (frames - 1) * frame_step + frame_length], float32.
    """
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        if stfts.spec.rank is not None and stfts.spec.rank < 2:
            raise ShapeError(f"stfts must have at least 2 dimensions, got shape {stfts.spec.shape}")
        length = scalar_integer(frame_length, "frame_length")
        frames = irfft(stfts, [_fft_length(fft_length, length)])[..., :length]
        frames = pad(frames, _behind(frames, maximum(length - shape(frames)[-1], 0)))
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=stfts.dtype.real_dtype)
        return overlap_and_add(frames, frame_step)


def _fft_length(fft_length: Any, frame_length: Tensor) -> Tensor:
    """Return the length that was asked for, or the power of two around that of a frame."""
    if fft_length is not None:
        return scalar_integer(fft_length, "fft_length")
    known = static_value(frame_length)
    if known is not None:
        return constant(1 << max(int(known) - 1, 0).bit_length())
    exponent = ceil(log(cast(frame_length, dtypes.float32)) / math.log(2.0))
    length: Tensor = cast(power(2.0, exponent), dtypes.int32)
    return length


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix that takes spectra of equal steps in hertz to the mel scale.

    Each column is a triangle over the frequencies from one band's centre to the next but one.

    Args:
        num_mel_bins: How many bands.
        num_spectrogram_bins: How many frequencies the spectra have, from 0 to half the sample rate.
        sample_rate: Samples per second of the signal.
        lower_edge_hertz: Where the lowest band begins.
        upper_edge_hertz: Where the highest band ends.
        dtype: Floating.
        name: Name of the result.

    Returns:
        [num_spectrogram_bins, num_mel_bins], of ``dtype``.

    Raises:
        AttributeValueError: if a number is not possible.
    """
    with name_scope(name, "linear_to_mel_weight_matrix") as scope:
        rate = _known_number(sample_rate, "sample_rate")
        edges_hertz = [
            _known_number(lower_edge_hertz, "lower_edge_hertz"),
            _known_number(upper_edge_hertz, "upper_edge_hertz"),
        ]
        kind = as_dtype(dtype)
        num_mel_bins = whole(num_mel_bins, "num_mel_bins")
        _check_mel(num_mel_bins, rate, *edges_hertz)
        if not kind.is_floating:
            raise AttributeValueError(f"dtype must be a floating point type, got {kind}")
        nyquist = constant(rate, kind) / 2.0
        zero = constant(0.0, kind)
        # Nothing of frequency 0 goes into a band.
        frequencies = lin_space(zero, nyquist, num_spectrogram_bins)[1:]
        mels = expand_dims(_mel(frequencies), 1)
        ends = [_mel(constant(edge, kind)) for edge in edges_hertz]
        edges = expand_dims(lin_space(ends[0], ends[1], num_mel_bins + 2), 0)
        lower, centre, upper = edges[:, :-2], edges[:, 1:-1], edges[:, 2:]
        rising = (mels - lower) / (centre - lower)
        falling = (upper - mels) / (upper - centre)
        weights = maximum(zero, minimum(rising, falling))
        return pad(weights, [[1, 0], [0, 0]], name=scope)


def _known_number(value: Any, label: str) -> float:
    """Return a number that is given as such or as a constant tensor.

    Raises:
        AttributeValueError: if it is not one number, or not known.
    """
    known = known_value(value) if isinstance(value, Tensor) else value
    if known is None or isinstance(known, Mapping):
        raise AttributeValueError(f"{label} must be a number or a constant tensor")
    try:
        if np.iscomplexobj(known):
            raise TypeError("it is complex")
        number = np.asarray(known, np.float64)
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise AttributeValueError(f"{label} must be a real number, got {shown(known)}") from error
    if number.ndim:
        raise AttributeValueError(f"{label} must be one number, got shape {list(number.shape)}")
    return float(number)


def _check_mel(bins: Any, rate: float, lower: float, upper: float) -> None:
    if bins <= 0:
        raise AttributeValueError(f"num_mel_bins must be positive, got {told(bins)}")
    if rate <= 0.0:
        raise AttributeValueError(f"sample_rate must be positive, got {rate}")
    if lower < 0.0:
        raise AttributeValueError(f"lower_edge_hertz must not be negative, got {lower}")
    if lower >= upper:
        raise AttributeValueError(
            f"lower_edge_hertz must be less than upper_edge_hertz, got {lower} and {upper}"
        )
    if upper > rate / 2:
        raise AttributeValueError(
            f"upper_edge_hertz must be at most half the sample rate {rate}, got {upper}"
        )


def _mel(hertz: Tensor) -> Tensor:
    mels: Tensor = _SCALE * log(1.0 + hertz / _BREAK_HERTZ)
    return mels


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients: the cosine transform of spectra in decibels, say.

    Args:
        log_mel_spectrograms: [..., bands], float32: logarithms of spectra on the mel scale.
        name: Name scope of the operations.

    Returns:
        [..., bands], float32, scaled as by HTK.

    Raises:
        AttributeValueError: if there are no bands.
    """
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms, dtypes.float32)
        if spectra.spec.rank == 0:
            raise ShapeError("log_mel_spectrograms must have at least 1 dimension, got a scalar")
        bands = _last_size(spectra)
        if isinstance(bands, int) and bands == 0:
            raise AttributeValueError(f"there must be bands, got shape {spectra.spec.shape}")
        scaled: Tensor = dct(spectra) * rsqrt(cast(bands, dtypes.float32) * 2.0)
        return scaled
