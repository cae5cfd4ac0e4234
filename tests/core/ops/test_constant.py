"""Constants, fills, ranges, masks and identity matrices in all their forms."""

from __future__ import annotations

import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    ShapeError,
    ShapeTypeError,
)
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "constant filled": (
        lambda: hr.constant([1, 2, 3], shape=[2, 3]),
        np.int32([[1, 2, 3], [3, 3, 3]]),
    ),
    "constant one": (lambda: hr.constant("a", shape=[2]), np.array([b"a", b"a"], object)),
    "constant none": (lambda: hr.constant([], shape=[2]), np.zeros(2, np.float32)),
    "constant positional": (
        lambda: hr.constant([1, 2], hr.float32, [2], "c", True),
        np.float32([1, 2]),
    ),
    "zeros number": (lambda: hr.zeros(3), np.zeros(3, np.float32)),
    "zeros scalar": (lambda: hr.zeros(fed(np.int32(3), [])), np.zeros(3, np.float32)),
    "zeros mixed": (
        lambda: hr.zeros([fed(np.int32(2), []), 3], hr.int64),
        np.zeros((2, 3), np.int64),
    ),
    "zeros strings": (lambda: hr.zeros([2], hr.string), np.array([b"", b""], object)),
    "ones bool": (lambda: hr.ones([2], hr.bool), np.array([True, True])),
    "zeros_like": (
        lambda: hr.zeros_like(fed(X), dtype=hr.bool, optimize=False),
        np.zeros((3, 4), bool),
    ),
    "ones_like": (lambda: hr.ones_like([True, False]), np.array([True, True])),
    "fill": (lambda: hr.fill([fed(np.int32(2), []), 1], "a"), np.array([[b"a"], [b"a"]], object)),
    "range": (lambda: hr.range(5, 1, -2), np.int32([5, 3])),
    "range one": (lambda: hr.range(1.5), np.float32([0, 1])),
    "range mixed": (lambda: hr.range(hr.constant(0), hr.constant(2.5)), np.float32([0, 1, 2])),
    "range dtype": (lambda: hr.range(3, dtype=hr.float64), np.arange(3.0)),
    "linspace": (
        lambda: hr.linspace(0.0, 1.0, fed(np.int32(5), [])),
        np.float32([0, 0.25, 0.5, 0.75, 1]),
    ),
    "lin_space one": (lambda: hr.lin_space(3.0, 5.0, 1), np.float32([3])),
    "one_hot": (lambda: hr.one_hot([0, 2, -1], 3), np.float32([[1, 0, 0], [0, 0, 1], [0, 0, 0]])),
    "one_hot values": (
        lambda: hr.one_hot([1], 2, on_value=5, off_value=-1, axis=0),
        np.int32([[-1], [5]]),
    ),
    "one_hot off": (lambda: hr.one_hot([1], 2, off_value=2.0), np.float32([[2, 1]])),
    "one_hot bool": (
        lambda: hr.one_hot([1], fed(np.int32(2), []), True, False),
        np.array([[False, True]]),
    ),
    "one_hot strings": (lambda: hr.one_hot([1], 2, "a", "b"), np.array([[b"b", b"a"]], object)),
    "sequence_mask": (
        lambda: hr.sequence_mask([[1, 3], [2, 0]]),
        np.arange(3) < np.array([[1, 3], [2, 0]])[..., None],
    ),
    "sequence_mask dtype": (
        lambda: hr.sequence_mask([1, 3], fed(np.int32(4), []), hr.float32),
        np.float32([[1, 0, 0, 0], [1, 1, 1, 0]]),
    ),
    "sequence_mask none": (lambda: hr.sequence_mask(np.zeros(0, np.int32)), np.zeros((0, 0), bool)),
    "eye": (lambda: hr.eye(2, 3, [2], hr.int32), np.int32([np.eye(2, 3)] * 2)),
    "eye fed": (
        lambda: hr.eye(fed(np.int32(2), []), batch_shape=fed(np.int32([1]), [1])),
        np.float32([np.eye(2)]),
    ),
}

ERRORS = {
    "constant much": (lambda: hr.constant([1, 2, 3], shape=[2]), ShapeError, "does not fill"),
    "constant verified": (
        lambda: hr.constant([1, 2, 3, 4], shape=[2, 2], verify_shape=True),
        ShapeTypeError,
        "expected a value of shape",
    ),
    "zeros negative": (lambda: hr.zeros([-1]), ShapeError, ">= 0"),
    "zeros fraction": (lambda: hr.zeros([2.5]), DTypeError, "must hold integers"),
    "ones strings": (lambda: hr.ones([1], hr.string), DTypeError, "no string one"),
    "fill": (lambda: hr.fill([2], [1]), ShapeError, "must be a scalar"),
    "range": (lambda: hr.range(5, 1), AttributeValueError, "another step"),
    "range fed": (lambda: hr.range(fed(np.int32(-3), [])), ExecutionError, "another step"),
    "linspace": (
        lambda: hr.linspace(0.0, 1.0, fed(np.int32(0), [])),
        ExecutionError,
        "num must be >= 1",
    ),
    "one_hot value": (lambda: hr.one_hot([0], 2, on_value=[1, 2]), ShapeError, "must be a scalar"),
    "one_hot NumPy dtypes": (
        lambda: hr.one_hot([0], 2, np.float64(1), np.float32(2)),
        DTypeError,
        r"on_value np.float64\(1.0\) is float64 and off_value np.float32\(2.0\) is float32",
    ),
    "one_hot dtypes": (
        lambda: hr.one_hot([0], 2, on_value=np.int64(1), off_value=0),
        DTypeError,
        "is int64 and off_value 0 is int32; convert one",
    ),
    "one_hot dtype": (
        lambda: hr.one_hot([0], 2, on_value=1.5, dtype=hr.int32),
        DTypeError,
        "expected int32",
    ),
    "one_hot depth": (
        lambda: hr.one_hot([0], fed(np.int32(-1), [])),
        ExecutionError,
        "depth must be >= 0",
    ),
    "sequence_mask": (lambda: hr.sequence_mask([1, 3], [2]), ShapeError, "maxlen must be a scalar"),
    "eye": (lambda: hr.eye(-1), ShapeError, "no -1 rows"),
}

SHAPES = {
    "eye": (lambda: hr.eye(3), [3, 3]),
    "sequence_mask": (lambda: hr.sequence_mask([1, 3]), [2, 3]),
    "sequence_mask fed": (lambda: hr.sequence_mask(hr.placeholder(hr.int64, [None]), 5), [None, 5]),
    "range": (lambda: hr.range(1, 10, 3), [3]),
    "one_hot": (lambda: hr.one_hot(hr.placeholder(hr.int32, [None]), hr.constant(3)), [None, 3]),
    "zeros": (lambda: hr.zeros(hr.shape(hr.placeholder(hr.int32, [None, 4]))), [None, 4]),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    same(evaluate(build)[1], expected)


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        evaluate(build)


@pytest.mark.parametrize("name", SHAPES)
def test_static_shape(name):
    build, expected = SHAPES[name]
    with hr.Graph().as_default():
        assert build().shape == expected


def test_static_values():
    with hr.Graph().as_default():
        sizes = hr.shape(hr.zeros([3, 4])) * 2
        assert hr.get_static_value(sizes).tolist() == [6, 8]
        assert hr.get_static_value(hr.constant([1.5])).tolist() == [1.5]
        assert hr.get_static_value(hr.placeholder(hr.int32, [2])) is None


def test_long_lists_are_read_at_once():
    rows = [[float(i) for i in range(10)] for _ in range(60_000)]
    began = time.process_time()
    with hr.Graph().as_default():
        total = hr.add(rows, 1.0)
    # Each of three looks at all elements took longer when it looked at one by one.
    assert time.process_time() - began < 1.5
    assert total.shape == [60_000, 10]
