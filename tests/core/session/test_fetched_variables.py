"""A variable that is fetched has the value that the step leaves, whatever changes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")


def assigned(v: hr.Variable) -> Any:
    return v.assign([5.0, 6.0])


def added(v: hr.Variable) -> Any:
    return v.assign_add([4.0, 4.0])


def from_itself(v: hr.Variable) -> Any:
    return v.assign(v.snapshot + 4.0)


def by_rows(v: hr.Variable) -> Any:
    return hr.scatter_update(v, [1, 0], [6.0, 5.0])


def in_a_branch(v: hr.Variable) -> Any:
    return hr.cond(v[0] > 0, lambda: v.assign_add([4.0, 4.0]), lambda: v.read_value())


def in_a_loop(v: hr.Variable) -> Any:
    def body(i: Any) -> Any:
        with hr.control_dependencies([v.assign_add([1.0, 1.0])]):
            return i + 1

    return hr.while_loop(lambda i: i < 4, body, [0])


def twice(v: hr.Variable) -> Any:
    with hr.control_dependencies([v.assign_add([3.0, 3.0])]):
        return v.assign_add([1.0, 1.0])


CHANGES = [assigned, added, from_itself, by_rows, in_a_branch, in_a_loop, twice]


@pytest.mark.parametrize("executor", ["plain", "plan"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_fetched_variable_has_the_value_that_the_step_leaves(
    graph: hr.Graph, change: Any, executor: Any
) -> None:
    v = hr.Variable([1.0, 2.0], name="v")
    u = hr.Variable(7.0)
    asked = change(v)
    fetches = [v, asked, "v:0", u]
    with hr.Session(config=hr.Config(executor=executor, compile_after=0)) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run(v.initializer)
            first, _, second, other = session.run(fetches)
            np.testing.assert_array_equal(first, [5.0, 6.0])
            np.testing.assert_array_equal(second, [5.0, 6.0])
            assert other == 7.0
        # What was fetched stays, whatever later steps do.
        session.run(v.assign([0.0, 0.0]))
        np.testing.assert_array_equal(first, [5.0, 6.0])


def test_what_the_step_computes_of_the_variable_before_stays(graph: hr.Graph) -> None:
    v = hr.Variable(2.0)
    square = v.snapshot * v.snapshot
    change = v.assign(square)
    with hr.Session() as session:
        session.run(v.initializer)
        assert session.run([v, square, change]) == [4.0, 4.0, 4.0]
        assert session.run([v, v.snapshot + 0.0]) == [4.0, 4.0]


def test_a_fed_variable_is_what_was_fed(graph: hr.Graph) -> None:
    v = hr.Variable(2.0)
    with hr.Session() as session:
        session.run(v.initializer)
        assert session.run([v, v.snapshot + 1.0], {v: 9.0}) == [9.0, 10.0]


def test_a_variable_is_fetched_with_its_initializer(graph: hr.Graph) -> None:
    v = hr.Variable(2.0)
    with hr.Session() as session:
        assert session.run([v, v.initializer]) == [2.0, None]


def test_a_fetched_variable_of_a_partial_run_is_read_in_its_piece(graph: hr.Graph) -> None:
    v = hr.Variable(2.0)
    x = hr.placeholder(hr.float32, [])
    change = v.assign_add(x)
    with hr.Session() as session:
        session.run(v.initializer)
        handle = session.partial_run_setup([change, v], [x])
        assert session.partial_run(handle, change, {x: 1.0}) == 3.0
        assert session.partial_run(handle, v) == 3.0
