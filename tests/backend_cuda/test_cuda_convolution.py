"""Convolutions of compiled steps: which are taken, and in what layout."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import conv as plain
from headrace_cuda.convolution.library import ConvolutionShape, Direction
from headrace_cuda.convolution.transpose import TRANSPOSE, transpose
from headrace_cuda.nvrtc import Program, compile_cubin
from headrace_cuda.testing.instructions import matched, run
from headrace_cuda.testing.libraries import NumpyConvolutions
from headrace_cuda.testing.platform import FakePlatform

pytestmark = pytest.mark.needs("autodiff")

ONLY = {"convolution"}
PLAIN = {
    "Conv2D": plain.conv,
    "Conv2DBackpropInput": plain.conv_backprop_input,
    "Conv2DBackpropFilter": plain.conv_backprop_filter,
}


@pytest.fixture
def platform():
    return FakePlatform()


def convolution(
    images, taps, strides=1, padding="SAME", dilations=1, data_format="NHWC", dtype="float32"
):
    """Return a graph with a convolution and both of its gradients."""
    graph = hr.Graph()
    with graph.as_default():
        x, filter = hr.placeholder(dtype, images), hr.placeholder(dtype, taps)
        y = hr.nn.conv2d(x, filter, strides, padding, data_format=data_format, dilations=dilations)
        hr.gradients(y, [x, filter], grad_ys=hr.placeholder(dtype, y.shape))
    return graph


def instructions(graph, platform, only=ONLY, **settings):
    ops = [op for op in graph.operations if op.type in PLAIN]
    return matched([op.outputs[0] for op in ops], platform, only, **settings)


def whole(rng, shape):
    # Sums of whole numbers do not depend on their order.
    return rng.integers(-4, 5, shape)


def check(graph, platform, only=ONLY):
    """Check a convolution and its gradients beside the plain kernels; return the instructions."""
    found = instructions(graph, platform, only)
    assert [i.ops[0].type for i in found] == list(PLAIN)
    rng = np.random.default_rng(3)
    for instruction in found:
        (op,) = instruction.ops
        values = {t: whole(rng, t.shape.as_list()).astype(t.dtype.numpy) for t in instruction.reads}
        sizes = np.array(op.outputs[0].shape.as_list())
        given = [values.get(t, sizes.astype(t.dtype.numpy)) for t in op.inputs]
        expected = PLAIN[op.type](np, *given, **op.attrs)
        (written,) = run(instruction, values, platform, times=2).values()
        np.testing.assert_array_equal(written, expected, strict=True)
        assert instruction.flops() == instruction.shape.flops > 0
        assert instruction.source().startswith("NumPy: ")
    return found


SHAPES = {
    "same": ((2, 7, 9, 3), (3, 3, 3, 5)),
    "valid": ((2, 8, 7, 30), (2, 3, 30, 6), 1, "VALID"),
    "explicit padding": ((2, 6, 5, 4), (3, 3, 4, 6), 1, [[0, 0], [3, 1], [0, 4], [0, 0]]),
    "strides": ((2, 11, 9, 3), (3, 2, 3, 5), (3, 2)),
    "strides beyond the window": ((1, 9, 10, 2), (1, 2, 2, 3), (4, 3), "VALID"),
    "uneven padding": ((1, 6, 6, 2), (4, 2, 2, 3), (1, 2)),
    "dilations": ((2, 9, 8, 3), (3, 2, 3, 4), 1, "SAME", (2, 3)),
    "one pixel": ((2, 4, 3, 40), (1, 1, 40, 35)),
    "one filter": ((2, 5, 4, 3), (3, 3, 3, 1)),
    "one tap": ((2, 5, 4, 1), (1, 1, 1, 6)),
    "groups": ((2, 5, 6, 6), (3, 3, 2, 9)),
    "each channel": ((2, 5, 6, 4), (3, 3, 1, 8)),
    "channels first": ((2, 3, 7, 9), (3, 2, 3, 5), (2, 1), "SAME", 1, "NCHW"),
    "one channel first": ((2, 1, 7, 9), (3, 2, 1, 5), (1, 1), "VALID", 1, "NCHW"),
    "groups first": ((2, 6, 5, 6), (3, 3, 2, 9), 1, "SAME", 1, "NCHW"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_convolutions_and_their_gradients(platform, case):
    check(convolution(*SHAPES[case]), platform)


def test_what_the_library_is_asked_for(platform):
    graph = convolution(*SHAPES["uneven padding"])
    shapes = [i.shape for i in instructions(graph, platform, precision="tf32", deterministic=True)]
    assert [shape.direction for shape in shapes] == list(Direction)
    common = {
        "images": 1, "image": (6, 6), "channels": 2, "window": (4, 2), "out": (6, 3), "filters": 3,
        "strides": (1, 2), "before": (1, 0), "after": (2, 0), "precision": "tf32",
        "deterministic": True,
    }  # fmt: skip
    assert shapes == [ConvolutionShape(direction=d, **common) for d in Direction]


def changed(instruction):
    found = re.search("transposes (.*)", instruction.source())
    return found[1].split(", ") if found else []


def test_only_what_lies_differently_is_transposed(platform):
    last = instructions(convolution(*SHAPES["same"]), platform)
    assert [len(changed(i)) for i in last] == [1, 1, 1]
    first = instructions(convolution(*SHAPES["channels first"]), platform)
    assert [len(changed(i)) for i in first] == [3, 3, 3]
    for case in ("one filter", "one tap"):
        found = instructions(convolution(*SHAPES[case]), platform)
        assert [len(changed(i)) for i in found] == [0, 0, 0]
        assert all(not i.sources() for i in found)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_what_follows_is_part_of_the_convolution(platform, data_format, bias, relu):
    with hr.Graph().as_default():
        shape = (2, 5, 6, 3) if data_format == "NHWC" else (2, 3, 5, 6)
        x, filter = hr.placeholder("float32", shape), hr.placeholder("float32", (3, 3, 3, 4))
        y = hr.nn.conv2d(x, filter, 1, "SAME", data_format=data_format)
        feeds = [x, filter]
        if bias:
            feeds.append(hr.placeholder("float32", (4,) if data_format == "NHWC" else (4, 1, 1)))
            y = y + feeds[-1]
        if relu:
            y = hr.nn.relu(y)
        (instruction,) = matched([y], platform, ONLY)
        rng = np.random.default_rng(0)
        values = {t: whole(rng, t.shape.as_list()).astype(np.float32) for t in feeds}
        with hr.Session() as session:
            expected = session.run(y, values)
    assert (instruction.shape.bias, instruction.shape.relu) == (bias, relu)
    assert len(instruction.ops) == 1 + bias + relu
    (written,) = run(instruction, values, platform).values()
    np.testing.assert_array_equal(written, expected)


def test_what_the_library_does_not_fuse_stays_with_others(platform):
    platform.convolutions = NumpyConvolutions(lambda shape: not shape.bias and not shape.relu)
    with hr.Graph().as_default():
        x, filter = hr.placeholder("float32", (2, 5, 6, 3)), hr.placeholder("float32", (3, 3, 3, 4))
        y = hr.nn.relu(hr.nn.conv2d(x, filter, 1, "SAME") + np.ones(4, np.float32))
        (instruction,) = matched([y], platform, ONLY)
    assert [op.type for op in instruction.ops] == ["Conv2D"]


def test_a_sum_is_not_fused(platform):
    with hr.Graph().as_default():
        x, filter = hr.placeholder("float32", (2, 5, 6, 3)), hr.placeholder("float32", (3, 3, 3, 3))
        (instruction,) = matched([x + hr.nn.conv2d(x, filter, 1, "SAME")], platform, ONLY)
    assert [op.type for op in instruction.ops] == ["Conv2D"]


@pytest.mark.parametrize(
    ("images", "taps", "padding"),
    [
        ((0, 4, 4, 1), (2, 2, 1, 3), "SAME"),
        ((1, 4, 4, 1), (2, 2, 1, 0), "SAME"),
        # Padding of many times the image's size, which the plain kernel refuses.
        ((1, 9, 9, 1), (30000, 3000, 1, 1), "SAME"),
    ],
    ids=str,
)
def test_convolutions_that_stay_with_the_plain_kernels(platform, images, taps, padding):
    assert not instructions(convolution(images, taps, 1, padding), platform)


def test_without_a_library_all_stay_with_others(platform):
    platform.convolutions = None
    assert not instructions(convolution(*SHAPES["same"]), platform)
    platform.convolutions = NumpyConvolutions(lambda shape: False)
    assert not instructions(convolution(*SHAPES["same"]), platform)


# -- products of matrices


FLAT = {
    "one pixel": ((2, 4, 3, 40), (1, 1, 40, 35)),
    "the whole image": ((3, 4, 5, 6), (4, 5, 6, 7), 2, "VALID"),
    "one pixel of float64": ((2, 4, 3, 4), (1, 1, 4, 5), 1, "SAME", 1, "NHWC", "float64"),
    "one pixel of float16": ((2, 4, 3, 4), (1, 1, 4, 5), 1, "SAME", 1, "NHWC", "float16"),
}


@pytest.mark.parametrize("case", FLAT)
def test_flat_convolutions_are_products(platform, case):
    found = check(convolution(*FLAT[case]), platform, {"flat convolution"})
    assert [i.name for i in found] == ["multiply"] * 3
    # No filter is transposed for them.
    assert not any(i.sources() for i in found)
    flat = instructions(
        convolution(*FLAT[case]), platform, {"flat convolution"}, deterministic=True
    )
    assert all(i.shape.deterministic for i in flat)
    assert [i.name for i in instructions(convolution(*FLAT[case]), platform, None)] == (
        ["multiply"] * 3
    )


@pytest.mark.parametrize(
    "case", [case for case in SHAPES if case not in FLAT and case != "one tap"]
)
def test_other_convolutions_are_none(platform, case):
    assert not instructions(convolution(*SHAPES[case]), platform, {"flat convolution"})


@pytest.mark.parametrize("addend", [False, True])
def test_what_follows_is_part_of_the_product(platform, addend):
    with hr.Graph().as_default():
        x, taps = hr.placeholder("float32", (2, 5, 6, 3)), hr.placeholder("float32", (1, 1, 3, 4))
        b, z = hr.placeholder("float32", (4,)), hr.placeholder("float32", (2, 5, 6, 4))
        y = hr.nn.conv2d(x, taps, 1, "SAME") + b
        y = hr.nn.relu(y + z if addend else y)
        (instruction,) = matched([y], platform, {"flat convolution"})
        rng = np.random.default_rng(0)
        values = {t: whole(rng, t.shape.as_list()).astype(np.float32) for t in (x, taps, b, z)}
        with hr.Session() as session:
            expected = session.run(y, values)
    assert len(instruction.ops) == 3 + addend
    (written,) = run(instruction, values, platform).values()
    np.testing.assert_array_equal(written, expected)


def test_a_bias_of_a_gradient_is_none(platform):
    with hr.Graph().as_default():
        x, taps = hr.placeholder("float32", (2, 5, 6, 3)), hr.placeholder("float32", (1, 1, 3, 4))
        y = hr.nn.conv2d(x, taps, 1, "SAME")
        (grad,) = hr.gradients(y, [x], grad_ys=hr.placeholder("float32", y.shape))
        found = matched([grad + np.ones(3, np.float32)], platform, {"flat convolution"})
    backward = [i for i in found if i.ops[0].type == "Conv2DBackpropInput"]
    assert [len(i.ops) for i in backward] == [1]


# -- transposing


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 5, 3), (1, 32, 32), (1, 33, 31), (2, 64, 65), (3, 1, 70), (3, 70, 2)],
    ids=str,
)
def test_transposing(platform, shape):
    function = platform.load([TRANSPOSE])[TRANSPOSE.name]
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    source = platform.upload(array)
    target = platform.upload(np.full((shape[0], shape[2], shape[1]), np.nan, np.float32))
    places = platform.address(source), platform.address(target)
    transpose(function, *places, shape[1], shape[2], shape[0])
    np.testing.assert_array_equal(platform.download(target), array.transpose(0, 2, 1))


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_the_kernel_compiles_without_spills(arch):
    options = ("--std=c++17", "--ptxas-options=-v")
    _, log = compile_cubin(Program("transpose.cu", TRANSPOSE.text, arch, options))
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes" in log
