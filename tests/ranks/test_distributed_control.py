"""Conditions and loops whose inside lies on several tasks run as they do on one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError

pytestmark = [
    pytest.mark.ranks(1, 3),
    pytest.mark.needs("backend-cpu"),
    pytest.mark.needs("autodiff"),
    pytest.mark.timeout(60),
]

PS0, PS1, WORKER = "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"
MANY = 10_000


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster with two ps and one worker, and a graph of the test's own."""
    with hr.Graph().as_default(), hr.dist.Cluster(ps=2) as formed:
        yield formed


def number(value: Any, device: str, name: str) -> Any:
    with hr.device(device):
        return hr.Variable(value, name=name)


def session(cluster: Any) -> Any:
    opened = hr.Session(cluster.target)
    opened.run(hr.global_variables_initializer())
    return opened


@pytest.mark.timeout(150)
def test_a_body_on_three_tasks_runs_as_often_as_it_should(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    a, b = number(1.0, PS0, "a"), number(0.5, PS1, "b")
    log = number(0, PS1, "log")
    n = hr.placeholder(hr.int32, [])

    def body(i: Any, x: Any) -> Any:
        with hr.device(PS0):
            y = x * 0.5 + a
        with hr.device(PS1), hr.control_dependencies([hr.assign_add(log, 1)]):
            z = y + b
        return i + 1, z

    with hr.device(WORKER):
        count, x = hr.while_loop(lambda i, x: i < n, body, [0, 0.0])
    with session(cluster) as s:
        done = 0
        for turns in (0, 1, 2, MANY):
            expected = np.float32(0)
            for _ in range(turns):
                expected = expected * np.float32(0.5) + np.float32(1) + np.float32(0.5)
            found = s.run([count, x], {n: turns})
            done += turns
            assert found[0] == turns
            np.testing.assert_allclose(found[1], expected, rtol=1e-6)
            assert s.run(log) == done


@pytest.mark.parametrize("home", [PS0, PS1, WORKER])
def test_any_task_can_be_the_home_of_a_loop(cluster: Any, home: str) -> None:
    if not cluster.is_chief:
        return

    def going(i: Any, x: Any) -> Any:
        with hr.device(PS1):
            return hr.reduce_sum(x) < 100.0

    def body(i: Any, x: Any) -> Any:
        with hr.device(PS0):
            y = x * 2.0
        with hr.device(WORKER):
            return i + 1, y + 1.0

    with hr.device(home):
        found = hr.while_loop(going, body, [0, np.array([1.0, 2.0], np.float32)])
    with session(cluster) as s:
        count, x = s.run(found)
    assert count == 5
    np.testing.assert_array_equal(x, [63, 95])


def test_values_of_one_edge_keep_their_order_whatever_their_size(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    sizes = hr.constant([40_000, 3, 0, 25_000, 1])

    def body(i: Any, total: Any) -> Any:
        with hr.device(PS0):
            values = hr.fill([sizes[i]], hr.cast(i + 1, hr.float64))
        with hr.device(PS1):
            doubled = values * 2.0
        return i + 1, total * 10.0 + hr.reduce_sum(doubled)

    _, total = hr.while_loop(lambda i, t: i < 5, body, [0, np.float64(0)])
    expected = 0.0
    for i, size in enumerate([40_000, 3, 0, 25_000, 1]):
        expected = expected * 10 + 2.0 * size * (i + 1)
    with session(cluster) as s:
        assert [s.run(total) for _ in range(3)] == [expected] * 3


def test_state_on_several_tasks_changes_in_one_loop(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    a, b, c = (number(0, d, n) for d, n in ((PS0, "a"), (PS1, "b"), (WORKER, "c")))

    def body(i: Any) -> Any:
        changes = [hr.assign_add(v, k + i) for k, v in enumerate((a, b, c))]
        with hr.control_dependencies(changes):
            return i + 1

    loop = hr.while_loop(lambda i: i < 4, body, [0])
    with session(cluster) as s:
        assert s.run(loop) == 4
        assert s.run([a, b, c]) == [6, 10, 14]


def test_loops_in_loops_across_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    inside = number(0, PS1, "inside")

    def outer(i: Any, total: Any) -> Any:
        def inner(j: Any, t: Any) -> Any:
            with hr.device(PS1), hr.control_dependencies([hr.assign_add(inside, 1)]):
                more = t + hr.cast(j, hr.float32)
            with hr.device(PS0):
                return j + 1, more * 1.5

        with hr.device(PS0):
            start = total + 1.0
        _, total = hr.while_loop(lambda j, t: j < i, inner, [0, start])
        return i + 1, total

    x = hr.placeholder(hr.float32, [])
    _, total = hr.while_loop(lambda i, t: i < 5, outer, [0, x])
    (slope,) = hr.gradients(total, [x])

    def expected(value: float) -> float:
        for i in range(5):
            value += 1
            for j in range(i):
                value = (value + j) * 1.5
        return value

    with session(cluster) as s:
        np.testing.assert_allclose(s.run(total, {x: 0.25}), expected(0.25), rtol=1e-6)
        assert s.run(inside) == 10
        np.testing.assert_allclose(s.run(slope, {x: 0.25}), 1.5**10, rtol=1e-5)


def test_an_inner_loop_may_be_at_home_elsewhere(cluster: Any) -> None:
    if not cluster.is_chief:
        return

    def outer(i: Any, total: Any) -> Any:
        with hr.device(PS0):
            _, found = hr.while_loop(
                lambda j, t: j < i, lambda j, t: (j + 1, t * 2.0 + 1.0), [0, total]
            )
        with hr.device(PS1):
            return i + 1, found + 1.0

    x = hr.placeholder(hr.float32, [])
    _, total = hr.while_loop(lambda i, t: i < 4, outer, [0, x])
    (slope,) = hr.gradients(total, [x])
    value = 0.5
    for i in range(4):
        for _ in range(i):
            value = value * 2 + 1
        value += 1
    with session(cluster) as s:
        np.testing.assert_allclose(s.run([total, slope], {x: 0.5}), [value, 2.0**6], rtol=1e-6)


def test_branches_on_different_tasks_and_their_gradients(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    a, b = number(2.0, PS0, "a"), number(3.0, PS1, "b")
    took_a, took_b = number(0, PS0, "took_a"), number(0, PS1, "took_b")
    p, x = hr.placeholder(hr.bool, []), hr.placeholder(hr.float32, [])

    def on_true() -> Any:
        with hr.device(PS0), hr.control_dependencies([hr.assign_add(took_a, 1)]):
            return hr.sin(x * a)

    def on_false() -> Any:
        with hr.device(PS1), hr.control_dependencies([hr.assign_add(took_b, 1)]):
            return hr.cos(x * b)

    y = hr.cond(p, on_true, on_false)
    slopes = hr.gradients(y, [x, a, b])
    (second,) = hr.gradients(slopes[0], [x])
    with session(cluster) as s:
        np.testing.assert_allclose(s.run(y, {p: True, x: 0.5}), np.sin(1.0), rtol=1e-6)
        assert s.run([took_a, took_b]) == [1, 0]
        np.testing.assert_allclose(s.run(y, {p: False, x: 0.5}), np.cos(1.5), rtol=1e-6)
        assert s.run([took_a, took_b]) == [1, 1]
        found = s.run(slopes, {p: True, x: 0.5})
        np.testing.assert_allclose(found, [2 * np.cos(1), 0.5 * np.cos(1), 0], rtol=1e-5)
        found = s.run(slopes, {p: False, x: 0.5})
        np.testing.assert_allclose(found, [-3 * np.sin(1.5), 0, -0.5 * np.sin(1.5)], rtol=1e-5)
        found = s.run(second, {p: True, x: 0.5})
        np.testing.assert_allclose(found, -4 * np.sin(1), rtol=1e-5)


def test_a_condition_inside_a_loop_chooses_a_task_in_each_round(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    even, odd = number(1.5, PS0, "even"), number(0.5, PS1, "odd")

    def body(i: Any, x: Any) -> Any:
        def on_even() -> Any:
            with hr.device(PS0):
                return x * even

        def on_odd() -> Any:
            with hr.device(PS1):
                return x + odd

        return i + 1, hr.cond(hr.equal(i % 2, 0), on_even, on_odd)

    n, x = hr.placeholder(hr.int32, []), hr.placeholder(hr.float32, [])
    _, y = hr.while_loop(lambda i, x: i < n, body, [0, x])
    slopes = hr.gradients(y, [x, even, odd])
    with session(cluster) as s:
        for turns in (0, 1, 5, 40):
            value, by_x, by_even, by_odd = 1.0, 1.0, 0.0, 0.0
            for i in range(turns):
                if i % 2:
                    value, by_odd = value + 0.5, by_odd + 1
                else:
                    by_even = by_even * 1.5 + value
                    value, by_x, by_odd = value * 1.5, by_x * 1.5, by_odd * 1.5
            feed = {n: turns, x: 1.0}
            np.testing.assert_allclose(s.run(y, feed), value, rtol=1e-4)
            np.testing.assert_allclose(s.run(slopes, feed), [by_x, by_even, by_odd], rtol=1e-4)


def test_a_loop_in_a_branch_not_taken_runs_nowhere(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    logs = [number(0, device, f"log_{i}") for i, device in enumerate((PS0, PS1, WORKER))]
    p = hr.placeholder(hr.bool, [])

    def body(i: Any) -> Any:
        with hr.control_dependencies([hr.assign_add(log, 1) for log in logs]):
            return i + 1

    y = hr.cond(p, lambda: hr.while_loop(lambda i: i < 3, body, [0]), lambda: hr.constant(-1))
    with session(cluster) as s:
        assert s.run(y, {p: False}) == -1
        assert s.run(logs) == [0, 0, 0]
        assert s.run(y, {p: True}) == 3
        assert s.run(logs) == [3, 3, 3]


def test_an_error_in_a_part_of_a_body_ends_the_step(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    rows = hr.placeholder(hr.float32, None)

    def body(i: Any, x: Any) -> Any:
        with hr.device(PS0):
            y = x + 1.0
        with hr.device(PS1):
            product = hr.matmul(rows, hr.ones([3, 3]), name="product")
            return i + 1, y + hr.reduce_sum(product)

    _, y = hr.while_loop(lambda i, x: i < 3, body, [0, 0.0])
    with session(cluster) as s:
        for _ in range(3):
            with pytest.raises(ExecutionError, match="MatMul failed") as caught:
                s.run(y, {rows: np.ones((2, 2), np.float32)})
            assert "product" in str(caught.value)
            assert s.run(y, {rows: np.ones((1, 3), np.float32)}) == 30


def test_scans_and_arrays_across_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    w = number([0.5, 2.0], PS0, "w")
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)

    def step(state: Any, row: Any) -> Any:
        with hr.device(PS0):
            state = state * w
        with hr.device(PS1):
            return state + row

    states = hr.scan(step, hr.constant(rows), initializer=hr.ones([2]))
    (slope,) = hr.gradients(states, [w])
    expected, by_w, state, derivative = [], np.zeros(2), np.ones(2), np.zeros(2)
    for row in rows:
        derivative = derivative * [0.5, 2.0] + state
        state = state * [0.5, 2.0] + row
        expected.append(state)
        by_w = by_w + derivative
    with session(cluster) as s:
        np.testing.assert_allclose(s.run(states), expected, rtol=1e-6)
        np.testing.assert_allclose(s.run(slope), by_w, rtol=1e-5)


def test_a_function_called_twice_holds_a_loop_across_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return

    @hr.function
    def powers(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            with hr.device(PS0):
                z = y * x
            with hr.device(PS1):
                return i + 1, z + 0.0

        return hr.while_loop(lambda i, y: i < 3, body, [0, hr.ones([])])[1]

    x = hr.placeholder(hr.float32, [])
    y = powers(x) + powers(powers(x))
    (slope,) = hr.gradients(y, [x])
    with session(cluster) as s:
        found = s.run([y, slope], {x: 1.5})
    np.testing.assert_allclose(found, [1.5**3 + 1.5**9, 3 * 1.5**2 + 9 * 1.5**8], rtol=1e-5)
