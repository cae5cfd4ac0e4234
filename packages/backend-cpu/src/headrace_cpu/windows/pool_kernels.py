"""Kernels of pools: loops over windows with the channels innermost, where they are neighbours.

A task is an image, or, where there are fewer images than threads, some channels of an image: no two
threads write to the same element, so that gradients can be added up in place.
"""

from __future__ import annotations

from headrace_cpu.native.source import KernelSource
from headrace_cpu.windows.text import WINDOWS, kernel

POOL = ("x", "y", "strips", *WINDOWS)
MAX_POOL_GRAD = ("x", "grad", "y", "scratch", "scratch_step", "strips", *WINDOWS)

# Rows of windows of some channels are a task of what is not added up.
_ROWS = """\
low_row, high_row = 0, 0
if me < team:
    low_row = me * (images * out_height) // team
    high_row = (me + 1) * (images * out_height) // team
for task in range(low_row, high_row):
    image = task // out_height
    oy = task - image * out_height
    iy0 = oy * stride_y - top
    for ox in range(out_width):
        ix0 = ox * stride_x - left
        put = y + (task * out_width + ox) * channels * SIZE
"""

# Each part of the windows' elements that lie inside: ``take`` is its place.
_ELEMENTS = """\
for ky in range(window_height):
    iy = iy0 + ky * step_y
    if iy < 0 or iy >= height:
        continue
    for kx in range(window_width):
        ix = ix0 + kx * step_x
        if ix < 0 or ix >= width:
            continue
"""

_MAX = """\
fresh = True
ELEMENTS
        take = x + ((image * height + iy) * width + ix) * channels * SIZE
        if fresh:
            fresh = False
            for c in range(channels):
                store_T(put, c, load_T(take, c, 0), 1)
        else:
            for c in range(channels):
                old, new = load_T(put, c, 1), load_T(take, c, 0)
                store_T(put, c, where(logical_or(new > old, new != new), new, old), 1)
if fresh:
    for c in range(channels):
        store_T(put, c, -infinity, 1)
"""

_MEAN = """\
count = 0
for c in range(channels):
    store_T(put, c, zero, 1)
ELEMENTS
        take = x + ((image * height + iy) * width + ix) * channels * SIZE
        count += 1
        for c in range(channels):
            store_T(put, c, load_T(put, c, 1) + load_T(take, c, 0), 1)
share = to_T(maximum(1, count))
for c in range(channels):
    store_T(put, c, load_T(put, c, 1) / share, 1)
"""

# Rows of the images are set to 0 just before the first window reaches them.
_IMAGES = """\
for task in range(me, images * strips, team):
    image = task // strips
    strip = task - image * strips
    low = strip * channels // strips
    some = (strip + 1) * channels // strips - low
    clean = 0
    for oy in range(out_height):
        iy0 = oy * stride_y - top
        reach = minimum(height, iy0 + (window_height - 1) * step_y + 1)
        if oy == out_height - 1:
            reach = height
        for iy in range(clean, reach):
            for ix in range(width):
                put = y + (((image * height + iy) * width + ix) * channels + low) * SIZE
                for c in range(some):
                    store_T(put, c, zero, 1)
        clean = maximum(clean, reach)
        for ox in range(out_width):
            ix0 = ox * stride_x - left
            outer = grad + (((image * out_height + oy) * out_width + ox) * channels + low) * SIZE
"""

# The place of the first maximum is a number of the elements' own kind, in scratch memory beside
# the maximum. NaN counts as the maximum, and padding never does.
_MAX_GRAD = """\
best = scratch + me * scratch_step
at = best + channels * SIZE
place = 0.0
fresh = True
ELEMENTS
        take = x + (((image * height + iy) * width + ix) * channels + low) * SIZE
        place += 1.0
        if fresh:
            fresh = False
            for c in range(some):
                store_T(best, c, load_T(take, c, 0), 2)
                store_T(at, c, one, 3)
        else:
            mark = to_T(place)
            for c in range(some):
                old, new = load_T(best, c, 2), load_T(take, c, 0)
                better = logical_or(new > old, logical_and(new != new, old == old))
                store_T(best, c, where(better, new, old), 2)
                store_T(at, c, where(better, mark, load_T(at, c, 3)), 3)
place = 0.0
ELEMENTS
        put = y + (((image * height + iy) * width + ix) * channels + low) * SIZE
        place += 1.0
        mark = to_T(place)
        for c in range(some):
            hit = load_T(at, c, 3) == mark
            store_T(put, c, load_T(put, c, 1) + where(hit, load_T(outer, c, 0), zero), 1)
"""

_MEAN_GRAD = """\
count = 0
ELEMENTS
        count += 1
share = to_T(maximum(1, count))
ELEMENTS
        put = y + (((image * height + iy) * width + ix) * channels + low) * SIZE
        for c in range(some):
            store_T(put, c, load_T(put, c, 1) + load_T(outer, c, 0) / share, 1)
"""
AVG_POOL_GRAD = ("grad", "y", "strips", *WINDOWS)


def _body(outer: str, depth: int, inner: str, start: str = "") -> str:
    """Return the loops over windows around what is done for each of them."""
    text = inner.replace("ELEMENTS\n", _ELEMENTS)
    return start + outer + "".join(f"{' ' * depth}{line}\n" for line in text.splitlines())


def max_pool(dtype: str) -> KernelSource:
    """Return the kernel of the maxima of windows; NaN where a window holds one."""
    return kernel("max_pool", POOL, _body(_ROWS, 8, _MAX), dtype)


def avg_pool(dtype: str) -> KernelSource:
    """Return the kernel of the means of windows."""
    return kernel("avg_pool", POOL, _body(_ROWS, 8, _MEAN), dtype)


def max_pool_grad(dtype: str) -> KernelSource:
    """Return the kernel of the gradient at the first maximum of each window."""
    body = _body(_IMAGES, 12, _MAX_GRAD)
    return kernel("max_pool_grad", MAX_POOL_GRAD, body, dtype)


def avg_pool_grad(dtype: str) -> KernelSource:
    """Return the kernel of the gradient of means."""
    return kernel("avg_pool_grad", AVG_POOL_GRAD, _body(_IMAGES, 12, _MEAN_GRAD), dtype)
