"""Variables: what they keep, and that changes are atomic."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, ResourceError, UninitializedError
from headrace.ops.queue import fifo_queue
from headrace.ops.state import (
    assign_add_variable,
    assign_variable,
    read_variable,
    scatter_add_variable,
    scatter_sub_variable,
    scatter_update_variable,
    var_handle,
    variable_initialized,
)
from headrace.shapes import Shape


def handle(dtype=hr.float32, shape=None, name="v", container=""):
    return var_handle(dtype, Shape(shape), container, name)


def test_assigned_values_are_copies():
    h = handle(shape=[2])
    x = hr.placeholder(hr.float32, [2])
    source = np.array([1, 2], np.float32)
    with hr.Session() as session:
        session.run(assign_variable(h, x), {x: source})
        source[0] = 9
        read = session.run(read_variable(h))
        assert read.tolist() == [1, 2]
        read[0] = 7
        assert session.run(read_variable(h)).tolist() == [1, 2]


def test_old_values_stay_as_they_were_read():
    h = handle(shape=[])
    with hr.Session() as session:
        session.run(assign_variable(h, 1.0))
        before = read_variable(h)
        with hr.control_dependencies([before]):
            after = assign_add_variable(h, 2.0)
        assert session.run([before, after]) == [1, 3]


@pytest.mark.parametrize("dtype", [hr.float16, hr.bfloat16, hr.int8, hr.uint64, hr.complex64])
def test_changes_keep_dtype_and_shape(dtype):
    start = np.array([[1, 2], [3, 4], [5, 6]]).astype(dtype.numpy)
    h = handle(dtype, [3, 2])
    rows, ones = [2, 0, 2], np.ones((3, 2), dtype.numpy)
    steps = [
        (assign_variable(h, start), [[1, 2], [3, 4], [5, 6]]),
        (assign_add_variable(h, start), [[2, 4], [6, 8], [10, 12]]),
        (scatter_add_variable(h, rows, ones), [[3, 5], [6, 8], [12, 14]]),
        (scatter_sub_variable(h, rows, ones), [[2, 4], [6, 8], [10, 12]]),
        (scatter_update_variable(h, [1], ones[:1]), [[2, 4], [1, 1], [10, 12]]),
    ]
    with hr.Session() as session:
        for change, expected in steps:
            for value in (session.run(change), session.run(read_variable(h))):
                assert value.dtype == dtype.numpy
                assert value.tolist() == expected
                change = read_variable(h)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_rows_of_halves_add_up_in_float32(dtype):
    h = handle(hr.as_dtype(dtype), [1, 1])
    updates = np.ones((3000, 1), dtype)
    with hr.Session() as session:
        session.run(assign_variable(h, np.zeros((1, 1), dtype)))
        total = session.run(scatter_add_variable(h, np.zeros(3000, np.int32), updates))
    assert float(total[0, 0]) == float(dtype(3000))


def test_scatter_of_vectors_scalars_and_nothing():
    vector, cube = handle(shape=[3], name="vector"), handle(shape=[2, 2, 2], name="cube")
    with hr.Session() as session:
        session.run(
            [assign_variable(vector, [0.0, 0, 0]), assign_variable(cube, hr.zeros([2] * 3))]
        )
        assert session.run(scatter_add_variable(vector, [1, 1], [1.0, 2])).tolist() == [0, 3, 0]
        assert session.run(scatter_add_variable(vector, 2, 5.0)).tolist() == [0, 3, 5]
        nothing = scatter_add_variable(vector, np.zeros(0, np.int32), np.zeros(0, np.float32))
        assert session.run(nothing).tolist() == [0, 3, 5]
        grid = scatter_update_variable(cube, [[1, 0]], np.ones((1, 2, 2, 2), np.float32))
        assert session.run(grid).sum() == 8


X = hr.float32


@pytest.mark.parametrize(
    ("build", "values", "match"),
    [
        (lambda h, x: assign_variable(h, x), [np.ones(3)], r"has shape \[2, 2\].*got shape \[3\]"),
        (
            lambda h, x: assign_add_variable(h, x),
            [np.ones((2, 1))],
            r"variable 'v' has shape \[2, 2\], expected a value of it, got shape \[2, 1\]",
        ),
        (
            lambda h, i, x: scatter_add_variable(h, i, x),
            [np.array([2]), np.ones((1, 2))],
            r"index 2 is out of range \[0, 2\) of the rows of variable 'v'",
        ),
        (
            lambda h, i, x: scatter_update_variable(h, i, x),
            [np.array([-1]), np.ones((1, 2))],
            r"index -1 is out of range \[0, 2\)",
        ),
        (
            lambda h, i, x: scatter_sub_variable(h, i, x),
            [np.array([0]), np.ones((1, 3))],
            r"updates must have shape \[1, 2\], got \[1, 3\]",
        ),
    ],
    ids=["assign", "assign_add", "above", "negative", "updates"],
)
def test_rejected_when_it_runs(build, values, match):
    h = handle(shape=[2, 2])
    arrays = [v.astype(np.int32 if v.dtype.kind == "i" else np.float32) for v in values]
    holders = [hr.placeholder(a.dtype) for a in arrays]
    with hr.Session() as session:
        session.run(assign_variable(h, np.ones((2, 2), np.float32)))
        with pytest.raises(ExecutionError, match=match):
            session.run(build(h, *holders), dict(zip(holders, arrays, strict=True)))
        assert session.run(read_variable(h)).tolist() == [[1, 1], [1, 1]]


def test_a_value_of_another_shape_where_that_is_allowed():
    h = handle()
    with hr.Session() as session:
        for value in ([1.0], [1.0, 2.0]):
            session.run(assign_variable(h, value, False))
            assert session.run(read_variable(h)).tolist() == value
        x = hr.placeholder(hr.float32)
        with pytest.raises(ExecutionError, match=r"has shape \[2\], expected a value of it"):
            session.run(assign_add_variable(h, x), {x: [1.0]})


def test_uninitialized():
    h = handle(shape=[1])
    with hr.Session() as session:
        assert not session.run(variable_initialized(h))
        for use in (read_variable(h), assign_add_variable(h, [1.0])):
            with pytest.raises(UninitializedError, match="not initialized: v; run"):
                session.run(use)
        session.run(assign_variable(h, [1.0]))
        assert session.run(variable_initialized(h))


def test_names_belong_to_one_kind_of_resource():
    container = "test_names_belong_to_one_kind_of_resource"
    h = handle(shape=[1], name="shared", container=container)
    queue = fifo_queue(1, (hr.float32,), (Shape([1]),), container, "shared")
    from headrace.ops.queue import queue_size

    with hr.Session() as session:
        session.run(assign_variable(h, [1.0]))
        with pytest.raises(ResourceError, match="declared in two ways: VarHandle and FIFOQueue"):
            session.run(queue_size(queue))


def test_strings_in_variables():
    h = handle(hr.string, [2])
    with hr.Session() as session:
        session.run(assign_variable(h, [b"a", b"b"]))
        changed = scatter_update_variable(h, [0], [b"c"])
        assert session.run(changed).tolist() == [b"c", b"b"]


@pytest.mark.parametrize("kind", ["whole", "rows"])
def test_concurrent_additions_all_count(kind):
    h = handle(hr.int64, [2])
    one = np.array([1, 1], np.int64)
    add = assign_add_variable(h, one) if kind == "whole" else scatter_add_variable(h, [0, 1], one)
    with hr.Session() as session:
        session.run(assign_variable(h, one - one))
        step = session.make_callable(add.op)

        def work():
            for _ in range(200):
                step()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run(read_variable(h)).tolist() == [1600, 1600]
