"""Resizing of images by linear interpolation, and its gradient.

Where pixels come from is the same for all images of a size, so it is worked out once: for each
element of a row of the result, the two elements of a row of the image that it lies between, and how
far it is from the first; for each element of a row of the image, those of the result that it gave
something to. What is computed of each element, and in which order, is as in the plain kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.image import linear_terms
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, code_of, team_for

# More elements than this are left to the plain kernel, which refuses sizes that are a mistake.
_MOST_ELEMENTS = 1 << 28
# From so many channels on a gradient goes channel by channel of a pixel: they are a vector.
_WIDE = 8

# Two rows of the image that follow one another are kept, resampled along the width.
_RESIZE = """\
row_c, wide_c = width * channels, across * channels
kept = scratch + me * (2 * wide_c * SIZE_T + 16)
rows = kept + 16
store_i64(kept, 0, -1, 5)
store_i64(kept, 1, -1, 5)
for r in range(me * count * down // team, (me + 1) * count * down // team):
    image = r // down
    y = r - image * down
    low, high = to_i64(load_i32(y_low, y, 1)), to_i64(load_i32(y_high, y, 1))
    for side in range(2):
        at = image * height + where(side == 0, low, high)
        slot = at - at // 2 * 2
        if load_i64(kept, slot, 5) != at:
            store_i64(kept, slot, at, 5)
            source, target = images + at * row_c * SIZE_T, rows + slot * wide_c * SIZE_T
            for j in range(wide_c):
                first = load_T(source, to_i64(load_i32(x_low, j, 1)), 0)
                second = load_T(source, to_i64(load_i32(x_high, j, 1)), 0)
                store_T(target, j, first + (second - first) * load_T(x_share, j, 2), 3)
    top, bottom = image * height + low, image * height + high
    above = rows + (top - top // 2 * 2) * wide_c * SIZE_T
    below = rows + (bottom - bottom // 2 * 2) * wide_c * SIZE_T
    share, put = load_T(y_share, y, 2), out + r * wide_c * SIZE_T
    for j in range(wide_c):
        first, second = load_T(above, j, 3), load_T(below, j, 3)
        store_T(put, j, first + (second - first) * share, 4)
"""
_RESIZE_WORDS = (
    *("images", "out", "count", "height", "width", "channels", "down", "across"),
    *("y_low", "y_high", "y_share", "x_low", "x_high", "x_share", "scratch"),
)

# Back along the height, then along the width.
_GRADIENT = """\
row_c, wide_c = width * channels, across * channels
rows = scratch + me * height * wide_c * SIZE_T
for image in range(me * count // team, (me + 1) * count // team):
    for j in range(height * wide_c):
        store_T(rows, j, to_T(0), 3)
    for side in range(2):
        places, weights = where(side == 0, y_low, y_high), where(side == 0, y_rest, y_share)
        for y in range(down):
            put = rows + to_i64(load_i32(places, y, 1)) * wide_c * SIZE_T
            take, weight = grad + (image * down + y) * wide_c * SIZE_T, load_T(weights, y, 2)
            for j in range(wide_c):
                store_T(put, j, load_T(put, j, 3) + load_T(take, j, 0) * weight, 3)
    for y in range(height):
        take, put = rows + y * wide_c * SIZE_T, out + (image * height + y) * row_c * SIZE_T
        for j in range(row_c):
            store_T(put, j, to_T(0), 4)
        if channels >= WIDE:
            for side in range(2):
                places, weights = where(side == 0, x_low, x_high), where(side == 0, x_rest, x_share)
                for x in range(across):
                    pixel = put + to_i64(load_i32(places, x, 1)) * channels * SIZE_T
                    given, weight = take + x * channels * SIZE_T, load_T(weights, x, 2)
                    for c in range(channels):
                        value = load_T(given, c, 3) * weight
                        store_T(pixel, c, load_T(pixel, c, 4) + value, 4)
        else:
            for k in range(most):
                which, weights = takes + k * row_c * 4, shares + k * row_c * SIZE_T
                for j in range(row_c):
                    at = to_i64(load_i32(which, j, 1))
                    value = load_T(take, maximum(at, 0), 3) * load_T(weights, j, 2)
                    value = load_T(put, j, 4) + where(at < 0, to_T(0), value)
                    store_T(put, j, value, 4)
"""
_GRADIENT_WORDS = (
    *("grad", "out", "count", "height", "width", "channels", "down", "across"),
    *("y_low", "y_high", "y_rest", "y_share", "x_low", "x_high", "x_rest", "x_share"),
    *("most", "takes", "shares", "scratch"),
)


class _Line(NamedTuple):
    """Where the elements along an axis of a result come from: [out] each."""

    low: Any
    high: Any
    rest: Any
    share: Any


class _Back(NamedTuple):
    """What elements of a row of the image take back: the number of terms, [most, width] each."""

    most: int
    takes: Any
    shares: Any


@functools.lru_cache(maxsize=64)
def _line(size: int, out: int, corners: bool, centers: bool, dtype: str, channels: int) -> _Line:
    """Return the line of an axis; with channels, that of the elements of a row."""
    terms = linear_terms(size, out, corners, centers, np.dtype(dtype).type)
    (low, rest), (high, share) = terms
    at = [low.astype(np.int32), high.astype(np.int32)]
    weights = [rest.astype(dtype), share.astype(dtype)]
    if channels:
        inner = np.arange(channels, dtype=np.int32)
        at = [(a[:, None] * np.int32(channels) + inner).reshape(-1) for a in at]
        weights = [np.repeat(w, channels) for w in weights]
    return _Line(*map(np.ascontiguousarray, (*at, *weights)))


@functools.lru_cache(maxsize=64)
def _back(size: int, out: int, corners: bool, centers: bool, dtype: str, channels: int) -> _Back:
    line = _line(size, out, corners, centers, dtype, 0)
    given: list[list[tuple[int, Any]]] = [[] for _ in range(size)]
    for places, weights in ((line.low, line.rest), (line.high, line.share)):
        for number, (place, weight) in enumerate(zip(places.tolist(), weights, strict=True)):
            given[place].append((number, weight))
    most = max(map(len, given))
    takes, shares = np.full((most, size, channels), -1, np.int32), np.zeros((most, size), dtype)
    inner = np.arange(channels, dtype=np.int32)
    for place, found in enumerate(given):
        for k, (number, weight) in enumerate(found):
            takes[k, place] = number * channels + inner
            shares[k, place] = weight
    return _Back(most, takes, np.ascontiguousarray(np.repeat(shares, channels, axis=1)))


def _of(op: Operation) -> tuple[str, bool, bool] | None:
    """Return the code of an operation's dtype and how it resamples; None where no loop has it."""
    code, attrs = code_of(op.inputs[0].dtype.numpy), op.attrs
    if code not in ("f32", "f64") or attrs["method"] != "bilinear":
        return None
    assert code is not None
    return code, attrs["align_corners"], attrs["half_pixel_centers"]


def _sizes(images: Any, size: Any) -> tuple[int, int] | None:
    """Return the other height and width, None where the plain kernel has something to say."""
    if images.ndim != 4 or size.shape != (2,) or not images.size:
        return None
    down, across = (int(n) for n in size.tolist())
    count, height, width, channels = images.shape
    # Rows resampled along one axis only are as large as the larger of both.
    largest = count * max(down, height) * max(across, width) * channels
    return (down, across) if min(down, across) > 0 and largest <= _MOST_ELEMENTS else None


def _resize_job(op: Operation) -> Job | None:
    found = _of(op)
    if found is None:
        return None
    code, *ways = found

    def run(calls: Sequence[Call], threads: int, images: Any, size: Any) -> Any:
        sizes = _sizes(images, size)
        if sizes is None:
            return None
        images = np.ascontiguousarray(images)
        count, height, width, channels = images.shape
        down, across = sizes
        name = images.dtype.name
        up, along = _line(height, down, *ways, name, 0), _line(width, across, *ways, name, channels)
        out = np.empty((count, down, across, channels), images.dtype)
        team = min(team_for(2 * out.size, threads), count * down)
        scratch = np.empty(team * (2 * across * channels * out.itemsize + 16) // 8 + 1, np.int64)
        lines = (up.low, up.high, up.share, along.low, along.high, along.share, scratch)
        dims = count, height, width, channels, down, across
        calls[0](team, address(images), address(out), *dims, *map(address, lines))
        return out

    return Job([NativeLoop("resize", _RESIZE_WORDS, _RESIZE, {"T": code})], run)


def _gradient_job(op: Operation) -> Job | None:
    found = _of(op)
    if found is None:
        return None
    code, *ways = found

    def run(calls: Sequence[Call], threads: int, grad: Any, size: Any) -> Any:
        sizes = _sizes(grad, size)
        if sizes is None:
            return None
        grad = np.ascontiguousarray(grad)
        count, down, across, channels = grad.shape
        height, width = sizes
        name = grad.dtype.name
        up, along = (_line(a, b, *ways, name, 0) for a, b in ((height, down), (width, across)))
        back = _back(width, across, *ways, name, channels) if channels < _WIDE else _NONE
        out = np.empty((count, height, width, channels), grad.dtype)
        team = min(team_for(4 * max(out.size, grad.size), threads), count)
        scratch = np.empty(team * height * across * channels, grad.dtype)
        dims = count, height, width, channels, down, across
        lines = map(address, (*up, *along))
        ends = back.most, address(back.takes), address(back.shares), address(scratch)
        calls[0](team, address(grad), address(out), *dims, *lines, *ends)
        return out

    text = _GRADIENT.replace("WIDE", str(_WIDE))
    return Job([NativeLoop("resize_gradient", _GRADIENT_WORDS, text, {"T": code})], run)


_NONE = _Back(0, np.empty(0, np.int32), np.empty(0, np.float32))

JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "Resize": _resize_job,
    "ResizeGrad": _gradient_job,
}
