"""Quotients and remainders of whole numbers in fused kernels, against the plain kernels."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

COMPILED = hr.Config(compile_after=0, compile_wait=True)
DIVISIONS = {
    "floordiv": hr.floordiv,
    "floormod": hr.floormod,
    "truncatediv": hr.truncatediv,
    "truncatemod": hr.truncatemod,
}


def numbers(dtype):
    """Return pairs of whole numbers: all of the limits and their neighbors, and random ones."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    edges = [info.min, info.min + 1, -3, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max]
    x, y = (part.ravel() for part in np.meshgrid(np.array(edges, dtype), np.array(edges, dtype)))
    near = rng.integers(1, 1 << 15, 20000).astype(dtype)
    times = rng.integers(-(1 << 15), 1 << 15, 20000).astype(dtype)
    wide = rng.integers(info.min, info.max, 20000, dtype)
    x = np.concatenate([x, near * times, near * times - 1, wide, wide])
    y = np.concatenate([y, near, near, wide[::-1], near])
    return x, np.where(y == 0, dtype(5), y)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("divide", DIVISIONS.values(), ids=DIVISIONS)
def test_division_is_that_of_the_plain_kernel(divide, dtype):
    given = numbers(dtype)
    x, y = (hr.placeholder(np.dtype(dtype).name, part.shape) for part in given)
    result = divide(x, y) + 1
    with hr.Session(config=hr.Config(executor="plain")) as session, np.errstate(all="ignore"):
        expected = session.run(result, {x: given[0], y: given[1]})
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run(result, {x: given[0], y: given[1]})
        explained = session.explain(result, {x: given[0], y: given[1]})
    np.testing.assert_array_equal(found, expected)
    assert len(explained.kernels) == 1


@pytest.mark.parametrize("divisor", [1, -1, 7, -7, 10007, 64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("divide", DIVISIONS.values(), ids=DIVISIONS)
def test_division_by_a_constant_is_that_of_the_plain_kernel(divide, dtype, divisor):
    given, _ = numbers(dtype)
    x = hr.placeholder(np.dtype(dtype).name, given.shape)
    result = divide(x, divisor) + 1
    with hr.Session(config=hr.Config(executor="plain")) as session, np.errstate(all="ignore"):
        expected = session.run(result, {x: given})
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run(result, {x: given})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divide", DIVISIONS.values(), ids=DIVISIONS)
def test_division_by_zero_is_refused(divide, dtype):
    x, y = hr.placeholder(dtype, (20000,)), hr.placeholder(dtype, (20000,))
    ones = np.ones(20000, dtype)
    result = divide(x, y) + 1
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            session.run(result, {x: ones, y: ones})
        wrong = ones.copy()
        wrong[12345] = 0
        with pytest.raises(hr.errors.HeadraceError, match="integer division by zero"):
            session.run(result, {x: ones, y: wrong})
        np.testing.assert_array_equal(
            session.run(result, {x: ones, y: ones})[:2], divide_ones(divide)
        )


def divide_ones(divide):
    return [2, 2] if divide in (hr.floordiv, hr.truncatediv) else [1, 1]
