"""Elementwise functions that build with ops: values, dtypes, gradients and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

NAN, INF = np.nan, np.inf


def slope(function, *values):
    """Return the gradient of a function with respect to its first argument."""
    xs = [hr.constant(v) for v in values]
    (grad,) = hr.gradients(function(*xs), xs[:1])
    return run(grad)


def i8(*values):
    return np.array(values, np.int8)


VALUES = {
    "div of integers": (lambda: hr.div([7, -7], 2), [3, -4]),
    "div of floats": (lambda: hr.div([7.0, -7.0], 2.0), [3.5, -3.5]),
    "floor_div": (lambda: hr.floor_div([7, -7], 2), [3, -4]),
    "truncatediv": (lambda: hr.truncatediv([7, -7], 2), [3, -3]),
    "truncatemod": (lambda: hr.truncatemod([7, -7], [-2, 2]), [1, -1]),
    "mod": (lambda: hr.mod([7, -7], [-2, 2]), [-1, 1]),
    "floordiv to infinity": (lambda: hr.floordiv([INF, 1.0], [2.0, 0.0]), [INF, INF]),
    "divide small integers": (lambda: hr.divide(i8(1, 3), i8(2, 2)), np.float32([0.5, 1.5])),
    "divide integers": (lambda: hr.divide([1, 3], [2, 2]), np.float64([0.5, 1.5])),
    "div_no_nan of integers": (lambda: hr.div_no_nan([1, 3], [2, 0]), np.float64([0.5, 0])),
    "divide_no_nan": (lambda: hr.divide_no_nan([NAN, 3.0], [0.0, 2.0]), [0.0, 1.5]),
    "multiply_no_nan": (lambda: hr.multiply_no_nan([NAN, 3.0], [0.0, 2.0]), [0.0, 6.0]),
    "squared_difference": (lambda: hr.squared_difference([3, 1], 2), [1, 1]),
    "complex square": (lambda: hr.squared_difference([3j], [1 + 0j]), np.array([10 + 0j])),
    "round of integers": (lambda: hr.round([1, 2]), [1, 2]),
    "round": (lambda: hr.round([0.5, 1.5, -2.5]), [0.0, 2.0, -2.0]),
    "strings": (lambda: hr.add(["a"], ["b", "c"]), np.array([b"ab", b"ac"], object)),
    "add_n": (lambda: hr.add_n([[1, 2], [3, 4], [5, 6]]), [9, 12]),
    "accumulate_n": (lambda: hr.accumulate_n([[1, 2], [3, 4]], shape=[2]), [4, 6]),
    "accumulate_n of one": (lambda: hr.accumulate_n([[1, 2]], tensor_dtype=hr.int32), [1, 2]),
    "scalar_mul": (lambda: hr.scalar_mul(2, hr.constant([1.0, 2.0])), [2.0, 4.0]),
    "polyval": (lambda: hr.math.polyval([1.0, 2.0, 3.0], [2.0, 0.0]), [11.0, 3.0]),
    "polyval of nothing": (lambda: hr.polyval([], [2.0, 3.0]), [0.0, 0.0]),
    "approximate_equal": (
        lambda: hr.approximate_equal([1.0, 2.0], [1.000001, 2.1]),
        [True, False],
    ),
    "approximate integers": (lambda: hr.approximate_equal([1, 2], [1, 3]), [True, False]),
    "log_sigmoid": (lambda: hr.log_sigmoid([-800.0, 800.0]), [-800.0, 0.0]),
    "lbeta": (lambda: hr.lbeta([[1.0, 2.0], [3.0, 4.0]]), np.float32([-0.6931472, -4.0943446])),
    "lbeta of nothing": (lambda: hr.lbeta(np.zeros((1, 0), np.float32)), np.float32([-INF])),
    "abs": (lambda: hr.abs([-1, 2]), [1, 2]),
    "complex abs": (lambda: hr.abs(np.complex64([3 + 4j])), np.float32([5])),
    "sign": (lambda: hr.sign([-2.0, 0.0, NAN]), [-1.0, 0.0, NAN]),
    "complex sign": (lambda: hr.sign([3 + 4j, 0]), np.array([0.6 + 0.8j, 0])),
    "real of real": (lambda: hr.real([1.0]), [1.0]),
    "imag of real": (lambda: hr.imag([1.0]), [0.0]),
    "angle of real": (lambda: hr.angle([-1.0, 2.0]), np.float32([math.pi, 0])),
    "conj of real": (lambda: hr.conj([1.0]), [1.0]),
    "complex": (lambda: hr.complex([1.0], [2.0, 3.0]), np.complex64([1 + 2j, 1 + 3j])),
    "saturate low": (lambda: hr.saturate_cast([300, -5], hr.uint8), np.uint8([255, 0])),
    "saturate floats": (
        lambda: hr.saturate_cast([1e20, -1e20], "int64"),
        np.array([2**63 - 2**39, -(2**63)]),
    ),
    "saturate wide": (lambda: hr.saturate_cast([1.5], "float64"), np.float64([1.5])),
    "to_float": (lambda: hr.to_float([1, 2]), [1.0, 2.0]),
    "to_double": (lambda: hr.to_double([1, 2]), np.float64([1, 2])),
    "to_int32": (lambda: hr.to_int32([1.7]), [1]),
    "to_int64": (lambda: hr.to_int64([1.7]), np.int64([1])),
    "to_complex64": (lambda: hr.to_complex64([1.5]), np.complex64([1.5])),
    "to_complex128": (lambda: hr.to_complex128([1.5]), np.complex128([1.5])),
    "bitcast": (lambda: hr.bitcast([1.0], hr.int32), [0x3F800000]),
    "invert": (lambda: hr.bitwise.invert([0, -1]), [-1, 0]),
    "relu6": (lambda: hr.nn.relu6([-1.0, 3.0, 7.0, NAN]), [0.0, 3.0, 6.0, NAN]),
    "relu6 of integers": (lambda: hr.nn.relu6([-1, 9]), [0, 6]),
    "leaky_relu": (lambda: hr.nn.leaky_relu([-1.0, 3.0]), np.float32([-0.2, 3])),
    "leaky_relu of integers": (lambda: hr.nn.leaky_relu([-1, 3], 0.5), [-0.5, 3.0]),
    "elu": (lambda: hr.nn.elu([-800.0, 0.0, 800.0]), [-1.0, 0.0, 800.0]),
    "selu": (lambda: hr.nn.selu([-800.0, 1.0]), np.float32([-1.7580993, 1.050701])),
    "gelu": (lambda: hr.nn.gelu([1.0, -2.0]), np.float32([0.8413447, -0.04550026])),
    "gelu by tanh": (lambda: hr.nn.gelu([1.0], approximate=True), np.float32([0.841192])),
    "swish": (lambda: hr.nn.swish([0.0, 800.0]), [0.0, 800.0]),
    "sharp swish": (lambda: hr.nn.swish([1.0], beta=2.0), np.float32([0.880797])),
    "silu": (lambda: hr.nn.silu([0.0]), [0.0]),
    "softsign": (lambda: hr.nn.softsign([-1.0, 3.0]), [-0.5, 0.75]),
    "crelu": (lambda: hr.nn.crelu([[1.0, -2.0]]), [[1.0, 0.0, 0.0, 2.0]]),
    "crelu of rows": (lambda: hr.nn.crelu([[1.0, -2.0]], axis=0), [[1.0, 0.0], [0.0, 2.0]]),
    "relu_layer": (lambda: hr.nn.relu_layer([[1.0, 2.0]], [[1.0], [-1.0]], [1.5]), [[0.5]]),
    "check_numerics": (lambda: hr.check_numerics([1.0], "loss"), [1.0]),
    "verify": (lambda: hr.verify_tensor_all_finite(x=[1.0], message="loss"), [1.0]),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    tensor = build()
    found = run(tensor)
    if not isinstance(expected, np.ndarray):
        expected = run(hr.constant(expected))
    assert found.dtype == expected.dtype == tensor.dtype.numpy
    assert tensor.shape.is_compatible_with(found.shape)
    if found.dtype == object:
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


SLOPES = {
    "relu6": (lambda: slope(hr.nn.relu6, [-1.0, 0.0, 3.0, 6.0, 7.0]), [0, 0, 1, 0, 0]),
    "leaky_relu": (lambda: slope(hr.nn.leaky_relu, [-1.0, 0.0, 3.0]), [0.2, 0.2, 1]),
    "elu": (lambda: slope(hr.nn.elu, [-800.0, 0.0, 800.0]), [0, 1, 1]),
    "selu at 0": (lambda: slope(hr.nn.selu, [0.0, 800.0]), [1.050701, 1.050701]),
    "softsign": (lambda: slope(hr.nn.softsign, [0.0, -1.0]), [1, 0.25]),
    "sign": (lambda: slope(hr.sign, [0.0, -1.0]), [0, 0]),
    "real": (lambda: slope(lambda x: hr.real(hr.complex(x, x)), [2.0]), [1]),
    "imag": (lambda: slope(lambda x: hr.imag(hr.complex(x, 3 * x)), [2.0]), [3]),
    "angle": (lambda: slope(lambda x: hr.angle(hr.complex(x, 1.0)), [2.0]), [-0.2]),
    "complex abs": (lambda: slope(lambda x: hr.abs(hr.complex(x, 4.0)), [3.0]), [0.6]),
    "complex abs at 0": (lambda: slope(lambda x: hr.abs(hr.complex(x, 0.0)), [0.0]), [0]),
    "complex": (lambda: slope(lambda x: hr.real(hr.complex(x, 2.0) ** 2), [3.0, 5.0]), [6, 10]),
    "bessel_i1e at 0": (lambda: slope(hr.math.bessel_i1e, [0.0]), [0.5]),
    "check": (lambda: slope(lambda x: hr.check_numerics(x * 3, "x"), [0.0]), [3]),
    "xlogy at 0": (lambda: slope(hr.xlogy, [0.0, 1.0], [0.0, math.e]), [0, 1]),
    "saturate": (lambda: slope(lambda x: hr.saturate_cast(x, "float16"), [1e6, 1.0]), [0, 1]),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradient(name):
    found, expected = SLOPES[name]
    np.testing.assert_allclose(found(), expected, rtol=1e-6, atol=1e-7)


def test_second_derivative_of_the_absolute_value():
    x = hr.constant([-2.0, 3.0])
    (first,) = hr.gradients(hr.abs(x) * hr.abs(x), [x])
    (second,) = hr.gradients(first, [x])
    np.testing.assert_allclose(run(second), [2, 2])


def test_second_derivatives_of_bessel_functions_close_to_zero():
    x = hr.constant([0.0, 1e-30, -1e-30])
    for function, expected in ((hr.bessel_i1, [0, 0, 0]), (hr.bessel_i1e, [0, -1, 1])):
        (first,) = hr.gradients(function(x), [x])
        (second,) = hr.gradients(first, [x])
        np.testing.assert_allclose(run(second), expected, atol=1e-6)


def test_second_derivative_of_igamma():
    a, x = hr.constant([2.0]), hr.constant([3.0])
    (by_a,) = hr.gradients(hr.igamma(a, x), [a])
    # d/dx of the density's exponent: the mixed derivative is density * (log(x) - digamma(a)).
    (mixed,) = hr.gradients(by_a, [x])
    density = 3 * math.exp(-3)
    np.testing.assert_allclose(run(mixed), [density * (math.log(3) - 0.42278434)], rtol=1e-5)
    shape = hr.placeholder(hr.float32, [1])
    (by_a,) = hr.gradients(hr.igammac(shape, x), [shape])
    with pytest.raises(hr.errors.NoGradientError, match=r"pass hr\.stop_gradient\(a\)"):
        hr.gradients(by_a, [shape])


def test_gradient_of_a_check_is_checked():
    x = hr.constant([0.0])
    (grad,) = hr.gradients(hr.sqrt(hr.check_numerics(x, "root")), [x])
    with pytest.raises(ExecutionError, match=r"the gradient fails the check of .*root.* had Inf"):
        run(grad)


def test_all_tensors_of_a_graph_are_checked():
    x = hr.placeholder(hr.float32, [2], name="x")
    y = hr.log(x, name="y")
    check = hr.add_check_numerics_ops()
    assert run([y, check], {x: [1.0, 1.0]})[0].tolist() == [0, 0]
    with pytest.raises(ExecutionError, match="y:0: tensor had Inf values"):
        run(check, {x: [1.0, 0.0]})


def test_indexed_slices_stay_sparse():
    table = hr.constant([[1.0], [2.0], [3.0]])
    (grad,) = hr.gradients(hr.gather(table, [2, 0]), [table])
    assert isinstance(grad, hr.IndexedSlices)
    for made in (
        hr.cast(grad, hr.float64),
        hr.scalar_mul(2.0, grad),
        hr.clip_by_value(grad, 0.0, 1.0),
        hr.clip_by_norm(grad, 1.0),
        hr.clip_by_global_norm([grad], 1.0)[0][0],
    ):
        assert isinstance(made, hr.IndexedSlices)
    np.testing.assert_allclose(run(hr.clip_by_norm(grad, 1.0).values), [[0.5**0.5]] * 2)


def test_sparse_tensors_stay_sparse():
    given = hr.SparseTensor([[0, 1], [2, 0]], [4.0, 0.25], [3, 2])
    for function in (hr.abs, hr.sign, hr.negative, hr.square, hr.sqrt, hr.tanh, hr.erf):
        made = function(x=given, name="made")
        assert isinstance(made, hr.SparseTensor)
        found, expected = run([made.values, function(given.values)])
        np.testing.assert_array_equal(found, expected)
    assert run(hr.cast(given, hr.int32)).values.tolist() == [4, 0]


REFUSED = {
    "strings": (lambda: hr.cast(["a"], hr.int32), DTypeError, "strings are not converted"),
    "floor of integers": (lambda: hr.floor(hr.constant([1])), DTypeError, "must be floating"),
    "round of bool": (lambda: hr.round([True]), DTypeError, "must be floating, got bool"),
    "real of bool": (lambda: hr.real([True]), DTypeError, "input must be numeric, got bool"),
    "angle of integers": (lambda: hr.angle([1]), DTypeError, "floating or complex, got int32"),
    "saturate complex": (lambda: hr.saturate_cast([1j], "int8"), DTypeError, "got complex128"),
    "conj of strings": (lambda: hr.conj(["a"]), DTypeError, "floating or complex, got string"),
    "add_n of shapes": (lambda: hr.add_n([[1.0], [2.0, 3.0]]), ShapeError, "one shape"),
    "add_n of none": (lambda: hr.add_n([]), AttributeValueError, "at least one tensor"),
    "accumulate none": (lambda: hr.accumulate_n([]), AttributeValueError, "list of tensors"),
    "accumulate dtype": (
        lambda: hr.accumulate_n([[1], [2.0]]),
        DTypeError,
        "inputs must be int32, got float32",
    ),
    "accumulate shape": (lambda: hr.accumulate_n([[1]], [2]), ShapeError, r"must have shape \[2\]"),
    "scalar_mul": (lambda: hr.scalar_mul([2.0], [1.0]), ShapeError, "must be a scalar"),
    "polyval": (lambda: hr.polyval(3.0, 2.0), AttributeValueError, "coeffs is a list"),
    "polyval of strings": (lambda: hr.polyval(["a"], 2.0), DTypeError, "expected numbers, got str"),
    "accumulate strings": (lambda: hr.accumulate_n(["a"]), DTypeError, "must be numeric, got str"),
    "add_n of a number": (lambda: hr.add_n(np.array(1.0)), DTypeError, "is a list of tensors"),
    "add_n of a string": (lambda: hr.add_n("abc"), DTypeError, "is a list of tensors"),
    "approximate": (lambda: hr.approximate_equal([1.0], 1.0), ShapeError, "must have one shape"),
    "lbeta": (lambda: hr.lbeta(1.0), ShapeError, "at least 1 dimension"),
    "verify twice": (
        lambda: hr.verify_tensor_all_finite([1.0], "a", x=[1.0]),
        AttributeValueError,
        "one of t and x",
    ),
    "verify message": (
        lambda: hr.verify_tensor_all_finite([1.0]),
        AttributeValueError,
        "one of msg and message",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_add_n_checks_shapes_that_only_the_step_knows(shape):
    x, y = hr.placeholder(hr.float32), hr.placeholder(hr.float32)
    with pytest.raises(ExecutionError, match="each of inputs must have shape"):
        run(hr.add_n([x, y]), {x: np.zeros(2), y: np.zeros(shape)})


def test_bitcast_checks_shapes_that_only_the_step_knows():
    x = hr.placeholder(hr.int32)
    y = hr.bitcast(x, hr.int64)
    assert run(y, {x: [[1, 0]]}).tolist() == [1]
    with pytest.raises(ExecutionError, match="last dimension must be 2"):
        run(y, {x: [1, 0, 0]})
