"""Matrices that many matmuls of a few rows share are packed once."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import match_short, narrow, packing
from headrace_cpu.matmul.packing import Packing, ShortInstruction, pack_shared
from headrace_cpu.matmul.short import LANES
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.schedule import schedule
from headrace_cpu.program.settings import CompileSettings

pytestmark = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None,
    reason="the kernels want vectors of 32 bytes and OpenMP",
)
ROWS = 20


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small matmuls will do, which others would take; what the kernel cannot stays refused."""
    monkeypatch.setattr(match_short, "_FEWEST_FLOPS", 1)
    monkeypatch.setattr(narrow, "_SMALL", 0)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def shared(count, inner, columns, transposed):
    """Return the matmuls of ``count`` matrices with one, what feeds them, and what they are."""
    lefts = [normal(ROWS, inner, seed=i) for i in range(count)]
    right = normal(inner, columns, seed=100)
    fed = np.ascontiguousarray(right.T) if transposed else right
    feeds = {hr.placeholder(hr.float32, v.shape): v for v in (*lefts, fed)}
    *a, b = feeds
    # Another operation follows: what a session hands out may lie anywhere.
    made = [hr.abs(hr.matmul(each, b, transpose_b=transposed)) for each in a]
    return made, feeds, [np.abs(left.astype(np.float64) @ right) for left in lefts]


def instructions(results, threads=2):
    matches = Matches(results[0].graph.operations, results)
    match(matches, CompileSettings(threads=threads), MATCHERS, {"short matmul"})
    items = pack_shared(schedule(matches), threads)
    return [item.instruction for item in items if item.instruction is not None]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("columns", [4 * LANES, 5 * LANES, 25 * LANES])
def test_matmuls_with_a_packed_matrix_equal_those_in_float64(columns, transposed, threads):
    inner = 10 * LANES
    made, feeds, wanted = shared(10, inner, columns, transposed)
    assert sum(each.name == "pack" for each in instructions(made, threads)) == 1
    with hr.Session(config=hr.Config(compile_after=0, verify=True, threads=threads)) as session:
        for _ in range(2):
            for got, exact in zip(session.run(made, feeds), wanted, strict=True):
                np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6 * inner)
        assert "packs a matrix" in session.explain(made).source()


@pytest.mark.parametrize("inner", [97, 4 * LANES])
def test_any_number_of_rows_is_packed(inner):
    made, feeds, wanted = shared(10, inner, 4 * LANES, transposed=False)
    with hr.Session(config=hr.Config(compile_after=0, verify=True)) as session:
        for got, exact in zip(session.run(made, feeds), wanted, strict=True):
            np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6 * inner)


@pytest.mark.parametrize(("transposed", "count"), [(False, 10), (True, 4)])
def test_a_few_matmuls_are_not_worth_it(transposed, count):
    for number, packs in ((count - 1, False), (count, True)):
        with hr.Graph().as_default():
            made, _, _ = shared(number, 4 * LANES, 4 * LANES, transposed)
            found = instructions(made)
        assert (found[0].name == "pack") is packs
        matmuls = [each for each in found if isinstance(each, ShortInstruction)]
        assert [each.short.packed for each in matmuls] == [packs] * number


def test_each_way_of_reading_a_matrix_is_packed_by_itself():
    side = 4 * LANES
    a, b = (hr.placeholder(hr.float32, s) for s in ([ROWS, side], [side, side]))
    plain = transposed = a
    for _ in range(10):
        plain, transposed = hr.matmul(plain, b), hr.matmul(transposed, b, transpose_b=True)
    assert sum(each.name == "pack" for each in instructions([plain, transposed])) == 2
    left, right = normal(ROWS, side), normal(side, side, seed=1) / side**0.5
    with hr.Session(config=hr.Config(compile_after=0, verify=True)) as session:
        got = session.run([plain, transposed], {a: left, b: right})
    for each, matrix in zip(got, (right, right.T), strict=True):
        exact = left @ np.linalg.matrix_power(matrix.astype(np.float64), 10)
        np.testing.assert_allclose(each, exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("onednn", [True, False])
def test_matrices_are_taken_as_they_are_until_kernels_are_compiled(onednn):
    made, feeds, wanted = shared(10, 4 * LANES, 4 * LANES, transposed=True)
    config = hr.Config(compile_after=2, verify=True, onednn=onednn)
    with hr.Session(config=config) as session:
        for _ in range(5):
            for got, exact in zip(session.run(made, feeds), wanted, strict=True):
                np.testing.assert_allclose(got, exact, rtol=0, atol=1e-4)


def test_what_only_others_read_does_not_count_as_moved():
    inner, columns = 4 * LANES, 5 * LANES
    made, _, _ = shared(10, inner, columns, transposed=False)
    pack, matmul = instructions(made)[:2]
    (packed,) = pack.writes
    assert set(matmul.reads) - set(matmul.spare) == {matmul.ops[0].inputs[0], packed}
    with hr.Session() as session:
        works = [work for part in session.explain(made).parts for work in part.report.works]
    moved = {work.name: work.bytes for work in works if work.fused}
    assert moved["pack"] == 2 * 4 * inner * columns
    assert moved["multiply"] == 4 * (ROWS * inner + inner * columns + ROWS * columns)


@pytest.mark.parametrize("broken", [Packing, packing.Short])
def test_where_a_kernel_cannot_be_made_the_others_are_right(monkeypatch, broken):
    def source(_):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(broken, "source", source)
    made, feeds, wanted = shared(10, 5 * LANES, 4 * LANES, transposed=True)
    with hr.Session(config=hr.Config(compile_after=0, verify=False)) as session:
        for got, exact in zip(session.run(made, feeds), wanted, strict=True):
            np.testing.assert_allclose(got, exact, rtol=0, atol=1e-4)


@pytest.mark.needs("autodiff")
def test_a_recurrent_network_trains_alike_with_and_without(monkeypatch):
    side, steps = 4 * LANES, 12
    ends = {}
    for kind in ("packed", "unpacked", "plain"):
        if kind == "unpacked":
            monkeypatch.setattr(packing, "_FEWEST", 10**9)
            monkeypatch.setattr(packing, "_FEWEST_TRANSPOSED", 10**9)
        with hr.Graph().as_default():
            w = hr.Variable(normal(side, side) / side**0.5)
            state = hr.constant(normal(ROWS, side, seed=1))
            for _ in range(steps):
                state = hr.tanh(hr.matmul(state, w))
            loss = hr.reduce_mean(hr.square(state))
            train = hr.assign_sub(w, 0.1 * hr.gradients(loss, [w])[0])
            executor = "plain" if kind == "plain" else "plan"
            config = hr.Config(compile_after=1, verify=True, executor=executor)
            with hr.Session(config=config) as session:
                session.run(w.initializer)
                for _ in range(4):
                    session.run(train.op)
                ends[kind] = session.run(w)
                packs = "packs a matrix" in session.explain(train).source()
            assert packs is (kind == "packed")
    for kind in ("packed", "unpacked"):
        np.testing.assert_allclose(ends[kind], ends["plain"], rtol=0, atol=1e-5)
