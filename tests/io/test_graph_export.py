"""Graphs written as TensorFlow's say what they said: read back by the translations, and refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import NoSuchElementError, UnimplementedError
from headrace.testing import Sample
from headrace.testing.samples import SAMPLES
from headrace_io.graph_export.table import RULES
from headrace_io.graph_import.origin import origin_of
from headrace_testing.build import add_node, make_values, nested, swept

pytestmark = pytest.mark.needs("backend-cpu")

SAMPLED = {
    op: [row for row in rows if isinstance(row, Sample) and row.op == op]
    for op in RULES
    for rows in [[row for rows in SAMPLES.values() for row in rows]]
}
# Of these the reading side has no translation, or values are drawn.
NOT_READ = {
    *("FakeQuant", "Lu", "RandomUniform", "RandomStandardNormal", "TruncatedNormal"),
    *("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"),
}


def dtype_of(row: Any) -> Any:
    """Return the dtype that a sample is written with."""
    dtypes = swept(row)
    return next((d for d in dtypes if d is not None and d.name == "float32"), dtypes[-1])


def built(row: Any) -> tuple[hr.Graph, hr.Operation, dict[str, Any]]:
    """Return a graph of a sample's op, the op, and what its placeholders are fed."""
    feeds: dict[str, Any] = {}

    def enter(array: Any) -> hr.Tensor:
        array = np.asarray(array)
        if row.op.startswith("Conv2DBackprop") and array.dtype.kind == "i":
            # Of sizes that are fed the channels are not known.
            return hr.constant(array)
        dtype = hr.string if array.dtype.kind in "OSU" else hr.as_dtype(array.dtype)
        made: hr.Tensor = hr.placeholder(dtype, array.shape)
        feeds[made.name] = array
        return made

    with hr.Graph().as_default() as graph:
        op = add_node(row, nested(enter, make_values(row.inputs, dtype_of(row))))
    return graph, op, feeds


def run(graph: hr.Graph, fetches: Any, feeds: dict[str, Any]) -> Any:
    with hr.Session(graph=graph) as session:
        return session.run(fetches, feeds)


@pytest.mark.one_in(3)
@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("kind", sorted(op for op, rows in SAMPLED.items() if rows))
def test_samples_come_back_as_they_were(kind: str) -> None:
    written = 0
    for row in SAMPLED[kind]:
        graph, op, feeds = built(row)
        if op.type != kind:
            continue
        try:
            message = hr.graph_util.convert_to_tensorflow(None, graph, [op.name])
        except UnimplementedError as error:
            assert "cannot be written as TensorFlow's: " in str(error)  # noqa: PT017
            continue
        written += 1
        if kind in NOT_READ:
            continue
        outputs = [tensor.name for tensor in op.outputs]
        kept = {node.name for node in message.node}
        feeds = {name: value for name, value in feeds.items() if name[:-2] in kept}
        expected = run(graph, outputs, feeds) if outputs else []
        # None of its names is one of ours alone, so that they are read as TensorFlow's.
        assert origin_of(message) != "headrace"
        with hr.Graph().as_default() as back:
            hr.import_graph_def(message, name="")
        for name, value in zip(outputs, expected, strict=True):
            found = run(back, name, feeds)
            value = np.asarray(value)
            if value.dtype.kind in "OSU":
                np.testing.assert_array_equal(found, value)
            else:
                assert np.asarray(found).dtype == value.dtype
                np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
    assert written, "no sample of it was written"


def model() -> tuple[hr.Graph, hr.Session, np.ndarray[Any, Any]]:
    """Return a network with trained variables, and what it says of some images."""
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(7)
        images = hr.placeholder(hr.float32, [None, 8, 8, 1], name="images")
        hidden = images
        kernel = hr.get_variable("kernel", [3, 3, 1, 4], initializer=hr.ones_initializer())
        hidden = hr.nn.relu(hr.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
        hidden = hr.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        flat = hr.reshape(hidden, [-1, 64])
        weights = hr.get_variable(
            "weights", [64, 3], initializer=hr.random_normal_initializer(stddev=0.1, seed=1)
        )
        bias = hr.get_variable("bias", initializer=[0.5, -0.5, 0.0])
        hr.nn.softmax(hr.matmul(flat, weights) + bias, name="scores")
        session = hr.Session(graph=graph)
        session.run(hr.global_variables_initializer())
    return graph, session, np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 8, 8, 1)


def test_variables_become_constants_under_their_names() -> None:
    graph, session, images = model()
    with session:
        expected = session.run("scores:0", {"images:0": images})
        message = hr.graph_util.convert_to_tensorflow(session, graph, ["scores"])
    kinds = {node.name: node.op for node in message.node}
    assert kinds["images"] == "Placeholder"
    assert kinds["kernel"] == kinds["weights"] == kinds["bias"] == "Const"
    assert kinds["scores"] == "Softmax"
    assert not {"VarHandle", "ReadVariable"} & set(kinds.values())
    with hr.Graph().as_default() as back:
        hr.import_graph_def(message, name="")
    found = run(back, "scores:0", {"images:0": images})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


TENSORFLOW = """
import sys
import numpy as np
import tensorflow
tf = tensorflow.compat.v1
message = tf.GraphDef()
with open(sys.argv[1], "rb") as file:
    message.ParseFromString(file.read())
with tf.Graph().as_default():
    tf.import_graph_def(message, name="")
    with tf.Session() as session:
        np.save(sys.argv[3], session.run("scores:0", {"images:0": np.load(sys.argv[2])}))
"""


@pytest.mark.skipif(
    not os.environ.get("TENSORFLOW_PYTHON"), reason="TENSORFLOW_PYTHON names no Python"
)
def test_tensorflow_runs_what_was_written(tmp_path: Path) -> None:
    graph, session, images = model()
    with session:
        expected = session.run("scores:0", {"images:0": images})
        message = hr.graph_util.convert_to_tensorflow(session, graph, ["scores"])
    (tmp_path / "graph.pb").write_bytes(message.SerializeToString())
    np.save(tmp_path / "images.npy", images)
    files = [str(tmp_path / name) for name in ("graph.pb", "images.npy", "scores.npy")]
    subprocess.run(
        [os.environ["TENSORFLOW_PYTHON"], "-c", TENSORFLOW, *files],
        check=True,
        timeout=55,
        env={"PATH": os.environ["PATH"], "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), expected, rtol=1e-5)


def test_control_dependencies_stay() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [], name="x")
        check = hr.Assert(hr.greater(x, 0.0), ["not positive"], name="check")
        with hr.control_dependencies([check]):
            hr.sqrt(x, name="root")
    message = hr.graph_util.convert_to_tensorflow(None, graph, ["root"])
    (root,) = [node for node in message.node if node.name == "root"]
    assert [name for name in root.input if name.startswith("^")] == [f"^{check.name}"]
    assert {node.name: node.op for node in message.node}[check.name] == "Assert"


def test_further_nodes_take_no_names_of_the_program() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [2, 3], name="x")
        with hr.name_scope("sum/"):
            hr.constant([5], name="reduction_indices")
        y = hr.reduce_sum(x, 1, name="sum")
        hr.add(
            y, hr.cast(graph.get_tensor_by_name("sum/reduction_indices:0"), hr.float32), name="z"
        )
    message = hr.graph_util.convert_to_tensorflow(None, graph, ["z"])
    names = [node.name for node in message.node]
    assert len(set(names)) == len(names)
    with hr.Graph().as_default() as back:
        hr.import_graph_def(message, name="")
    found = run(back, "z:0", {"x:0": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(found, [8.0, 8.0])


def test_what_tensorflow_has_not_is_named() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [], name="x")
        y = hr.cond(hr.greater(x, 0.0), lambda: x, lambda: -x, name="branch")
        hr.math.bessel_i0(y, name="bessel")
    with pytest.raises(UnimplementedError, match=r"no rule writes If '.*', BesselI0 'bessel' as"):
        hr.graph_util.convert_to_tensorflow(None, graph, ["bessel"])


def test_variables_need_a_session() -> None:
    with hr.Graph().as_default() as graph:
        v = hr.get_variable("v", initializer=1.0)
        hr.identity(v, name="y")
    with pytest.raises(UnimplementedError, match=r"VarHandle 'v'.*pass a session"):
        hr.graph_util.convert_to_tensorflow(None, graph, ["y"])


def test_what_rules_refuse_names_the_operation() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, name="x")
        hr.nn.softmax(x, axis=0, name="y")
    with pytest.raises(UnimplementedError, match=r"Softmax 'y' cannot be written.*rank of 'x:0'"):
        hr.graph_util.convert_to_tensorflow(None, graph, ["y"])


def test_paddings_of_their_own_come_back_from_messages() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [1, 4, 4, 1], name="x")
        kernel = hr.ones([3, 3, 1, 1])
        hr.nn.conv2d(x, kernel, [1, 1, 1, 1], [[0, 0], [2, 0], [1, 3], [0, 0]], name="y")
    with hr.Graph().as_default() as back:
        hr.import_graph_def(graph.as_graph_def(), name="")
    assert back.get_operation_by_name("y").attrs["padding"] == ((2, 0), (1, 3))


# What TensorFlow 1.15 answers. Attributes that Headrace has by the same name are its own.
ATTRIBUTES = [
    (lambda: hr.constant([1.0]), {"dtype": hr.float32}),
    (lambda: hr.placeholder_with_default([1.0], [None]), {"dtype": hr.float32}),
    (lambda: hr.matmul(hr.ones([2, 2]), hr.ones([2, 2])), {"T": hr.float32, "transpose_a": False}),
    (lambda: hr.add(1, 2), {"T": hr.int32}),
    (lambda: hr.cast([1.0], hr.int64), {"SrcT": hr.float32, "DstT": hr.int64}),
    (
        lambda: hr.reduce_sum(hr.ones([2]), [0], keepdims=True),
        {"T": hr.float32, "Tidx": hr.int32, "keep_dims": True},
    ),
    (lambda: hr.concat([hr.ones([2])] * 3, 0), {"N": 3, "T": hr.float32, "Tidx": hr.int32}),
    (lambda: hr.stack([hr.ones([2])] * 2), {"N": 2, "axis": 0}),
    (lambda: hr.split(hr.ones([4]), 2)[0], {"num_split": 2}),
    (lambda: hr.squeeze(hr.ones([4, 1]), [1]), {"squeeze_dims": [1]}),
    (lambda: hr.ones([4])[1:2], {"T": hr.float32, "begin_mask": 0, "shrink_axis_mask": 0}),
    (lambda: hr.where([True], [1.0], [2.0]), {"T": hr.float32}),
    (lambda: hr.one_hot([1], 3), {"T": hr.float32, "axis": -1}),
]


@pytest.mark.parametrize(("make", "expected"), ATTRIBUTES)
def test_attributes_have_the_names_of_tensorflow_too(make, expected):
    with hr.Graph().as_default():
        op = make().op
        assert {name: op.get_attr(name) for name in expected} == expected


def test_what_shares_a_device_says_so():
    with hr.Graph().as_default():
        x = hr.constant(1.0, name="x")
        with hr.colocate_with(x):
            y = hr.identity(x)
    assert y.op.get_attr("_class") == [b"loc:@x"]


@pytest.mark.parametrize("name", ["", "no_such", "\ud800", "a\0b", 3, None])
def test_other_attributes_are_refused(name):
    with (
        hr.Graph().as_default(),
        pytest.raises(NoSuchElementError, match="has no attribute"),
    ):
        hr.ones([2]).op.get_attr(name)


def test_attributes_of_ops_that_tensorflow_does_not_have():
    with hr.Graph().as_default():
        op = hr.nn.local_response_normalization(hr.ones([1, 2, 2, 1])).op
        with pytest.raises(NoSuchElementError, match="nor has TensorFlow's op"):
            hr.io.attribute_of(op, "depth_radius")
