"""The kernel for products of a few rows that are a large matrix, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul.blas import Matmul, loaded_blas
from headrace_cpu.matmul.outer import LANES, pays
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp

pytestmark = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None or loaded_blas() is None,
    reason="the kernel wants vectors of 32 bytes, OpenMP, and a BLAS for other matmuls",
)

# Rows and columns of the matrix, and of the factors: whole and odd groups of rows and panels.
SIZES = [
    (1024, 64 * LANES, 50),
    (1025, 65 * LANES, 4),
    (4099, 16 * LANES + 256, 37),
    (2401, 33 * LANES, 128),
]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def step(left, right, variable, rate):
    """Return the factors, and an operation that subtracts their product from a variable."""
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    return a, b, variable.assign_sub(rate * hr.matmul(a, b, transpose_a=True)).op


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_updates_are_those_in_float64(size, threads):
    rows, columns, inner = size
    assert pays(Matmul(rows, columns, inner, True))
    left, right, before = normal(inner, rows), normal(inner, columns, seed=1), normal(rows, columns)
    variable = hr.Variable(before)
    a, b, update = step(left, right, variable, 0.25)
    wanted = before - 0.75 * (left.T.astype(np.float64) @ right)
    with hr.Session(config=hr.Config(compile_after=0, verify=True, threads=threads)) as session:
        session.run(hr.global_variables_initializer())
        # The counter of turns is as it was after each run.
        for _ in range(3):
            session.run(update, {a: left, b: right})
        assert f"outer_add_{rows}x{inner}x{columns}" in session.explain(update).source()
        np.testing.assert_allclose(session.run(variable), wanted, rtol=0, atol=2e-6 * inner)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_are_those_in_float64_wherever_they_begin(size, threads):
    rows, columns, inner = size
    left, right = normal(inner, rows), normal(inner, columns, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    product = hr.matmul(a, b, transpose_a=True)
    wanted = left.T.astype(np.float64) @ right
    config = hr.Config(compile_after=0, verify=True, threads=threads)
    with hr.Session(config=config) as session:
        for y, expected in ((product, wanted), (hr.abs(product), np.abs(wanted))):
            # What the program gets is memory of its own, and what is inside of the step is not.
            kept = [session.run(y, {a: left, b: right}) for _ in range(3)]
            assert f"outer_{rows}x{inner}x{columns}" in session.explain(y).source()
            for found in kept:
                np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * inner)


def test_more_threads_change_no_bit():
    rows, columns, inner = SIZES[1]
    left, right = normal(inner, rows), normal(inner, columns, seed=1)
    found = set()
    for threads in (1, 2, 3):
        with hr.Graph().as_default():
            variable = hr.Variable(normal(rows, columns))
            rate = hr.placeholder(hr.float32, [])
            a, b, update = step(left, right, variable, rate)
            config = hr.Config(compile_after=0, verify=True, threads=threads)
            with hr.Session(config=config) as session:
                session.run(hr.global_variables_initializer())
                for number in (1.0, 0.5):
                    session.run(update, {a: left, b: right, rate: number})
                found.add(session.run(variable).tobytes())
    assert len(found) == 1


def test_missing_numbers_stay_in_their_rows_and_columns():
    rows, columns, inner = SIZES[0]
    left, right = normal(inner, rows), normal(inner, columns, seed=1)
    left[3, rows - 1], right[inner - 1, columns - 1] = np.nan, np.inf
    variable = hr.Variable(np.zeros((rows, columns), np.float32))
    a, b, update = step(left, right, variable, 1.0)
    with hr.Session(config=hr.Config(compile_after=0, verify=True, threads=2)) as session:
        session.run(hr.global_variables_initializer())
        session.run(update, {a: left, b: right})
        found = np.isfinite(session.run(variable))
    assert not found[-1].any()
    assert not found[:, -1].any()
    assert found[:-1, :-1].all()


@pytest.mark.parametrize(
    ("matmul", "wanted"),
    [
        (Matmul(3136, 1024, 50, True), True),
        (Matmul(9216, 4096, 16, True), True),
        (Matmul(3136, 1024, 50), False),
        (Matmul(3136, 1024, 50, True, True), False),
        (Matmul(3136, 1024, 50, True, dtype="float64"), False),
        (Matmul(3136, 1024, 3, True), False),
        (Matmul(3136, 1024, 129, True), False),
        (Matmul(3136, 1025, 50, True), False),
        (Matmul(16384, 128, 50, True), False),
        (Matmul(1000, 1024, 50, True), False),
        (Matmul(4096, 4096, 64, True), False),
    ],
    ids=str,
)
def test_which_updates_are_taken(matmul, wanted):
    assert pays(matmul) is wanted
