"""Mistakes that are refused while the graph is built: one message, with the user's line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    MAX_LINES,
    AttributeValueError,
    DTypeError,
    GraphError,
    HeadraceError,
    ShapeError,
)


def f32(*dims):
    return hr.placeholder(hr.float32, dims)


def i32(*dims):
    return hr.placeholder(hr.int32, dims)


CATALOGUE = {
    "matmul inner": (
        lambda: hr.matmul(f32(2, 3), f32(4, 5)),
        ShapeError,
        "inner dimensions differ: 3",
    ),
    "matmul rank": (lambda: hr.matmul(f32(3), f32(3, 2)), ShapeError, "at least 2 dimensions"),
    "add shapes": (lambda: f32(2, 3) + f32(2, 4), ShapeError, r"do not broadcast: 3 against 4"),
    "where rows": (
        lambda: hr.where([True, False, True], f32(2, 2), f32(2, 2)),
        ShapeError,
        r"condition of shape \[3\] chooses rows, and \[2, 2\] has 2 of them",
    ),
    "slice beyond the end": (
        lambda: hr.slice(f32(3), [2], [2]),
        ShapeError,
        r"2 elements from 2 on do not lie within axis 0 of \[3\]",
    ),
    "slice from the end": (
        lambda: hr.slice(f32(None), [-1], [1]),
        ShapeError,
        r"1 elements from -1 on do not lie within axis 0",
    ),
    "slice of some axes": (
        lambda: hr.slice(f32(1, 3), [0], [1]),
        ShapeError,
        r"one entry per dimension of \[1, 3\], got shape \[1\]",
    ),
    "mixed dtypes": (lambda: f32(2) + i32(2), DTypeError, "y is int32 where x is float32"),
    "int exp": (lambda: hr.exp(i32(2)), DTypeError, "must be floating or complex, got int32"),
    "string product": (lambda: hr.multiply("a", "b"), DTypeError, "must be numeric, got string"),
    "fraction to int": (lambda: i32(2) + 1.5, DTypeError, "1.5 is float32, expected int32"),
    "overflow": (lambda: hr.placeholder(hr.uint8, [2]) + 300, DTypeError, "300 does not fit uint8"),
    "bool logic": (lambda: hr.logical_and(f32(2), f32(2)), DTypeError, "must be bool, got float32"),
    "axis range": (lambda: hr.reduce_sum(f32(2, 3), axis=2), ShapeError, "axis 2 is out of range"),
    "argmax scalar": (lambda: hr.argmax(f32()), ShapeError, "a scalar has no axis"),
    "argmax empty": (lambda: hr.argmax(f32(0)), ShapeError, "is empty"),
    "argmax type": (
        lambda: hr.argmax(f32(2), output_type=hr.float32),
        DTypeError,
        "must be an integer dtype",
    ),
    "reshape count": (lambda: hr.reshape(f32(2, 3), [4]), ShapeError, "6 elements of shape"),
    "reshape free": (lambda: hr.reshape(f32(2, 3), [-1, -1]), ShapeError, "one -1"),
    "reshape dtype": (lambda: hr.reshape(f32(2), [1.0]), DTypeError, "must be int32 or int64"),
    "transpose perm": (lambda: hr.transpose(f32(2, 3), [0, 0]), ShapeError, "no permutation"),
    "transpose rank": (lambda: hr.transpose(f32(2, 3), [0, 1, 2]), ShapeError, "rank 2"),
    "concat rank": (lambda: hr.concat([f32(2), f32(2, 2)], 0), ShapeError, "ranks 1 and 2"),
    "concat dims": (lambda: hr.concat([f32(2, 3), f32(2, 4)], 0), ShapeError, "differ in axis 1"),
    "concat scalars": (lambda: hr.concat([f32(), f32()], 0), ShapeError, "use stack"),
    "concat none": (lambda: hr.concat([], 0), AttributeValueError, "at least one tensor"),
    "concat dtype": (lambda: hr.concat([f32(2), i32(2)], 0), DTypeError, "values is int32"),
    "stack shapes": (lambda: hr.stack([f32(2), f32(3)]), ShapeError, "incompatible"),
    "unstack unknown": (lambda: hr.unstack(f32(None, 2)), ShapeError, "pass num="),
    "split": (lambda: hr.split(f32(5), 2), ShapeError, "does not divide into 2"),
    "split sizes": (lambda: hr.split(f32(5), [2, 2]), ShapeError, "add up to 4"),
    "squeeze": (lambda: hr.squeeze(f32(2, 3), [0]), ShapeError, "has size 2, not 1"),
    "gather ids": (lambda: hr.gather(f32(2), f32(2)), DTypeError, "indices must be int32 or int64"),
    "index range": (lambda: f32(2)[5], ShapeError, "index 5 is out of range"),
    "index many": (lambda: f32(2)[0, 0], ShapeError, "2 indices for a tensor"),
    "index list": (lambda: f32(2)[[0, 1]], AttributeValueError, "use hr.gather"),
    "index step": (lambda: f32(2)[::0], AttributeValueError, "step must not be 0"),
    "index ellipses": (lambda: f32(2)[..., ...], AttributeValueError, "one ellipsis"),
    "tile": (lambda: hr.tile(f32(2, 2), [2]), ShapeError, "1 multiples"),
    "tile negative": (lambda: hr.tile(f32(2), [-1]), AttributeValueError, ">= 0"),
    "pad": (lambda: hr.pad(f32(2), [[1, -1]]), AttributeValueError, "paddings must be >= 0"),
    "pad mode": (lambda: hr.pad(f32(2), [[1, 1]], "WRAP"), AttributeValueError, "mode must be"),
    "broadcast": (lambda: hr.broadcast_to(f32(3), [2]), ShapeError, "does not broadcast|do not"),
    "range": (lambda: hr.range(0, 5, 0), AttributeValueError, "must not be 0"),
    "depth": (lambda: hr.one_hot([0], -1), AttributeValueError, "depth must be >= 0"),
    "softmax scalar": (lambda: hr.nn.softmax(f32()), ShapeError, "at least 1 dimension"),
    "xent shapes": (
        lambda: hr.nn.softmax_cross_entropy_with_logits(labels=f32(2, 3), logits=f32(2, 4)),
        ShapeError,
        "must have one shape",
    ),
    "xent names": (
        lambda: hr.nn.softmax_cross_entropy_with_logits(f32(2, 3), f32(2, 3)),
        ShapeError,
        "both by name",
    ),
    "sparse labels": (
        lambda: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=i32(3), logits=f32(2, 4)),
        ShapeError,
        "one entry per row",
    ),
    "conv channels": (
        lambda: hr.nn.conv2d(f32(1, 8, 8, 3), f32(3, 3, 4, 8), [1, 1, 1, 1], "SAME"),
        ShapeError,
        "has 3 channels",
    ),
    "conv rank": (
        lambda: hr.nn.conv2d(f32(8, 8, 3), f32(3, 3, 3, 8), [1, 1, 1, 1], "SAME"),
        ShapeError,
        "must have 4 dimensions",
    ),
    "conv padding": (
        lambda: hr.nn.conv2d(f32(1, 8, 8, 3), f32(3, 3, 3, 8), [1, 1, 1, 1], "HALF"),
        AttributeValueError,
        "'SAME' or 'VALID'",
    ),
    "conv strides": (
        lambda: hr.nn.conv2d(f32(1, 8, 8, 3), f32(3, 3, 3, 8), [2, 1, 1, 1], "SAME"),
        AttributeValueError,
        "must be 1 along batch",
    ),
    "conv window": (
        lambda: hr.nn.conv2d(f32(1, 2, 2, 3), f32(3, 3, 3, 8), [1, 1, 1, 1], "VALID"),
        ShapeError,
        "does not fit",
    ),
    "conv layout": (
        lambda: hr.nn.conv2d(f32(1, 8, 8, 3), f32(3, 3, 3, 8), 1, "SAME", data_format="HWCN"),
        AttributeValueError,
        "'NHWC' or 'NCHW'",
    ),
    "pool ksize": (
        lambda: hr.nn.max_pool(f32(1, 8, 8, 3), [1, 0, 2, 1], [1, 2, 2, 1], "SAME"),
        AttributeValueError,
        "integers >= 1",
    ),
    "switch pred": (lambda: hr.switch(f32(2), hr.placeholder(hr.bool, [2])), ShapeError, "scalar"),
    "assign shape": (lambda: hr.assign(hr.Variable([1.0]), [1.0, 2.0]), ShapeError, "has shape"),
    "assign dtype": (lambda: hr.assign(hr.Variable([1.0]), i32(1)), DTypeError, "holds float32"),
    "assign tensor": (lambda: hr.assign(f32(1), [1.0]), GraphError, "expected a Variable"),
    "variable none": (lambda: hr.Variable(None), DTypeError, "needs an initial_value"),
    "random dtype": (lambda: hr.random_normal([2], dtype=hr.int32), DTypeError, "must be floating"),
    "random max": (
        lambda: hr.random_uniform([2], dtype=hr.int32),
        AttributeValueError,
        "need maxval",
    ),
    "ragged": (lambda: hr.constant([[1.0], [1.0, 2.0]]), ShapeError, "ragged"),
    "object": (lambda: hr.constant([object()]), DTypeError, "converts to no tensor"),
    "fill shape": (lambda: hr.constant([1, 2, 3], shape=[2]), ShapeError, "does not fill"),
    "cast string": (
        lambda: hr.cast(hr.constant("a"), hr.int32),
        DTypeError,
        "not converted by cast",
    ),
    "segment": (
        lambda: hr.unsorted_segment_sum(f32(3, 2), i32(2), 4),
        ShapeError,
        "must be the leading axes",
    ),
    "scatter": (
        lambda: hr.scatter_add(hr.Variable(np.zeros((3, 2), "f")), [0], [[1.0]]),
        ShapeError,
        r"updates must have shape \[1, 2\]",
    ),
}


@pytest.mark.parametrize("name", CATALOGUE)
def test_mistake_is_refused_at_construction(name):
    build, error, match = CATALOGUE[name]
    with pytest.raises(error, match=match) as caught:
        build()
    assert isinstance(caught.value, HeadraceError)
    assert len(str(caught.value).splitlines()) <= MAX_LINES


OP_MISTAKES = [name for name in CATALOGUE if name.split()[0] in ("matmul", "add", "conv", "concat")]


@pytest.mark.parametrize("name", ["matmul inner", "add shapes", "mixed dtypes", "axis range"])
def test_message_names_op_inputs_and_line(name):
    build, error, _ = CATALOGUE[name]
    with pytest.raises(error, match=r"test_build_errors\.py:") as caught:
        build()
    text = str(caught.value)
    assert re.search(r"inputs: \S+: (float32|int32)\[", text)


def test_unknown_argument_is_pythons_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        hr.reduce_sum(f32(2), axes=0)
