"""Samples of distributions with parameters, against SciPy's distribution functions."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import random as random_kernels
from headrace_cpu.kernels import sampling, stateless

special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

MANY = 50_000


def draw(make, count=1):
    with hr.Graph().as_default(), hr.Session() as session:
        tensor = make()
        results = [session.run(tensor) for _ in range(count)]
    return results[0] if count == 1 else results


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 2.5, 30.0, 1e4])
def test_gamma(alpha):
    drawn = draw(lambda: hr.random_gamma([MANY], alpha, dtype=hr.float64, seed=2))
    assert stats.kstest(drawn, "gamma", args=(alpha,)).pvalue > 1e-3


def test_gamma_has_parameters_that_broadcast():
    drawn = draw(lambda: hr.random_gamma([MANY], [1.0, 4.0], [[1.0], [10.0]], seed=2))
    assert drawn.shape == (MANY, 2, 2)
    assert drawn.dtype == np.float32
    np.testing.assert_allclose(drawn.mean(0), [[1, 4], [0.1, 0.4]], rtol=0.03)


def test_gamma_is_never_zero():
    drawn = draw(lambda: hr.random_gamma([100], 1e-4))
    assert drawn.min() == np.finfo(np.float32).tiny


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.99, 10.0, 30.0, 1e3])
def test_poisson(rate):
    drawn = draw(lambda: hr.random_poisson(rate, [MANY], hr.float64, seed=2))
    law = stats.poisson(rate)
    low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
    counts = [(drawn < low).sum(), *(np.sum(drawn == k) for k in range(low, high + 1))]
    counts.append((drawn > high).sum())
    chances = [law.cdf(low - 1), *law.pmf(np.arange(low, high + 1)), law.sf(high)]
    kept = np.array(chances) > 0
    expected = np.array(chances)[kept] * MANY
    statistic = ((np.array(counts)[kept] - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > 1e-3


def test_poisson_of_integer_means_and_dtypes():
    drawn = draw(lambda: hr.random_poisson([1, 200], [MANY], hr.int64, seed=2))
    assert drawn.dtype == np.int64
    np.testing.assert_allclose(drawn.mean(0), [1, 200], rtol=0.02)
    small = draw(lambda: hr.random_poisson(1e6, [3], hr.int8))
    assert small.tolist() == [127] * 3


def test_what_is_drawn_does_not_depend_on_other_parameters():
    one = draw(lambda: hr.random_gamma([], [0.5, 2.0, 3.0], seed=5))
    other = draw(lambda: hr.random_gamma([], [7.0, 2.0, 0.1], seed=5))
    assert one[1] == other[1]
    one = draw(lambda: hr.random_poisson([0.5, 200.0, 3.0], [], seed=5))
    other = draw(lambda: hr.random_poisson([70.0, 200.0, 0.1], [], seed=5))
    assert one[1] == other[1]


def test_classes():
    logits = np.log([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-300]])
    drawn = draw(lambda: hr.multinomial(logits, MANY, seed=2))
    assert drawn.dtype == np.int64
    for row, chances in zip(drawn, ([0.1, 0.2, 0.7], [0.5, 0.5, 0]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / MANY, chances, atol=0.01)
    drawn = draw(lambda: hr.random.categorical(np.float32(logits), 5, dtype=hr.int32))
    assert drawn.shape == (2, 5)
    assert drawn.dtype == np.int32


def test_many_rows_of_classes_stay_apart():
    logits = np.full((3000, 4), -np.inf)
    logits[np.arange(3000), np.arange(3000) % 4] = 0
    drawn = draw(lambda: hr.multinomial(logits, 7))
    np.testing.assert_array_equal(drawn, np.repeat(np.arange(3000)[:, None] % 4, 7, 1))


def test_bernoulli():
    drawn = draw(lambda: hr.random.bernoulli([MANY, 2], [0.3, 1.0], seed=2))
    assert drawn.dtype == np.int32
    np.testing.assert_allclose(drawn.mean(0), [0.3, 1], atol=0.01)
    assert draw(lambda: hr.random_bernoulli([4], dtype=hr.bool)).dtype == np.bool_


def test_shuffle():
    value = np.arange(200).reshape(100, 2)
    first, second = draw(lambda: hr.random_shuffle(value, seed=2), 2)
    assert (first != value).any()
    assert (first != second).any()
    np.testing.assert_array_equal(np.sort(first[:, 0]), value[:, 0])
    np.testing.assert_array_equal(first[:, 1], first[:, 0] + 1)
    assert draw(lambda: hr.random_shuffle(5)) == 5
    orders = [tuple(o) for o in draw(lambda: hr.random_shuffle([1, 2, 3], seed=4), 1200)]
    counts = [orders.count(o) for o in set(orders)]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.needs("autodiff")
def test_gradients_flow_through_samples():
    with hr.Graph().as_default(), hr.Session() as session:
        alpha = hr.constant([0.5, 3.0], hr.float64)
        value = hr.placeholder(hr.float64, [2])
        drawn = hr.random_gamma([20000], alpha, dtype=hr.float64, seed=2)
        # Of a sample's mean the derivative is 1, of its square's mean 2 * alpha + 1.
        first, second = (
            hr.gradients(hr.reduce_mean(f(drawn), 0), [alpha])[0] for f in (hr.identity, hr.square)
        )
        got, squares = session.run([first, second])
        np.testing.assert_allclose(got, [1, 1], rtol=0.02)
        np.testing.assert_allclose(squares, [2, 7], rtol=0.05)
        shuffled = hr.random_shuffle(value)
        (grad,) = hr.gradients(hr.reduce_sum(hr.square(shuffled)), [value])
        dense = hr.convert_to_tensor(grad)
        assert session.run(dense, {value: [3.0, 4.0]}).tolist() == [6.0, 8.0]


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 3.0, 9.9, 10.1, 50.0, 1e5])
def test_derivatives_of_samples(alpha):
    chances = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    sample = special.gammaincinv(alpha, chances)
    h = alpha * 1e-4
    ahead, behind = (special.gammaincinv(alpha + t, chances) for t in (h, -h))
    with np.errstate(all="ignore"):
        got = sampling.random_gamma_grad(np, np.full(5, alpha), sample)
    known = sample > 1e-200
    np.testing.assert_allclose(got[known], ((ahead - behind) / (2 * h))[known], rtol=2e-5)


STATELESS = {
    "uniform": lambda seed: hr.random.stateless_uniform([5], seed, dtype=hr.float64),
    "normal": lambda seed: hr.random.stateless_normal([5], seed, 1.0, 2.0),
    "truncated": lambda seed: hr.random.stateless_truncated_normal([5], seed),
    "integers": lambda seed: hr.random.stateless_uniform([5], seed, 0, 1000, hr.int32),
    "classes": lambda seed: hr.random.stateless_categorical(np.zeros((1, 99)), 5, seed),
}


@pytest.mark.parametrize("make", STATELESS.values(), ids=STATELESS)
def test_a_seed_settles_stateless_numbers(make):
    first, again = draw(lambda: make([3, 4]), 2)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, draw(lambda: make(hr.constant([3, 4], hr.int64))))
    assert (first != draw(lambda: make([4, 3]))).any()


def test_stateless_bits_are_those_of_the_seed():
    words = np.random.Philox(key=np.array([3, 2**64 - 4], np.uint64), counter=1 << 192).random_raw(
        3
    )
    got = draw(lambda: hr.random.stateless_uniform([3], [3, -4], dtype=hr.float64))
    np.testing.assert_array_equal(got, (words >> np.uint64(11)) * 2.0**-53)
    assert list(stateless.kernels(random_kernels.host_bits))


def test_seeds_are_reported():
    with hr.Graph().as_default():
        assert hr.get_seed(None) == (None, None)
        assert hr.get_seed(5) == (87654321, 5)
        assert hr.random.get_seed(2**40) == (87654321, 512)
        hr.set_random_seed(0)
        assert hr.get_seed(0) == (0, 2**31 - 1)
        assert hr.get_seed(1) == (0, 1)


def test_integers_without_an_upper_bound_are_refused():
    with pytest.raises(hr.errors.AttributeValueError, match="need minval and maxval"):
        hr.random.stateless_uniform([2], [1, 2], dtype=hr.int32)
