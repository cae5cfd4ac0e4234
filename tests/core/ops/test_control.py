"""Groups and tuples: waiting for many things at once."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, DTypeError

pytestmark = pytest.mark.needs("backend-cpu")


def run(*fetches):
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        return [session.run(fetch) for fetch in fetches]


def test_a_group_waits_for_what_structures_hold():
    counts = [hr.Variable(0) for _ in range(4)]
    one, two, three, four = (v.assign_add(1) for v in counts)
    rows = hr.IndexedSlices(two, hr.constant(0))
    done = hr.group([one, (rows,)], {"a": three, "b": [four.op]}, None)
    _, found = run(done, counts)
    assert found == [1, 1, 1, 1]


def test_a_group_of_nothing():
    assert run(hr.group(), hr.group([], None)) == [None, None]


def test_a_group_of_what_is_no_node():
    with pytest.raises(
        ArgumentTypeError, match="expected an operation, tensor or variable, got 'x'"
    ):
        hr.group("x")


def test_a_tuple_keeps_slices_operations_and_none():
    count = hr.Variable(0)
    act = count.assign_add(1).op
    rows = hr.IndexedSlices(hr.constant([1.0]), hr.constant([2]))
    found = hr.tuple([hr.constant(1.0), None, rows, act])
    assert found[1] is None
    assert isinstance(found[2], hr.IndexedSlices)
    assert isinstance(found[3], hr.Operation)
    value, values, indices, _, counted = run(
        found[0], found[2].values, found[2].indices, found[3], count
    )
    assert (value, values, indices, counted) == (1.0, [1.0], [2], 4)


def test_a_tuple_waits_for_control_inputs():
    count = hr.Variable(0)
    (one,) = hr.tuple([1.0], control_inputs=[count.assign_add(1)])
    assert run(one, count) == [1.0, 1]


@pytest.mark.parametrize("tensors", [[], [None]])
def test_a_tuple_of_nothing(tensors):
    with pytest.raises(DTypeError, match="at least one tensor"):
        hr.tuple(tensors)


@pytest.mark.parametrize("config", [hr.Config(executor="plain"), hr.Config(compile_after=0)])
def test_what_waits_for_others_is_of_the_kind_that_it_was(config):
    v = hr.Variable(1.0)
    rows = hr.IndexedSlices(hr.constant([1.0, 2.0]), hr.constant([0, 3]))
    with hr.device("/cpu:0"):
        w = hr.Variable(2.0)
    waiting = [hr.with_dependencies([v.assign(5.0)], x) for x in (rows, v, w)]
    assert isinstance(waiting[0], hr.IndexedSlices)
    assert [t.op.device for t in waiting[1:]] == ["", w.op.device]
    for tensor, expected in zip(waiting, ([1.0, 2.0], 5.0, 2.0), strict=True):
        with hr.Session(config=config) as session:
            session.run(hr.global_variables_initializer())
            found = session.run(tensor)
            assert np.array_equal(getattr(found, "values", found), expected)
            assert session.run(v) == 5.0
