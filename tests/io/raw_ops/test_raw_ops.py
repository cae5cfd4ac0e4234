"""Single ops by TensorFlow's names for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    ShapeError,
    UnimplementedError,
)
from headrace_io.raw_ops.table import known, signature

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "io")


@pytest.fixture(autouse=True)
def _own_graph() -> Any:
    with hr.Graph().as_default():
        yield


def run(fetched: Any) -> Any:
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        return session.run(fetched)


def test_what_is_built_is_what_graphs_are_read_with() -> None:
    listed = dir(hr.raw_ops)
    assert listed == sorted(listed)
    assert {"Add", "Conv2D", "VarHandleOp", "TopKV2"} <= set(listed) <= known()
    # Loops are built of several of them, and none alone.
    assert not {"Enter", "Exit"} & set(listed)
    assert [getattr(hr.raw_ops, name).__name__ for name in listed] == listed


def test_names_of_arguments_are_those_of_tensorflows_functions() -> None:
    squeeze = hr.raw_ops.Squeeze
    assert str(inspect.signature(squeeze)) == "(*, input, axis=[], name=None)"
    assert repr(squeeze) == "<raw op Squeeze(*, input, axis=[], name=None)>"
    assert "output" in squeeze.__doc__
    assert [one.name for one in signature("Split").parameters] == ["axis", "value", "num_split"]


def test_names_of_operations_are_made_unique_in_their_scopes() -> None:
    relu = hr.raw_ops.Relu
    with hr.name_scope("a"):
        names = [relu(features=[1.0]).name, relu(features=[1.0]).name]
    assert names == ["a/Relu:0", "a/Relu_1:0"]
    assert relu(features=hr.constant([1.0]), name="mine").op.name == "mine"
    found = hr.raw_ops.TopKV2(input=[1.0, 3.0], k=1)
    assert [found.values.name, found.indices.name] == ["TopKV2:0", "TopKV2:1"]


def test_outputs_are_a_tensor_a_list_a_tuple_or_an_operation() -> None:
    assert isinstance(hr.raw_ops.NoOp(), hr.Operation)
    parts = hr.raw_ops.Split(axis=0, value=[1, 2, 3, 4], num_split=2)
    assert isinstance(parts, list)
    np.testing.assert_array_equal(run(parts), [[1, 2], [3, 4]])
    found = hr.raw_ops.SparseSplit(
        split_dim=0, indices=[[0], [2]], values=[1.0, 2.0], shape=[4], num_split=2
    )
    assert found._fields == ("output_indices", "output_values", "output_shape")
    values = run(found.output_values)
    np.testing.assert_array_equal(values, [[1.0], [2.0]])


def test_variables_are_read_or_written_as_the_op_takes_them() -> None:
    raw = hr.raw_ops
    v = hr.Variable([1.0, 2.0])
    with hr.Session() as session:
        session.run(v.initializer)
        added = session.run(raw.AssignAdd(ref=v, value=[1.0, 1.0]))
        np.testing.assert_array_equal(added, [2.0, 3.0])
        np.testing.assert_array_equal(session.run(raw.Neg(x=v)), [-2.0, -3.0])
        np.testing.assert_array_equal(session.run(raw.Neg(x=v.handle)), [-2.0, -3.0])
        read = raw.ReadVariableOp(resource=v.handle, dtype=hr.float32)
        np.testing.assert_array_equal(session.run(read), [2.0, 3.0])


def test_queues_are_what_other_ops_take() -> None:
    raw = hr.raw_ops
    queue = raw.FIFOQueueV2(component_types=[hr.int32], shapes=[[]])
    with hr.Session() as session:
        session.run(raw.QueueEnqueueManyV2(handle=queue, components=[[3, 4]]))
        taken = raw.QueueDequeueV2(handle=queue, component_types=[hr.int32])
        assert session.run(taken) == [3]
        assert session.run(raw.QueueSizeV2(handle=queue)) == 1


def test_they_have_gradients_and_stand_in_branches_and_functions() -> None:
    x = hr.placeholder_with_default([0.5], [1])
    (gradient,) = hr.gradients(hr.raw_ops.Square(x=x), x)

    @hr.function
    def doubled(a: hr.Tensor) -> hr.Tensor:
        return hr.raw_ops.Add(x=a, y=a)

    chosen = hr.cond(
        hr.constant(True),
        lambda: hr.raw_ops.Relu(features=[-1.0, 1.0]),
        lambda: hr.raw_ops.Elu(features=[-1.0, 1.0]),
    )
    found = run([gradient, doubled(x), chosen])
    np.testing.assert_array_equal(found[0], [1.0])
    np.testing.assert_array_equal(found[1], [1.0])
    np.testing.assert_array_equal(found[2], [0.0, 1.0])


def test_numbers_that_are_given_are_those_of_the_op() -> None:
    raw = hr.raw_ops
    leaky, near, text = run(
        [
            raw.LeakyRelu(features=[-1.0]),
            raw.ApproximateEqual(x=[1.0], y=[1.3], tolerance=0.31),
            raw.AsString(input=[0.5], precision=2),
        ]
    )
    np.testing.assert_array_equal(leaky, np.float32([-0.2]))
    np.testing.assert_array_equal(near, [True])
    assert list(text) == [b"0.50"]


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "odd": (lambda: hr.raw_ops.Squeeze(x=1), ArgumentTypeError, "does not take x; it takes, by"),
    "missing": (lambda: hr.raw_ops.Squeeze(), ArgumentTypeError, "Squeeze needs input"),
    "position": (lambda: hr.raw_ops.Squeeze([1]), TypeError, "positional argument"),
    "attribute": (
        lambda: hr.raw_ops.Squeeze(input=[1], axis=0),
        ArgumentTypeError,
        r"argument axis must be of the type list\(int\), got 0",
    ),
    "text": (
        lambda: hr.raw_ops.LRN(input=hr.zeros([1, 1, 1, 1]), bias="a"),
        ArgumentTypeError,
        "argument bias must be of the type float, got 'a'",
    ),
    "number": (
        lambda: hr.raw_ops.Unpack(value=[1], num="1"),
        ArgumentTypeError,
        "argument num must be of the type int",
    ),
    "truth": (
        lambda: hr.raw_ops.TopKV2(input=[1.0], k=1, sorted=1),
        ArgumentTypeError,
        "argument sorted must be of the type bool, got 1",
    ),
    "bytes": (
        lambda: hr.raw_ops.AsString(input=[1], fill=0),
        ArgumentTypeError,
        "argument fill must be of the type string, got 0",
    ),
    "nothing": (
        lambda: hr.raw_ops.Cast(x=[1], DstT=None),
        ArgumentTypeError,
        "argument DstT must be of the type type, got None",
    ),
    "list": (lambda: hr.raw_ops.Pack(values=3), ArgumentTypeError, "must be a list of tensors"),
    "numbers": (
        lambda: hr.raw_ops.DynamicStitch(indices=[[0], [1]], data=[[1.0]]),
        ArgumentTypeError,
        "argument data must have 2 tensors, as others have, got 1",
    ),
    "dtypes": (lambda: hr.raw_ops.Add(x=1, y=2.5), DTypeError, "argument y: 2.5 is float32"),
    "shape": (lambda: hr.raw_ops.Squeeze(input=[1, 2], axis=[0]), ShapeError, "has size 2"),
    "function": (
        lambda: hr.raw_ops.StatelessIf(
            cond=True, input=[1], Tout=[hr.int32], then_branch=abs, else_branch=abs
        ),
        UnimplementedError,
        "StatelessIf takes functions",
    ),
    "two kinds of noise": (
        lambda: hr.raw_ops.ExtractGlimpse(
            input=np.ones([1, 2, 2, 1]), size=[1, 1], offsets=[[0.0, 0.0]], noise="zero"
        ),
        AttributeValueError,
        "uniform_noise is asked for, and noise='zero'; give one",
    ),
    "padded bytes": (
        lambda: hr.raw_ops.DecodePaddedRaw(input_bytes=["ab"], fixed_length=3, out_type=hr.int16),
        AttributeValueError,
        "fixed_length must be a positive multiple of 2, the bytes of int16, got 3",
    ),
    "offsets of no vectors": (
        lambda: hr.raw_ops.ConcatOffset(concat_dim=0, shape=[[[1]], [[2]]]),
        ShapeError,
        "a shape must be a vector, got one of shape",
    ),
    "unknown": (lambda: hr.raw_ops.Foo, AttributeError, "TensorFlow 1.15 has no op 'Foo'"),
    "not built": (
        lambda: hr.raw_ops.LMDBReader,
        AttributeError,
        "Headrace does not build TensorFlow's op LMDBReader",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_refused(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("axis", "shapes", "message"),
    [
        (4, [[2, 3], [2, 4]], "concat_dim is out of range"),
        (1, [[2, 3], [5, 4]], "shapes to join differ elsewhere, too"),
    ],
)
def test_offsets_are_checked_in_the_step(axis: int, shapes: list[Any], message: str) -> None:
    fed = hr.placeholder_with_default(axis, [])
    given = [hr.placeholder_with_default(shape, [None]) for shape in shapes]
    with pytest.raises(hr.errors.InvalidArgumentError, match=message):
        run(hr.raw_ops.ConcatOffset(concat_dim=fed, shape=given))
