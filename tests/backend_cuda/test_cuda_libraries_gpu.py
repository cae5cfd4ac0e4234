"""T4: what libraries and windowed kernels compute on a GPU, against NumPy in float64."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import conv as plain_conv
from headrace_cpu.kernels import pool as plain_pool
from headrace_cuda.convolution.library import ConvolutionPlaces, ConvolutionShape, Direction
from headrace_cuda.matmul.library import MatmulPlaces, MatmulShape
from headrace_cuda.testing.instructions import matched, run

pytestmark = [pytest.mark.gpu, pytest.mark.needs("autodiff")]

# What one product of two numbers of a precision may be wrong by, and sums of them.
EPSILONS = {"float16": 1e-3, "float32": 6e-7, "float64": 1e-15, "complex64": 1e-6, "tf32": 1e-3}


@pytest.fixture(scope="module")
def platform():
    from headrace_cuda.gpu import GpuPlatform
    from headrace_cuda.hardware import hardware

    gpu = hardware(0)
    with gpu.activate():
        yield GpuPlatform(gpu)
        gpu.synchronize()


class Room:
    """Arrays on the GPU, each at some distance from an aligned address."""

    def __init__(self, platform):
        self.platform, self.kept = platform, []

    def put(self, array, skipped=0):
        """Return the address of a copy."""
        room = np.full(array.nbytes + skipped, 0xFF, np.uint8)
        room[skipped:] = np.frombuffer(array.tobytes(), np.uint8)
        self.kept.append(self.platform.upload(room))
        return self.platform.address(self.kept[-1]) + skipped

    def get(self, place, shape, dtype):
        return self.platform.download(self.platform.view(place, shape, np.dtype(dtype), None))


def drawn(rng, shape, dtype):
    array = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * rng.standard_normal(shape)
    return array.astype(dtype)


# -- cublasLt


def operands(shape, rng):
    batch = () if shape.batch == 1 else (shape.batch,)
    left = (shape.depth, shape.rows) if shape.transpose_left else (shape.rows, shape.depth)
    right = (shape.columns, shape.depth) if shape.transpose_right else (shape.depth, shape.columns)
    return [
        drawn(rng, (*(batch if shape.left_step else ()), *left), shape.dtype),
        drawn(rng, (*(batch if shape.right_step else ()), *right), shape.dtype),
        drawn(rng, (shape.columns,), shape.dtype),
        drawn(rng, (*batch, shape.rows, shape.columns), shape.dtype),
    ]


def product(shape, left, right, bias, addend):
    """Return the product in float64, and how large its terms are."""
    wide = np.result_type(shape.dtype, np.float64)
    a, b = left.astype(wide), right.astype(wide)
    a = a.swapaxes(-1, -2) if shape.transpose_left else a
    b = b.swapaxes(-1, -2) if shape.transpose_right else b
    total, size = a @ b, np.abs(a) @ np.abs(b)
    if shape.addend:
        total, size = total + addend, size + np.abs(addend)
    if shape.bias:
        total, size = total + bias, size + np.abs(bias)
    return (np.maximum(total, 0) if shape.relu else total), size


def multiplied(platform, shape, arrays, skipped=0, capture=False):
    """Return what the library makes of operands."""
    matmul = platform.matmuls.plan(shape)
    assert matmul is not None, f"no plan for {shape}"
    room = Room(platform)
    left, right, bias, addend = (room.put(array, skipped) for array in arrays)
    out = np.full(arrays[3].shape, np.nan, shape.dtype)
    place, scratch = room.put(out, skipped), room.put(np.zeros(matmul.scratch + 1, np.uint8))
    places = MatmulPlaces(
        left, right, place, bias if shape.bias else 0, addend if shape.addend else 0
    )
    work = functools.partial(matmul.start, places, scratch)
    work()
    if capture:
        first = room.get(place, out.shape, shape.dtype)
        replay = platform.capture(work)
        platform.view(place, out.shape, np.dtype(shape.dtype), None)[...] = 0
        replay()
        np.testing.assert_array_equal(room.get(place, out.shape, shape.dtype), first)
    return room.get(place, out.shape, shape.dtype)


def close(found, expected, size, epsilon):
    worst = float((np.abs(found - expected) / (size + 1e-30)).max())
    assert worst <= epsilon, f"an element is wrong by {worst:.2g} of its terms, not {epsilon:.2g}"


PRODUCTS = {
    "small": (5, 7, 3),
    "one column": (200, 1, 300),
    "one row": (1, 1000, 4096),
    "odd": (129, 257, 511),
    "classifier": (128, 2048, 4096),
    "deep": (64, 96, 100_000),
}
FLAGS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "tf32", "float64", "complex64"])
@pytest.mark.parametrize(("transpose_left", "transpose_right"), FLAGS)
@pytest.mark.parametrize("sizes", PRODUCTS)
def test_products(platform, sizes, transpose_left, transpose_right, dtype):
    rows, columns, depth = PRODUCTS[sizes]
    shape = MatmulShape(
        rows=rows,
        columns=columns,
        depth=depth,
        transpose_left=transpose_left,
        transpose_right=transpose_right,
        dtype="float32" if dtype == "tf32" else dtype,
        precision="tf32" if dtype == "tf32" else "highest",
    )
    arrays = operands(shape, np.random.default_rng(0))
    close(multiplied(platform, shape, arrays), *product(shape, *arrays), EPSILONS[dtype])


SMALL = MatmulShape(rows=65, columns=40, depth=72)


@pytest.mark.parametrize("steps", [(65 * 72, 72 * 40), (0, 72 * 40), (65 * 72, 0)], ids=str)
@pytest.mark.parametrize("followed", [False, True])
def test_batches(platform, steps, followed):
    shape = replace(SMALL, batch=6, left_step=steps[0], right_step=steps[1], bias=followed)
    arrays = operands(shape, np.random.default_rng(1))
    close(multiplied(platform, shape, arrays), *product(shape, *arrays), 6e-7)


@pytest.mark.parametrize("skipped", [0, 4, 8])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("precision", ["highest", "tf32"])
def test_what_follows(platform, precision, bias, addend, relu, skipped):
    shape = replace(SMALL, bias=bias, addend=addend, relu=relu, precision=precision)
    arrays = operands(shape, np.random.default_rng(2))
    epsilon = 6e-7 if precision == "highest" else 1e-3
    found = multiplied(platform, shape, arrays, skipped, capture=True)
    close(found, *product(shape, *arrays), epsilon)


@pytest.mark.parametrize("bias", [False, True])
def test_the_rectifier_keeps_nan(platform, bias):
    shape = replace(SMALL, bias=bias, relu=True)
    arrays = operands(shape, np.random.default_rng(2))
    arrays[0][3, 5] = np.nan
    found = multiplied(platform, shape, arrays)
    assert np.isnan(found[3]).all()
    assert not np.isnan(np.delete(found, 3, axis=0)).any()


def test_equal_products_have_equal_bits(platform):
    shape = MatmulShape(rows=64, columns=96, depth=100_000, transpose_left=True)
    arrays = operands(shape, np.random.default_rng(0))
    first = multiplied(platform, shape, arrays)
    for _ in range(5):
        np.testing.assert_array_equal(multiplied(platform, shape, arrays), first)


# -- cuDNN


@pytest.fixture
def convolutions(platform):
    if platform.convolutions is None:
        pytest.skip("cuDNN or its frontend is not installed")
    return platform.convolutions


def convolution(
    images, image, channels, window, filters, strides=1, padding=None, groups=1, dilations=1
):
    """Return a convolution; padding is ``(before, after)``, "SAME" for odd windows if None."""
    before, after = padding or ((window - 1) // 2 * dilations,) * 2
    out = (image + before + after - (window - 1) * dilations - 1) // strides + 1
    return ConvolutionShape(
        direction=Direction.FORWARD,
        images=images,
        image=(image, image),
        channels=channels,
        window=(window, window),
        out=(out, out),
        filters=filters,
        strides=(strides, strides),
        dilations=(dilations, dilations),
        before=(before, before),
        after=(after, after),
        groups=groups,
    )


CONVOLUTIONS = {
    "tiny": convolution(1, 5, 1, 3, 1),
    "odd": convolution(3, 13, 5, 3, 7),
    "first of VGG": convolution(2, 64, 3, 3, 64),
    "first of AlexNet": convolution(4, 224, 3, 11, 64, 4, (2, 2)),
    "second of AlexNet": convolution(4, 27, 64, 5, 192),
    "one pixel": convolution(4, 28, 192, 1, 64),
    "strides": convolution(2, 57, 64, 3, 128, 2),
    "uneven padding": convolution(2, 56, 64, 3, 64, 2, (0, 1)),
    "dilations": convolution(2, 28, 32, 3, 32, dilations=2),
    "as large as the image": convolution(8, 6, 256, 6, 512, padding=(0, 0)),
    "groups": convolution(2, 14, 64, 3, 64, groups=4),
    "each channel": convolution(2, 14, 64, 3, 64, groups=64),
}


def layouts(shape):
    return {
        "activations": (shape.images, *shape.image, shape.channels),
        "filter": (shape.filters, *shape.window, shape.channels // shape.groups),
        "out": (shape.images, *shape.out, shape.filters),
    }


WRITTEN = {
    Direction.FORWARD: "out",
    Direction.TO_ACTIVATIONS: "activations",
    Direction.TO_FILTER: "filter",
}


def reference(shape, arrays):
    """Return what is written, and how large its terms are, in float64."""
    total = _convolved(shape, {name: a.astype(np.float64) for name, a in arrays.items()})
    return total, _convolved(shape, {n: np.abs(a.astype(np.float64)) for n, a in arrays.items()})


def _convolved(shape, arrays):
    groups = shape.groups
    sizes = layouts(shape)
    x = arrays.get("activations", np.zeros(sizes["activations"]))
    pairs = zip(shape.before, shape.after, strict=True)
    padded = np.pad(x, ((0, 0), *pairs, (0, 0)))
    padded = padded.reshape(*padded.shape[:3], groups, -1)
    w = arrays.get("filter", np.zeros(sizes["filter"]))
    w = w.reshape(groups, -1, *w.shape[1:])
    y = arrays.get("out", np.zeros(sizes["out"]))
    y = y.reshape(*y.shape[:3], groups, -1)
    for ky in range(shape.window[0]):
        for kx in range(shape.window[1]):
            index = [slice(None)]
            for axis, k in enumerate((ky, kx)):
                first = k * shape.dilations[axis]
                last = first + (shape.out[axis] - 1) * shape.strides[axis] + 1
                index.append(slice(first, last, shape.strides[axis]))
            tap, taps = padded[tuple(index)], w[:, :, ky, kx]
            if shape.direction is Direction.FORWARD:
                y += np.einsum("nhwgc,gfc->nhwgf", tap, taps, optimize=True)
            elif shape.direction is Direction.TO_FILTER:
                w[:, :, ky, kx] = np.einsum("nhwgc,nhwgf->gfc", tap, y, optimize=True)
            else:
                padded[tuple(index)] += np.einsum("nhwgf,gfc->nhwgc", y, taps, optimize=True)
    if shape.direction is Direction.TO_ACTIVATIONS:
        top, left = shape.before
        inside = padded[:, top : top + shape.image[0], left : left + shape.image[1]]
        return inside.reshape(sizes["activations"])
    written = {"out": y, "filter": w}[WRITTEN[shape.direction]]
    return written.reshape(sizes[WRITTEN[shape.direction]])


def convolved(platform, plan, shape, arrays, capture=False):
    """Return what the library makes of operands."""
    room, written = Room(platform), WRITTEN[shape.direction]
    out = np.full(layouts(shape)[written], np.nan, np.float32)
    places = {name: room.put(array) for name, array in {**arrays, written: out}.items()}
    scratch = room.put(np.zeros(plan.scratch + 1, np.uint8))
    work = functools.partial(plan.start, ConvolutionPlaces(**places), scratch)
    work()
    if capture:
        first = room.get(places[written], out.shape, "float32")
        replay = platform.capture(work)
        platform.view(places[written], out.shape, np.dtype("float32"), None)[...] = 0
        replay()
        np.testing.assert_array_equal(room.get(places[written], out.shape, "float32"), first)
    return room.get(places[written], out.shape, "float32")


@pytest.mark.parametrize("precision", ["highest", "tf32"])
@pytest.mark.parametrize("direction", Direction, ids=lambda d: d.name)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(platform, convolutions, case, direction, precision):
    shape = replace(
        CONVOLUTIONS[case], direction=direction, precision=precision, deterministic=True
    )
    plan = convolutions.plan(shape)
    if plan is None:
        assert shape.groups > 1, f"no plan for {shape}"
        pytest.skip("cuDNN has no engine for these groups")
    rng, written = np.random.default_rng(4), WRITTEN[direction]
    arrays = {n: drawn(rng, s, "float32") for n, s in layouts(shape).items() if n != written}
    found = convolved(platform, plan, shape, arrays, capture=True)
    # Winograd's algorithm loses some bits of the terms.
    close(found, *reference(shape, arrays), 5e-6 if precision == "highest" else 2e-3)
    np.testing.assert_array_equal(convolved(platform, plan, shape, arrays), found)


@pytest.mark.parametrize("direction", Direction, ids=lambda d: d.name)
def test_scratch_memory_of_large_convolutions_is_bounded(convolutions, direction):
    from headrace_cuda.convolution.cudnn import MOST_SCRATCH

    for precision in ("highest", "tf32"):
        for layer in (convolution(64, 224, 64, 3, 64), convolution(64, 28, 512, 3, 512)):
            shape = replace(layer, direction=direction, precision=precision)
            plan = convolutions.plan(shape)
            assert plan is not None, f"no plan for {shape}"
            assert plan.scratch <= MOST_SCRATCH


def test_a_nan_does_not_get_lost(platform, convolutions):
    shape = CONVOLUTIONS["odd"]
    arrays = {
        n: np.ones(s, np.float32)
        for n, s in layouts(shape).items()
        if n in ("activations", "filter")
    }
    arrays["activations"][1, 6, 6, 2] = np.nan
    found = convolved(platform, convolutions.plan(shape), shape, arrays)
    assert np.isnan(found[1, 5:8, 5:8]).all()


# -- instructions, as compiled steps have them


PLAIN = {
    "Conv2D": plain_conv.conv,
    "Conv2DBackpropInput": plain_conv.conv_backprop_input,
    "Conv2DBackpropFilter": plain_conv.conv_backprop_filter,
    "MaxPool": plain_pool.max_pool,
    "MaxPoolGrad": plain_pool.max_pool_grad,
    "AvgPool": plain_pool.avg_pool,
    "AvgPoolGrad": plain_pool.avg_pool_grad,
}


def check(graph, platform, count, make, tolerance):
    ops = [op for op in graph.operations if op.type in PLAIN]
    found = matched([op.outputs[0] for op in ops], platform)
    assert len(found) == count
    rng = np.random.default_rng(3)
    for instruction in found:
        (op,) = instruction.ops
        values = {t: make(rng, t.shape.as_list()).astype(t.dtype.numpy) for t in instruction.reads}
        sizes = np.array(op.outputs[0].shape.as_list())
        given = [values.get(t, sizes.astype(t.dtype.numpy)) for t in op.inputs]
        with np.errstate(all="ignore"):
            expected = PLAIN[op.type](np, *given, **op.attrs)
        (written,) = run(instruction, values, platform, times=2).values()
        scale = tolerance * float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
        np.testing.assert_allclose(written, expected, rtol=tolerance, atol=scale)


def normal(rng, shape):
    return rng.standard_normal(shape)


def ties(rng, shape):
    return rng.choice([-1.0, 0.0, 1.0, np.nan, -np.inf], shape)


@pytest.mark.parametrize("make", [normal, ties])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_pools_equal_the_plain_kernels(platform, kind, padding, data_format, make):
    with hr.Graph().as_default() as graph:
        shape = (4, 27, 31, 65) if data_format == "NHWC" else (4, 65, 27, 31)
        x = hr.placeholder("float32", shape)
        options = {"strides": 2, "padding": padding, "data_format": data_format}
        y = hr.nn.pool(x, (3, 3), kind, **options)
        hr.gradients(y, [x], grad_ys=hr.placeholder("float32", y.shape))
    check(graph, platform, 2, make, 0.0)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_convolutions_of_graphs(platform, convolutions, data_format):
    with hr.Graph().as_default() as graph:
        shape = (4, 15, 14, 32) if data_format == "NHWC" else (4, 32, 15, 14)
        x, taps = hr.placeholder("float32", shape), hr.placeholder("float32", (3, 3, 32, 48))
        y = hr.nn.conv2d(x, taps, (2, 1), "SAME", data_format=data_format)
        hr.gradients(y, [x, taps], grad_ys=hr.placeholder("float32", y.shape))
    check(graph, platform, 3, normal, 1e-5)
