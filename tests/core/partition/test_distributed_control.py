"""Conditions and loops over several devices of a process, and over several tasks in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.documents.document import dump
from headrace.errors import ExecutionError, PlacementError
from headrace.graph.function import functions_in
from headrace.graph.graph import Graph
from headrace.plugins.host import host, use_host
from headrace.session.prepare import place_and_partition, step_graph
from tests.solo_target import SOLO, TASKS

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.needs("autodiff")]

DEVICES = ("/cpu:0", "/cpu:1", "/cpu:2")


@pytest.fixture(autouse=True)
def _graph(monkeypatch):
    monkeypatch.setenv("HEADRACE_CPU_DEVICES", "3")
    with hr.Graph().as_default():
        yield


def local() -> Any:
    return hr.Session(config=hr.Config(verify=True))


def in_tasks() -> Any:
    with use_host(host().with_plugin("solo", "tests.solo_target")):
        return hr.Session(SOLO, config=hr.Config(verify=True))


Places = tuple[tuple[str, ...], Callable[[], Any]]


@pytest.fixture(
    params=["devices", pytest.param("tasks", marks=pytest.mark.needs("dist-mpi"))],
)
def places(request: pytest.FixtureRequest) -> Places:
    """Three places to run at, and what opens a session that has them."""
    return (DEVICES, local) if request.param == "devices" else (TASKS, in_tasks)


def counter(place: str, name: str) -> Any:
    with hr.device(place):
        return hr.Variable(0, name=name)


def test_a_loop_changes_state_in_three_places(places: Places) -> None:
    names, opened = places
    counters = [counter(name, f"count_{i}") for i, name in enumerate(names)]
    n = hr.placeholder(hr.int32, [])

    def body(i: Any) -> Any:
        with hr.control_dependencies([hr.assign_add(c, i + k) for k, c in enumerate(counters)]):
            return i + 1

    loop = hr.while_loop(lambda i: i < n, body, [0])
    with opened() as session:
        session.run(hr.global_variables_initializer())
        expected = np.zeros(3, int)
        for turns in (0, 1, 10, 1000):
            assert session.run(loop, {n: turns}) == turns
            expected += [sum(range(turns)) + k * turns for k in range(3)]
            assert session.run(counters) == list(expected)


@pytest.mark.parametrize("home", range(3))
def test_a_body_is_computed_in_three_places_from_any_home(places: Places, home: int) -> None:
    names, opened = places
    x = hr.placeholder(hr.float64, [None])

    def body(i: Any, y: Any) -> Any:
        for name in names:
            with hr.device(name):
                y = hr.sin(y) + 1.0
        return i + 1, y

    def going(i: Any, y: Any) -> Any:
        with hr.device(names[1]):
            return hr.reduce_sum(y) < 1e9

    with hr.device(names[home]):
        _, y = hr.while_loop(going, body, [0, x], maximum_iterations=4)
    (slope,) = hr.gradients(y, [x])
    value = np.array([0.5, 2.0])
    expected, product = value, np.ones(2)
    for _ in range(12):
        product = product * np.cos(expected)
        expected = np.sin(expected) + 1
    with opened() as session:
        found = session.run([y, slope], {x: value})
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], product)


def test_a_condition_changes_state_in_three_places(places: Places) -> None:
    names, opened = places
    counters = [counter(name, f"count_{i}") for i, name in enumerate(names)]
    p = hr.placeholder(hr.bool, [])

    def change(by: int) -> Any:
        with hr.control_dependencies([hr.assign_add(c, by) for c in counters]):
            return hr.constant(by)

    found = hr.cond(p, lambda: change(1), lambda: change(100))
    with opened() as session:
        session.run(hr.global_variables_initializer())
        assert [session.run(found, {p: p_value}) for p_value in (True, False, True)] == [1, 100, 1]
        assert session.run(counters) == [102] * 3


def test_conditions_in_conditions_take_one_way_only(places: Places) -> None:
    names, opened = places
    ways = [counter(name, f"way_{i}") for i, name in enumerate((*names, names[0]))]
    p, q = hr.placeholder(hr.bool, []), hr.placeholder(hr.bool, [])

    def way(i: int) -> Any:
        return hr.identity(hr.assign_add(ways[i], 1)) * 0 + i

    def inner(i: int) -> Any:
        return hr.cond(q, lambda: way(i), lambda: way(i + 1))

    chosen = hr.cond(p, lambda: inner(0), lambda: inner(2))
    with opened() as session:
        session.run(hr.global_variables_initializer())
        for i, (first, second) in enumerate(
            [(True, True), (True, False), (False, True), (False, False)]
        ):
            assert session.run(chosen, {p: first, q: second}) == i
            assert session.run(ways) == [1] * (i + 1) + [0] * (3 - i)


def test_what_a_branch_only_draws_or_returns_is_dead_where_it_is_not_taken(places: Places) -> None:
    names, opened = places
    p = hr.placeholder(hr.bool, [])

    def on_true() -> Any:
        with hr.device(names[1]):
            return hr.random_uniform([2], 1.0, 2.0), hr.constant(1)

    def on_false() -> Any:
        with hr.device(names[2]):
            return hr.zeros([3]), hr.constant(2)

    values, which = hr.cond(p, on_true, on_false)
    with opened() as session:
        found, number = session.run([values, which], {p: True})
        assert (found.shape, number) == ((2,), 1)
        assert found.min() >= 1
        found, number = session.run([values, which], {p: False})
        assert (found.shape, number) == ((3,), 2)


def test_a_loop_in_a_branch_not_taken_runs_nowhere(places: Places) -> None:
    names, opened = places
    counters = [counter(name, f"count_{i}") for i, name in enumerate(names)]
    p = hr.placeholder(hr.bool, [])

    def body(i: Any) -> Any:
        with hr.control_dependencies([hr.assign_add(c, 1) for c in counters]):
            return i + 1

    y = hr.cond(p, lambda: hr.while_loop(lambda i: i < 3, body, [0]), lambda: hr.constant(-1))
    with opened() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(y, {p: False}) == -1
        assert session.run(counters) == [0, 0, 0]
        assert session.run(y, {p: True}) == 3
        assert session.run(counters) == [3, 3, 3]


def test_a_loop_that_starts_from_a_dead_value_runs_nowhere(places: Places) -> None:
    names, opened = places
    counters = [counter(name, f"count_{i}") for i, name in enumerate(names)]
    p = hr.placeholder(hr.bool, [])
    off, on = hr.switch(hr.constant(0), p)

    def body(i: Any) -> Any:
        with hr.control_dependencies([hr.assign_add(c, 1) for c in counters]):
            return i + 1

    merged, _ = hr.merge([off, hr.while_loop(lambda i: i < 3, body, [on])])
    with opened() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(merged, {p: False}) == 0
        assert session.run(counters) == [0, 0, 0]
        assert session.run(merged, {p: True}) == 3
        assert session.run(counters) == [3, 3, 3]


def test_an_error_inside_names_the_operation_and_the_session_goes_on(places: Places) -> None:
    names, opened = places
    rows = hr.placeholder(hr.float32, None)

    def body(i: Any, x: Any) -> Any:
        with hr.device(names[1]):
            y = x + 1.0
        with hr.device(names[2]):
            return i + 1, y + hr.reduce_sum(hr.matmul(rows, hr.ones([3, 3]), name="product"))

    _, y = hr.while_loop(lambda i, x: i < 3, body, [0, 0.0])
    with opened() as session:
        for _ in range(3):
            with pytest.raises(ExecutionError, match="MatMul failed") as caught:
                session.run(y, {rows: np.ones((2, 2), np.float32)})
            assert "product" in str(caught.value)
            assert session.run(y, {rows: np.ones((1, 3), np.float32)}) == 30


def test_training_in_a_loop_of_steps(places: Places) -> None:
    names, opened = places
    with hr.device(names[1]):
        w = hr.Variable([1.0, -2.0], name="w")
    with hr.device(names[2]):
        b = hr.Variable(0.5, name="b")
    x = hr.constant([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
    goal = hr.constant([1.0, 2.0, 3.0])

    def body(i: Any) -> Any:
        error = hr.reduce_sum(x * w.value(), 1) + b.value() - goal
        by_w, by_b = hr.reduce_sum(error[:, None] * x, 0), hr.reduce_sum(error)
        with hr.control_dependencies([by_w, by_b]):
            changes = [hr.assign_add(w, by_w * -0.02), hr.assign_add(b, by_b * -0.02)]
        with hr.control_dependencies(changes):
            return i + 1

    loop = hr.while_loop(lambda i: i < 20, body, [0])
    xs, ys = np.array([[1, 2], [3, 4], [-1, 0.5]]), np.array([1.0, 2, 3])
    weights, offset = np.array([1.0, -2.0]), 0.5
    for _ in range(20):
        error = xs @ weights + offset - ys
        weights, offset = weights - 0.02 * xs.T @ error, offset - 0.02 * error.sum()
    with opened() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(loop) == 20
        np.testing.assert_allclose(session.run(w), weights, rtol=1e-4)
        np.testing.assert_allclose(session.run(b), offset, rtol=1e-4)


@pytest.mark.needs("dist-mpi")
def test_a_handle_that_something_passes_on_is_refused() -> None:
    from headrace.ops.state import assign_add_variable

    first, second = (counter(name, f"v_{i}") for i, name in enumerate(TASKS[1:]))
    passed = hr.switch(first.handle, hr.placeholder_with_default(True, []))[1]

    def changing(*changes: Any) -> Any:
        with hr.control_dependencies([change() for change in changes]):
            return hr.constant(1)

    def loop(*changes: Any) -> Any:
        return hr.while_loop(lambda i: i < 3, lambda i: i + changing(*changes), [0], name="loop")

    both = loop(lambda: assign_add_variable(passed, 1), lambda: hr.assign_add(second, 1))

    def elsewhere() -> Any:
        with hr.device(TASKS[2]):
            return hr.random_uniform([])

    spread = loop(lambda: assign_add_variable(passed, 1), elsewhere)
    with in_tasks() as session:
        with pytest.raises(PlacementError, match="must share a device") as caught:
            session.run(both)
        assert all(f"'{name}'" in str(caught.value) for name in ("v_0", "v_1", "loop/while"))
        with pytest.raises(PlacementError, match="use the variable or queue itself"):
            session.run(spread)


@pytest.mark.needs("dist-mpi")
def test_the_parts_of_a_loop_survive_as_documents() -> None:
    def body(i: Any, x: Any) -> Any:
        with hr.device(TASKS[1]):
            y = x * 2.0
        with hr.device(TASKS[2]):
            return i + 1, y + 1.0

    _, y = hr.while_loop(lambda i, x: i < 3, body, [0, 0.0])
    session = in_tasks()
    machine = session._runtime.machine()
    step, _ = step_graph([], [y], [], machine, session.config)
    parts = place_and_partition(step, machine, session.graph, {})
    loops = {}
    for device, graph in parts.items():
        text = dump(graph)
        again = Graph.from_document(text)
        assert dump(again) == text
        (loops[device.task_name],) = (op for op in again.operations if op.type == "While")
        effects = {f.name: [op.type for op in f.effects] for f in functions_in(again)}
        assert effects["_spread/while/while/body"]
        assert set(effects["_spread/while/while/body"]) == {"Send"}
    home = loops[DeviceName("worker", 0)]
    assert len(home.outputs) == 2
    assert {len(op.outputs) for op in loops.values()} == {0, 2}
    assert {op.attrs["run"] or op.name for op in loops.values()} == {"while/while"}
