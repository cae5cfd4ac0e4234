"""Functions that call one another in branches and loops: one trace for all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphError
from headrace.extend.graphs import functions_in

pytestmark = pytest.mark.needs("autodiff", "backend-cpu")

Call = Callable[[Any], Any]


def in_both(inner: Call, x: Any) -> Any:
    return hr.cond(x > 0.0, lambda: inner(x * 0.9), lambda: inner(x) + 1.0)


def in_cases(inner: Call, x: Any) -> Any:
    few = [(x > 2.0, lambda: inner(x * 0.5)), (x > 1.0, lambda: inner(x * 0.7))]
    return hr.case(few, default=lambda: inner(x * 0.9))


def in_loops(inner: Call, x: Any) -> Any:
    once = hr.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, inner(v * 0.9)), [0, x])[1]
    return hr.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, inner(v)), [0, once])[1]


def in_condition_and_body(inner: Call, x: Any) -> Any:
    """The condition calls it where the loop has ended at the first look only."""
    return hr.while_loop(
        lambda i, v: hr.cond(i < 1, lambda: True, lambda: inner(v) > 1e30),
        lambda i, v: (i + 1, hr.cond(v > 1e30, lambda: inner(v), lambda: v * 0.9)),
        [0, x],
    )[1]


def in_branches_and_loops(inner: Call, x: Any) -> Any:
    y = in_both(inner, x)
    return hr.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, inner(v)), [0, y])[1]


def in_a_branch_within_a_loop(inner: Call, x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return i + 1, hr.cond(v > 1e30, lambda: inner(v), lambda: inner(v * 0.9))

    return hr.while_loop(lambda i, v: i < 1, body, [0, x])[1]


WAYS = [in_both, in_cases, in_loops, in_branches_and_loops, in_a_branch_within_a_loop]


def chain(depth: int, way: Callable[[Call, Any], Any]) -> Call:
    """Return a function that calls another one in some way, which calls another one, and so on."""
    functions = [hr.function(lambda x: hr.sin(x), name="first")]
    for i in range(depth):
        inner = functions[-1]
        functions.append(hr.function(lambda x, f=inner: way(f, x), name=f"f{i}"))
    return functions[-1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("way", WAYS)
def test_thirty_deep_costs_no_power_of_two(way: Any, executor: str) -> None:
    with hr.Graph().as_default() as graph, hr.Session(config=hr.Config(executor=executor)) as s:
        x = hr.placeholder(hr.float64, [])
        started = time.process_time()
        y = chain(30, way)(x)
        found = s.run(y, {x: 1.0})
        # Less than a second by itself.
        assert time.process_time() - started < 10
        assert len(functions_in(graph)) < 30 * 8
    assert found == pytest.approx(math.sin(0.9**30))


def test_a_condition_that_calls_deep_is_built_without_a_power_of_two() -> None:
    with hr.Graph().as_default() as graph:
        chain(30, in_condition_and_body)(hr.placeholder(hr.float64, []))
        assert len(functions_in(graph)) < 30 * 8
    with hr.Graph().as_default(), hr.Session() as s:
        found = s.run(chain(3, in_condition_and_body)(hr.constant(1.0, hr.float64)))
    assert found == pytest.approx(0.9)


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_functions_in_branches_and_loops(way: Any, executor: str) -> None:
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor=executor)) as s:
        x = hr.placeholder(hr.float64, [])
        y = chain(3, way)(x)
        found = s.run([y, *hr.gradients(y, x)], {x: 0.8})
    inner = 0.9**3
    assert found == pytest.approx([math.sin(0.8 * inner), inner * math.cos(0.8 * inner)])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("way", "executor"), [*((w, "plain") for w in WAYS), (in_both, "plan")])
def test_gradients_through_twenty_cost_no_power_of_two(way: Any, executor: str) -> None:
    with hr.Graph().as_default() as graph, hr.Session(config=hr.Config(executor=executor)) as s:
        x = hr.placeholder(hr.float64, [])
        y = chain(20, way)(x)
        started = time.process_time()
        found = s.run([y, *hr.gradients(y, x)], {x: 0.8})
        # One or two seconds by themselves: the first levels keep what they compute.
        assert time.process_time() - started < 60
        assert sum(map(len, functions_in(graph))) < 100_000
    inner = 0.9**20
    assert found == pytest.approx([math.sin(0.8 * inner), inner * math.cos(0.8 * inner)])


def _deep(first: Call, depth: int = 10, way: Callable[[Call, Any], Any] = in_both) -> Call:
    """Return a function of which more would be kept than may be."""
    functions = [hr.function(first, name="first")]
    for i in range(depth):
        inner = functions[-1]
        functions.append(hr.function(lambda x, f=inner: way(f, x), name=f"f{i}"))
    return functions[-1]


def _read(w: Any) -> Call:
    return lambda v: v * w


def _drawn(w: Any) -> Call:
    del w
    return lambda v: v * hr.random_uniform([], dtype=hr.float64)


def _changed(w: Any) -> Call:
    return lambda v: v * w.assign_add(1.0)


def _called(w: Any) -> Call:
    del w
    return lambda v: hr.py_func(lambda a: a, [v], hr.float64) * v


def _asserted(w: Any) -> Call:
    def call(v: Any) -> Any:
        with hr.control_dependencies([hr.Assert(v > w, [v])]):
            return v * 2.0

    return call


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("kind", "depth", "most"),
    [(_read, 14, 10000), *((kind, 11, 1000) for kind in (_drawn, _changed, _called, _asserted))],
)
def test_what_cannot_run_again_is_refused_where_too_much_were_kept(
    kind: Any, depth: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most < 10000:
        monkeypatch.setattr("headrace_autodiff.backward._MOST_SAVED", most)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [])
        w = hr.Variable(2.0, dtype=hr.float64)
        y = _deep(kind(w), depth)(x)
        match = f"tensors from inside of it, more than {most}:"
        with pytest.raises(GraphError, match=match) as found:
            hr.gradients(y, x)
    assert len(str(found.value).splitlines()) <= 12


def test_the_gradient_of_a_variable_that_is_an_argument_of_deep_functions() -> None:
    def pair(inner: Call, xw: Any) -> Any:
        x, w = hr.unstack(xw)
        a = lambda: inner(hr.stack([x * 0.9, w]))  # noqa: E731
        return hr.cond(x > 0.0, a, lambda: inner(xw))

    with hr.Graph().as_default(), hr.Session() as s:
        w = hr.Variable(3.0, dtype=hr.float64)
        x = hr.placeholder(hr.float64, [])
        y = _deep(lambda xw: hr.reduce_prod(xw), 10, pair)(hr.stack([x, w]))
        s.run(w.initializer)
        assert s.run(hr.gradients(y, w), {x: 2.0}) == pytest.approx([2.0 * 0.9**10])


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_second_gradients_of_what_runs_again(
    executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of less than ten levels, which would take seconds.
    monkeypatch.setattr("headrace_autodiff.rules.function._MOST_KEPT", 60)
    monkeypatch.setattr("headrace_autodiff.rules.function._FEW", 10)
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor=executor)) as s:
        x = hr.placeholder(hr.float64, [])
        y = _deep(lambda v: v * v * v, 6)(x)
        (first,) = hr.gradients(y, x)
        (second,) = hr.gradients(first, x)
        assert any("_again" in f.name for f in functions_in(hr.get_default_graph()))
        scale = 0.9 ** (3 * 6)
        assert s.run([first, second], {x: 2.0}) == pytest.approx([12 * scale, 12 * scale])


def test_what_runs_again_takes_tensors_from_outside() -> None:
    with hr.Graph().as_default() as graph, hr.Session() as s:
        outside = hr.placeholder(hr.float64, [])
        x = hr.placeholder(hr.float64, [])
        y = _deep(lambda v: v * outside)(x)
        wanted = [y, *hr.gradients(y, [x, outside])]
        assert any("_again" in f.name for f in functions_in(graph))
        scale = 0.9**10
        expected = [6.0 * scale, 3.0 * scale, 2.0 * scale]
        assert s.run(wanted, {x: 2.0, outside: 3.0}) == pytest.approx(expected)


def test_what_runs_again_yields_rows() -> None:
    def way(inner: Call, table: Any) -> Any:
        return hr.cond(outside > 0, lambda: inner(table), lambda: inner(table) * 2.0)

    with hr.Graph().as_default(), hr.Session() as s:
        outside = hr.placeholder(hr.int32, [])
        table = hr.placeholder(hr.float64, [4, 2])
        y = _deep(lambda t: hr.gather(t, [1, 1, 3]), 10, way)(table)
        (slope,) = hr.gradients(y, table)
        found = s.run(hr.convert_to_tensor(slope), {table: [[0.0, 1.0]] * 4, outside: 1})
        assert found.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
        found = s.run(hr.convert_to_tensor(slope), {table: [[0.0, 1.0]] * 4, outside: 0})
        assert found[3].tolist() == [2.0**10] * 2


def test_what_runs_again_in_a_branch_and_in_a_loop_of_the_program() -> None:
    with hr.Graph().as_default(), hr.Session() as s:
        x = hr.placeholder(hr.float64, [])
        deep = _deep(lambda v: v * v)
        body = lambda i, v: (i + 1, hr.cond(v > 1e30, lambda: v, lambda: deep(v)))  # noqa: E731
        y = hr.while_loop(lambda i, v: i < 2, body, [0, x])[1]
        a = 0.9**20
        # Twice, squared and made smaller: ((x a)^2 a)^2.
        wanted = [y, *hr.gradients(y, x)]
        assert s.run(wanted, {x: 2.0}) == pytest.approx([16.0 * a**3, 32.0 * a**3])


def test_large_functions_that_repeat_little_keep_what_they_compute() -> None:
    def large(v: Any) -> Any:
        for _ in range(300):
            v = hr.sin(v)
        return v

    with hr.Graph().as_default() as graph, hr.Session() as s:
        x = hr.placeholder(hr.float64, [])
        y = hr.function(large)(x)
        (slope,) = hr.gradients(y, x)
        assert not any("_again" in f.name for f in functions_in(graph))
        assert 0.0 < s.run(slope, {x: 0.8}) < 1.0


def test_what_a_function_takes_from_outside_is_handed_to_all_its_calls() -> None:
    with hr.Graph().as_default(), hr.Session() as s:
        outside = hr.placeholder(hr.float64, [])
        x = hr.placeholder(hr.float64, [])
        inner = hr.function(lambda v: v * outside, name="inner")
        middle = hr.function(lambda v: in_both(inner, v), name="middle")
        y = in_both(middle, x)
        held = [f.name for f in functions_in(hr.get_default_graph())]
        wanted = [y, *hr.gradients(y, [x, outside])]
        assert s.run(wanted, {x: 2.0, outside: 3.0}) == pytest.approx([4.86, 2.43, 1.62])
        assert s.run(wanted, {x: -2.0, outside: 3.0}) == pytest.approx([-4.0, 3.0, -2.0])
    assert sum("inner" in name for name in held) == 1


def test_a_function_of_tensors_of_a_branch_stays_in_the_branch() -> None:
    with hr.Graph().as_default(), hr.Session() as s:
        x = hr.placeholder(hr.float64, [])
        taken: list[Any] = []
        inner = hr.function(lambda v: v * taken[-1], name="inner")

        def branch(factor: float) -> Any:
            taken.append(x + factor)
            return inner(x) + inner(x)

        y = hr.cond(x > 0.0, lambda: branch(1.0), lambda: branch(2.0))
        wanted = [y, *hr.gradients(y, x)]
        assert s.run(wanted, {x: 3.0}) == pytest.approx([24.0, 14.0])
        assert s.run(wanted, {x: -3.0}) == pytest.approx([6.0, -8.0])


def test_a_function_in_both_branches_changes_one_variable() -> None:
    with hr.Graph().as_default(), hr.Session() as s:
        v = hr.Variable(1.0)
        add = hr.function(lambda by: v.assign_add(by) * 1.0, name="add")
        p = hr.placeholder(hr.bool, [])
        y = hr.cond(p, lambda: add(hr.constant(2.0)), lambda: add(hr.constant(5.0)))
        s.run(v.initializer)
        assert [s.run(y, {p: True}), s.run(y, {p: False}), s.run(v)] == [3.0, 8.0, 8.0]


def test_a_function_is_traced_anew_on_another_device() -> None:
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [])
        inner = hr.function(lambda v: hr.sin(v), name="inner")
        with hr.device("/cpu:0"):
            first = inner(x)
        second = inner(x)
        third = inner(x)
    functions = [t.op.attrs["function"] for t in (first, second, third)]
    assert functions[0] is not functions[1]
    assert functions[1] is functions[2]
    asked = [[op.device for op in f.operations if op.type == "Sin"] for f in functions[:2]]
    assert asked == [["/device:cpu:0"], [""]]
