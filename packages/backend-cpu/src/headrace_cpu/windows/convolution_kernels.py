"""Kernels of convolution: blocks of the matrix of windows, multiplied while they are in the cache.

The windows of a block of rows are copied beside one another for some rows of the filter at a time
(a chunk), and BLAS multiplies them with these rows of the filter. Each thread has a block of its
own and calls a BLAS that stays on the thread.

References:
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing, 2006, https://inria.hal.science/inria-00112631
"""

from __future__ import annotations

from textwrap import indent

from headrace_cpu.native.source import KernelSource
from headrace_cpu.windows.text import WINDOWS, kernel

# Runs up to this length are copied by code for exactly that length.
_SHORT_RUN = 40

# ``gather``: words that say how windows fall into runs of neighbours: ``runs`` of them in each row
# of a window, each over ``run_width`` pixels, that is ``run`` elements.
_RUNS = ("runs", "run_width", "run")

CONVOLVE = (
    *("x", "filter", "y", "scratch", "scratch_step", "gemm", "filters"),
    *("blocks", "per_chunk", "is_matmul", *_RUNS, *WINDOWS),
)
TO_FILTER = (
    *("x", "grad", "filter", "partial", "scratch", "scratch_step", "gemm", "filters"),
    *("row_splits", "filter_splits", "block_rows", "per_chunk", "is_matmul", *_RUNS, *WINDOWS),
)
TO_ACTIVATIONS = (
    *("grad", "filter", "x", "scratch", "scratch_step", "gemm", "filters"),
    *("block_rows", "per_chunk", *_RUNS, *WINDOWS),
)
TRANSPOSE = ("filter", "transposed", "elements", "channels", "filters")

# Copies the windows first..last, of the filter's rows low..high, to ``room``. Windows in one row of
# an image are copied run by run: those from ``begin`` to ``end`` lie inside the image, so that
# their loop has nothing to check.
_GATHER = """\
image = first // (out_height * out_width)
rest = first - image * out_height * out_width
oy = rest // out_width
ox = rest - oy * out_width
put = room
row = first
while row < last:
    count = minimum(last - row, out_width - ox)
    for ky in range(low, high):
        iy = oy * stride_y - top + ky * step_y
        line = x + (image * height + iy) * width * channels * SIZE
        for kx in range(runs):
            ix = ox * stride_x - left + kx * step_x
            column = put + ((ky - low) * runs + kx) * RUN * SIZE
            begin, end = count, count
            if iy >= 0 and iy < height:
                begin = minimum(count, divided(maximum(0, stride_x - 1 - ix), stride_x))
                fit = divided(maximum(0, width - run_width - ix + stride_x), stride_x)
                end = maximum(begin, minimum(count, fit))
            take = line + (ix + begin * stride_x) * channels * SIZE
            into = column + begin * depth * SIZE
            for window in range(begin, end):
                for i in range(RUN):
                    store_T(into, i, load_T(take, i, 0), 1)
                take += stride_x * channels * SIZE
                into += depth * SIZE
            for side in range(2):
                for window in range(side * end, begin + side * (count - begin)):
                    at = ix + window * stride_x
                    start, stop = RUN, RUN
                    if iy >= 0 and iy < height:
                        start = minimum(RUN, maximum(0, -at * channels))
                        stop = maximum(start, minimum(RUN, (width - at) * channels))
                    take = line + at * channels * SIZE
                    into = column + window * depth * SIZE
                    for i in range(start):
                        store_T(into, i, zero, 1)
                    for i in range(start, stop):
                        store_T(into, i, load_T(take, i, 0), 1)
                    for i in range(stop, RUN):
                        store_T(into, i, zero, 1)
    put += count * depth * SIZE
    row += count
    ox = 0
    oy += 1
    if oy == out_height:
        oy = 0
        image += 1
"""

_CONVOLVE = """\
rows = images * out_height * out_width
breadth = window_width * channels
mine = scratch + me * scratch_step
for number in range(me, blocks, team):
    first = number * rows // blocks
    last = (number + 1) * rows // blocks
    beta = zero
    out = y + first * filters * SIZE
    for low in range(0, window_height, per_chunk):
        high = minimum(window_height, low + per_chunk)
        depth = (high - low) * breadth
        room = mine
        if is_matmul != 0:
            room = x + first * channels * SIZE
        else:
GATHER
        part = filter + low * breadth * filters * SIZE
        gemm_T(gemm, 0, 0, filters, last - first, depth, part, filters, room, depth, beta, out,
               filters)
        beta = one
"""

_TO_FILTER = """\
rows = images * out_height * out_width
breadth = window_width * channels
mine = scratch + me * scratch_step
whole = window_height * breadth * filters
for task in range(me, row_splits * filter_splits, team):
    split = task // filter_splits
    part = task - split * filter_splits
    left_filter = part * filters // filter_splits
    some = (part + 1) * filters // filter_splits - left_filter
    start_row = split * rows // row_splits
    end_row = (split + 1) * rows // row_splits
    total = filter
    if split != 0:
        total = partial + (split - 1) * whole * SIZE
    beta = zero
    for first in range(start_row, end_row, block_rows):
        last = minimum(end_row, first + block_rows)
        outer = grad + (first * filters + left_filter) * SIZE
        for low in range(0, window_height, per_chunk):
            high = minimum(window_height, low + per_chunk)
            depth = (high - low) * breadth
            room = mine
            if is_matmul != 0:
                room = x + first * channels * SIZE
            else:
GATHER
            into = total + (low * breadth * filters + left_filter) * SIZE
            gemm_T(gemm, 0, 1, some, depth, last - first, outer, filters, room, depth, beta, into,
                   filters)
        beta = one
if row_splits > 1:
    if number_of != 0:
        wait(barrier)
    low_place, high_place = 0, 0
    if me < team:
        low_place = me * whole // team
        high_place = (me + 1) * whole // team
    for split in range(row_splits - 1):
        other = partial + split * whole * SIZE
        for i in range(low_place, high_place):
            store_T(filter, i, load_T(filter, i, 0) + load_T(other, i, 1), 0)
"""

# Images are whole tasks, so that no two threads add to the same pixel.
_TO_ACTIVATIONS = """\
breadth = window_width * channels
mine = scratch + me * scratch_step
each = out_height * out_width
pixels = height * width * channels
for image in range(me, images, team):
    target = x + image * pixels * SIZE
    for i in range(pixels):
        store_T(target, i, zero, 0)
    for first in range(0, each, block_rows):
        last = minimum(each, first + block_rows)
        outer = grad + (image * each + first) * filters * SIZE
        for low in range(0, window_height, per_chunk):
            high = minimum(window_height, low + per_chunk)
            depth = (high - low) * breadth
            part = filter + low * breadth * filters * SIZE
            gemm_T(gemm, 1, 0, depth, last - first, filters, part, filters, outer, filters, zero,
                   mine, depth)
            oy = first // out_width
            ox = first - oy * out_width
            take = mine
            for row in range(first, last):
                y0 = oy * stride_y - top
                x0 = ox * stride_x - left
                for ky in range(low, high):
                    iy = y0 + ky * step_y
                    for kx in range(runs):
                        ix = x0 + kx * step_x
                        if iy >= 0 and iy < height:
                            put = target + (iy * width + ix) * channels * SIZE
                            start = minimum(RUN, maximum(0, -ix * channels))
                            end = maximum(start, minimum(RUN, (width - ix) * channels))
                            for i in range(start, end):
                                store_T(put, i, load_T(put, i, 0) + load_T(take, i, 1), 0)
                        take += RUN * SIZE
                ox += 1
                if ox == out_width:
                    ox = 0
                    oy += 1
"""

# The elements of the filter in the other order, each transposed, 16 by 16 elements at a time.
_TRANSPOSE = """\
strips = (channels + 15) // 16
for task in range(me, elements * strips, team):
    element = task // strips
    c0 = (task - element * strips) * 16
    c1 = minimum(channels, c0 + 16)
    source = filter + element * channels * filters * SIZE
    target = transposed + (elements - 1 - element) * channels * filters * SIZE
    for n0 in range(0, filters, 16):
        n1 = minimum(filters, n0 + 16)
        for n in range(n0, n1):
            for c in range(c0, c1):
                store_T(target, n * channels + c, load_T(source, c * filters + n, 0), 1)
"""


def _with_gather(body: str) -> str:
    """Put the gathering loops where a body asks for them, as deep as it does."""
    lines: list[str] = []
    for line in body.splitlines():
        if line == "GATHER":
            depth = len(lines[-1]) - len(lines[-1].lstrip()) + 4
            lines.append(indent(_GATHER, " " * depth).rstrip())
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _sized(name: str, words: tuple[str, ...], body: str, dtype: str, run: int) -> KernelSource:
    if run <= _SHORT_RUN:
        return kernel(name, words, body, dtype, RUN=run)
    return kernel(name, words, body.replace("RUN", "run"), dtype)


def convolve(dtype: str, run: int) -> KernelSource:
    """Return the kernel of a convolution.

    Args:
        dtype: "float32" or "float64".
        run: How many elements of a window are neighbours in the images.
    """
    return _sized("convolve", CONVOLVE, _with_gather(_CONVOLVE), dtype, run)


def to_filter(dtype: str, run: int) -> KernelSource:
    """Return the kernel of the gradient for the filter; ``run`` as for a convolution."""
    return _sized("convolve_to_filter", TO_FILTER, _with_gather(_TO_FILTER), dtype, run)


def to_activations(dtype: str, run: int) -> KernelSource:
    """Return the kernel of the gradient for the images; ``run`` as for a convolution."""
    return _sized("convolve_to_activations", TO_ACTIVATIONS, _TO_ACTIVATIONS, dtype, run)


def transpose(dtype: str) -> KernelSource:
    """Return the kernel that flips a filter and transposes its channels, in and out."""
    return kernel("transpose_filter", TRANSPOSE, _TRANSPOSE, dtype)
