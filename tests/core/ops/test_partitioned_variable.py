# ruff: noqa: E501 - a partitioner and what it returns stand in one line
"""Variables in parts: partitioners, ``get_variable`` with them, and what takes the parts.

The numbers of parts were written down from a run of TensorFlow 1.15.5 under Python 3.7.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DocumentError, DTypeError, GraphError, ShapeError
from tests.steps import run_ready

# A partitioner, the dtype of the variable, and for several shapes the parts along each axis.
PARTITIONS = """
fixed_size_partitioner(3) | float32 | [10] [3]; [10, 3] [3, 1]; [7, 5] [3, 1]; [1, 4] [1, 1]; [100, 1000] [3, 1]; [3] [3]; [64, 64, 3] [3, 1, 1]
fixed_size_partitioner(3) | string | [10] [3]; [10, 3] [3, 1]; [7, 5] [3, 1]; [1, 4] [1, 1]; [100, 1000] [3, 1]; [3] [3]; [64, 64, 3] [3, 1, 1]
fixed_size_partitioner(20) | float32 | [10] [10]; [10, 3] [10, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [20, 1]; [3] [3]; [64, 64, 3] [20, 1, 1]
fixed_size_partitioner(20) | string | [10] [10]; [10, 3] [10, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [20, 1]; [3] [3]; [64, 64, 3] [20, 1, 1]
variable_axis_size_partitioner(100) | float32 | [10] [1]; [10, 3] [2, 1]; [7, 5] [2, 1]; [1, 4] [1, 1]; [100, 1000] [100, 1]; [3] [1]; [64, 64, 3] [64, 1, 1]
variable_axis_size_partitioner(100) | string | [10] [2]; [10, 3] [5, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [100, 1]; [3] [1]; [64, 64, 3] [64, 1, 1]
variable_axis_size_partitioner(1) | float32 | [10] [10]; [10, 3] [10, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [100, 1]; [3] [3]; [64, 64, 3] [64, 1, 1]
variable_axis_size_partitioner(1) | string | [10] [10]; [10, 3] [10, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [100, 1]; [3] [3]; [64, 64, 3] [64, 1, 1]
variable_axis_size_partitioner(1000, max_shards=3) | float32 | [10] [1]; [10, 3] [1, 1]; [7, 5] [1, 1]; [1, 4] [1, 1]; [100, 1000] [3, 1]; [3] [1]; [64, 64, 3] [3, 1, 1]
variable_axis_size_partitioner(1000, max_shards=3) | string | [10] [1]; [10, 3] [1, 1]; [7, 5] [1, 1]; [1, 4] [1, 1]; [100, 1000] [3, 1]; [3] [1]; [64, 64, 3] [3, 1, 1]
min_max_variable_partitioner(8) | float32 | [10] [1]; [10, 3] [1, 1]; [7, 5] [1, 1]; [1, 4] [1, 1]; [100, 1000] [2, 1]; [3] [1]; [64, 64, 3] [1, 1, 1]
min_max_variable_partitioner(8) | string | [10] [1]; [10, 3] [1, 1]; [7, 5] [1, 1]; [1, 4] [1, 1]; [100, 1000] [7, 1]; [3] [1]; [64, 64, 3] [1, 1, 1]
min_max_variable_partitioner(8, min_slice_size=16) | float32 | [10] [3]; [10, 3] [8, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [8, 1]; [3] [1]; [64, 64, 3] [8, 1, 1]
min_max_variable_partitioner(8, min_slice_size=16) | string | [10] [8]; [10, 3] [8, 1]; [7, 5] [7, 1]; [1, 4] [1, 1]; [100, 1000] [8, 1]; [3] [3]; [64, 64, 3] [8, 1, 1]
fixed_size_partitioner(2, axis=1) | float32 | [10, 3] [1, 2]; [7, 5] [1, 2]; [1, 4] [1, 2]; [100, 1000] [1, 2]; [64, 64, 3] [1, 2, 1]
fixed_size_partitioner(2, axis=1) | string | [10, 3] [1, 2]; [7, 5] [1, 2]; [1, 4] [1, 2]; [100, 1000] [1, 2]; [64, 64, 3] [1, 2, 1]
variable_axis_size_partitioner(64, axis=1) | float32 | [10, 3] [1, 3]; [7, 5] [1, 3]; [1, 4] [1, 1]; [100, 1000] [1, 1000]; [64, 64, 3] [1, 64, 1]
variable_axis_size_partitioner(64, axis=1) | string | [10, 3] [1, 3]; [7, 5] [1, 5]; [1, 4] [1, 1]; [100, 1000] [1, 1000]; [64, 64, 3] [1, 64, 1]
min_max_variable_partitioner(16, axis=1, min_slice_size=64) | float32 | [10, 3] [1, 2]; [7, 5] [1, 3]; [1, 4] [1, 1]; [100, 1000] [1, 16]; [64, 64, 3] [1, 16, 1]
min_max_variable_partitioner(16, axis=1, min_slice_size=64) | string | [10, 3] [1, 3]; [7, 5] [1, 5]; [1, 4] [1, 1]; [100, 1000] [1, 16]; [64, 64, 3] [1, 16, 1]
"""

LINES = [line.split(" | ") for line in PARTITIONS.strip().splitlines()]
TWO, THREE = hr.fixed_size_partitioner(2), hr.fixed_size_partitioner(3)
cpu = pytest.mark.needs("backend-cpu")


def described(variables):
    return [(v.op.name, v.shape.as_list()) for v in variables]


@pytest.mark.parametrize(("call", "dtype", "cases"), LINES, ids=[f"{c}-{d}" for c, d, _ in LINES])
def test_partitioners_make_as_many_parts_as_tensorflows(call, dtype, cases):
    partitioner = eval(f"hr.{call}")
    for shape, parts in re.findall(r"(\[[^]]*\]) (\[[^]]*\])", cases):
        found = partitioner(shape=hr.Shape(ast.literal_eval(shape)), dtype=hr.as_dtype(dtype))
        assert found == ast.literal_eval(parts), shape


def test_partitioners_refuse_sizes_that_are_none():
    with pytest.raises(AttributeValueError, match="must be positive, got 0 and 16"):
        hr.variable_axis_size_partitioner(0)
    with pytest.raises(AttributeValueError, match="max_shards must not be negative, got -1"):
        hr.variable_axis_size_partitioner(8, max_shards=-1)
    assert hr.variable_axis_size_partitioner(4, max_shards=0)(hr.Shape([3]), hr.float32) == [3]
    with pytest.raises(ShapeError, match=r"cannot divide axis 1 of shape \[4\]"):
        hr.get_variable("w", [4], partitioner=hr.fixed_size_partitioner(2, axis=1))


def test_the_first_parts_are_longer_where_parts_differ(graph):
    w = hr.get_variable("w", [10, 3], partitioner=THREE)
    names = ["w/part_0", "w/part_1", "w/part_2"]
    assert described(w) == list(zip(names, [[4, 3], [3, 3], [3, 3]], strict=True))
    assert (w.name, len(w), w.partitions, bool(w)) == ("w", 3, [3, 1], True)
    assert (w.shape.as_list(), w.get_shape().as_list(), w.dtype) == ([10, 3], [10, 3], hr.float32)
    assert [v.save_slice_info.spec for v in w] == ["10 3 0,4:0,3", "10 3 4,3:0,3", "10 3 7,3:0,3"]
    assert described(hr.trainable_variables()) == described(hr.global_variables()) == described(w)
    assert repr(w) == "<PartitionedVariable 'w' float32[10, 3], 3 parts>"


@pytest.mark.parametrize(
    ("shape", "partitions", "error", "match"),
    [
        ([4], [2, 2], AttributeValueError, r"returned 2 numbers for shape \[4\]"),
        ([4, 4], [2, 2], AttributeValueError, "divided along one axis only"),
        ([4], [0], AttributeValueError, r"must return a positive number of parts.*got \[0\]"),
        ([4], "a", AttributeValueError, "must return a positive number of parts.*got 'a'"),
        ([4], [5], AttributeValueError, "5 parts of axis 0, which has 4 indices"),
        ([None, 4], [2, 1], ShapeError, "needs a shape that is fully known to be divided"),
    ],
)
def test_partitions_that_do_not_divide_the_shape_are_refused(shape, partitions, error, match):
    with pytest.raises(error, match=match):
        hr.get_variable("w", shape, partitioner=lambda **unused: partitions)
    assert hr.global_variables() == []


def test_what_is_no_partitioner_is_refused():
    with pytest.raises(AttributeValueError, match="partitioner must be a function, got 3"):
        hr.get_variable("w", [4], partitioner=3)
    opened = hr.variable_scope("s", partitioner=3)
    with pytest.raises(AttributeValueError, match="partitioner must be a function, got 3"), opened:
        pass


def test_scopes_divide_what_is_made_in_them_but_scalars():
    with hr.variable_scope("s", partitioner=TWO) as scope:
        a = hr.get_variable("a", [5])
        scalar = hr.get_variable("b", [])
    assert described(a) == [("s/a/part_0", [3]), ("s/a/part_1", [2])]
    assert isinstance(scalar, hr.Variable)
    with hr.variable_scope("s", reuse=True):
        assert hr.get_variable("a", [5]) is a
    with hr.variable_scope("s", reuse=True, partitioner=TWO):
        assert hr.get_variable("a", [5]) is a
    scope.set_partitioner(None)
    assert scope.partitioner is None


@pytest.mark.parametrize(
    ("first", "again", "reuse", "error", "match"),
    [
        (TWO, {"partitioner": TWO}, False, GraphError, "exists already, in 2 parts"),
        (TWO, {"partitioner": THREE}, hr.AUTO_REUSE, GraphError, r"divided into \[2, 1\] parts"),
        (TWO, {"partitioner": THREE}, True, GraphError, r"expected \[3, 1\] to share it"),
        (TWO, {}, False, GraphError, "is there in parts"),
        (TWO, {}, hr.AUTO_REUSE, GraphError, "is there in parts"),
        (None, {"partitioner": TWO}, hr.AUTO_REUSE, GraphError, "is there as a whole"),
        (TWO, {"shape": [5, 2], "partitioner": TWO}, True, ShapeError, r"has shape \[4, 2\]"),
        (TWO, {"dtype": hr.float64, "partitioner": TWO}, True, DTypeError, "is float32"),
    ],
    ids=["again", "other-parts", "reuse-other", "whole", "auto-whole", "parts", "shape", "dtype"],
)
def test_sharing_compares_the_parts(first, again, reuse, error, match):
    hr.get_variable("a", [4, 2], partitioner=first)
    with (
        hr.variable_scope(hr.get_variable_scope(), reuse=reuse),
        pytest.raises(error, match=match),
    ):
        hr.get_variable("a", **{"shape": [4, 2], **again})


def test_reuse_needs_something_to_reuse():
    with hr.variable_scope("s", reuse=True), pytest.raises(GraphError, match="no variable 's/a'"):
        hr.get_variable("a", [4], partitioner=TWO)


@cpu
@pytest.mark.parametrize(("shards", "axis"), [(2, 0), (3, 0), (2, 1)])
def test_values_and_initializers_are_divided(shards, axis):
    partitioner = hr.fixed_size_partitioner(shards, axis)
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    of_tensor = hr.get_variable("a", initializer=hr.constant(values), partitioner=partitioner)
    of_array = hr.get_variable("b", [4, 2], initializer=values, partitioner=partitioner)
    diagonal = hr.get_variable(
        "c", [4, 2], initializer=hr.initializers.identity(), partitioner=partitioner
    )
    a, b, c, doubled = run_ready(
        [of_tensor + 0.0, of_array.as_tensor(), diagonal.as_tensor(), of_tensor * 2]
    )
    np.testing.assert_array_equal(a, values)
    np.testing.assert_array_equal(b, values)
    np.testing.assert_array_equal(c, np.eye(4, 2))
    np.testing.assert_array_equal(doubled, values * 2)


def test_initializers_hear_which_part_they_make():
    heard = []

    def start(shape, dtype=None, partition_info=None):
        info = partition_info
        at = (info.single_slice_dim(shape), info.single_offset(shape))
        heard.append((shape, info.full_shape, info.var_offset, *at))
        return hr.zeros(shape, dtype)

    hr.get_variable("w", [5, 4], initializer=start, partitioner=THREE)
    assert heard == [
        ([2, 4], [5, 4], [0, 0], 0, 0),
        ([2, 4], [5, 4], [2, 0], 0, 2),
        ([1, 4], [5, 4], [4, 0], 0, 4),
    ]


@cpu
def test_the_scale_of_random_numbers_is_that_of_the_whole():
    make = hr.initializers.variance_scaling(1.0, "fan_in", "uniform", seed=1)
    w = hr.get_variable("w", [1000, 30], initializer=make, partitioner=hr.fixed_size_partitioner(4))
    assert np.abs(run_ready(w.as_tensor())).max() == pytest.approx(np.sqrt(3 / 1000), rel=1e-3)


@cpu
def test_assigning_divides_the_value():
    w = hr.get_variable("w", [5], initializer=hr.zeros_initializer(), partitioner=THREE)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        parts = session.run(w.assign(np.arange(5, dtype=np.float32)))
        assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [4]]
        session.run(w.assign_add(np.ones(5, np.float32)))
        session.run(w.assign_sub([[1.0, 1.0], [2.0, 2.0], [3.0]], read_value=False))
        assert session.run(w.as_tensor()).tolist() == [0, 1, 1, 2, 2]
    with pytest.raises(ShapeError, match="has 3 parts, got 2 values for them"):
        w.assign([[1.0, 1.0], [2.0, 2.0]])


@pytest.mark.needs("backend-cpu", "autodiff")
@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("shards", [1, 4, 7, 16])
def test_lookups_and_their_gradients_are_those_of_the_whole_table(strategy, shards):
    rng = np.random.default_rng(shards)
    table = rng.normal(size=(33, 5)).astype(np.float32)
    ids = rng.integers(0, 33, (6, 4))
    weights = rng.normal(size=(6, 4, 5)).astype(np.float32)
    whole = hr.Variable(table)
    # Where row i of the table is: in the order of the shards.
    order = (
        np.argsort(np.arange(33) % shards, kind="stable") if strategy == "mod" else np.arange(33)
    )
    parts = hr.get_variable(
        "w", initializer=hr.constant(table[order]), partitioner=hr.fixed_size_partitioner(shards)
    )
    expected = hr.nn.embedding_lookup(whole, ids)
    found = hr.nn.embedding_lookup(parts, ids, partition_strategy=strategy)
    slices = hr.gradients(hr.reduce_sum(found * weights), list(parts))
    assert all(isinstance(part, hr.IndexedSlices) for part in slices)
    dense = [hr.convert_to_tensor(part) for part in slices]
    wanted = hr.convert_to_tensor(hr.gradients(hr.reduce_sum(expected * weights), whole)[0])
    a, b, c, d = run_ready([expected, found, wanted, hr.concat(dense, 0)])
    assert a.tobytes() == b.tobytes()
    assert c[order].tobytes() == d.tobytes()


def test_parts_as_a_list():
    first = hr.create_partitioned_variables([10, 3], [3, 1], hr.zeros_initializer())
    again = hr.create_partitioned_variables([4], [2], hr.constant([1.0, 2.0, 3.0, 4.0]))
    named = hr.create_partitioned_variables([2, 3], [1, 3], hr.zeros_initializer(), name="q")
    assert [name for name, _ in described([*first, *again, *named])] == [
        *(f"PartitionedVariable/part_{i}" for i in range(3)),
        *(f"PartitionedVariable_1/part_{i}" for i in range(2)),
        *(f"q/part_{i}" for i in range(3)),
    ]
    for shape, slicing in (([10, 3], [3]), ([], [])):
        with pytest.raises(AttributeValueError, match="slicing must have a number for each axis"):
            hr.create_partitioned_variables(shape, slicing, hr.zeros_initializer())


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"variable_list": "w"}, DTypeError, "variable_list must be a list of variables, got 'w'"),
        ({"partitions": 2}, DTypeError, "partitions must be a list of integers, got 2"),
        ({"variable_list": []}, AttributeValueError, "needs at least one part"),
        ({"shape": [5]}, AttributeValueError, r"part of a variable of shape \[5\], but is one of"),
        ({"partitions": [0]}, AttributeValueError, "must return a positive number of parts"),
    ],
)
def test_variables_that_are_no_parts_are_refused(change, error, match):
    parts = list(hr.get_variable("w", [4], partitioner=TWO))
    given = {"shape": [4], "variable_list": parts, "partitions": [2], **change}
    with pytest.raises(error, match=match):
        hr.PartitionedVariable("w", dtype=hr.float32, **given)


def test_whole_variables_are_no_parts():
    with pytest.raises(AttributeValueError, match=r"must be a part of.*but does not say so"):
        hr.PartitionedVariable("w", [1], hr.float32, [hr.Variable([1.0])], [1])


def test_documents_keep_what_variables_are_parts_of(graph):
    hr.get_variable("w", [5, 2], partitioner=TWO)
    hr.Variable(1.0)
    text = graph.to_document()
    loaded = hr.Graph.from_document(text)
    specs = [v.save_slice_info and v.save_slice_info.spec for v in loaded.variables]
    assert specs == ["5 2 0,3:0,2", "5 2 3,2:0,2", None]
    assert loaded.to_document() == text
    for old, new in (("[0,0]", "[9,0]"), ("[0,0]", "[0]"), ('"offset"', '"ofset"')):
        assert old in text
        with pytest.raises(DocumentError, match=r"'part_of'|is no part of"):
            hr.Graph.from_document(text.replace(old, new, 1))


@pytest.mark.needs("backend-cpu", "autodiff", "train")
def test_optimizers_keep_the_slots_of_all_parts_as_one():
    w = hr.get_variable("w", [4, 2], initializer=hr.ones_initializer(), partitioner=TWO)
    optimizer = hr.train.MomentumOptimizer(0.1, 0.9)
    step = optimizer.minimize(hr.reduce_sum(hr.square(w)))
    slots = [optimizer.get_slot(part, "momentum") for part in w]
    assert [v.op.name for v in slots] == ["w/part_0/Momentum", "w/part_1/Momentum"]
    assert [v.save_slice_info.full_name for v in slots] == ["w/Momentum", "w/Momentum"]
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        for _ in range(2):
            session.run(step)
        np.testing.assert_allclose(session.run(w.as_tensor()), np.full((4, 2), 0.46), rtol=1e-6)


@pytest.mark.needs("backend-cpu", "autodiff", "train")
def test_layers_take_weights_in_parts():
    with hr.variable_scope("s", partitioner=TWO):
        y = hr.layers.dense(
            hr.ones([2, 4]),
            3,
            kernel_initializer=hr.ones_initializer(),
            kernel_regularizer=hr.reduce_sum,
        )
    assert len(hr.get_collection(hr.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert [v.op.name for v in hr.global_variables()] == [
        *(f"s/dense/kernel/part_{i}" for i in range(2)),
        *(f"s/dense/bias/part_{i}" for i in range(2)),
    ]
    assert run_ready(y).tolist() == [[4, 4, 4]] * 2
