"""Random streams: their bits, what they depend on, and their distributions."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest

import headrace as hr
from headrace_cpu import philox
from headrace_cpu.kernels import random as random_kernels

FLOATS = [hr.float16, hr.bfloat16, hr.float32, hr.float64]
MANY = 200_001
MAKERS = {
    "uniform": hr.random_uniform,
    "normal": hr.random_normal,
    "truncated": hr.truncated_normal,
}


def draws(make, count=1):
    """Draw from a new graph in a new session, ``count`` times."""
    with hr.Graph().as_default(), hr.Session() as session:
        tensor = make()
        return [session.run(tensor) for _ in range(count)]


def test_bits_are_those_of_philox():
    # The first words of the known-answer tests of Random123 for Philox4x64-10 are for counter and
    # key 0; NumPy counts up before it makes a block, so that its stream starts at counter 1.
    known = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    words = random_kernels.host_bits(np, (0, 0), 2**256 - 1, 4)
    assert [int(w) for w in words] == known


def test_numbers_are_the_bits_of_seeds_and_draw():
    hr.set_random_seed(3)
    tensor = hr.random_uniform([3], dtype=hr.float64, seed=-5)
    with hr.Session() as session:
        first, second = session.run(tensor), session.run(tensor)
    for draw, got in enumerate((first, second)):
        key = np.array([3, 2**64 - 5], np.uint64)
        words = np.random.Philox(key=key, counter=draw << 64).random_raw(3)
        np.testing.assert_array_equal(got, (words >> np.uint64(11)) * 2.0**-53)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_seeds_settle_the_numbers(make):
    def seeded(graph_seed, op_seed):
        def build():
            hr.set_random_seed(graph_seed)
            return make([5], seed=op_seed)

        return draws(build, 3)

    one = seeded(1, 2)
    np.testing.assert_array_equal(one, seeded(1, 2))
    assert len({float(v[0]) for v in [*one, *seeded(1, 3), *seeded(2, 2), *seeded(None, 2)]}) == 12


def test_ops_of_one_graph_seed_differ():
    hr.set_random_seed(1)
    tensors = [hr.random_normal([4]) for _ in range(3)]
    with hr.Session() as session:
        first = session.run(tensors)
    with hr.Session() as session:
        np.testing.assert_array_equal(session.run(tensors), first)
    assert len({float(v[0]) for v in first}) == 3


def test_without_seeds_sessions_differ():
    tensor = hr.random_uniform([4])
    got = []
    for _ in range(2):
        with hr.Session() as session:
            got.append(session.run(tensor))
    assert (got[0] != got[1]).any()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_numbers(dtype):
    (drawn,) = draws(lambda: hr.random_uniform([MANY], dtype=dtype, seed=1))
    assert drawn.dtype == dtype.numpy
    values = drawn.astype(np.float64)
    assert values.min() >= 0
    assert values.max() <= 1 - 2.0**-dtype.significand
    counts = np.bincount((values * 16).astype(int), minlength=16)
    # The 99.9 % quantile of chi-squared with 15 degrees of freedom.
    assert ((counts - MANY / 16) ** 2 / (MANY / 16)).sum() < 37.7
    steps = values * 2.0**dtype.significand
    np.testing.assert_array_equal(steps, np.round(steps))


def moments(values):
    centred = values - values.mean()
    return values.mean(), values.std(), (centred**3).mean(), (centred**4).mean()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal_numbers(dtype):
    (drawn,) = draws(lambda: hr.random_normal([MANY], dtype=dtype, seed=1))
    assert drawn.dtype == dtype.numpy
    values = drawn.astype(np.float64)
    np.testing.assert_allclose(moments(values), [0, 1, 0, 3], atol=0.05)
    assert 4 < np.abs(values).max() < 7
    # Neighbours, and the two numbers that come of one pair, are independent.
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.01
    half = (MANY + 1) // 2
    assert abs(np.corrcoef(values[: half - 1], values[half:])[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_truncated_normal_numbers(dtype):
    (drawn,) = draws(lambda: hr.truncated_normal([MANY], dtype=dtype, seed=1))
    assert drawn.dtype == dtype.numpy
    values = drawn.astype(np.float64)
    assert np.abs(values).max() <= 2
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    within = math.erf(math.sqrt(2))
    deviation = math.sqrt(1 - 4 * density / within)
    np.testing.assert_allclose(moments(values)[:3], [0, deviation, 0], atol=0.01)
    below = (values < 1).mean()
    expected = (math.erf(1 / math.sqrt(2)) / 2 + within / 2) / within
    assert below == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_quantiles_invert_the_distribution(dtype, bound):
    u = np.linspace(-1, 1, 2001).astype(dtype)
    quantiles = random_kernels._truncated_normal(np, u)
    back = [math.erf(float(q) / math.sqrt(2)) / math.erf(math.sqrt(2)) for q in quantiles]
    np.testing.assert_allclose(back, u, atol=bound)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (hr.int8, -128, 127),
        (hr.uint8, 0, 7),
        (hr.int32, -3, 9),
        (hr.int64, -(2**63), 2**63 - 1),
        (hr.uint64, 2**63, 2**64 - 1),
        (hr.int64, 5, 6),
    ],
    ids=str,
)
def test_integers(dtype, low, high):
    (drawn,) = draws(
        lambda: hr.random_uniform(
            [MANY], np.array(low, dtype.numpy), np.array(high, dtype.numpy), dtype=dtype, seed=4
        )
    )
    assert drawn.dtype == dtype.numpy
    assert low <= int(drawn.min()) <= int(drawn.max()) < high
    parts = np.array([(int(v) - low) * 8 // (high - low) for v in drawn[:20000]])
    if high - low > 7:
        bounds = [-(-(high - low) * i // 8) for i in range(9)]
        expected = np.array([20000 * (b - a) / (high - low) for a, b in pairwise(bounds)])
        assert (((np.bincount(parts, minlength=8) - expected) ** 2) / expected).sum() < 24.3


def test_integers_have_no_bias_however_large_the_range():
    # Of 3 * 2**62 values the words modulo the range would favour the lowest third twofold.
    size = 3 << 62
    words = lambda turn: random_kernels.host_bits(np, (1, 1), turn << 128, 30000)  # noqa: E731
    drawn = random_kernels._below(np, words, size)
    thirds = np.bincount((drawn >> np.uint64(62)).astype(int), minlength=3)
    assert ((thirds - 10000) ** 2 / 10000).sum() < 13.8
    assert (drawn < size).all()


@pytest.mark.parametrize("shape", [[], [0], [3, 0], [2, 3]])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_shapes(make, shape, dtype):
    (drawn,) = draws(lambda: make(shape, dtype=dtype, seed=1))
    assert drawn.shape == tuple(shape)
    assert drawn.dtype == dtype.numpy


def test_the_native_loop_makes_the_bits_of_numpy():
    philox._LOOP.make()
    first = philox._FEWEST
    for count in (first, first + 1, first + 3, 50_003):
        for counter in (0, 7 << 64, 3 << 128 | 5 << 64, 1 << 192 | 9, 2**64 - 2**40):
            key = (count * 0x9E3779B97F4A7C15 % 2**64, 2**64 - 1 - count)
            made = philox.bits(key, counter, count)
            np.testing.assert_array_equal(made, random_kernels._numpy_bits(key, counter, count))


def test_the_native_loop_leaves_to_numpy_what_is_little_or_carries():
    philox._LOOP.make()
    assert philox.bits((1, 2), 0, philox._FEWEST - 1) is None
    assert philox.bits((1, 2), 2**64 - 5, philox._FEWEST) is None


def test_the_native_loop_comes_when_much_was_drawn_a_few_times(monkeypatch):
    fresh = philox._Loop()
    monkeypatch.setattr(philox, "_LOOP", fresh)
    with hr.Session() as session:
        tensor = hr.random_uniform([4 * philox._FEWEST], seed=4)
        first = [session.run(tensor) for _ in range(2)]
        deadline = time.monotonic() + 30
        later = []
        while fresh._address is None and time.monotonic() < deadline:
            later.append(session.run(tensor))
        later.append(session.run(tensor))
    assert fresh._address is not None
    monkeypatch.setattr(philox, "bits", lambda *_: None)
    with hr.Session() as session:
        want = [session.run(tensor) for _ in range(2 + len(later))]
    np.testing.assert_array_equal([*first, *later], want)
