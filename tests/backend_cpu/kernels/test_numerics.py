"""Dtypes, accumulation and special values, where NumPy by itself would do something else."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import headrace as hr

HALVES = [np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
ALL = {"axis": None, "keepdims": False}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"])
def test_reductions_keep_the_dtype(kernel, op, dtype):
    result = kernel(op, np.array([[1, 2], [3, 6]], dtype), axis=(1,), keepdims=True)
    assert result.dtype == dtype
    expected = {"ReduceSum": [3, 9], "ReduceProd": [2, 18], "ReduceMean": [1, 4]}
    expected |= {"ReduceMax": [2, 6], "ReduceMin": [1, 3]}
    assert result.ravel().tolist() == expected[op]


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_accumulated_in_float32(kernel, dtype):
    ones = np.ones((4, 3000), dtype)
    assert (
        kernel("ReduceSum", ones, axis=(1,), keepdims=False).astype(float).tolist()
        == [float(dtype(3000))] * 4
    )
    big = np.full(3000, 60.0, dtype)
    assert float(kernel("ReduceMean", big, **ALL)) == 60
    assert float(kernel("SumToShape", ones, np.array([], np.int32))) == float(dtype(12000))
    product = kernel("MatMul", ones[:1], ones[:1], transpose_a=False, transpose_b=True)
    assert product.dtype == dtype
    assert float(product[0, 0]) == float(dtype(3000))
    ids = np.zeros(3000, np.int32)
    sums = kernel("UnsortedSegmentSum", ones[0], ids, np.array(2, np.int32))
    assert sums.astype(float).tolist() == [float(dtype(3000)), 0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_means_of_integers_round_towards_zero(kernel, dtype):
    x = np.array([[-1, 0], [-1, -2], [1, 2], [-3, 3]], dtype)
    assert kernel("ReduceMean", x, axis=1, keepdims=False).tolist() == [0, -1, 1, 0]


def test_means_of_large_integers_do_not_overflow(kernel):
    for dtype in (np.int64, np.uint64, np.int32):
        top = np.iinfo(dtype).max
        assert int(kernel("ReduceMean", np.full(5, top, dtype), **ALL)) == top
    assert int(kernel("ReduceMean", np.full(5, np.iinfo(np.int64).min), **ALL)) == -(2**63)
    assert int(kernel("ReduceMean", np.array([2**63 - 1, -(2**63)]), **ALL)) == 0


def test_reductions_of_nothing(kernel):
    nothing = np.zeros((0, 2), np.float32)
    over = {"axis": (0,), "keepdims": False}
    assert kernel("ReduceMax", nothing, **over).tolist() == [-np.inf] * 2
    assert kernel("ReduceMin", nothing, **over).tolist() == [np.inf] * 2
    assert np.isnan(kernel("ReduceMean", nothing, **over)).all()
    assert kernel("ReduceMax", nothing.astype(np.int8), **over).tolist() == [-128] * 2
    assert kernel("ReduceMin", nothing.astype(np.uint8), **over).tolist() == [255] * 2
    assert kernel("ReduceMean", nothing.astype(np.int32), **over).tolist() == [0, 0]
    assert kernel("ReduceMax", nothing, axis=(1,), keepdims=True).shape == (0, 1)


@pytest.mark.parametrize("output_type", [hr.int32, hr.int64])
def test_argmax_has_its_output_type_and_takes_the_first(kernel, output_type):
    x = np.array([[3, 7, 7], [np.nan, 1, np.nan]], np.float32)
    result = kernel("ArgMax", x, axis=1, output_type=output_type)
    assert result.dtype == output_type.numpy
    # NaN is passed over, as in TensorFlow.
    assert result.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *HALVES])
def test_sigmoid_and_softplus_do_not_overflow(kernel, dtype):
    x = np.array([-np.inf, -80, 0, 80, np.inf, np.nan], dtype)
    sigmoid = kernel("Sigmoid", x).astype(float)
    softplus = kernel("Softplus", x).astype(float)
    tiny = float(dtype(np.exp(-80.0)))
    np.testing.assert_allclose(sigmoid, [0, tiny, 0.5, 1, 1, np.nan], rtol=1e-2)
    log2 = float(dtype(np.log(2)))
    np.testing.assert_allclose(softplus, [0, tiny, log2, 80, np.inf, np.nan], rtol=1e-2)
    assert kernel("Sigmoid", x).dtype == kernel("Softplus", x).dtype == dtype


LOGITS = np.array(
    [[1, 2, 3], [1e4, 0, -1e4], [0, -np.inf, 0], [np.inf, 0, 0], [-np.inf] * 3, [np.nan, 0, 0]],
    np.float32,
)
THIRD = 1 / 3
CHANCES = np.array(
    [
        np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum(),
        [1, 0, 0],
        [0.5, 0, 0.5],
        [1, 0, 0],
        [THIRD] * 3,
        [np.nan] * 3,
    ]
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *HALVES])
def test_softmax_takes_logits_of_any_size(kernel, dtype):
    logits = LOGITS.astype(dtype)
    result = kernel("Softmax", logits, axis=None)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(float), CHANCES, atol=4e-3)
    across = kernel("Softmax", logits.T, axis=0)
    np.testing.assert_array_equal(across.T.astype(float), result.astype(float))
    with np.errstate(divide="ignore"):
        expected = np.log(CHANCES)
    expected[1] = [0, -1e4, -2e4]
    logs = kernel("LogSoftmax", logits, axis=-1)
    np.testing.assert_allclose(logs.astype(float), expected, rtol=1e-2, atol=2e-3)


def test_cross_entropies_of_classes_that_are_ruled_out(kernel):
    logits = np.array([[0, -np.inf, 0], [1, 1, -np.inf]], np.float32)
    labels = np.array([[0.5, 0, 0.5], [1, 0, 0]], np.float32)
    loss, gradient = kernel("SoftmaxCrossEntropyWithLogits", logits, labels)
    np.testing.assert_allclose(loss, np.log([2, 2]), rtol=1e-6)
    np.testing.assert_allclose(gradient, [[0, 0, 0], [-0.5, 0.5, 0]], atol=1e-7)
    loss, gradient = kernel("SparseSoftmaxCrossEntropyWithLogits", logits, np.array([1, 0]))
    np.testing.assert_allclose(loss, [np.inf, np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(gradient, [[0.5, -1, 0.5], [-0.5, 0.5, 0]], atol=1e-7)


def test_relu_keeps_nan(kernel):
    np.testing.assert_array_equal(kernel("Relu", np.array([-1.0, 2, np.nan])), [0, 2, np.nan])
    assert kernel("Relu", np.array([-1, 2], np.int8)).dtype == np.int8


def test_casts(kernel):
    x = np.array([1.9, -1.9, 0.0])
    assert kernel("Cast", x, dtype=hr.int32).tolist() == [1, -1, 0]
    assert kernel("Cast", x, dtype=hr.bool).tolist() == [True, True, False]
    assert kernel("Cast", x + 2j, dtype=hr.float32).tolist() == pytest.approx(x.tolist())
    assert kernel("Cast", x, dtype=hr.bfloat16).dtype == ml_dtypes.bfloat16


def test_strings_pass_through_array_ops():
    words = hr.constant([b"a", b"bc", b"d"])
    fetches = {
        "picked": hr.gather(words, [2, 0]),
        "one": words[1],
        "equal": hr.equal(words, [b"a", b"x", b"d"]),
        "where": hr.where([True, False, True], words, [b"-", b"-", b"-"]),
        "joined": hr.concat([words, [b"e"]], 0),
        "empty": hr.zeros([2], hr.string),
        "one_of": hr.gather(words, 1),
    }
    for config in (None, hr.Config(optimize=False)):
        with hr.Session(config=config) as session:
            got = session.run(fetches)
        assert got["picked"].tolist() == [b"d", b"a"]
        assert got["one"] == got["one_of"] == b"bc"
        assert got["equal"].tolist() == [True, False, True]
        assert got["where"].tolist() == [b"a", b"-", b"d"]
        assert got["joined"].tolist() == [b"a", b"bc", b"d", b"e"]
        assert got["empty"].tolist() == [b"", b""]


def test_ranges(kernel):
    assert kernel("Range", np.int8(-3), np.int8(4), np.int8(3)).tolist() == [-3, 0, 3]
    assert kernel("Range", np.int32(5), np.int32(0), np.int32(-2)).tolist() == [5, 3, 1]
    top = np.uint64(2**64 - 1)
    assert kernel("Range", np.uint64(2**64 - 4), top, np.uint64(2)).tolist() == [
        2**64 - 4,
        2**64 - 2,
    ]
    halves = kernel("Range", np.float16(0), np.float16(1), np.float16(0.25))
    assert halves.dtype == np.float16
    assert halves.tolist() == [0, 0.25, 0.5, 0.75]
    assert kernel("Range", np.float32(1), np.float32(1), np.float32(1)).shape == (0,)
    for numbers in (np.float32([1, 0, 1]), np.int32([0, 3, -1])):
        with pytest.raises(ValueError, match="needs another step"):
            kernel("Range", *numbers)


def test_one_hot_of_indices_outside(kernel):
    on, off = np.float32(1), np.float32(-1)
    hot = kernel("OneHot", np.array([0, -1, 3], np.int64), on, off, np.int32(3), axis=0)
    assert hot.tolist() == [[1, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    wide = kernel("OneHot", np.array([2**64 - 1, 1], np.uint64), on, off, np.int32(2), axis=-1)
    assert wide.tolist() == [[-1, -1], [-1, 1]]


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_])
def test_cross_entropy_takes_labels_of_other_dtypes(dtype):
    labels = np.eye(3)[[0, 2]].astype(dtype)
    logits = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]], np.float32)
    with hr.Graph().as_default(), hr.Session() as session:
        loss = hr.nn.softmax_cross_entropy_with_logits(
            labels=hr.constant(labels), logits=hr.constant(logits)
        )
        assert loss.dtype == hr.float32
        shifted = logits.astype(np.float64)
        expected = np.log(np.exp(shifted).sum(1)) - shifted[[0, 1], [0, 2]]
        np.testing.assert_allclose(session.run(loss), expected, rtol=1e-6)
