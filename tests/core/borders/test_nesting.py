"""Functions, conditions and loops within each other: time that grows with them, and limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import GraphError
from headrace.extend.graphs import functions_in

pytestmark = pytest.mark.needs("autodiff", "backend-cpu")

Build = Callable[[Any], Any]


def nested_cond(depth: int, x: Any) -> Any:
    if depth == 0:
        return x * 1.5
    return hr.cond(x > -1e30, lambda: nested_cond(depth - 1, x * 1.01), lambda: x)


def nested_else(depth: int, x: Any) -> Any:
    if depth == 0:
        return hr.sin(x)
    return hr.cond(x > 1e30, lambda: x * 2.0, lambda: nested_else(depth - 1, x + 0.01))


def nested_both(depth: int, x: Any) -> Any:
    """Conditions whose other branch is one, too."""
    if depth == 0:
        return x * 1.5
    other = hr.cond(x > 0.0, lambda: x * 2.0, lambda: x)
    return hr.cond(x > -1e30, lambda: nested_both(depth - 1, x * 1.01), lambda: other)


def nested_case(depth: int, x: Any) -> Any:
    if depth == 0:
        return x * x
    deeper = [(x > -1e30, lambda: nested_case(depth - 1, x * 0.99))]
    return hr.case(deeper, default=lambda: x)


def nested_loop(depth: int, x: Any) -> Any:
    if depth == 0:
        return x * 1.5
    body = [lambda i, v: (i + 1, nested_loop(depth - 1, v * 1.01))]
    return hr.while_loop(lambda i, v: i < 1, body[0], [0, x])[1]


def nested_call(depth: int, x: Any) -> Any:
    @hr.function
    def call(v: Any) -> Any:
        return nested_call(depth - 1, v * 1.01) if depth else v * 1.5

    return call(x)


def nested_turns(depth: int, x: Any) -> Any:
    """Conditions in loops in conditions."""
    if depth == 0:
        return hr.sin(x)
    if depth % 2:
        return hr.cond(x > -1e30, lambda: nested_turns(depth - 1, x * 1.01), lambda: x)
    body = [lambda i, v: (i + 1, nested_turns(depth - 1, v * 1.01))]
    return hr.while_loop(lambda i, v: i < 1, body[0], [0, x])[1]


SHAPES: dict[str, Build] = {
    f.__name__: f
    for f in (
        nested_cond,
        nested_else,
        nested_both,
        nested_case,
        nested_loop,
        nested_call,
        nested_turns,
    )
}


def first_step(build: Build, depth: int, *, gradient: bool) -> tuple[float, Any]:
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [])
        y = build(depth, x)
        wanted = [y, *hr.gradients(y, x)] if gradient else [y]
        with hr.Session() as session:
            started = time.process_time()
            found = session.run(wanted, {x: 1.0})
            return time.process_time() - started, found


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_depth_costs_no_power_of_two(name: str) -> None:
    # Twice 2^14 visits of functions took longer than this by themselves.
    seconds, found = first_step(SHAPES[name], 14, gradient=True)
    assert seconds < 15
    assert np.all(np.isfinite(found))


@pytest.mark.slow  # a hundred levels, each compiled
def test_conditions_a_hundred_deep_have_gradients() -> None:
    seconds, found = first_step(nested_cond, 100, gradient=True)
    assert seconds < 60
    assert found == pytest.approx([1.5 * 1.01**100] * 2)


# What takes a power of two of the depth would not end.
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name",
    ["nested_cond", "nested_else", "nested_case", "nested_loop", "nested_call", "nested_turns"],
)
def test_thirty_deep_has_gradients(name: str) -> None:
    found = first_step(SHAPES[name], 30, gradient=True)[1]
    assert np.all(np.isfinite(found))


def chained(depth: int, wrap: Callable[[Any, Any], Any]) -> Any:
    """Return a function that calls another one inside of something, and so on."""

    @hr.function
    def first(x: Any) -> Any:
        return hr.sin(x)

    def after(inner: Any) -> Any:
        @hr.function
        def outer(x: Any) -> Any:
            return wrap(inner, x * 1.001)

        return outer

    function = first
    for _ in range(depth):
        function = after(function)
    return function


CHAINS: dict[str, Callable[[Any, Any], Any]] = {
    "call": lambda f, x: f(x),
    "branch": lambda f, x: hr.cond(x > -9.0, lambda: f(x), lambda: x),
    "other branch": lambda f, x: hr.cond(x > 9.0, lambda: x, lambda: f(x)),
    "loop": lambda f, x: hr.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, f(v)), [0, x])[1],
    "map_fn": lambda f, x: hr.map_fn(f, x[None])[0],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CHAINS)
def test_functions_within_anything_have_gradients(name: str) -> None:
    depth = 20
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor="plain")) as session:
        x = hr.placeholder(hr.float64, [])
        y = chained(depth, CHAINS[name])(x)
        found = session.run([y, *hr.gradients(y, x)], {x: 0.3})
    scale = 1.001**depth
    assert found == pytest.approx([np.sin(0.3 * scale), scale * np.cos(0.3 * scale)])


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("depth", [300, 1000])
def test_hundreds_of_functions_within_each_other_are_refused(name: str, depth: int) -> None:
    with hr.Graph().as_default():
        function = chained(depth, CHAINS[name])
        with pytest.raises(GraphError, match="nested too deep: Python calls no deeper") as refused:
            function(hr.placeholder(hr.float64, []))
        assert len(str(refused.value).splitlines()) <= 12


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_depth_beyond_python_is_refused(name: str) -> None:
    with pytest.raises(
        GraphError, match=r"nested too deep: Python calls no deeper than \d+ functions"
    ):
        first_step(SHAPES[name], 1000, gradient=False)


def test_recursion_of_a_program_itself_is_its_own() -> None:
    def endless(x: Any) -> Any:
        return endless(x)

    x = hr.placeholder(hr.float32, [])
    with pytest.raises(RecursionError):
        hr.cond(x > 0.0, lambda: endless(x), lambda: x)


# -- functions that call the one before twice


def twice(depth: int, calls: int = 2) -> Any:
    """Return a function that stands for ``calls ** depth`` calls of a sine."""

    @hr.function
    def first(x: Any) -> Any:
        return hr.sin(x)

    def after(inner: Any) -> Any:
        @hr.function
        def outer(x: Any) -> Any:
            return hr.add_n([inner(x + 0.1 * i) for i in range(calls)])

        return outer

    function = first
    for _ in range(depth):
        function = after(function)
    return function


def expected(depth: int, x: float, calls: int = 2) -> float:
    if not depth:
        return float(np.sin(x))
    return sum(expected(depth - 1, x + 0.1 * i, calls) for i in range(calls))


@pytest.mark.parametrize(("depth", "calls"), [(3, 2), (8, 2), (12, 2), (2, 20), (7, 3)])
def test_shared_functions_give_what_they_stand_for(depth: int, calls: int) -> None:
    with hr.Graph().as_default(), hr.Session(config=hr.Config(compile_after=100)) as session:
        x = hr.placeholder(hr.float64, [])
        y = twice(depth, calls)(x)
        started = time.process_time()
        assert session.run(y, {x: 0.3}) == pytest.approx(expected(depth, 0.3, calls))
        if depth < 9:
            assert session.explain(y).parts
        assert time.process_time() - started < 20


@pytest.mark.parametrize(("depth", "calls"), [(20, 2), (60, 2), (100, 2), (5, 30), (12, 4)])
def test_functions_that_multiply_beyond_the_limit_are_refused(depth: int, calls: int) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float64, [])
        y = twice(depth, calls)(x)
        refused = pytest.raises(GraphError, match=r"stands for \d+ operations, more than 1000000")
        with refused as caught:
            session.run(y, {x: 0.3})
        assert "test_nesting.py" in str(caught.value)
        with pytest.raises(GraphError, match="stands for"):
            session.explain(y)
        with pytest.raises(GraphError, match=r"stands for \d+ operations, more than 1000000"):
            hr.gradients(y, x)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("depth", "calls"), [(12, 2), (14, 2), (4, 9), (8, 3), (2, 50)])
def test_gradients_of_functions_that_multiply_within_the_limit(depth: int, calls: int) -> None:
    with hr.Graph().as_default(), hr.Session(config=hr.Config(compile_after=100)) as session:
        x = hr.placeholder(hr.float64, [])
        (slope,) = hr.gradients(twice(depth, calls)(x), x)
        near = expected(depth, 0.3 + 1e-6, calls) - expected(depth, 0.3 - 1e-6, calls)
        assert session.run(slope, {x: 0.3}) == pytest.approx(near / 2e-6, rel=1e-5)


@pytest.mark.parametrize("kind", ["draws", "reads"])
def test_gradients_of_what_multiplies_and_cannot_run_again_are_refused(kind: str) -> None:
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [])
        w = hr.Variable(1.0, dtype=hr.float64)
        factor = {"draws": lambda: hr.random_uniform([], dtype=hr.float64), "reads": w.value}[kind]
        function = hr.function(lambda v: v * factor())
        for _ in range(13):
            function = hr.function(lambda v, f=function: f(v) + f(v * 2.0))
        y = function(x)
        with pytest.raises(GraphError, match=r"more than 10000: functions that call another one"):
            hr.gradients(y, x)


def test_gradients_of_shared_functions_are_shared() -> None:
    with hr.Graph().as_default() as graph, hr.Session() as session:
        x = hr.placeholder(hr.float64, [])
        (slope,) = hr.gradients(twice(6)(x), x)
        names = [f.name for f in functions_in(graph) if "_grad" in f.name]
        assert len(names) == 7
        near = (expected(6, 0.3 + 1e-6) - expected(6, 0.3 - 1e-6)) / 2e-6
        assert session.run(slope, {x: 0.3}) == pytest.approx(near, rel=1e-6)
