"""``where`` chooses rows by a condition of one dimension, whatever is known of the ranks."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(1, 7).reshape(2, 3)


@pytest.mark.parametrize("known", ["all", "rank", "nothing", "condition", "operands"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([True, False], [[1, 2, 3], [-4, -5, -6]]),
        (False, -X),
        ([[True, False, True]], [[1, -2, 3], [4, -5, 6]]),
        ([[True, False, True], [False] * 3], [[1, -2, 3], [-4, -5, -6]]),
    ],
)
def test_rows(known, condition, expected):
    values = [np.array(condition), X, -X]
    tensors = []
    for value in values:
        whole = known == "all" or known == ("condition" if value is values[0] else "operands")
        shape = value.shape if whole else [None] * value.ndim if known == "rank" else None
        tensors.append(hr.placeholder(value.dtype, shape))
    chosen = hr.where(*tensors)
    found = run(chosen, dict(zip(tensors, values, strict=True)))
    np.testing.assert_array_equal(found, expected)
    assert chosen.shape.is_compatible_with(found.shape)


def test_rows_of_more_dimensions():
    x, y = np.zeros((2, 3, 4)), np.ones((2, 3, 4))
    found = run(hr.where([True, False], x, y))
    np.testing.assert_array_equal(found, np.stack([x[0], y[1]]))


def test_columns_by_the_second_version():
    found = run(hr.where_v2([True, False, True], X, -X))
    np.testing.assert_array_equal(found, [[1, -2, 3], [4, -5, 6]])


def test_plain_data_takes_the_dtype_of_tensors():
    half = hr.constant([1.0], hr.float16)
    assert hr.where([True], half, 2.5).dtype == hr.float16
    assert hr.where([True], 2.5, half).dtype == hr.float16
    assert hr.where([True], [1], [2]).dtype == hr.int32


def test_strings():
    assert run(hr.where([True, False], ["a", "b"], ["c", "d"])).tolist() == [b"a", b"d"]


def test_gradients_are_those_of_the_rows():
    x, y = hr.constant(np.ones((2, 3))), hr.constant(np.ones((2, 3)))
    grads = run(hr.gradients(hr.where([True, False], x, y), [x, y]))
    np.testing.assert_array_equal(grads[0], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(grads[1], [[0, 0, 0], [1, 1, 1]])


def test_places():
    assert run(hr.where([[True, False], [True, True]])).tolist() == [[0, 0], [1, 0], [1, 1]]


def test_refused():
    with pytest.raises(AttributeValueError, match="both of x and y"):
        hr.where([True], [1], None)
    with pytest.raises(ShapeError, match=r"condition of shape \[3\] chooses rows, and \[2, 3\]"):
        hr.where([True] * 3, X, -X)
    with pytest.raises(DTypeError, match="must be bool, got int32"):
        hr.where([1, 0], [1, 2], [3, 4])
