"""Messages, and what is written as messages, against TensorFlow 1.15."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from headrace_io import protos
from headrace_io.protos.convert import as_message
from headrace_io.protos.pool import enum_values, message_class, pool
from headrace_io.protos.schema import read_schema, resolve
from tests.children import run_program

TABLE = json.loads((Path(__file__).parent / "tables" / "messages.json").read_text())
# What no message of ours refers to: the structured values of TensorFlow 2's saved models.
LEFT_OUT = {
    *("tensorflow.MetaGraphDef.object_graph_def", "tensorflow.TensorInfo.composite_tensor"),
}
# Only reached through these.
UNREACHED = tuple(
    f"tensorflow.{name}"
    for name in (
        *("SavedObjectGraph", "Saved", "TypeSpecProto", "StructuredValue", "NoneValue"),
        *("TensorSpecProto", "ListValue", "TupleValue", "DictValue", "NamedTupleValue"),
        *("PairValue", "TensorInfo.CompositeTensor", "FunctionSpec", "CapturedTensor"),
    )
)
NAMES = sorted(name for name in TABLE["messages"] if name.startswith("tensorflow."))


def known(name):
    try:
        return pool().FindMessageTypeByName(name)
    except KeyError:
        return None


def test_the_messages_that_files_hold_are_all_there():
    asked = {f"tensorflow.{n}" for n in (*protos.EXAMPLES, *protos.SUMMARIES, *protos.GRAPHS)}
    assert asked <= set(NAMES)
    assert all(known(name) for name in asked)


def _is_repeated(field: Any) -> bool:
    """Whether a field is a list, told by old and new releases of Protocol Buffers."""
    told = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if told is None else told


@pytest.mark.parametrize("name", NAMES)
def test_fields_are_those_of_tensorflow(name):
    expected = TABLE["messages"][name]
    if name.startswith(UNREACHED):
        assert known(name) is None
        return
    if isinstance(expected, dict):
        assert enum_values(name.removeprefix("tensorflow.")) == expected
        return
    found = known(name)
    fields = []
    for field in found.fields:
        of = field.message_type or field.enum_type
        oneof = field.containing_oneof.name if field.containing_oneof else ""
        kind = of.full_name if of else field.type
        fields.append([field.name, field.number, kind, _is_repeated(field), oneof])
    assert sorted(fields) == sorted(f for f in expected if f"{name}.{f[0]}" not in LEFT_OUT)


def values_of(row):
    return eval(row["value"])


TENSORS = {row["name"]: row for row in TABLE["tensors"]}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_are_written_and_read_as_by_tensorflow(name):
    row = TENSORS[name]
    dtype = hr.as_dtype(row["dtype"])
    made = hr.make_tensor_proto(values_of(row), dtype, row.get("shape"))
    assert made.SerializeToString(deterministic=True).hex() == row["message"]
    expected = np.array(row.get("array", values_of(row)), dtype.numpy)
    found = hr.make_ndarray(protos.TensorProto.FromString(bytes.fromhex(row["message"])))
    assert found.dtype == dtype.numpy
    assert np.array_equal(found, expected)


def test_a_message_without_values_is_zeros():
    made = protos.TensorProto(dtype=1)
    made.tensor_shape.dim.add(size=3)
    assert hr.make_ndarray(made).tolist() == [0, 0, 0]
    made.dtype = 7
    assert hr.make_ndarray(made).tolist() == [b"", b"", b""]


@pytest.mark.parametrize(
    ("fill", "error", "message"),
    [
        (lambda m: m.tensor_shape.dim.add(size=-1), errors.AttributeValueError, "fully known"),
        (
            lambda m: m.float_val.extend([1, 2]),
            errors.AttributeValueError,
            "has 1 elements, the me",
        ),
        (
            lambda m: setattr(m, "tensor_content", b"123"),
            errors.AttributeValueError,
            "3 bytes are no",
        ),
        (lambda m: setattr(m, "dtype", 20), errors.DTypeError, "no arrays of resource"),
        (lambda m: setattr(m, "dtype", 99), errors.DTypeError, "no dtype has the number 99"),
    ],
    ids=["shape", "many", "bytes", "handle", "unknown"],
)
def test_a_tensor_that_does_not_fit_itself_is_refused(fill, error, message):
    made = protos.TensorProto(dtype=1)
    fill(made)
    with pytest.raises(error, match=message):
        hr.make_ndarray(made)


def test_values_that_do_not_fit_a_shape_are_refused():
    with pytest.raises(errors.ShapeError, match=r"shape \[2\] has 2 elements, got 3 values"):
        hr.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(errors.ShapeTypeError, match=r"must have the shape \[2\], got \[1\]"):
        hr.make_tensor_proto([1], shape=[2], verify_shape=True)
    assert hr.make_tensor_proto(1, shape=[2], verify_shape=True, allow_broadcast=True).int_val == [
        1
    ]


# -- graphs


def test_a_graph_is_that_of_tensorflow():
    with hr.Graph().as_default() as graph, hr.name_scope("layer"):
        a = hr.constant([[1.0, 2.0]], name="a")
        b = hr.placeholder(hr.float32, [2, None], name="b")
        with hr.control_dependencies([a.op]), hr.device("/device:CPU:0"):
            hr.matmul(a, b, transpose_b=True, name="c")
    expected = hr.GraphDef.FromString(bytes.fromhex(TABLE["graph"]))
    found = graph.as_graph_def(add_shapes=True)
    for node in (*expected.node, *found.node):
        node.device = node.device.lower()
    assert found == expected


def test_nodes_hold_what_operations_have():
    with hr.Graph().as_default() as graph:
        v = hr.get_variable("v", [3], hr.float32)
        split = hr.split(hr.ones([6]), 3, name="split")
        total = hr.add_n(split, name="total")
        update = hr.assign(v, hr.zeros([3]))
        with hr.control_dependencies([v.initializer]):
            late = hr.identity(total)
    assert late.op.node_def.input == ["total", f"^{v.initializer.name}"]
    assert total.op.node_def.input == ["split", "split:1", "split:2"]
    nodes = {node.name: node for node in graph.as_graph_def().node}
    assert list(nodes) == [op.name for op in graph.operations]
    assert nodes["total"].attr["T"].type == 1
    assert b"loc:@v" in update.op.node_def.attr["_class"].list.s
    version = graph.version
    with graph.as_default():
        hr.constant(1, name="late")
    assert [node.name for node in graph.as_graph_def(version).node] == ["late"]


def test_functions_that_operations_hold_are_in_the_library():
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [])
        y = hr.cond(x > 0.0, lambda: hr.exp(x), lambda: x)
    definition = graph.as_graph_def()
    names = {function.signature.name for function in definition.library.function}
    branches = [a.func.name for node in definition.node for a in node.attr.values() if a.func.name]
    assert set(branches) == names
    assert len(names) == 2
    (exp,) = [
        node
        for function in definition.library.function
        for node in function.node_def
        if node.op == "Exp"
    ]
    assert exp.input == ["arg0"]
    assert y.op.name in [node.name for node in definition.node]


def test_a_variable_is_a_message_and_the_message_finds_it():
    with hr.Graph().as_default() as graph, hr.name_scope("s"):
        v = hr.Variable([1.0, 2.0], name="v", trainable=False)
    whole, inside = v.to_proto(), v.to_proto("s")
    assert (whole.variable_name, whole.snapshot_name) == ("s/v:0", "s/v/read:0")
    assert (inside.variable_name, inside.initializer_name) == ("v:0", "v/Assign")
    assert (inside.initial_value_name, whole.trainable) == ("v/initial_value:0", False)
    assert v.to_proto("other") is None
    with graph.as_default():
        assert hr.Variable.from_proto(whole) is hr.Variable.from_proto(inside, "s/") is v
    with pytest.raises(errors.DTypeError, match="variable_def must be a VariableDef, got int: 3"):
        hr.Variable.from_proto(3)
    with (
        graph.as_default(),
        pytest.raises(errors.DataLossError, match="not have the variable 'v:0': there is no op"),
    ):
        hr.Variable.from_proto(inside)


def test_collections_are_written_with_a_graph():
    with hr.Graph().as_default() as graph:
        v = hr.get_variable("v", [3], hr.float32)
        for key, value in {"texts": "a", "numbers": 3, "floats": 0.5, "others": object()}.items():
            graph.add_to_collection(key, value)
    meta = hr.io.meta_graph_def_of(graph)
    assert meta.graph_def == graph.as_graph_def(add_shapes=True)
    found = meta.collection_def
    (stored,) = found["trainable_variables"].bytes_list.value
    variable = message_class("VariableDef").FromString(stored)
    assert (variable.variable_name, variable.initializer_name) == (v.name, v.initializer.name)
    assert variable.trainable
    assert found["texts"].bytes_list.value == [b"a"]
    assert found["numbers"].int64_list.value == [3]
    assert found["floats"].float_list.value == [0.5]
    assert "others" not in found


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (True, "b"),
        (3, "i"),
        (0.5, "f"),
        ("text", "s"),
        (hr.float32, "type"),
        (hr.Shape([2, None]), "shape"),
        (np.ones(2), "tensor"),
        ((1, 2.5), "list"),
        ((), "list"),
        (((1, 2), (3,)), "s"),
        (2**70, "s"),
    ],
    ids=[
        *("bool", "int", "float", "text", "dtype", "shape", "array", "numbers", "empty"),
        *("nested", "large"),
    ],
)
def test_attributes_have_a_form(value, field):
    from headrace_io.graph_protos import attr_value_of

    assert attr_value_of(value).WhichOneof("value") == field


# -- classes


def test_messages_can_be_pickled_and_are_apart_from_others():
    made = hr.Summary(value=[hr.Summary.Value(tag="a", simple_value=1.0)])
    assert pickle.loads(pickle.dumps(made)) == made
    assert message_class("Summary") is hr.Summary
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(protos, "Nothing")  # noqa: B009 - the name is what is asked for


@pytest.mark.needs("backend-cpu")
def test_what_core_has_without_protobuf_becomes_a_message():
    stats = hr.RunMetadata()
    found = as_message("RunMetadata", stats, "it")
    assert found == protos.RunMetadata()
    x = hr.placeholder(hr.float32, [])
    with hr.Session() as session:
        options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        session.run(hr.exp(x), {x: 1.0}, options=options, run_metadata=stats)
    found = as_message("RunMetadata", stats, "it")
    nodes = [node for device in found.step_stats.dev_stats for node in device.node_stats]
    assert any("Exp" in node.timeline_label for node in nodes)
    assert all(node.all_start_micros > 1e15 for node in nodes)


def test_both_implementations_of_protobuf_take_the_schemas():
    program = (
        "import headrace_io.protos as p\n"
        "made = p.Event(step=3, summary=p.Summary(value=[p.Summary.Value(tag='a')]))\n"
        "made.summary.value[0].histo.bucket.extend([1.0, 2.0])\n"
        "node = p.GraphDef().node.add(name='n')\n"
        "node.attr['x'].list.i.extend([1, 2])\n"
        "print(made.SerializeToString().hex(), node.SerializeToString().hex())\n"
    )
    printed = {
        run_program(program, env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": name}).stdout
        for name in ("upb", "python")
    }
    assert len(printed) == 1


# -- reading schemas


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message A { string x = 1", "expected ';'|ends in the middle"),
        ("message A { string x 1; }", "expected '=', got '1'"),
        ("service A {}", "'service' is nothing that schemas here use"),
        ("message A { string x = 1 [packed = true]; }", "expected 'deprecated', got 'packed'"),
    ],
    ids=["end", "equals", "service", "option"],
)
def test_what_is_no_schema_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_schema("a.proto", text)


def test_a_type_that_is_not_declared_is_refused():
    schema = read_schema("a.proto", "package p; message A { B x = 1; }")
    with pytest.raises(ValueError, match=r"\.p\.A\.x: no type 'B' is declared"):
        resolve(schema, {})
