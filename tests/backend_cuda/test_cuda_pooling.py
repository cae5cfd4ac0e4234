"""Pools of compiled steps: the kernels, run on the host, equal the plain ones bit for bit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import pool as plain
from headrace_cpu.kernels.windows import lay_windows
from headrace_cuda.nvrtc import Program, compile_cubin
from headrace_cuda.pooling import kernels
from headrace_cuda.pooling.kernels import PoolShape
from headrace_cuda.program.prelude import PRELUDE
from headrace_cuda.testing.instructions import matched, run
from headrace_cuda.testing.platform import FakePlatform

pytestmark = pytest.mark.needs("autodiff")

ONLY = {"pool"}
PLAIN = {
    "MaxPool": plain.max_pool,
    "MaxPoolGrad": plain.max_pool_grad,
    "AvgPool": plain.avg_pool,
    "AvgPoolGrad": plain.avg_pool_grad,
}


@pytest.fixture
def platform():
    return FakePlatform()


def pool(kind, images, window, strides=1, padding="SAME", dilations=1, dtype="float32", **more):
    """Return a graph with a pool and its gradient."""
    graph = hr.Graph()
    with graph.as_default():
        x = hr.placeholder(dtype, images)
        options = {"strides": strides, "padding": padding, "dilations": dilations, **more}
        y = hr.nn.pool(x, window, kind, **options)
        hr.gradients(y, [x], grad_ys=hr.placeholder(dtype, y.shape))
    return graph


def instructions(graph, platform):
    ops = [op for op in graph.operations if op.type in PLAIN]
    return matched([op.outputs[0] for op in ops], platform, ONLY)


def check(graph, platform, make):
    found = instructions(graph, platform)
    assert [i.ops[0].type for i in found] == [
        op.type for op in graph.operations if op.type in PLAIN
    ]
    rng = np.random.default_rng(3)
    for instruction in found:
        (op,) = instruction.ops
        values = {t: make(rng, t.shape.as_list()).astype(t.dtype.numpy) for t in instruction.reads}
        sizes = np.array(op.outputs[0].shape.as_list())
        given = [values.get(t, sizes.astype(t.dtype.numpy)) for t in op.inputs]
        with np.errstate(all="ignore"):
            expected = PLAIN[op.type](np, *given, **op.attrs)
        (written,) = run(instruction, values, platform, times=2).values()
        np.testing.assert_array_equal(written, expected, strict=True)


def normal(rng, shape):
    return rng.standard_normal(shape)


def ties(rng, shape):
    return rng.integers(-1, 2, shape).astype(float)


def wild(rng, shape):
    return rng.choice([np.nan, -np.inf, np.inf, -0.0, 0.0, 1.0], shape)


def lowest(rng, shape):
    return np.full(shape, -np.inf)


SHAPES = {
    "two by two": ((2, 6, 8, 3), (2, 2), (2, 2), "VALID"),
    "overlapping": ((2, 7, 9, 5), (3, 3), (2, 2)),
    "every place": ((1, 5, 6, 2), (3, 3)),
    "uneven": ((2, 7, 5, 3), (2, 4), (3, 1)),
    "strides beyond the window": ((1, 11, 10, 2), (2, 1), (4, 3)),
    "dilations": ((2, 9, 8, 3), (3, 2), (1, 1), "VALID", (2, 3)),
    "dilations and padding": ((1, 9, 8, 3), (3, 2), (1, 1), "SAME", (2, 3)),
    "explicit padding": ((1, 5, 6, 2), (3, 3), (2, 1), [[0, 0], [2, 1], [0, 2], [0, 0]]),
    "the whole image": ((3, 4, 5, 7), (4, 5), (1, 1), "VALID"),
    "a large window": ((1, 17, 18, 1), (17, 16), (1, 1), "SAME"),
    "one element": ((1, 1, 1, 1), (1, 1)),
    "a window of nothing but padding": (
        (1, 1, 1, 2),
        (3, 3),
        (1, 1),
        [[0, 0], [2, 2], [2, 2], [0, 0]],
    ),
    "channels first": ((2, 3, 7, 5), (3, 2), (2, 2), "SAME", 1, "float32", "NCHW"),
    "four channels a thread": ((2, 7, 9, 8), (3, 3), (2, 2)),
    "four channels of large windows": ((1, 17, 18, 4), (17, 16), (1, 1), "SAME"),
    "four channels, dilations": ((2, 9, 8, 12), (3, 2), (2, 1), "VALID", (2, 3)),
    "four channels first": ((2, 4, 7, 5), (3, 2), (2, 2), "SAME", 1, "float32", "NCHW"),
    "one axis": ((2, 9, 4), (3,), (2,)),
    "three axes": ((1, 5, 4, 6, 2), (2, 3, 2), (2, 1, 2)),
    "float64": ((2, 6, 5, 3), (3, 2), (2, 2), "SAME", 1, "float64"),
}


def built(kind, case):
    names = ("images", "window", "strides", "padding", "dilations", "dtype", "data_format")
    return pool(kind, **dict(zip(names, SHAPES[case], strict=False)))


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_pools_equal_the_plain_kernels(platform, kind, case):
    check(built(kind, case), platform, normal)


@pytest.mark.parametrize("make", [ties, wild, lowest])
@pytest.mark.parametrize("case", ["overlapping", "two by two", "explicit padding"])
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_ties_and_numbers_that_are_none(platform, kind, case, make):
    check(built(kind, case), platform, make)


@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_operands_that_are_aligned_to_less_get_other_kernels(platform, kind):
    class Skewed:
        """Memory of which every array lies 4 bytes behind an aligned address."""

        def __init__(self):
            self.load, self.download, self.address = (
                *(platform.load, lambda array: array.copy(), lambda array: array.ctypes.data),
            )

        def upload(self, array):
            room = np.zeros(array.nbytes + 32, np.uint8)
            start = -room.ctypes.data % 16 + 4
            made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
            made[...] = array
            return made

    for instruction in instructions(built(kind, "four channels a thread"), platform):
        rng = np.random.default_rng(0)
        values = {
            t: rng.standard_normal(t.shape.as_list()).astype(np.float32) for t in instruction.reads
        }
        (expected,) = run(instruction, values, platform).values()
        (found,) = run(instruction, values, Skewed()).values()
        np.testing.assert_array_equal(found, expected)


def test_places_have_a_byte_where_it_counts_them():
    def shape(*window):
        laid = lay_windows((20, 20), window, (1, 1), None, "VALID")
        return PoolShape(laid, 1, 1, False, "float32")

    assert [shape(*w).place_size for w in ((3, 3), (15, 17), (16, 16))] == [1, 1, 4]


def test_large_images_are_counted_with_64_bits():
    laid = lay_windows((1 << 15, 1 << 15), (2, 2), (2, 2), None, "VALID")
    assert (
        "const long long c = rest" in kernels.max_pool(PoolShape(laid, 1, 1, False, "float32")).text
    )
    laid = lay_windows((1 << 14, 1 << 15), (2, 2), (2, 2), None, "VALID")
    assert "const int c = rest" in kernels.max_pool(PoolShape(laid, 1, 1, False, "float32")).text


@pytest.mark.parametrize(
    "graph",
    [
        lambda: pool("MAX", (0, 4, 4, 1), (2, 2)),
        lambda: pool("AVG", (1, 4, 4, 1), (2, 2), dtype="float16"),
        # Padding of many times the image's size, which the plain kernel refuses.
        lambda: pool("MAX", (1, 9, 9, 1), (30000, 30000)),
    ],
    ids=["empty", "float16", "vast"],
)
def test_pools_that_stay_with_the_plain_kernels(platform, graph):
    assert not instructions(graph(), platform)


def test_scratch_memory_is_for_the_places_of_maxima(platform):
    forward, backward = instructions(built("MAX", "overlapping"), platform)
    assert (forward.scratch, backward.scratch) == (0, 2 * 4 * 5 * 5)
    assert "unsigned char" in backward.source()
    assert all(i.scratch == 0 for i in instructions(built("AVG", "overlapping"), platform))


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_kernels_compile_without_spills(arch):
    laid = lay_windows((55, 54), (3, 3), (2, 2), None, "SAME")
    shape = PoolShape(laid, 128, 64, False, "float32")
    shapes = [shape, replace(shape, first=True), replace(shape, dtype="float64")]
    shapes.append(replace(shape, lanes=shape.most_lanes))
    assert shape.most_lanes == 4
    makers = [kernels.max_pool, kernels.max_places, kernels.max_pool_grad]
    makers += [kernels.avg_pool, kernels.avg_pool_grad]
    sources = {make(each) for make in makers for each in shapes}
    text = PRELUDE + "\n".join(source.text for source in sources)
    options = ("--std=c++17", "--ptxas-options=-v")
    image, log = compile_cubin(Program("pools.cu", text, arch, options))
    assert image[:4] == b"\x7fELF"
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", log)
    assert len(spills) == len(sources)
    assert all(numbers == ("0", "0", "0") for numbers in spills), log
