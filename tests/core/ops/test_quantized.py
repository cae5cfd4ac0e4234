"""Levels of ranges: what the samples and TensorFlow's outcomes leave to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    FeedTypeError,
    ShapeError,
)

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

CONFIGS = [
    pytest.param(hr.Config(executor="plain"), id="plain"),
    pytest.param(hr.Config(compile_after=0), id="compiled"),
]


def levels(values: Any, dtype: hr.DType = hr.quint8) -> hr.Tensor:
    return hr.constant(np.array(values, dtype.numpy), dtype)


def run(fetches: Any, feeds: Any = None, config: Any = None) -> Any:
    with hr.Session(config=config) as session:
        return session.run(fetches, feeds)


# -- limits of levels: TensorFlow 1.15 has no kernel, so these are computed by hand


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    ("given", "dtype", "limit", "low", "high", "expected"),
    [
        # 0 is the level 23.18 of [-1, 10] in 255 steps, and 6 is 139.09 steps above it.
        ([0, 23, 24, 161, 163, 255], hr.quint8, 6.0, -1.0, 10.0, [23, 23, 24, 161, 162, 162]),
        # Where 0 is the lower end, it is the lowest level.
        ([-128, 0, 127], hr.qint8, 5.0, 0.0, 10.0, [-128, 0, 0]),
        # What is beyond the range limits nothing.
        ([0, 200, 255], hr.quint8, 99.0, 1.0, 10.0, [0, 200, 255]),
        ([-(2**31), -7, 2**31 - 1], hr.qint32, 0.5, -1.0, 1.0, [0, 0, 2**30]),
        ([3, 9], hr.quint8, 6.0, 2.0, 2.0, [0, 0]),
    ],
)  # fmt: skip
def test_relu_x_limits_levels(config, given, dtype, limit, low, high, expected):
    found = hr.nn.quantized_relu_x(levels(given, dtype), limit, low, high, out_type=dtype)
    assert found.activations.dtype == dtype
    assert found.activations.name == "QuantizedReluX:0"
    values, *ends = run(list(found), config=config)
    assert values.tolist() == expected
    assert [end.tolist() for end in ends] == [low, high]


# -- where TensorFlow 1.15 is left


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("mode", ["MIN_COMBINED", "SCALED"])
def test_the_highest_float_of_a_range_is_its_highest_level_of_32_bits(config, mode):
    found = hr.quantize([-3.0, 3.0, 9.0, np.nan], -3.0, 3.0, hr.qint32, mode=mode).output
    assert run(found, config=config).tolist() == [-(2**31), 2**31 - 1, 2**31 - 1, 0]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_highest_level_of_32_bits_is_the_highest_float(config):
    given = levels([-(2**31), 2**31 - 1], hr.qint32)
    found = run(hr.dequantize(given, -3.0, 3.0, mode="SCALED"), config=config)
    assert found.tolist() == [-3.0, 3.0]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 4.0), (1.0, 4.0), (-4.0, -1.0)], ids=["around", "above", "below"]
)
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_windows_of_convolutions_are_those_of_conv2d(config, padding, low, high, stride):
    rng = np.random.default_rng(7)
    images, weights = rng.integers(0, 256, (2, 8, 7, 3)), rng.integers(0, 256, (2, 3, 3, 2))
    steps = [1, stride, stride, 1]
    found = hr.nn.quantized_conv2d(
        levels(images), levels(weights), low, high, -2.0, 2.0, steps, padding
    )
    assert found.output.dtype == hr.qint32
    # The level of 0, from the distance of levels.
    zero = 0 - np.rint(low * 255 / (high - low))
    floats = hr.nn.conv2d(hr.constant(images - zero), hr.constant(weights - 128.0), steps, padding)
    (values, least, most), expected = run([list(found), floats], config=config)
    assert values.tolist() == expected.tolist()
    unit = (high - low) / 255 * 4 / 255
    np.testing.assert_allclose([least, most], [-unit * 2**31, unit * 2**31], rtol=1e-6)


def test_sums_of_more_than_32_bits_wrap_around():
    count = 2**31 // (255 * 255) + 1
    found = hr.nn.quantized_conv2d(
        hr.fill([1, 1, 1, count], levels(255)),
        hr.fill([1, 1, count, 1], levels(255)),
        *(0.0, 1.0, 0.0, 1.0),
        [1, 1, 1, 1],
        "VALID",
    )
    assert run(found.output).item() == count * 255 * 255 - 2**32


# -- errors


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda q: hr.nn.quantized_relu_x(q, 6.0, 0.0, 1.0, hr.qint8), DTypeError,
         "out_type must be quint8, that of features"),
        (lambda q: hr.nn.quantized_relu_x([1.0], 6.0, 0.0, 1.0), DTypeError,
         "features must be one of qint16"),
        (lambda q: hr.nn.quantized_relu_x(q, [6.0], 0.0, 1.0), ShapeError,
         "max_value must be a scalar"),
        (lambda q: hr.nn.quantized_relu_x(q, 6.0, hr.constant(0.0, hr.float64), 1.0), DTypeError,
         "min_features must be float32, got float64"),
        (lambda q: hr.nn.quantized_avg_pool(q, 0.0, 1.0, [2, 1, 1, 1], [1] * 4, "VALID"),
         AttributeValueError, "ksize must be 1 along batch and channels"),
        (lambda q: hr.nn.quantized_avg_pool(q, 0.0, 1.0, [1] * 4, [1] * 4, [[0, 0]] * 4),
         AttributeValueError, "padding must be 'SAME' or 'VALID'"),
        (lambda q: hr.nn.quantized_max_pool(q, [0.0], 1.0, [1] * 4, [1] * 4, "SAME"), ShapeError,
         "min_input must be a scalar"),
        (lambda q: hr.nn.quantized_max_pool(3, 0.0, 1.0, [1] * 4, [1] * 4, "SAME"), DTypeError,
         "input must be one of qint16"),
        (lambda q: hr.nn.quantized_conv2d(q, q, 0.0, 1.0, 0.0, 1.0, [1] * 4, "SAME", hr.quint8),
         DTypeError, "out_type must be qint32"),
        (lambda q: hr.nn.quantized_conv2d(q, hr.cast(q, hr.qint16), 0.0, 1.0, 0.0, 1.0, [1] * 4,
                                          "SAME"), DTypeError, "filter must be qint8 or quint8"),
        (lambda q: hr.nn.quantized_conv2d(q, q, 0.0, 1.0, 0.0, 1.0, [2, 1, 1, 1], "SAME"),
         AttributeValueError, "strides must be 1 along batch and channels"),
        (lambda q: q + 1, DTypeError, "must be numeric or string, got quint8"),
        (lambda q: hr.concat([q, hr.constant([1.0])], 0), DTypeError,
         "levels of ranges do not mix; hr.quantization.dequantize makes floats"),
        (lambda q: hr.as_string(q), DTypeError, "of a dtype that is not quantized, got quint8"),
        (lambda q: hr.io.serialize_tensor(q), DTypeError, "of a dtype that is not quantized"),
        (lambda q: hr.constant([300], hr.quint8), DTypeError, r"does not fit uint8 \(0 to 255\)"),
        (lambda q: hr.constant([0.5], hr.qint8), DTypeError, "is float32, expected int8"),
        (lambda q: hr.scatter_nd([[0]], hr.reshape(q, [1, -1]), [2, 16]), DTypeError,
         "levels of ranges do not add up, got quint8"),
        (lambda q: hr.tensor_scatter_add(q, [[0]], q), DTypeError, "tensor must be numeric"),
        (lambda q: hr.Variable(q).assign_add(q), DTypeError, "holds quint8, which is not numeric"),
        (lambda q: hr.scatter_max(hr.Variable(q), [0], q), DTypeError, "quint8"),
        (lambda q: hr.eye(2, dtype=hr.quint8), DTypeError, "the op converts numbers"),
        (lambda q: hr.cast("a", hr.quint8), DTypeError, "strings are not converted by cast"),
    ],
)  # fmt: skip
def test_refused(make, error, match):
    with pytest.raises(error, match=match):
        make(levels(np.zeros((1, 4, 4, 1))))


@pytest.mark.parametrize(
    ("make", "feed", "match"),
    [
        (lambda x: hr.quantize([1.0], x, 0.5, hr.qint8).output, 0.75, "min_range 0.75 and max"),
        (lambda x: hr.quantize([1.0], 0.0, x, hr.qint8).output, [1.0, 2.0],
         r"max_range must be a scalar, got shape \[2\]"),
        (lambda x: hr.dequantize(levels([1]), x, 1.0), [], r"min_range must be a scalar"),
        (lambda x: hr.quantized_concat(hr.cast(x, hr.int32), [levels([1])] * 2, [0.0] * 2,
                                       [1.0] * 2).output, 1.0, r"concat_dim 1 is out of range"),
        (lambda x: hr.quantized_concat(0, [levels([1]), hr.quantize(x, 0.0, 1.0, hr.quint8)[0]],
                                       [0.0] * 2, [1.0] * 2).output, 1.0,
         "values must have one number of dimensions, got 1 and 0"),
        (lambda x: hr.quantized_concat(0, [levels([[1]]), hr.quantize(x, 0.0, 1.0, hr.quint8)[0]],
                                       [0.0] * 2, [1.0] * 2).output, [[1.0, 2.0]],
         "each of values must have shape"),
    ],
)  # fmt: skip
def test_refused_when_it_runs(make, feed, match):
    x = hr.placeholder(hr.float32)
    with pytest.raises(ExecutionError, match=match):
        run(make(x), {x: feed})


def test_feeds_are_integers_that_are_levels():
    x = hr.placeholder(hr.quint8, [None])
    for value in ([1, 2], np.array([1, 2]), np.array([(1,), (2,)], hr.quint8.as_numpy_dtype)):
        assert run(x, {x: value}).tolist() == [1, 2]
    for value, match in (([256], "does not fit uint8"), ([0.5], "is float32, expected uint8")):
        with pytest.raises(FeedTypeError, match=match):
            run(x, {x: value})


# -- levels elsewhere


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("dtype", sorted(hr.QUANTIZED_DTYPES, key=str), ids=str)
def test_levels_have_an_order(config, dtype):
    q = levels([[7, 2, 9], [1, 30, 4]], dtype)
    axis = hr.placeholder_with_default(1, [])
    parts = [
        hr.reduce_max(q),
        hr.reduce_max(q, 1, keepdims=True),
        hr.reduce_min(q, axis),
        hr.reduce_min(q, [0, 1], name="least"),
    ]
    assert {t.dtype for t in parts} == {dtype}
    assert parts[-1].name == "least:0"
    places = [hr.argmax(q, 1), hr.argmin(q, axis, output_type=hr.int32)]
    found = [np.asarray(each).tolist() for each in run([*parts, *places], config=config)]
    assert found == [30, [[9], [30]], [2, 1], 1, [2, 1], [1, 0]]


@pytest.mark.parametrize("config", CONFIGS)
def test_levels_pass_through_control_flow_and_lists(config):
    q = levels([1, 2, 3])
    looped = hr.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, hr.reverse(x, [0])), [0, q])[1]
    held = hr.TensorArray(hr.quint8, 1).write(0, q).read(0)
    mapped = hr.map_fn(lambda x: x, q)
    chosen = hr.where([True, False, True], q, hr.zeros_like(q))
    parts = [looped, held, mapped, chosen, hr.one_hot([1], 2, dtype=hr.qint8)]
    assert [t.dtype.name for t in parts] == [*["quint8"] * 4, "qint8"]
    found = [array.tolist() for array in run(parts, config=config)]
    assert found == [[3, 2, 1], [1, 2, 3], [1, 2, 3], [1, 0, 3], [[0, 1]]]


def test_graphs_with_levels_are_written_and_read():
    x = hr.placeholder(hr.quint8, [None], name="x")
    y = hr.dequantize(hr.concat([x, levels([0, 255])], 0), 0.0, 1.0)
    hr.quantize(y, 0.0, 1.0, hr.qint8, name="z")
    document = hr.get_default_graph().to_document()
    again = hr.Graph.from_document(
        json.loads(json.dumps(document)) if isinstance(document, dict) else document
    )
    assert again.get_tensor_by_name("x:0").dtype == hr.quint8
    with hr.Session(graph=again) as session:
        assert session.run("z:0", {"x:0": [51]}).tolist() == [-77, -128, 127]


@pytest.mark.needs("train", "io")
@pytest.mark.parametrize("form", ["own", "bundle"])
def test_variables_of_levels_are_saved_and_restored(tmp_path: Path, form: str):
    variable = hr.get_variable("levels", initializer=levels([1, 2, 255]))
    version = {} if form == "own" else {"write_version": hr.train.SaverDef.V2}
    saver = hr.train.Saver(**version)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        session.run(variable.assign(levels([0, 0, 0])))
        saver.restore(session, path)
        assert session.run(variable).tolist() == [1, 2, 255]


@pytest.mark.needs("io")
def test_messages_of_levels_say_their_dtype():
    given = np.array([1, 2], np.uint8)
    message = hr.make_tensor_proto(given, hr.quint8)
    assert message.dtype == 12
    found = hr.make_ndarray(message)
    assert found.dtype == hr.quint8.as_numpy_dtype
    assert hr.constant(found).dtype == hr.quint8
    assert hr.make_tensor_proto(found) == message
    graph = hr.get_default_graph()
    hr.identity(hr.constant(found), name="y")
    with hr.Graph().as_default() as other:
        hr.import_graph_def(graph.as_graph_def(), name="")
        assert other.get_tensor_by_name("y:0").dtype == hr.quint8
        assert run("y:0").tolist() == [1, 2]
