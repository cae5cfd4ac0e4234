"""Matmuls of a few rows with a matrix in near caches, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import match_short
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.matmul.match_short import pays
from headrace_cpu.matmul.short import LANES, Short
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp
from headrace_cpu.onednn.library import load
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.settings import CompileSettings

pytestmark = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None,
    reason="the kernels want vectors of 32 bytes and OpenMP",
)
COMPILED = hr.Config(compile_after=0, verify=True)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small matmuls will do; what the kernel cannot compute stays refused."""
    monkeypatch.setattr(match_short, "_FEWEST_FLOPS", 1)


def instructions(results, threads=2):
    matches = Matches(results[0].graph.operations, results)
    match(matches, CompileSettings(threads=threads), MATCHERS, {"short matmul"})
    return matches.instructions


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


SIZES = [
    (8, 4 * LANES, 4 * LANES),
    (12, 100, 5 * LANES),
    (13, 97, 7 * LANES),
    (20, 400, 25 * LANES),
    (25, 5 * LANES, 4 * LANES),
    (37, 520, 9 * LANES),
    (64, 257, 4 * LANES),
]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_matmuls_equal_those_in_float64(rows, inner, columns, transposed, threads):
    inner = -(-inner // LANES) * LANES if transposed else inner
    left = normal(rows, inner)
    right = normal(columns, inner, seed=1) if transposed else normal(inner, columns, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    y = hr.matmul(a, b, transpose_b=transposed)
    assert len(instructions([y])) == 1
    with hr.Session(config=hr.Config(compile_after=0, verify=True, threads=threads)) as session:
        found = session.run(y, {a: left, b: right})
    wanted = left.astype(np.float64) @ (right.T if transposed else right).astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * inner)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_what_follows_is_computed_at_once(transposed, bias, addend, relu):
    rows, inner, columns = 40, 20 * LANES, 21 * LANES
    left, right = normal(rows, inner), normal(inner, columns, seed=1)
    one, more = normal(columns, seed=2), normal(rows, columns, seed=3)
    a, b, c, d = (
        hr.placeholder(hr.float32, v.shape)
        for v in (left, right.T if transposed else right, one, more)
    )
    y = hr.matmul(a, b, transpose_b=transposed)
    wanted = left.astype(np.float64) @ right
    feeds = {a: left, b: np.ascontiguousarray(right.T) if transposed else right}
    if bias:
        y, wanted, feeds = y + c, wanted + one, {**feeds, c: one}
    if addend:
        y, wanted, feeds = y + d, wanted + more, {**feeds, d: more}
    if relu:
        y, wanted = hr.nn.relu(y), np.maximum(wanted, 0)
    (found,) = instructions([y])
    if load() is not None:
        assert len(found.ops) == 1 + bias + addend + relu
    assert found.flops() == 2 * rows * inner * columns
    for onednn in (True, False):
        config = hr.Config(compile_after=0, verify=True, onednn=onednn)
        with hr.Session(config=config) as session:
            np.testing.assert_allclose(session.run(y, feeds), wanted, rtol=0, atol=1e-6 * inner)


@pytest.mark.parametrize("onednn", [True, False])
def test_others_serve_until_the_kernel_is_compiled(onednn):
    left, right = normal(20, 160), normal(160, 320, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    y = hr.matmul(a, b)
    config = hr.Config(compile_after=2, verify=True, onednn=onednn)
    with hr.Session(config=config) as session:
        for _ in range(5):
            found = session.run(y, {a: left, b: right})
            np.testing.assert_allclose(found, left @ right, rtol=0, atol=1e-4)
        assert "20 rows times a matrix in near caches" in session.explain(y).source()


def test_a_matrix_may_be_both_operands():
    side = 4 * LANES
    values = normal(side, side)
    x = hr.placeholder(hr.float32, [side, side])
    y = hr.nn.relu(hr.matmul(x, x) + x)
    assert len(instructions([y])) == 1
    with hr.Session(config=COMPILED) as session:
        found = session.run(y, {x: values})
    np.testing.assert_allclose(found, np.maximum(values @ values + values, 0), rtol=0, atol=1e-4)


def test_more_threads_change_no_bit():
    left, right = normal(20, 160), normal(160, 13 * LANES, seed=1)
    a, b = (hr.placeholder(hr.float32, v.shape) for v in (left, right))
    found = set()
    for threads in (1, 2, 3):
        config = hr.Config(compile_after=0, verify=True, threads=threads)
        with hr.Session(config=config) as session:
            found.add(session.run(hr.matmul(a, b), {a: left, b: right}).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("matmul", "wanted"),
    [
        (Matmul(20, 800, 400, False, False, "float32"), True),
        (Matmul(20, 400, 800, False, True, "float32"), True),
        (Matmul(20, 800, 400, True, False, "float32"), False),
        (Matmul(20, 800, 400, False, False, "float64"), False),
        (Matmul(20, 801, 400, False, False, "float32"), False),
        (Matmul(20, 400, 801, False, True, "float32"), False),
        (Matmul(4, 800, 400, False, False, "float32"), False),
        (Matmul(128, 800, 400, False, False, "float32"), False),
        (Matmul(20, 10000, 400, False, False, "float32"), False),
        (Matmul(20, LANES, 4000, False, False, "float32"), False),
    ],
    ids=str,
)
def test_which_matmuls_are_taken(matmul, wanted):
    assert pays(matmul) is wanted


def test_small_matmuls_are_left(monkeypatch):
    monkeypatch.undo()
    assert not pays(Matmul(8, 64, 64, False, False, "float32"))


def test_blocks_divide_the_matrix():
    assert Short(20, 400, 800).depth == 200
    assert Short(20, 1009, 800).depth == 1009
    assert Short(20, 50 * LANES, 400, transposed=True).depth in (10 * LANES, 25 * LANES)
    assert sum(Short(37, 400, 800).groups) == 37
