"""The kernel for matmuls in float64, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import double
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import vector_bytes

pytestmark = pytest.mark.skipif(vector_bytes() < 64, reason="float64 has vectors of 8 with AVX-512")

# Rows, columns and inner sizes around those of registers, panels and blocks.
SIZES = [
    (300, 300, 300), (6, 1000, 13), (64, 50, 200), (50, 30, 401), (13, 17, 230), (24, 16, 192),
    (25, 33, 193), (12, 12, 500), (100, 40, 17),
]  # fmt: skip


def operands(rows, columns, inner, transposed_a, transposed_b):
    rng = np.random.default_rng(rows + inner)
    a = rng.standard_normal((inner, rows) if transposed_a else (rows, inner))
    b = rng.standard_normal((columns, inner) if transposed_b else (inner, columns))
    return a, b, (a.T if transposed_a else a) @ (b.T if transposed_b else b)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("transposed_a", "transposed_b"), [*itertools.product([False, True], repeat=2)]
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matmul_and_update_are_what_numpy_computes(size, transposed_a, transposed_b, threads):
    left, right, expected = operands(*size, transposed_a, transposed_b)
    assert double.pays(Matmul(*size, transposed_a, transposed_b, "float64"))
    a, b = hr.placeholder("float64", left.shape), hr.placeholder("float64", right.shape)
    c = hr.matmul(a, b, transpose_a=transposed_a, transpose_b=transposed_b)
    v = hr.Variable(np.ones(expected.shape))
    update = v.assign_sub(0.25 * c)
    with hr.Session(config=hr.Config(threads=threads, compile_after=0, compile_wait=True)) as s:
        s.run(hr.global_variables_initializer())
        for _ in range(3):
            found = s.run(c, {a: left, b: right})
            s.run(update.op, {a: left, b: right})
        updated = s.run(v)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(updated, 1 - 0.75 * expected, rtol=1e-12, atol=1e-12)


def test_infinities_and_missing_numbers_stay_in_their_rows():
    left, right, _ = operands(40, 40, 40, False, False)
    left[3, 5], left[7, 7] = np.nan, np.inf
    a, b = hr.placeholder("float64", left.shape), hr.placeholder("float64", right.shape)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as s:
        for _ in range(3):
            found = s.run(hr.matmul(a, b), {a: left, b: right})
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[7]).any()
    assert np.isfinite(np.delete(found, [3, 7], 0)).all()


@pytest.mark.parametrize(
    ("rows", "columns", "inner", "dtype"),
    [
        (300, 300, 300, "float32"),
        (5, 300, 300, "float64"),
        (300, 8, 300, "float64"),
        (300, 300, 4, "float64"),
        (10, 20, 30, "float64"),
    ],
)
def test_others_are_left_to_blas(rows, columns, inner, dtype):
    assert not double.pays(Matmul(rows, columns, inner, dtype=dtype))
