"""What ``import tensorflow`` and imports of its modules give."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import headrace as hr
import headrace.tensorflow
from headrace.errors import ConfigError
from headrace_tensorflow import names


@pytest.fixture
def tf() -> Iterator[ModuleType]:
    if "tensorflow" in sys.modules:
        pytest.skip("TensorFlow has been imported by another test of this process")
    yield headrace.tensorflow.install()
    headrace.tensorflow.uninstall()


def test_the_root_has_the_names_of_headrace(tf: ModuleType) -> None:
    assert importlib.import_module("tensorflow") is tf
    assert tf.placeholder is hr.placeholder
    assert tf.__version__ == tf.VERSION == tf.version.VERSION == "1.15.5"
    assert tf.compat.v1.Session is hr.Session
    assert {"Variable", "Session", "nn", "flags"} <= set(dir(tf))


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("tensorflow.nn", "nn"),
        ("tensorflow.compat.v1.nn", "nn"),
        ("tensorflow.nn.rnn_cell", "nn.rnn_cell"),
        ("tensorflow.linalg", "linalg"),
        ("tensorflow.compat", "compat"),
    ],
)
def test_public_modules_are_those_of_headrace(tf: ModuleType, name: str, public: str) -> None:
    assert importlib.import_module(name) is names.public(public)


def test_the_interface_of_version_1_is_the_root(tf: ModuleType) -> None:
    assert importlib.import_module("tensorflow.compat.v1") is tf


@pytest.mark.parametrize(
    ("module", "name", "public"),
    [
        ("ops.array_ops", "reshape", "reshape"),
        ("ops.math_ops", "reduce_sum_v1", "reduce_sum"),
        ("framework.dtypes", "float32", "float32"),
        ("framework.ops", "Tensor", "Tensor"),
        ("framework.tensor_util", "constant_value", "get_static_value"),
        ("framework.tensor_shape", "TensorShape", "TensorShape"),
        ("framework.errors_impl", "InvalidArgumentError", "errors.InvalidArgumentError"),
        ("ops.variables", "VariableV1", "Variable"),
        ("ops.nn_ops", "conv2d", "nn.conv2d"),
        ("ops.rnn_cell_impl", "LSTMStateTuple", "nn.rnn_cell.LSTMStateTuple"),
        ("ops.ragged.ragged_concat_ops", "concat", "concat"),
        ("ops.ragged.ragged_math_ops", "segment_sum", "math.unsorted_segment_sum"),
        ("ops.ragged.ragged_tensor", "RaggedTensor", "RaggedTensor"),
        pytest.param(
            "training.server_lib", "Server", "train.Server", marks=pytest.mark.needs("dist-mpi")
        ),
        ("util.nest", "flatten", "nest.flatten"),
        ("util.nest", "is_sequence", "nest.is_nested"),
    ],
)
def test_private_modules_have_public_names(
    tf: ModuleType, module: str, name: str, public: str
) -> None:
    found = importlib.import_module(f"tensorflow.python.{module}")
    assert getattr(found, name) is names.public(public)


@pytest.mark.needs("io")
def test_modules_of_functions_have_the_generated_ones_too(tf: ModuleType) -> None:
    from tensorflow.python.ops import data_flow_ops, gen_data_flow_ops, nn_ops

    stitched = data_flow_ops.parallel_dynamic_stitch([[0], [1]], [[1.0], [2.0]])
    assert stitched.shape.as_list() == [2]
    assert data_flow_ops.parallel_dynamic_stitch is gen_data_flow_ops.parallel_dynamic_stitch
    # A function of the module goes before the one that was generated.
    assert nn_ops.conv2d is not hr.raw_ops.Conv2D
    assert nn_ops.conv2d is hr.nn.conv2d
    with pytest.raises(AttributeError, match="has no 'no_such_op' here"):
        _ = nn_ops.no_such_op


@pytest.mark.needs("backend-cpu")
def test_private_functions_take_their_arguments_in_their_own_order(tf: ModuleType) -> None:
    from tensorflow.python.framework import constant_op
    from tensorflow.python.ops import array_ops, math_ops, nn_ops

    with hr.Graph().as_default():
        x = hr.constant([[1.0, 2.0], [3.0, 4.0]])
        # Its second argument is the rate, and not what is kept: what is left is divided by 0.75.
        left = nn_ops.dropout_v2(hr.ones([100]), 0.25, seed=1)
        right = nn_ops.in_top_k_v2([1], [[0.0, 1.0]], 1)
        masked = array_ops.boolean_mask_v2(x, [True, False], 1)
        summed = math_ops.argmax_v2(x, 0, hr.int32, "mine")
        with hr.Session() as session:
            values = session.run([left, right, masked, summed])
        np.testing.assert_allclose(np.unique(values[0]), [0.0, 1 / 0.75], rtol=1e-6)
        assert values[1].tolist() == [True]
        assert values[2].tolist() == [[1.0], [3.0]]
        assert summed.op.name == "mine"
        assert values[3].tolist() == [1, 1]
        assert constant_op.constant(1, hr.int64, [2], "c").name == "c:0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ops: ops.dropout_v2(1.0, 0.1, None, None, "a", "b"), "got 6 arguments by position"),
        (lambda ops: ops.dropout_v2(1.0, 0.1, rate=0.2), "got 2 arguments and rate by name"),
        (lambda ops: ops.dropout_v2(1.0, keep_prob=0.2), "got 1 arguments and keep_prob by name"),
    ],
)
def test_arguments_that_private_functions_do_not_take(
    tf: ModuleType, call: Callable[[ModuleType], Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        call(importlib.import_module("tensorflow.python.ops.nn_ops"))


def test_functions_that_do_something_else_in_version_2_are_refused(tf: ModuleType) -> None:
    from tensorflow.python.ops import embedding_ops

    with pytest.raises(AttributeError, match="has no 'embedding_lookup_v2' here"):
        _ = embedding_ops.embedding_lookup_v2


@pytest.mark.needs("io")
def test_generated_functions_build_single_ops(tf: ModuleType) -> None:
    from tensorflow.python.ops import gen_array_ops, gen_nn_ops

    x = hr.placeholder(hr.float32, [4, 1, 1, 1])
    made = gen_array_ops.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]], name="mine")
    assert (made.op.name, made.shape.as_list()) == ("mine", [1, 2, 2, 1])
    assert gen_nn_ops.top_kv2([1.0, 3.0], k=1).indices.dtype is hr.int32
    assert gen_array_ops.Squeeze is hr.raw_ops.Squeeze
    assert gen_array_ops._slice([1, 2, 3], [1], [1]).shape.as_list() == [1]
    with pytest.raises(AttributeError, match="no op for TensorFlow's generated function 'foo'"):
        _ = gen_array_ops.foo
    with pytest.raises(TypeError, match="got several values for input"):
        gen_array_ops.squeeze([1], input=[1])
    with pytest.raises(TypeError, match="squeeze takes 3 arguments, got 4"):
        gen_array_ops.squeeze([1], [0], "a", "b")


def test_private_modules_have_the_modules_that_they_import(tf: ModuleType) -> None:
    ops = importlib.import_module("tensorflow.python.ops")
    array_ops = importlib.import_module("tensorflow.python.ops.array_ops")
    assert ops.array_ops is array_ops
    assert importlib.import_module("tensorflow.python.ops.math_ops").array_ops is array_ops
    assert tf.python.ops is ops


@pytest.mark.needs("autodiff", "backend-cpu", "data", "io", "train")
@pytest.mark.parametrize("module", ["tensorflow", "tensorflow.python.ops.standard_ops"])
def test_all_names_come_at_once(tf: ModuleType, module: str) -> None:
    found: dict[str, object] = {}
    exec(f"from {module} import *", found)
    assert found["Variable"] is tf.Variable
    assert found["reduce_sum"] is hr.reduce_sum
    assert len(found) > 300


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tensorflow.keras", r"No module named 'tensorflow\.keras': Headrace stands in"),
        ("tensorflow.compat.v2", r"No module named 'tensorflow\.compat\.v2'"),
        ("tensorflow.nn.nowhere", r"No module named 'tensorflow\.nn\.nowhere'"),
        ("tensorflow.python.nowhere", r"No module named 'tensorflow\.python\.nowhere'"),
        ("tensorflow.contrib.tpu", r"No module named 'tensorflow\.contrib\.tpu'"),
        ("tensorflow.contrib.rnn.cells", r"No module named 'tensorflow\.contrib\.rnn\.cells'"),
        ("tensorflow.lite", r"No module named 'tensorflow\.lite'"),
    ],
)
def test_modules_that_are_not_there_are_refused(tf: ModuleType, name: str, message: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=message) as caught:
        importlib.import_module(name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("tensorflow", "keras", "tensorflow has no 'keras' here: Headrace stands in"),
        ("tensorflow.contrib", "tpu", r"tensorflow\.contrib has no 'tpu' here: .* layers, lookup"),
        ("tensorflow.contrib.rnn", "Cell", r"contrib\.rnn has no 'Cell' here: .* tf-slim has"),
        ("tensorflow.python.ops.array_ops", "_nothing", r"array_ops has no '_nothing' here"),
        ("tensorflow.core.framework.graph_pb2", "Nothing", "has no message 'Nothing'"),
    ],
)
def test_names_that_are_not_there_are_refused(
    tf: ModuleType, module: str, name: str, message: str
) -> None:
    found = importlib.import_module(module)
    with pytest.raises(AttributeError, match=message):
        getattr(found, name)


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("rnn.LSTMCell", "nn.rnn_cell.LSTMCell"),
        ("rnn.static_rnn", "nn.static_rnn"),
        ("signal.stft", "signal.stft"),
        ("util.make_tensor_proto", "make_tensor_proto"),
        ("util.constant_value", "get_static_value"),
    ],
)
@pytest.mark.needs("io")
def test_contrib_has_what_is_public_under_another_name(
    tf: ModuleType, name: str, public: str
) -> None:
    module, _, inside = name.rpartition(".")
    found = importlib.import_module(f"tensorflow.contrib.{module}")
    assert getattr(found, inside) is names.public(public)
    assert getattr(tf.contrib, module) is found
    assert inside in dir(found)


def test_tf_slim_is_named_where_it_is_missing(
    tf: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install tf-slim"):
        importlib.import_module("tensorflow.contrib.slim")


def test_names_come_and_go(tf: ModuleType) -> None:
    assert headrace.tensorflow.installed()
    assert headrace.tensorflow.install() is tf
    importlib.import_module("tensorflow.python.ops.array_ops")
    headrace.tensorflow.uninstall()
    headrace.tensorflow.uninstall()
    assert not headrace.tensorflow.installed()
    assert not [name for name in sys.modules if name.split(".")[0] == "tensorflow"]


def test_tensorflow_that_was_imported_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    with pytest.raises(ConfigError, match=r"imported from .* before anything"):
        headrace.tensorflow.install()
    assert not headrace.tensorflow.installed()


@pytest.mark.needs("autodiff", "backend-cpu", "data", "io", "train")
def test_most_names_of_the_table_are_there() -> None:
    public = {path for found in names.table().values() for path in found.values()}
    # What Headrace leaves out on purpose, which the page on TensorFlow 1 names.
    left_out = ("estimator.", "feature_column.", "experimental.", "config.", "lite.", "mixed_")
    missing = []
    for path in sorted(public):
        try:
            names.public(path)
        except AttributeError:
            if not path.startswith(left_out):
                missing.append(path)
    assert len(missing) < 0.06 * len(public), missing
