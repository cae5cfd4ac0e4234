"""Every rule against finite differences, twice differentiated, with and without static shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import call_op

pytestmark = pytest.mark.needs("backend-cpu")

Build = Callable[..., Any]
RNG = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> Any:
    return RNG.uniform(0.5, 2.0, shape)


def apart(*shape: int) -> Any:
    """Numbers that differ by more than a step of the finite differences."""
    return RNG.permutation(int(np.prod(shape))).reshape(shape) * 0.1 - 0.5


ALL = ("dims", "rank", "nothing")
RANKED = ("dims", "rank")
STATIC = ("dims",)

# Name, function, where to differentiate, what the placeholders may know of their shapes.
CASES: list[tuple[str, Build, list[Any], tuple[str, ...]]] = [
    # elementwise
    ("add", lambda x, y: x + y, [normal(3, 4), normal(3, 4)], ALL),
    ("add_broadcast", lambda x, y: x + y, [normal(2, 1, 4), normal(3, 1)], ALL),
    ("add_scalar", lambda x, y: x + y, [normal(), normal(2, 3)], ALL),
    ("add_itself", lambda x: x + x * x, [normal(3)], ALL),
    ("sub_broadcast", lambda x, y: x - y, [normal(3), normal(2, 3)], ALL),
    ("mul_broadcast", lambda x, y: x * y * x, [normal(2, 3), normal(2, 1)], ALL),
    ("mul_ones", lambda x, y: x * y, [normal(1, 1), normal(1, 3)], ALL),
    ("div", lambda x, y: x / y, [normal(2, 3), positive(3)], ALL),
    ("floormod", lambda x, y: hr.floormod(x, y), [positive(4) * 5 + 0.01, [0.7, 3, -2, 5]], ALL),
    ("pow", hr.pow, [positive(2, 3), normal(3)], ALL),
    ("pow_constant", lambda x: x**3.0, [normal(4)], ALL),
    ("pow_square_at_zero", lambda x: x**2.0, [[0.0, -1.0, 2.0]], ALL),
    ("pow_base", lambda x: 2.0**x, [normal(4)], ALL),
    ("maximum", hr.maximum, [apart(3, 4), [0.01, 0.22, 0.33, -0.34]], ALL),
    ("minimum", hr.minimum, [apart(3, 4), [0.01, 0.22, 0.33, -0.34]], ALL),
    ("neg", lambda x: -x * x, [normal(3)], ALL),
    ("abs", hr.abs, [[-1.5, 0.5, 2.0]], ALL),
    ("square", hr.square, [normal(3)], ALL),
    ("sqrt", hr.sqrt, [positive(3)], ALL),
    ("exp", hr.exp, [normal(3)], ALL),
    ("log", hr.log, [positive(3)], ALL),
    ("log1p", hr.log1p, [positive(3)], ALL),
    ("sin", hr.sin, [normal(3)], ALL),
    ("cos", hr.cos, [normal(3)], ALL),
    ("tanh", hr.tanh, [normal(3)], ALL),
    ("sigmoid", hr.sigmoid, [normal(3)], ALL),
    ("relu", lambda x: hr.nn.relu(x) * x, [[-1.0, 0.5, 2.0]], ALL),
    ("softplus", hr.nn.softplus, [normal(3)], ALL),
    (
        "select",
        lambda x, y: hr.where([[True], [False]], x * x, y * y),
        [normal(1, 3), normal(2, 1)],
        ALL,
    ),
    ("cast", lambda x: hr.cast(hr.cast(x, "complex128") * (2 + 1j), "float64"), [normal(3)], ALL),
    # reduce
    ("sum", lambda x: hr.reduce_sum(x * x), [normal(2, 3)], ALL),
    ("sum_axis", lambda x: hr.reduce_sum(x * x, 1), [normal(2, 3)], ALL),
    ("sum_axes", lambda x: hr.reduce_sum(x * x, [0, -1]), [normal(2, 3, 4)], ALL),
    ("sum_keepdims", lambda x: hr.reduce_sum(x * x, 0, keepdims=True), [normal(2, 3)], ALL),
    ("mean", lambda x: hr.reduce_mean(x * x), [normal(2, 3)], ALL),
    ("mean_axis", lambda x: hr.reduce_mean(x * x, [1]), [normal(2, 3)], ALL),
    ("max", lambda x: hr.reduce_max(x) ** 2.0, [apart(2, 3)], ALL),
    ("max_axis", lambda x: hr.reduce_max(x, 1) ** 2.0, [apart(2, 3)], ALL),
    ("min_axis", lambda x: hr.reduce_min(x, -2) ** 2.0, [apart(2, 3)], ALL),
    ("prod", hr.reduce_prod, [normal(2, 3)], ALL),
    ("prod_axis", lambda x: hr.reduce_prod(x, 1), [normal(2, 5)], ALL),
    ("prod_axes", lambda x: hr.reduce_prod(x, [0, -1]), [normal(2, 2, 3)], ALL),
    ("prod_one_zero", lambda x: hr.reduce_prod(x, 0), [[1.0, 0.0, 3.0, 2.0]], ALL),
    ("prod_two_zeros", lambda x: hr.reduce_prod(x, 0), [[0.0, 2.0, 0.0]], ALL),
    ("prod_keepdims", lambda x: hr.reduce_prod(x, -1, keepdims=True), [normal(2, 3)], ALL),
    ("prod_of_one", lambda x: hr.reduce_prod(x, 1), [normal(2, 1)], ALL),
    ("sum_to_shape", lambda x: call_op("SumToShape", x * x, [3, 1]), [normal(2, 3, 4)], ALL),
    (
        "segment_sum",
        lambda x: hr.unsorted_segment_sum(x * x, [1, 0, 1], 3),
        [normal(3, 2)],
        ALL,
    ),
    (
        "segment_sum_dropped",
        lambda x: hr.unsorted_segment_sum(x * x, [[1, -1], [-1, 0]], 2),
        [normal(2, 2, 3)],
        ALL,
    ),
    ("l2_loss", lambda x: hr.nn.l2_loss(x) * 3.0, [normal(2, 3)], ALL),
    # array
    ("identity", lambda x: hr.identity(x * x), [normal(3)], ALL),
    ("identity_n", lambda x, y: hr.identity_n([x * x, x * y]), [normal(3), normal(3)], ALL),
    ("reshape", lambda x: hr.reshape(x * x, [3, -1]), [normal(2, 3)], ALL),
    ("expand_dims", lambda x: hr.expand_dims(x * x, -1), [normal(2, 3)], ALL),
    ("squeeze", lambda x: hr.squeeze(x * x), [normal(2, 1, 3)], ALL),
    ("squeeze_axis", lambda x: hr.squeeze(x * x, [1]), [normal(2, 1, 3)], ALL),
    ("transpose", lambda x: hr.transpose(x * x), [normal(2, 3)], ALL),
    ("transpose_perm", lambda x: hr.transpose(x * x, [2, 0, -2]), [normal(2, 3, 4)], ALL),
    ("concat", lambda x, y: hr.concat([x * x, y], 1), [normal(2, 3), normal(2, 1)], ALL),
    ("concat_last", lambda x, y: hr.concat([x, y * y], -1), [normal(2, 3), normal(2, 1)], ALL),
    ("stack", lambda x, y: hr.stack([x * x, y], 1), [normal(2, 3), normal(2, 3)], ALL),
    ("unstack", lambda x: hr.unstack(x * x, 3, 1), [normal(2, 3)], ALL),
    ("unstack_one", lambda x: hr.unstack(x * x, 3, 1)[1], [normal(2, 3)], ALL),
    ("split", lambda x: hr.split(x * x, [1, 2], 1), [normal(2, 3)], ALL),
    ("split_one", lambda x: hr.split(x * x, [1, 2], -1)[1], [normal(2, 3)], ALL),
    ("gather", lambda x: hr.gather(x * x, [[2, 0], [2, 2]]), [normal(3, 2)], ALL),
    ("gather_scalar", lambda x: hr.gather(x * x, 1), [normal(3, 2)], ALL),
    ("gather_vector", lambda x: hr.gather(x * x, [1, 1, 0]), [normal(3)], ALL),
    ("gather_axis", lambda x: hr.gather(x * x, [[2, 0]], axis=1), [normal(2, 3, 2)], ALL),
    ("gather_last", lambda x: hr.gather(x * x, [1, 1], axis=-1), [normal(2, 3)], ALL),
    ("broadcast_to", lambda x: hr.broadcast_to(x * x, [2, 3, 4]), [normal(3, 1)], ALL),
    ("tile", lambda x: hr.tile(x * x, [2, 1, 3]), [normal(2, 3, 1)], ALL),
    ("pad", lambda x: hr.pad(x * x, [[1, 0], [0, 2]]), [normal(2, 3)], ALL),
    # indexing
    ("index", lambda x: x[1] * x[1], [normal(2, 3)], ALL),
    ("slice", lambda x: (x * x)[:, 1:, None], [normal(2, 3)], ALL),
    ("slice_backwards", lambda x: (x * x)[..., ::-2], [normal(2, 3)], ALL),
    ("slice_dynamic", lambda x: (x * x)[hr.size(x) - 5 :], [normal(2, 3)], ALL),
    # constant
    ("fill", lambda x: hr.fill([2, 3], x * x), [normal()], ALL),
    ("one_hot", lambda x, y: hr.one_hot([1, 0, 5], 3, x * x, y), [normal(), normal()], ALL),
    # linalg
    ("matmul", hr.matmul, [normal(2, 3), normal(3, 4)], ALL),
    (
        "matmul_ta",
        lambda a, b: hr.matmul(a, b, transpose_a=True),
        [normal(3, 2), normal(3, 4)],
        ALL,
    ),
    (
        "matmul_tb",
        lambda a, b: hr.matmul(a, b, transpose_b=True),
        [normal(2, 3), normal(4, 3)],
        ALL,
    ),
    (
        "matmul_tab",
        lambda a, b: hr.matmul(a, b, transpose_a=True, transpose_b=True),
        [normal(3, 2), normal(4, 3)],
        ALL,
    ),
    ("matmul_batch", hr.matmul, [normal(2, 1, 2, 3), normal(4, 3, 2)], ALL),
    ("matmul_batch_matrix", hr.matmul, [normal(2, 2, 3), normal(3, 2)], ALL),
    # nn
    ("softmax", hr.nn.softmax, [normal(2, 3)], ALL),
    ("softmax_axis", lambda x: hr.nn.softmax(x, axis=0), [normal(2, 3)], ALL),
    ("log_softmax", hr.nn.log_softmax, [normal(2, 3)], ALL),
    ("log_softmax_axis", lambda x: hr.nn.log_softmax(x, 0), [normal(2, 3)], ALL),
    (
        "cross_entropy",
        lambda x: hr.nn.softmax_cross_entropy_with_logits(
            labels=np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]), logits=x
        ),
        [normal(2, 3)],
        RANKED,
    ),
    (
        "cross_entropy_of_labels",
        lambda x, y: hr.nn.softmax_cross_entropy_with_logits_v2(hr.nn.softmax(y), x),
        [normal(2, 3), normal(2, 3)],
        RANKED,
    ),
    (
        "cross_entropy_of_three_axes",
        lambda x, y: hr.nn.softmax_cross_entropy_with_logits_v2(hr.nn.softmax(y), x),
        [normal(2, 2, 3), normal(2, 2, 3)],
        RANKED,
    ),
    (
        "sparse_cross_entropy",
        lambda x: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x),
        [normal(2, 3)],
        ALL,
    ),
    ("bias_add", hr.nn.bias_add, [normal(2, 3), normal(3)], ALL),
]
RUNS = [(*case[:3], known) for case in CASES for known in case[3]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("build", "arrays", "known"),
    [run[1:] for run in RUNS],
    ids=[f"{run[0]}-{run[3]}" for run in RUNS],
)
def test_rule(check: Any, build: Build, arrays: list[Any], known: str) -> None:
    check(build, *arrays, known=known, order=2)


CONVOLUTIONS = [
    ("SAME", "NHWC", 1, 1),
    ("SAME", "NHWC", 2, 1),
    ("VALID", "NHWC", 2, 1),
    ("VALID", "NHWC", 1, 2),
    ("SAME", "NCHW", 2, 1),
]


@pytest.mark.parametrize("known", ALL)
@pytest.mark.parametrize(("padding", "layout", "stride", "dilation"), CONVOLUTIONS)
def test_convolution(
    check: Any, padding: str, layout: str, stride: int, dilation: int, known: str
) -> None:
    images = normal(2, 5, 6, 2) if layout == "NHWC" else normal(2, 2, 5, 6)

    def build(x: Any, f: Any) -> Any:
        return hr.nn.conv2d(x, f, stride, padding, data_format=layout, dilations=dilation)

    check(build, images, normal(3, 2, 2, 3), known=known, order=3)


@pytest.mark.parametrize("known", ALL)
@pytest.mark.parametrize(("padding", "layout"), [("SAME", "NHWC"), ("VALID", "NCHW")])
def test_max_pool(check: Any, padding: str, layout: str, known: str) -> None:
    def build(x: Any) -> Any:
        return hr.nn.max_pool(x * x, 2, 2, padding, data_format=layout)

    images = apart(1, 5, 5, 2) if layout == "NHWC" else apart(1, 2, 5, 5)
    check(build, images + 0.53, known=known, order=2)


def test_third_derivatives(check: Any) -> None:
    check(lambda x: hr.tanh(x) * hr.sigmoid(x) / (1 + hr.exp(x)), normal(3), order=3)
    check(lambda x: hr.reduce_prod(x), [0.0, 1.0, 0.0, 2.0], order=3)
    check(lambda x: hr.nn.softmax(x), normal(2, 3), order=3)


def test_cross_entropy_differentiates_twice(check: Any) -> None:
    """The op's second output is its gradient, and has a gradient itself."""

    def build(x: Any) -> Any:
        loss, slope = call_op(
            "SoftmaxCrossEntropyWithLogits", x, np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
        )
        return [loss, slope]

    check(build, normal(2, 3), order=3)


def test_a_small_network(check: Any) -> None:
    def build(x: Any, f: Any, w: Any) -> Any:
        h = hr.nn.max_pool(hr.tanh(hr.nn.conv2d(x, f, 1, "SAME")), 2, 2, "VALID")
        logits = hr.matmul(hr.reshape(h, [2, -1]), w)
        return hr.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=logits)

    check(build, normal(2, 4, 4, 1), normal(3, 3, 1, 2), normal(8, 3), order=2)


def test_the_check_finds_wrong_rules(check: Any) -> None:
    @hr.custom_gradient
    def wrong(x: hr.Tensor) -> Any:
        return x * x, lambda dy: dy * x * 2.001

    with pytest.raises(AssertionError):
        check(wrong, normal(3), order=1)
