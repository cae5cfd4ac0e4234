"""Windows: weights by which frames of a signal are multiplied, small at their ends.

References:
    F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform,
    1978, https://doi.org/10.1109/PROC.1978.10837
    D. W. Griffin, J. S. Lim, Signal estimation from modified short-time Fourier transform, 1984,
    https://doi.org/10.1109/TASSP.1984.1164317
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.array import reshape
from headrace.ops.cond import cond
from headrace.ops.constant import constant, ones, range
from headrace.ops.conversion import cast
from headrace.ops.elementwise import equal, square
from headrace.ops.frames import scalar_integer
from headrace.ops.joining import stack, tile
from headrace.ops.padding import pad
from headrace.ops.reduce import reduce_sum
from headrace.ops.transcendental import cos

# A window: weights of a length and dtype.
WindowFn = Callable[..., Any]


def hann_window(
    window_length: Any,
    periodic: Any = True,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The Hann window, ``0.5 - 0.5 * cos(2 * pi * n / N)``.

    Args:
        window_length: [], how many weights.
        periodic: Whether ``N`` of an even length is that length, as for spectra, rather than one
            less, which makes the window symmetric.
        dtype: Floating.
        name: Name scope of the operations.

    Returns:
        [window_length], of ``dtype``.

    Raises:
        AttributeValueError: if ``dtype`` is not floating.
    """
    return _raised_cosine(window_length, periodic, dtype, name, "hann_window", 0.5, 0.5)


def hamming_window(
    window_length: Any,
    periodic: Any = True,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The Hamming window, ``0.54 - 0.46 * cos(2 * pi * n / N)``; arguments as ``hann_window``."""
    return _raised_cosine(window_length, periodic, dtype, name, "hamming_window", 0.54, 0.46)


def _raised_cosine(
    window_length: Any,
    periodic: Any,
    dtype: Any,
    name: str | None,
    label: str,
    level: float,
    depth: float,
) -> Tensor:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise AttributeValueError(f"dtype must be a floating point type, got {kind}")
    with name_scope(name, label, [window_length, periodic]):
        length = scalar_integer(window_length, "window_length")
        known = static_value(length)
        if known is not None and known == 1:
            return ones([1], kind)
        flag = cast(convert_to_tensor(periodic, dtypes.bool_, name="periodic"), dtypes.int32)
        even = 1 - length % 2

        def weights() -> Tensor:
            period = cast(length + flag * even - 1, kind)
            places = cast(range(length if known is None else int(known)), kind)
            turns = constant(2 * math.pi, kind) * places / period
            found: Tensor = cast(level - depth * cos(turns), kind)
            return found

        if known is not None:
            return weights()
        chosen: Tensor = cond(equal(length, 1), lambda: ones([1], kind), weights)
        return chosen


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: WindowFn = hann_window, name: str | None = None
) -> WindowFn:
    """Return the window with which ``inverse_stft`` gives back the signal.

    It is the window of ``stft`` over the sum of the squares of all windows that lie over a sample.

    Args:
        frame_step: [], the step of ``stft``.
        forward_window_fn: The window of ``stft``.
        name: Name scope of the operations.

    Returns:
        A function of ``frame_length`` and ``dtype``.
    """
    with name_scope(name, "inverse_stft_window_fn"):
        step = scalar_integer(frame_step, "frame_step")

    def inverse_stft_window(frame_length: Any, dtype: DType) -> Tensor:
        """Return the window of a length."""
        with name_scope(name, "inverse_stft_window_fn"):
            length = scalar_integer(frame_length, "frame_length")
            window = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squares = pad(square(window), stack([[0, overlaps * step - length]]))
            # By where a sample is within a step.
            total = reduce_sum(reshape(squares, stack([overlaps, step])), 0, keepdims=True)
            whole = reshape(tile(total, stack([overlaps, 1])), [-1])
            divided: Tensor = window / whole[:length]
            return divided

    return inverse_stft_window
