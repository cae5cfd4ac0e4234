"""Values and shapes that only a step can know, and that kernels refuse."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, ShapeError
from headrace.ops.conv import conv2d_to_filter, conv2d_to_input
from headrace.ops.indexing import strided_slice_grad
from headrace.ops.joining import _split, _unstack
from headrace.ops.nn import softmax_cross_entropy, sparse_softmax_cross_entropy
from headrace.ops.pool import max_pool_grad
from headrace.ops.reduce import sum_to_shape

I32, F32 = np.int32, np.float32
ROWS = np.zeros((3, 2), F32)
IMAGES = np.zeros((1, 4, 4, 2), F32)
CONV = {"strides": (1, 1), "padding": "SAME", "data_format": "NHWC", "dilations": (1, 1)}
POOL = {"ksize": (2, 2), "strides": (2, 2), "padding": "VALID", "data_format": "NHWC"}
SLICE = {"entries": "s", "open_begin": "0", "open_end": "0"}


def ints(*values):
    return np.array(values, I32)


REJECTED = {
    "gather_above": (hr.gather, [ROWS, ints(0, 3)], r"index 3 is out of range \[0, 3\)"),
    "gather_negative": (hr.gather, [ROWS, ints(-1)], r"index -1 is out of range \[0, 3\)"),
    "gather_nothing": (
        hr.gather,
        [ROWS[:0], ints(0)],
        r"index 0 is out of range \[0, 0\) of axis 0",
    ),
    "gather_axis": (
        lambda p, i: hr.gather(p, i, axis=2),
        [ROWS, ints(0)],
        "axis 2 is out of range",
    ),
    "segment_above": (
        hr.unsorted_segment_sum,
        [ROWS, ints(0, 1, 2), I32(2)],
        r"index 2 is out of range \[0, 2\) of 2 segments",
    ),
    "segment_count": (
        hr.unsorted_segment_sum,
        [ROWS, ints(0, 1, 1), I32(-1)],
        "num_segments must be >= 0, got -1",
    ),
    "segment_shape": (
        hr.unsorted_segment_sum,
        [ROWS, ints(0, 1), I32(2)],
        r"leading axes of data \[3, 2\], got shape \[2\]",
    ),
    "labels_above": (
        lambda f, y: sparse_softmax_cross_entropy(f, y)[0],
        [ROWS, ints(0, 1, 2)],
        "index 2 is out of range .* of the 2 classes",
    ),
    "labels_negative": (
        lambda f, y: sparse_softmax_cross_entropy(f, y)[0],
        [ROWS, ints(0, -1, 1)],
        "index -1 is out of range",
    ),
    "labels_shape": (
        lambda f, y: sparse_softmax_cross_entropy(f, y)[0],
        [ROWS, ints(0, 1)],
        r"labels must have shape \[3\], got \[2\]",
    ),
    "logits_rank": (
        lambda f, y: softmax_cross_entropy(f, y)[0],
        [ROWS[0], ROWS[0]],
        r"logits must have 2 dimensions, got shape \[2\]",
    ),
    "softmax_scalar": (hr.nn.softmax, [F32(1)], "axis -1 is out of range for 0 dimensions"),
    "floordiv": (lambda x, y: x // y, [ints(1, 2), ints(1, 0)], "integer division by zero"),
    "floormod": (lambda x, y: x % y, [ints(1, 2), ints(1, 0)], "integer division by zero"),
    "power": (lambda x, y: x**y, [ints(2, 2), ints(1, -3)], "expected exponents >= 0, got -3"),
    "broadcast": (lambda x, y: x + y, [ROWS, ROWS.T], "shapes of the inputs do not broadcast"),
    "matmul_inner": (hr.matmul, [ROWS, ROWS], r"inner dimensions differ: 2 of a \[3, 2\]"),
    "matmul_vector": (hr.matmul, [ROWS, ROWS[0]], r"at least 2 dimensions.*\[3, 2\] and \[2\]"),
    "reshape": (
        hr.reshape,
        [ROWS, ints(4)],
        r"6 elements of shape \[3, 2\] do not fit shape \[4\]",
    ),
    "reshape_free": (hr.reshape, [ROWS, ints(-1, 4)], r"do not fit shape \[-1, 4\]"),
    "reshape_two": (
        hr.reshape,
        [ROWS, ints(-1, -1)],
        r"dimensions >= 0 and one -1, got \[-1, -1\]",
    ),
    "reshape_below": (
        hr.reshape,
        [ROWS, ints(-2, 3)],
        r"dimensions >= 0 and one -1, got \[-2, 3\]",
    ),
    "transpose": (
        lambda x: hr.transpose(x, [2, 0, 1]),
        [ROWS],
        r"by \[2, 0, 1\] must have 3 dimensions, got shape \[3, 2\]",
    ),
    "squeeze": (lambda x: hr.squeeze(x, 0), [ROWS], "has size 3, expected 1"),
    "expand_dims": (lambda x: hr.expand_dims(x, 5), [ROWS], "axis 5 is out of range for 3"),
    "concat": (lambda x, y: hr.concat([x, y], 0), [ROWS, ROWS[:, :1]], "must match exactly"),
    "stack": (lambda x, y: hr.stack([x, y]), [ROWS, ROWS[0]], "same shape"),
    "unstack": (lambda x: _unstack(x, 2), [ROWS], r"has size 3, expected 2"),
    "split": (lambda x: _split(x, [1, 1]), [ROWS], r"\[1, 1\] add up to 2, axis 0 .* has size 3"),
    "broadcast_to": (
        hr.broadcast_to,
        [ROWS, ints(2, 2)],
        r"\[3, 2\] does not broadcast to \[2, 2\]",
    ),
    "tile": (lambda x: hr.tile(x, [2]), [ROWS], "multiples must be 2 integers >= 0"),
    "pad": (lambda x: hr.pad(x, [[1, 1]]), [ROWS], r"paddings must have shape \[2, 2\]"),
    "fill_dims": (
        lambda d: hr.fill(d, 1.0),
        [ints(2, -1)],
        r"dimensions must be >= 0, got \[2, -1\]",
    ),
    "fill_value": (hr.fill, [ints(2), ROWS], "value must be a scalar, got shape"),
    "range_step": (hr.range, [I32(0), I32(5), I32(0)], "delta must not be 0"),
    "range_infinite": (hr.range, [F32(0), F32(np.inf), F32(1)], "a range must be finite"),
    "slice_step": (lambda x, s: x[0:2:s], [ROWS, I32(0)], "step of a slice must not be 0"),
    "element": (
        lambda x, i: x[hr.reshape(i, [])],
        [ROWS, I32(3)],
        r"index 3 is out of range for axis 0 of \[3, 2\]",
    ),
    "slice_grad": (
        lambda n, b, e, s, dy: strided_slice_grad(n, b, e, s, dy, **SLICE),
        [ints(4), ints(0), ints(2), ints(1), np.zeros(3, F32)],
        r"dy must have shape \[2\], got \[3\]",
    ),
    "argmax": (hr.argmax, [ROWS[:0]], r"axis 0 of shape \[0, 2\] is empty"),
    "sum_to_shape": (sum_to_shape, [ROWS, ints(3, 3)], r"\[3, 3\] does not broadcast to \[3, 2\]"),
    "conv_rank": (
        lambda x, w: hr.nn.conv2d(x, w),
        [ROWS, np.zeros((1, 1, 2, 3), F32)],
        r"input must have 4 dimensions, got shape \[3, 2\]",
    ),
    "conv_channels": (
        lambda x, w: hr.nn.conv2d(x, w),
        [IMAGES, np.zeros((1, 1, 3, 3), F32)],
        "the input has 2 channels, which is no multiple of the 3",
    ),
    "conv_window": (
        lambda x, w: hr.nn.conv2d(x, w, padding="VALID"),
        [IMAGES, np.zeros((5, 1, 2, 3), F32)],
        r"reaches over 5 elements does not fit into an image of shape \[4, 4\]",
    ),
    "conv_grad_shape": (
        lambda n, w, g: conv2d_to_input(n, w, g, **CONV),
        [ints(1, 4, 4, 2), np.zeros((1, 1, 2, 3), F32), np.zeros((1, 4, 3, 3), F32)],
        r"out_backprop must have shape \[1, 4, 4, 3\], got \[1, 4, 3, 3\]",
    ),
    "conv_sizes": (
        lambda x, n, g: conv2d_to_filter(x, n, g, **CONV),
        [IMAGES, ints(1, 1, 2), IMAGES],
        r"filter_sizes must have 4 elements, got \[1, 1, 2\]",
    ),
    "pool_window": (
        lambda x: hr.nn.max_pool(x, 5, 1, "VALID"),
        [IMAGES],
        "reaches over 5 elements does not fit",
    ),
    "pool_grad_shape": (
        lambda x, g: max_pool_grad(x, g, **POOL),
        [IMAGES, IMAGES],
        r"the gradient must have shape \[1, 2, 2, 2\], got \[1, 4, 4, 2\]",
    ),
    "random_bounds": (
        lambda low, high: hr.random_uniform([2], low, high, dtype=hr.int32),
        [I32(3), I32(3)],
        r"maxval must be above minval, got \[3, 3\)",
    ),
    "random_shape": (lambda n: hr.random_normal(n), [ints(-2)], "dimensions must be >= 0"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_when_it_runs(run_fed, name):
    build, values, match = REJECTED[name]
    # What does not broadcast is found out by the executor, whatever the op.
    error = ShapeError if name == "broadcast" else ExecutionError
    with pytest.raises(error, match=match) as caught:
        run_fed(build, *values)
    text = str(caught.value)
    assert len(text.splitlines()) <= 12
    assert "backend_cpu" in text.splitlines()[-1]
