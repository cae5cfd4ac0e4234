"""Convolutions by oneDNN against the plain kernels."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace.testing import uses_kernel
from headrace_cpu.onednn.library import load

pytest.importorskip("headrace_autodiff")
pytest.importorskip("headrace_train")

pytestmark = pytest.mark.skipif(load() is None, reason="oneDNN is not installed")

# images n, h, w, c; filter h, w, in, out; strides, dilations, padding
CASES = [
    ((2, 8, 9, 3), (3, 3, 3, 5), (1, 1), (1, 1), "SAME"),
    ((1, 8, 9, 1), (5, 5, 1, 4), (1, 1), (1, 1), "SAME"),
    ((1, 7, 7, 16), (3, 3, 16, 32), (1, 1), (1, 1), "VALID"),
    ((3, 15, 13, 3), (7, 5, 3, 8), (4, 3), (1, 1), "SAME"),
    ((2, 12, 12, 17), (3, 3, 17, 19), (2, 2), (1, 1), "SAME"),
    ((2, 12, 11, 4), (3, 3, 4, 6), (1, 1), (2, 3), "SAME"),
    ((2, 12, 11, 4), (3, 3, 4, 6), (1, 1), (2, 2), "VALID"),
    ((1, 5, 5, 8), (1, 1, 8, 16), (1, 1), (1, 1), "VALID"),
    ((2, 9, 9, 16), (1, 1, 16, 16), (2, 2), (1, 1), "SAME"),
    ((2, 9, 9, 3), (3, 3, 3, 4), (1, 1), (1, 1), ((2, 1), (0, 2))),
    ((2, 6, 6, 8), (3, 3, 2, 12), (1, 1), (1, 1), "SAME"),
    ((2, 6, 6, 32), (3, 3, 16, 32), (1, 1), (1, 1), "SAME"),
    ((2, 8, 8, 8), (3, 3, 1, 8), (1, 1), (1, 1), "SAME"),
    ((2, 8, 8, 16), (3, 3, 1, 16), (2, 2), (1, 1), "SAME"),
    ((2, 8, 8, 4), (3, 3, 1, 8), (1, 1), (1, 1), "VALID"),
    ((1, 3, 3, 2), (3, 3, 2, 2), (1, 1), (1, 1), "VALID"),
    ((1, 1, 9, 2), (1, 3, 2, 3), (1, 2), (1, 1), "SAME"),
]


def turned(shape, layout):
    return shape if layout == "NHWC" else (shape[0], shape[3], shape[1], shape[2])


def step(case, layout, bias=True, relu=True):
    """Return the tensors of a convolution, of its gradients, and what is fed."""
    images, taps, strides, dilations, padding = case
    rng = np.random.default_rng(0)
    x = hr.placeholder("float32", turned(images, layout))
    w = hr.placeholder("float32", taps)
    b = hr.placeholder("float32", [taps[-1]])
    pads = padding
    if not isinstance(padding, str):
        pads = ((0, 0), *padding, (0, 0)) if layout == "NHWC" else ((0, 0), (0, 0), *padding)
    y = hr.nn.conv2d(x, w, strides, pads, data_format=layout, dilations=dilations)
    if bias:
        y = hr.nn.bias_add(y, b, data_format=layout)
    if relu:
        y = hr.nn.relu(y)
    seed = hr.placeholder("float32", y.shape.known)
    grads = hr.gradients([y], [x, w, b] if bias else [x, w], grad_ys=[seed])
    feeds = {t: rng.standard_normal(t.shape.known, np.float32) for t in (x, w, seed)}
    feeds |= {b: rng.standard_normal(taps[-1], np.float32)} if bias else {}
    return [y, *grads], feeds


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_gradients_equal_the_plain_kernels(harness, case, layout):
    results, feeds = step(case, layout)
    found = harness.compare(results, feeds)
    names = ["convolve", "convolve_to_activations", "convolve_to_filter"]
    assert sorted(i.name for i in found) == names
    assert all(i.flops() > 0 for i in found)


@pytest.mark.parametrize("threads", [1, 2])
def test_addresses_may_come_late(harness, threads):
    results, feeds = step(CASES[4], "NHWC")
    harness.compare(results, feeds, threads=threads, late=True)


@pytest.mark.parametrize("case", [CASES[2], CASES[3], CASES[12]], ids=str)
def test_a_step_may_have_fewer_threads(harness, case):
    results, feeds = step(case, "NCHW")
    with load().threads(1):
        harness.compare(results, feeds, threads=2)
        harness.compare(results, feeds, threads=2, late=True)
    with load().threads(2):
        harness.compare(results, feeds, threads=3)


def names(instruction):
    return [op.type for op in instruction.ops]


def test_bias_and_relu_are_part_of_the_convolution(harness):
    results, feeds = step(CASES[2], "NHWC")
    found = {i.name: i for i in harness.compare(results, feeds)}
    assert names(found["convolve"]) == ["Conv2D", "Add", "Relu"]
    assert names(found["convolve_to_filter"]) == ["Conv2DBackpropFilter"]


def test_what_others_read_is_not_swallowed(harness):
    x = hr.placeholder("float32", [1, 6, 6, 3])
    w = hr.placeholder("float32", [3, 3, 3, 4])
    y = hr.nn.conv2d(x, w, 1, "SAME")
    z = y + np.ones(4, np.float32)
    (found,) = harness.matched([z, hr.exp(y)])
    assert names(found) == ["Conv2D"]
    (found,) = harness.matched([hr.nn.relu(z), z])
    assert names(found) == ["Conv2D"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("bias", "relu"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_a_residual_is_added_at_once(harness, bias, relu, layout):
    rng = np.random.default_rng(1)
    x = hr.placeholder("float32", [2, 6, 6, 16] if layout == "NHWC" else [2, 16, 6, 6])
    w = hr.placeholder("float32", [3, 3, 16, 16])
    y = hr.nn.conv2d(x, w, 1, "SAME", data_format=layout)
    if bias:
        y = hr.nn.bias_add(y, np.arange(16, dtype=np.float32), data_format=layout)
    y = x + y
    if relu:
        y = hr.nn.relu(y)
    feeds = {t: rng.standard_normal(t.shape.known, np.float32) for t in (x, w)}
    found = harness.compare([y], feeds)
    found = next(i for i in found if i.name == "convolve")
    assert names(found) == ["Conv2D", *(["Add"] * (1 + bias)), *(["Relu"] * relu)]


def test_relu_keeps_nan(harness):
    x = hr.placeholder("float32", [1, 5, 5, 3])
    w = hr.placeholder("float32", [3, 3, 3, 16])
    y = hr.nn.relu(hr.nn.conv2d(x, w, 1, "SAME"))
    images = np.ones((1, 5, 5, 3), np.float32)
    images[0, 0, 0, 0] = np.nan
    taps = np.linspace(-1, 1, 9 * 3 * 16, dtype=np.float32).reshape(3, 3, 3, 16)
    (found,) = harness.compare([y], {x: images, w: taps})
    assert names(found) == ["Conv2D", "Relu"]
    (out,) = harness.run(found, {x: images, w: taps}).values()
    assert np.isnan(out[0, :2, :2]).all()
    assert not np.isnan(out[0, 2:]).any()
    assert not np.signbit(out[0, 2:]).any()


def test_explanations_name_the_library():
    x = hr.placeholder("float32", [2, 16, 16, 16])
    y = hr.nn.conv2d(x, np.ones((1, 1, 16, 16), np.float32), 1, "SAME")
    assert uses_kernel(hr.exp(y), "Conv2D", "onednn")
    assert uses_kernel(hr.exp(y), "Exp", "headrace-backend-cpu")


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_dtypes_are_left_to_others(harness, dtype):
    x = hr.placeholder(dtype, [1, 6, 6, 3])
    w = hr.placeholder(dtype, [3, 3, 3, 4])
    assert not harness.matched([hr.nn.conv2d(x, w, 1, "SAME")])


def test_nothing_is_matched_where_there_is_nothing_to_compute(harness):
    for images, taps in [((0, 6, 6, 3), (3, 3, 3, 4)), ((1, 6, 6, 3), (3, 3, 3, 0))]:
        x, w = hr.placeholder("float32", images), hr.placeholder("float32", taps)
        assert not harness.matched([hr.nn.conv2d(x, w, 1, "SAME")])


def test_volumes(harness):
    rng = np.random.default_rng(2)
    x = hr.placeholder("float32", [2, 4, 5, 6, 3])
    w = hr.placeholder("float32", [3, 2, 3, 3, 8])
    y = hr.nn.conv3d(x, w, (1, 1, 2, 1, 1), "SAME")
    grads = hr.gradients([y], [x, w], grad_ys=[hr.ones_like(y)])
    feeds = {t: rng.standard_normal(t.shape.known, np.float32) for t in (x, w)}
    assert len(harness.compare([y, *grads], feeds)) == 3


def test_instances_run_at_the_same_time(harness):
    results, feeds = step(CASES[4], "NHWC")
    jobs = []
    for instruction in harness.matched(results):
        wanted = [*instruction.reads, *instruction.writes]
        values = dict(zip(wanted, harness.plain(wanted, feeds), strict=True))
        for scale in (1.0, 2.0):
            places = harness.Places(instruction)
            for tensor in instruction.reads:
                places.array(tensor)[...] = values[tensor] * scale
            jobs.append((instruction, places, instruction.bind(places).call))
    wrong = []

    def work(instruction, places, call):
        call()
        first = {t: places.array(t).copy() for t in instruction.writes}
        for _ in range(50):
            call()
            if any((places.array(t) != first[t]).any() for t in instruction.writes):
                wrong.append(instruction.name)

    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
