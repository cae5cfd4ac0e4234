"""Signals cut into frames that may overlap, and signals put together of frames."""

from __future__ import annotations

import builtins
from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, static_value
from headrace.ops.array import rank, reshape, shape, size, transpose
from headrace.ops.constant import constant, one_hot, range, zeros, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import maximum
from headrace.ops.gather import gather
from headrace.ops.joining import concat, stack
from headrace.ops.padding import pad
from headrace.ops.reduce import reduce_sum
from headrace.shapes import normalize_axis


def scalar_integer(value: Any, label: str) -> Tensor:
    """Return a number of samples as an int32 scalar.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is no scalar.
    """
    tensor = convert_to_tensor(value, name=label)
    if not tensor.dtype.is_integer:
        raise DTypeError(f"{label} must be an integer, got {tensor.dtype}")
    if tensor.spec.rank not in (None, 0):
        raise ShapeError(f"{label} must be a scalar, got shape {tensor.spec.shape}")
    number: Tensor = cast(tensor, dtypes.int32)
    return number


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Tensor:
    """Cut a signal into frames of one length, which begin every so many samples.

    Args:
        signal: [..., samples, ...], any dtype.
        frame_length: [], samples in a frame.
        frame_step: [], samples from the beginning of one frame to that of the next.
        pad_end: Whether frames that reach beyond the end are made, too, with ``pad_value`` there.
        pad_value: [], the dtype of ``signal``.
        axis: Along which dimension, an integer or a scalar tensor.
        name: Name scope of the operations.

    Returns:
        [..., frames, frame_length, ...], the dtype of ``signal``.

    Raises:
        ShapeError: if ``signal`` is a scalar, or has no such axis, or ``pad_value`` is no scalar.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        length = scalar_integer(frame_length, "frame_length")
        step = scalar_integer(frame_step, "frame_step")
        _check_positive(step, "frame_step")
        _check_positive(length, "frame_length", least=0)
        along = as_int(axis, "axis")
        if signal.spec.rank == 0:
            raise ShapeError("signal must have at least 1 dimension, got a scalar")
        if signal.spec.rank is not None and isinstance(along, int):
            along = normalize_axis(along, signal.spec.rank)
        static = _framed_shape(signal, length, step, pad_end, along)
        samples = shape(signal)[along]
        if pad_end:
            fill = convert_to_tensor(pad_value, signal.dtype)
            if fill.spec.rank not in (None, 0):
                raise ShapeError(f"pad_value must be a scalar, got shape {fill.spec.shape}")
            count = -(-samples // step)
            missing = maximum(length + step * (count - 1) - samples, 0)
            signal = _padded(signal, along, missing, fill)
        else:
            count = maximum(1 + (samples - length) // step, 0)
        starts = reshape(range(_known(count)) * step, [-1, 1])
        places = starts + reshape(range(_known(length)), [1, -1])
        # Through a reshape, for gradients that are dense along the first axis, too.
        frames: Tensor = gather(reshape(signal, shape(signal)), places, axis=along)
        if static is not None:
            frames.set_shape(static)
        return frames


def _framed_shape(
    signal: Tensor, length: Tensor, step: Tensor, pad_end: bool, axis: Any
) -> list[int | None] | None:
    """Return what is known of the shape of frames, None if not even the rank is.

    A sum of what is not known tells ``gather`` nothing of the axes beside it.
    """
    if signal.spec.rank is None:
        return None
    if not isinstance(axis, int):
        return [None] * (signal.spec.rank + 1)
    sizes = list(signal.shape.as_list())
    size_of, every = static_value(length), static_value(step)
    wide = None if size_of is None else int(size_of)
    count, samples = None, sizes[axis]
    if samples is not None and every is not None:
        if pad_end:
            count = -(-samples // int(every))
        elif wide is not None:
            count = max(0, 1 + (samples - wide) // int(every))
    return [*sizes[:axis], count, wide, *sizes[axis + 1 :]]


def _padded(signal: Tensor, axis: Any, missing: Tensor, fill: Tensor) -> Tensor:
    """Put as many elements as are missing behind an axis."""
    known, ranks = static_value(missing), signal.spec.rank
    if known is not None and ranks is not None and isinstance(axis, int):
        paddings: Any = [[0, int(known) * (place == axis)] for place in builtins.range(ranks)]
    else:
        behind = one_hot(axis % rank(signal), rank(signal), dtype=dtypes.int32) * missing
        paddings = stack([zeros_like(behind), behind], 1)
    return pad(signal, paddings, constant_values=fill)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Put a signal together of frames: where they overlap, their samples are added.

    Args:
        signal: [..., frames, frame_length], numeric.
        frame_step: [], samples from the beginning of one frame to that of the next.
        name: Name scope of the operations.

    Returns:
        [..., (frames - 1) * frame_step + frame_length], the dtype of ``signal``.

    Raises:
        ShapeError: if ``signal`` has fewer than 2 dimensions.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        if signal.spec.rank is not None and signal.spec.rank < 2:
            raise ShapeError(
                f"signal must have at least 2 dimensions, got shape {signal.spec.shape}"
            )
        step = scalar_integer(frame_step, "frame_step")
        _check_positive(step, "frame_step")
        sizes = shape(signal)
        batch, frames, length = sizes[:-2], sizes[-2], sizes[-1]
        total = length + step * (frames - 1)
        every, width = static_value(step), signal.spec.rank and signal.shape.as_list()[-1]
        if every is not None and width == int(every):
            # Frames that do not overlap stand one behind the other already.
            return reshape(signal, concat([batch, [total]], 0), name="fast_path")
        # Each frame is cut into blocks of a step; block k of frame f goes to place f + k. A row of
        # all blocks k with as many zeros behind it, cut into rows that are one shorter, has each
        # row moved by one more than the last.
        blocks = -(-length // step)
        behind = stack([blocks, blocks * step - length])
        outer = zeros([size(batch), 2], dtypes.int32)
        padded = pad(signal, concat([outer, stack([zeros_like(behind), behind], 1)], 0))
        rows = reshape(padded, _joined(batch, frames + blocks, blocks, step))
        order = concat([range(size(batch)), size(batch) + constant([1, 0, 2])], 0)
        known = static_value(order)
        rows = transpose(rows, order if known is None else known.tolist())
        rows = reshape(rows, _joined(batch, (frames + blocks) * blocks, step))
        rows = rows[..., : (frames + blocks - 1) * blocks, :]
        rows = reshape(rows, _joined(batch, blocks, frames + blocks - 1, step))
        whole = reshape(reduce_sum(rows, -3), _joined(batch, (frames + blocks - 1) * step))
        return whole[..., :total]


def _joined(batch: Tensor, *sizes: Tensor) -> Tensor:
    return concat([batch, stack(list(sizes))], 0)


def _known(number: Tensor) -> Any:
    found = static_value(number)
    return number if found is None else int(found)


def _check_positive(number: Tensor, label: str, least: int = 1) -> None:
    found = static_value(number)
    if found is not None and int(found) < least:
        raise AttributeValueError(f"{label} must be at least {least}, got {int(found)}")
