"""Matmuls of many columns, whose panels threads take one by one, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import panels
from headrace_cpu.matmul.blas import Matmul, loaded_blas
from headrace_cpu.matmul.panels import LANES, Panels, pays
from headrace_cpu.native.assembly import Assembly, vector_bytes
from headrace_cpu.native.build import KernelSource, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch, open_mp

pytestmark = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None or loaded_blas() is None,
    reason="the kernels want vectors of 32 bytes, OpenMP, and a BLAS for other matmuls",
)


@pytest.fixture
def small(monkeypatch):
    """Small matmuls will do; what the kernel cannot compute stays refused."""
    monkeypatch.setattr(panels, "_LEAST_BYTES", 1)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


SIZES = [
    (48, 64, 5 * LANES),
    (48, 64, 6 * LANES),
    (50, 100, 5 * LANES),
    (61, 256, 8 * LANES),
    (60, 512, 9 * LANES),
    (100, 71 * 5, 7 * LANES),
]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_matmuls_equal_those_in_float64(small, rows, inner, columns, threads):
    assert pays(Matmul(rows, columns, inner))
    left, right = normal(rows, inner), normal(inner, columns, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    y = hr.abs(hr.matmul(a, b))
    wanted = np.abs(left.astype(np.float64) @ right)
    with hr.Session(config=hr.Config(compile_after=0, verify=True, threads=threads)) as session:
        # The counter of turns is as it was after each run.
        for _ in range(3):
            found = session.run(y, {a: left, b: right})
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * inner)
        assert f"panels_{rows}x{inner}x{columns}" in session.explain(y).source()


@pytest.mark.parametrize("inner", [128, 512])
@pytest.mark.parametrize("onednn", [True, False])
def test_what_is_handed_out_begins_anywhere_and_is_left_to_others(small, inner, onednn):
    left, right = normal(50, inner), normal(inner, 40 * LANES, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    matmul = hr.matmul(a, b)
    wanted = left.astype(np.float64) @ right
    for y in (matmul, hr.reshape(matmul, [25, -1])):
        config = hr.Config(compile_after=0, verify=True, onednn=onednn)
        with hr.Session(config=config) as session:
            kept = [session.run(y, {a: left, b: right}) for _ in range(5)]
            assert "panels_" not in session.explain(y).source()
        for found in kept:
            np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=0, atol=1e-3)


def test_more_threads_change_no_bit(small):
    left, right = normal(50, 128), normal(128, 41 * LANES, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    y = hr.abs(hr.matmul(a, b))
    found = set()
    for threads in (1, 2, 3):
        config = hr.Config(compile_after=0, verify=True, threads=threads)
        with hr.Session(config=config) as session:
            found |= {session.run(y, {a: left, b: right}).tobytes() for _ in range(4)}
    assert len(found) == 1


@pytest.mark.parametrize("compile_after", [0, 2])
def test_blas_serves_until_the_kernel_is_compiled(small, compile_after):
    left, right = normal(50, 128), normal(128, 4 * LANES, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    y = hr.abs(hr.matmul(a, b))
    with hr.Session(config=hr.Config(compile_after=compile_after, verify=True)) as session:
        for _ in range(4):
            found = session.run(y, {a: left, b: right})
            np.testing.assert_allclose(found, np.abs(left @ right), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("matmul", "wanted"),
    [
        (Matmul(400, 10000, 200), True),
        (Matmul(96, 30000, 1024), True),
        (Matmul(400, 10000, 200, transposed_a=True), False),
        (Matmul(400, 10000, 200, transposed_b=True), False),
        (Matmul(400, 10000, 200, dtype="float64"), False),
        (Matmul(400, 10001, 200), False),
        (Matmul(40, 100000, 200), False),
        (Matmul(400, 1000, 200), False),
        (Matmul(1024, 10000, 200), False),
        (Matmul(400, 10000, 263), False),
    ],
    ids=str,
)
def test_which_matmuls_are_taken(matmul, wanted):
    assert pays(matmul) is wanted


def test_blocks_divide_the_matrix():
    assert Panels(Matmul(400, 10000, 200)).depth == 200
    assert Panels(Matmul(64, 10000, 512)).depth == 256


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("turns", [0, 1, 3, 1000])
def test_every_turn_is_taken_once(turns, threads):
    code = Assembly("float", LANES)
    at = code.words(["counts", "counter"])
    with code.taken(at["counter"], turns) as turn:
        place = turn * LANES
        one = code.vector(f"fadd {code.kind} {code.constant(1.0)}, {code.constant(0.0)}")
        code.store(code.load(at["counts"], place) + one, at["counts"], place)
    (kernel,) = build([KernelSource("count_turns", code.text("count_turns"), language="llvm")])
    counts, counter = np.zeros((turns + 1, LANES), np.float32), np.zeros(16, np.int64)
    words = np.array([address(counts), address(counter)], np.int64)
    run = launch(kernel, address(words), threads)
    for _ in range(50):
        run()
        assert not counter.any()
    np.testing.assert_array_equal(counts[:turns], 50)
    np.testing.assert_array_equal(counts[turns:], 0)
