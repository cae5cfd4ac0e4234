"""Rows of few elements that go side by side, in groups, in parts of threads and of pixels."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

COMPILED = {"compile_after": 0, "compile_wait": True}
RNG = np.random.default_rng(5)


def losses(x):
    shares = hr.nn.softmax(x)
    return hr.reduce_sum(shares * x, [1, 2]), hr.reduce_max(shares, -1), shares


def normed(x):
    mean = hr.reduce_mean(x, -1, keepdims=True)
    spread = hr.reduce_mean(hr.square(x - mean), -1, keepdims=True)
    made = (x - mean) * hr.rsqrt(spread + 1e-3)
    return made, hr.reduce_sum(made * made, 0)


def picked(x):
    return hr.exp(x) * hr.reduce_sum(x, -1, keepdims=True), hr.argmax(x, -1)


PROGRAMS = {"losses": losses, "normed": normed, "picked": picked}


def run(build, given, **config):
    with hr.Graph().as_default():
        x = hr.placeholder(given.dtype, given.shape)
        made = build(x)
        with hr.Session(config=hr.Config(**config)) as session:
            return [session.run(made, {x: given}) for _ in range(2)][-1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 24])
@pytest.mark.parametrize("outer", [(3, 50), (70, 16), (2, 5, 40), (1, 200)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_rows_are_those_of_plain_kernels(name, outer, columns, dtype):
    given = RNG.standard_normal((*outer, columns)).astype(dtype)
    if name == "losses":
        given = given.reshape(outer[0], -1, columns)
    want = run(PROGRAMS[name], given, executor="plain")
    for threads in (1, 3):
        found = run(PROGRAMS[name], given, threads=threads, **COMPILED)
        for one, other in zip(found, want, strict=True):
            tolerance = 200 * np.finfo(dtype).eps
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("columns", [2, 6])
def test_threads_share_rows_of_groups(columns, threads):
    """So many elements that each thread has work, and groups that its share begins within."""
    given = RNG.standard_normal((3, 60_001, columns)).astype(np.float32)
    found = run(losses, given, threads=threads, **COMPILED)
    exponents = np.exp(given.astype(np.float64))
    shares = exponents / exponents.sum(-1, keepdims=True)
    np.testing.assert_allclose(found[2], shares, rtol=1e-5)
    np.testing.assert_allclose(found[1], shares.max(-1), rtol=1e-5)
    np.testing.assert_allclose(found[0], (shares * given).sum((1, 2)), rtol=1e-4)


def test_rows_that_begin_at_infinity_or_nothing_stay_what_they_are():
    given = np.array([[-np.inf, 0, 1], [np.nan, 0, 0], [np.inf, 1, 2]] * 20, np.float32)
    want = run(hr.nn.softmax, given, executor="plain")
    np.testing.assert_allclose(run(hr.nn.softmax, given, **COMPILED), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("step", [2, 3, 4, 7, 8, 9])
def test_parts_between_others_are_read_and_written(step, dtype):
    given = RNG.integers(0, 200, (5, 67, step)).astype(dtype)

    def build(x):
        first = hr.cast(x[..., 0], hr.float32)
        parts = [hr.cast(x[..., k], hr.float32) * (0.5 + k) for k in range(step)]
        flat = hr.reshape(x, [-1])
        total = hr.add_n(parts)
        ends = hr.stack([total, first - 1.0, total * 2.0], axis=-1)
        return total, ends, hr.reduce_mean(total, 1), hr.cast(flat[step + 1 :: step], hr.float32)

    want = run(build, given, executor="plain")
    for threads in (1, 3):
        for one, other in zip(run(build, given, threads=threads, **COMPILED), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("columns", [3, 6, 11])
def test_variables_of_short_rows_are_updated_behind_what_reads_them(columns):
    first = RNG.standard_normal((90, columns)).astype(np.float32)
    with hr.Graph().as_default():
        table = hr.Variable(first)
        shares = hr.nn.softmax(table)
        with hr.control_dependencies([shares]):
            update = hr.assign_sub(table, hr.constant(0.1) * shares)
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            session.run(hr.global_variables_initializer())
            for _ in range(3):
                session.run(update)
            found = session.run(table)
    for _ in range(3):
        exponents = np.exp(first.astype(np.float64))
        first = first - 0.1 * exponents / exponents.sum(1, keepdims=True)
    np.testing.assert_allclose(found, first, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [12, 31, 50])
def test_rows_that_are_summed_around_are_unrolled(columns):
    """What is summed along the rows' other dimension stays in registers then.

    Of 16 to 24 columns that takes twice the time that vectors do (`test_row_ends`).
    """
    x = hr.placeholder(hr.float32, [8, 100, columns])
    with hr.Session(config=hr.Config(threads=1)) as session:
        explained = session.explain(hr.nn.softmax(x, 1), {x: np.zeros(x.shape.known, np.float32)})
    assert f"range(0, {columns})" in explained.source()
    given = RNG.standard_normal((8, 100, columns)).astype(np.float32)
    want = np.exp(given) / np.exp(given).sum(1, keepdims=True)
    found = run(lambda x: hr.nn.softmax(x, 1), given, **COMPILED)
    np.testing.assert_allclose(found, want, rtol=1e-5)
