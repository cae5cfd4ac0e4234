"""Sums of products of lists' items, of NumPy and of oneDNN."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, InvalidInputError, ShapeError
from headrace.extend.primitives import list_split, list_unstack
from headrace.ops.tensor_list import list_sum_products

CONFIGS = {"plain": {"executor": "plain"}, "plan": {}, "two threads": {"threads": 2}}


def numbers(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.fixture(params=CONFIGS)
def session(request):
    with hr.Graph().as_default(), hr.Session(config=hr.Config(**CONFIGS[request.param])) as opened:
        yield opened


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "rows", [[3], [3, 1, 2], [0, 4], [4, 0], [0], [], [700, 700, 9], [40] * 60]
)
def test_sums_of_products(session, rows, dtype):
    a, b = numbers(sum(rows), 5, dtype=dtype), numbers(sum(rows), 7, dtype=dtype, seed=1)
    lengths = hr.constant(np.array(rows, np.int64))
    total = list_sum_products(list_split(a, lengths), list_split(b, lengths))
    for _ in range(4):
        np.testing.assert_allclose(session.run(total), a.T @ b, rtol=1e-4, atol=1e-3)


def test_lists_of_different_lengths(session):
    total = list_sum_products(list_unstack(numbers(3, 2, 4)), list_unstack(numbers(2, 2, 4)))
    with pytest.raises(InvalidInputError, match="lists of 3 and 2 tensors"):
        session.run(total)


def test_what_is_no_matrix_is_refused(session):
    matrices = list_unstack(numbers(3, 2, 4))
    with pytest.raises(ShapeError, match="left must hold matrices"):
        list_sum_products(list_unstack(numbers(3, 2)), matrices)
    with pytest.raises(DTypeError, match="the lists hold"):
        list_sum_products(matrices, list_unstack(numbers(3, 2, 4, dtype="float64")))
