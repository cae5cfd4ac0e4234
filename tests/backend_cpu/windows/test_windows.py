"""Convolutions and pools by generated loops and BLAS, beside the plain kernels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import conv as conv_kernels
from headrace_cpu.kernels import pool as pool_kernels
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native.threads import open_mp, thread_count
from headrace_cpu.program.instruction import Addresses
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.windows import blas
from headrace_cpu.windows.geometry import geometry

pytest.importorskip("headrace_autodiff")

PLAIN = {
    "Conv2D": conv_kernels.conv,
    "Conv2DBackpropInput": conv_kernels.conv_backprop_input,
    "Conv2DBackpropFilter": conv_kernels.conv_backprop_filter,
    "MaxPool": pool_kernels.max_pool,
    "MaxPoolGrad": pool_kernels.max_pool_grad,
    "AvgPool": pool_kernels.avg_pool,
    "AvgPoolGrad": pool_kernels.avg_pool_grad,
}


class Places(Addresses):
    """Buffers of an instruction; those of ``late`` tensors are handed over by setters."""

    def __init__(self, instruction, late=()):
        self.late = set(late)
        tensors = dict.fromkeys((*instruction.reads, *instruction.writes))
        self.buffers = {t: allocate(t.shape.num_elements() * t.dtype.itemsize) for t in tensors}
        self.room = allocate(instruction.scratch)
        # NaN: nobody may count on zeros.
        for buffer in (*self.buffers.values(), self.room):
            buffer[:] = 0xFF

    def of(self, tensor):
        return None if tensor in self.late else address(self.buffers[tensor])

    def array(self, tensor):
        return self.buffers[tensor].view(tensor.dtype.numpy).reshape(tensor.shape.as_list())

    def scratch(self):
        return address(self.room)


def run(instruction, values, late=()):
    places = Places(instruction, late)
    for tensor in instruction.reads:
        places.array(tensor)[...] = values[tensor]
    bound = instruction.bind(places)
    assert set(bound.point) == set(late)
    for tensor, point in bound.point.items():
        point(address(places.buffers[tensor]))
    bound.call()
    for tensor in instruction.reads:
        np.testing.assert_array_equal(places.array(tensor), values[tensor])
    return places.array(instruction.writes[0]).copy()


def matched(graph, threads=2):
    ops = [op for op in graph.operations if op.type in PLAIN]
    matches = Matches(ops, [])
    match(matches, CompileSettings(threads=threads), MATCHERS, {"windows"})
    return matches.instructions


def convolution(images, taps, strides=1, padding="SAME", dilations=1, dtype="float64", **more):
    """Return a graph with a convolution and both of its gradients."""
    graph = hr.Graph()
    with graph.as_default():
        x, filter = hr.placeholder(dtype, images), hr.placeholder(dtype, taps)
        options = {"strides": strides, "padding": padding, "dilations": dilations, **more}
        y = hr.nn.conv2d(x, filter, **options)
        hr.gradients(y, [x, filter], grad_ys=hr.placeholder(dtype, y.shape))
    return graph


def pool(kind, images, window, strides, padding="SAME", dilations=1, dtype="float64", **more):
    """Return a graph with a pool and its gradient."""
    graph = hr.Graph()
    with graph.as_default():
        x = hr.placeholder(dtype, images)
        options = {"strides": strides, "padding": padding, "dilations": dilations, **more}
        y = hr.nn.pool(x, window, kind, **options)
        hr.gradients(y, [x], grad_ys=hr.placeholder(dtype, y.shape))
    return graph


def wanted(instruction, values):
    (op,) = instruction.ops
    sizes = np.array(op.outputs[0].shape.as_list())
    given = [values.get(t, sizes.astype(t.dtype.numpy)) for t in op.inputs]
    with np.errstate(all="ignore"):
        return PLAIN[op.type](np, *given, **op.attrs)


def normal(rng, shape):
    return rng.standard_normal(shape)


def check(graph, count, threads=2, make=normal, late=False, tolerance=1e-11):
    """Check all instructions of a graph, before and after they are prepared."""
    instructions = matched(graph, threads)
    assert len(instructions) == count
    rng = np.random.default_rng(1)
    for instruction in instructions:
        values = {t: make(rng, t.shape.as_list()).astype(t.dtype.numpy) for t in instruction.reads}
        expected = wanted(instruction, values)
        chosen = [*instruction.reads, *instruction.writes] if late else []
        scale = tolerance * max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
        np.testing.assert_array_equal(run(instruction, values, chosen), expected)
        instruction.prepare()
        found = run(instruction, values, chosen)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=scale)
        # The same bits again: nothing depends on which thread was quicker.
        np.testing.assert_array_equal(run(instruction, values, chosen), found)


CONVOLUTIONS = {
    "few channels": ((2, 7, 9, 3), (3, 3, 3, 5)),
    "many channels": ((2, 9, 8, 30), (3, 3, 30, 17)),
    "one image": ((1, 6, 7, 30), (3, 3, 30, 4)),
    "one pixel": ((1, 1, 1, 30), (3, 3, 30, 4)),
    "one row": ((3, 1, 20, 30), (1, 3, 30, 4)),
    "valid": ((2, 8, 7, 30), (2, 3, 30, 6), 1, "VALID"),
    "window of the image's size": ((2, 4, 3, 30), (4, 3, 30, 6), 1, "VALID"),
    "explicit padding": ((2, 6, 5, 30), (3, 3, 30, 6), 1, [[0, 0], [3, 1], [0, 4], [0, 0]]),
    "padding of nothing but": ((1, 3, 3, 30), (3, 3, 30, 6), 1, [[0, 0], [4, 4], [4, 4], [0, 0]]),
    "strides": ((2, 9, 8, 3), (3, 3, 3, 6), 2),
    "different strides": ((2, 9, 8, 30), (3, 3, 30, 6), (2, 3)),
    "strides beyond windows": ((2, 9, 11, 30), (2, 3, 30, 6), (4, 4), "VALID"),
    "strides and padding": ((2, 9, 8, 30), (5, 3, 30, 6), 3, [[0, 0], [4, 0], [1, 2], [0, 0]]),
    "dilations": ((2, 9, 11, 3), (3, 3, 3, 6), 1, "SAME", (2, 3)),
    "dilated rows": ((2, 9, 11, 30), (3, 3, 30, 6), 1, "VALID", (2, 1)),
    "dilated columns": ((2, 9, 11, 70), (3, 3, 70, 6), 1, "SAME", (1, 4)),
    "dilations and strides": ((2, 12, 11, 70), (3, 3, 70, 6), 2, "SAME", (2, 2)),
    "one by one": ((2, 5, 6, 70), (1, 1, 70, 8)),
    "one by one, padded": ((2, 5, 6, 70), (1, 1, 70, 8), 1, [[0, 0], [1, 0], [0, 2], [0, 0]]),
    "one by one with strides": ((2, 5, 6, 70), (1, 1, 70, 8), 2),
    "one filter": ((2, 5, 6, 30), (3, 3, 30, 1)),
    "several chunks and blocks": ((3, 40, 41, 300), (3, 3, 300, 70)),
    "parts of the filter": ((1, 5, 5, 520), (3, 3, 520, 130)),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions_and_their_gradients_are_those_of_the_plain_kernels(case, threads):
    check(convolution(*case), 3, threads)


def test_convolutions_of_float32():
    check(convolution((2, 9, 8, 30), (3, 3, 30, 17), dtype="float32"), 3, tolerance=1e-5)
    check(convolution((2, 9, 8, 30), (3, 3, 30, 7), 2, dtype="float32"), 3, tolerance=1e-5)


def random_windows(rng):
    """Return arguments of an operation on windows: images, a window and where it lies."""
    height, width = (int(v) for v in rng.integers(1, 15, 2))
    window = (int(rng.integers(1, 4)), 3)
    dilations = [int(v) for v in rng.choice([1, 1, 2], 2)]
    strides = [int(v) for v in rng.choice([1, 1, 2, 3], 2)]
    channels = 3 if rng.random() < 0.5 else int(rng.integers(65, 80))
    fits = all(
        (k - 1) * d < size for k, d, size in zip(window, dilations, (height, width), strict=True)
    )
    padding = "VALID" if fits and rng.random() < 0.5 else "SAME"
    images = (int(rng.integers(1, 5)), height, width, channels)
    return images, window, strides, padding, dilations


@pytest.mark.parametrize("seed", range(25))
def test_random_convolutions(seed):
    rng = np.random.default_rng(seed)
    images, window, *rest = random_windows(rng)
    taps = (*window, images[-1], int(rng.integers(1, 40)))
    check(convolution(images, taps, *rest), 3, threads=1 + seed % 3)


POOLS = {
    "pairs": ((2, 8, 6, 20), (2, 2), (2, 2)),
    "odd sizes": ((2, 7, 9, 3), (2, 2), (2, 2), "VALID"),
    "overlapping": ((3, 9, 7, 17), (3, 3), (2, 2), "VALID"),
    "cut off": ((3, 9, 8, 17), (3, 3), (2, 2), "SAME"),
    "every pixel": ((2, 5, 6, 4), (3, 2), (1, 1)),
    "gaps": ((2, 9, 11, 5), (2, 2), (3, 4), "VALID"),
    "dilations": ((2, 9, 11, 5), (2, 3), (1, 1), "SAME", (3, 2)),
    "one image": ((1, 6, 6, 64), (3, 3), (2, 2)),
    "one channel": ((3, 6, 6, 1), (2, 2), (2, 2)),
}


def awkward(rng, shape):
    """Return numbers with ties, infinities and NaN."""
    values = rng.integers(-2, 3, shape).astype(float)
    chance = rng.random(shape)
    values[chance < 0.08] = np.nan
    values[(chance > 0.1) & (chance < 0.3)] = -np.inf
    values[chance > 0.97] = np.inf
    return values


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("make", [normal, awkward])
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
def test_pools_and_their_gradients_are_those_of_the_plain_kernels(case, kind, make, threads):
    check(pool(kind, *case), 2, threads, make)


@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_pools_of_float32(kind):
    check(pool(kind, (3, 9, 8, 33), (3, 3), (2, 2), dtype="float32"), 2, tolerance=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_random_pools(seed):
    images, window, *rest = random_windows(np.random.default_rng(seed))
    for kind in ("MAX", "AVG"):
        check(pool(kind, images, window, *rest), 2, threads=1 + seed % 3, make=awkward)


@pytest.mark.parametrize(
    ("graph", "count"),
    [
        (convolution((2, 7, 9, 3), (3, 3, 3, 5)), 3),
        (convolution((2, 7, 9, 3), (3, 3, 3, 5), 2), 3),
        (pool("MAX", (2, 8, 6, 20), (2, 2), (2, 2)), 2),
        (pool("AVG", (2, 8, 6, 20), (2, 2), (2, 2)), 2),
    ],
)
def test_addresses_may_come_in_each_step(graph, count):
    check(graph, count, late=True)


@pytest.mark.parametrize(
    "graph",
    [
        convolution((2, 3, 7, 9), (3, 3, 3, 5), data_format="NCHW"),
        convolution((2, 7, 9, 4), (3, 3, 2, 6)),
        convolution((2, 7, 9, 3), (3, 3, 3, 5), dtype="float16"),
        convolution((0, 7, 9, 3), (3, 3, 3, 5)),
        convolution((None, 7, 9, 3), (3, 3, 3, 5)),
        pool("MAX", (2, 3, 7, 9), (2, 2), (2, 2), data_format="NCHW"),
        pool("AVG", (2, 7, 9, 3), (2, 2), (2, 2), dtype="float16"),
        pool("MAX", (2, 9, 3), (2,), (2,)),
        pool("MAX", (0, 7, 9, 3), (2, 2), (2, 2)),
    ],
)
def test_others_stay_with_the_plain_kernels(graph):
    assert matched(graph) == []


def test_pools_are_matched_without_blas(monkeypatch):
    monkeypatch.setattr(blas, "loaded_blas", lambda: None)
    assert matched(convolution((2, 7, 9, 3), (3, 3, 3, 5))) == []
    assert len(matched(pool("MAX", (2, 8, 6, 20), (2, 2), (2, 2)))) == 2


def test_a_blas_with_threads_that_cannot_be_set_is_called_from_one_thread(monkeypatch):
    found = dataclasses.replace(blas.loaded_blas(), set_threads=None)
    monkeypatch.setattr(blas, "loaded_blas", lambda: found)
    assert not blas.splits()
    check(convolution((2, 7, 9, 3), (3, 3, 3, 5)), 3)


def test_blas_gets_its_threads_back(monkeypatch):
    numbers = []
    found = dataclasses.replace(blas.loaded_blas(), threads=3, set_threads=numbers.append)
    monkeypatch.setattr(blas, "loaded_blas", lambda: found)
    blas.alone(lambda: numbers.append("run"))()
    with pytest.raises(ZeroDivisionError):
        blas.alone(lambda: 1 // 0)()
    assert numbers == [1, "run", 3, 1, 3]


@pytest.mark.parametrize("threads", [1, 5])
def test_a_team_may_have_more_or_fewer_threads_than_there_is_room_for(threads):
    pool_of_threads = open_mp()
    if pool_of_threads is None:
        pytest.skip("there is no OpenMP")
    pool_of_threads.limit(threads)
    try:
        check(convolution((4, 9, 8, 30), (3, 3, 30, 17)), 3)
        check(convolution((4, 9, 8, 30), (3, 3, 30, 17), 2), 3)
        check(pool("MAX", (1, 9, 8, 40), (2, 2), (2, 2)), 2)
    finally:
        pool_of_threads.limit(thread_count())


def test_operations_and_sources_are_told():
    first, *_ = matched(convolution((2, 8, 8, 3), (3, 3, 3, 5), padding="VALID"))
    assert first.flops() == 2 * (2 * 6 * 6) * (3 * 3 * 3) * 5
    assert "gemm_f64(" in first.source()


def test_convolutions_with_strides_have_no_transposed_convolution():
    shape = geometry((1, 8, 8, 3), (3, 3), 5, {"strides": (2, 1), "padding": "SAME"})
    with pytest.raises(ValueError, match=r"must have strides of 1, got \(2, 1\)"):
        shape.transposed()
