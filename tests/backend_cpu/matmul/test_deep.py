"""The kernel for small results of many rows, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import deep
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native.threads import launch, open_mp

pytestmark = pytest.mark.skipif(
    vector_bytes() < 64 or open_mp() is None, reason="the kernel wants vectors of 64 bytes, OpenMP"
)

# Rows and columns of the result, and what is summed up: around registers, panels and blocks.
SIZES = [(33, 33, 4096), (64, 64, 5000), (37, 41, 4097), (40, 100, 4223), (85, 36, 6001)]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_product_and_update_are_what_numpy_computes(size, dtype, threads):
    rows, columns, inner = size
    assert deep.pays(Matmul(*size, True, False, dtype), threads)
    rng = np.random.default_rng(rows)
    left = rng.standard_normal((inner, rows)).astype(dtype)
    right = rng.standard_normal((inner, columns)).astype(dtype)
    expected = left.T.astype("float64") @ right
    a, b = hr.placeholder(dtype, left.shape), hr.placeholder(dtype, right.shape)
    c = hr.matmul(a, b, transpose_a=True)
    v = hr.Variable(np.ones(expected.shape, dtype))
    update = v.assign_sub(0.25 * c)
    with hr.Session(config=hr.Config(threads=threads, compile_after=0, compile_wait=True)) as s:
        s.run(hr.global_variables_initializer())
        found = [s.run(c, {a: left, b: right}) for _ in range(3)]
        for _ in range(3):
            s.run(update.op, {a: left, b: right})
        assert f"deep_{dtype}_{rows}x{inner}x{columns}" in s.explain(c).source()
        assert f"deep_{dtype}_add_{rows}x{inner}x{columns}" in s.explain(update.op).source()
        updated = s.run(v)
    close = 2e-3 if dtype == "float32" else 1e-10
    for each in found:
        np.testing.assert_allclose(each, expected, rtol=0, atol=close)
        np.testing.assert_array_equal(each, found[-1])
    np.testing.assert_allclose(updated, 1 - 0.75 * expected, rtol=0, atol=close)


def test_one_thread_computes_float64_and_missing_numbers_stay_in_their_rows():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2000, 34)), rng.standard_normal((2000, 40))
    left[1234, 7] = np.nan
    a, b = hr.placeholder("float64", left.shape), hr.placeholder("float64", right.shape)
    c = hr.matmul(a, b, transpose_a=True)
    with hr.Session(config=hr.Config(threads=1, compile_after=0, compile_wait=True)) as s:
        found = [s.run(c, {a: left, b: right}) for _ in range(3)][-1]
        assert "deep_float64_34x2000x40" in s.explain(c).source()
    assert np.isnan(found[7]).all()
    np.testing.assert_allclose(
        np.delete(found, 7, 0), np.delete(left.T, 7, 0) @ right, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize(
    ("matmul", "threads"),
    [
        (Matmul(64, 64, 5000, True, False, "float32"), 1),
        (Matmul(64, 64, 5000, False, False, "float32"), 2),
        (Matmul(64, 64, 5000, True, True, "float64"), 2),
        (Matmul(64, 64, 900, True, False, "float64"), 2),
        (Matmul(10, 64, 5000, True, False, "float64"), 2),
        (Matmul(400, 400, 5000, True, False, "float64"), 2),
        (Matmul(128, 128, 5000, True, False, "float32"), 2),
        (Matmul(40, 400, 1500, True, False, "float64"), 2),
    ],
)
def test_others_are_left_to_others(matmul, threads):
    assert not deep.pays(matmul, threads)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_how_many_threads_come(dtype):
    kernel = deep.Deep(Matmul(33, 41, 4097, True, False, dtype), parts=3)
    (function,) = build([kernel.source()])
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((4097, width)).astype(dtype) for width in (33, 41))
    found = []
    for team in (1, 2, 3, 4):
        made, scratch = np.full((33, 41), 7, dtype), allocate(kernel.scratch)
        words = np.array([*map(address, (left, right, made)), 0, address(scratch)], np.int64)
        launch(function, address(words), team)()
        found.append(made)
    np.testing.assert_allclose(found[0], left.T.astype("float64") @ right, rtol=0, atol=2e-3)
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
