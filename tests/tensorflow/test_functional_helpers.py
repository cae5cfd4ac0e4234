"""Conditions and loops of functions, by TensorFlow's private names."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace_tensorflow.helpers import functionals, functions

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


@pytest.mark.parametrize(
    ("value", "true"),
    [
        *[(True, True), (0, False), (2.5, True), ("", False), ("a", True)],
        *[([], False), ([0], True), ([[]], False), ([""], True), ([False], True)],
    ],
)
def test_branches_are_chosen_by_what_counts_as_true(value: Any, true: bool) -> None:
    found = [
        functionals.If(cond, [3.0], lambda x: x * 2, lambda x: [x * 3 + 1])
        for cond in (value, hr.placeholder_with_default(value, None))
    ]
    with hr.Session() as session:
        assert session.run(found) == [[6.0 if true else 10.0]] * 2


def test_loops_of_functions_go_on_while_something_counts_as_true() -> None:
    n = hr.placeholder(hr.int32, [])
    total = functionals.While([n, 0], lambda n, total: n, lambda n, total: (n - 1, total + n))
    rows = functionals.While(
        [n, hr.zeros([1])], lambda n, x: n > 0, lambda n, x: [n - 1, hr.concat([x, x], 0)]
    )
    with hr.Session() as session:
        assert session.run([total, rows[1]], {n: 0})[0] == [0, 0]
        (left, found), twice = session.run([total, rows[1]], {n: 3})
    assert (left, found) == (0, 6)
    assert twice.shape == (8,)


@pytest.mark.parametrize(("start", "limit", "delta"), [(1, 21, 1), (100, 0, -1), (3, 3, 1)])
def test_loops_of_functions_go_up_and_down(start: int, limit: int, delta: int) -> None:
    @functions.Defun(hr.int32, hr.float32)
    def body(i: Any, x: Any) -> Any:
        return x + hr.cast(i, hr.float32)

    (total,) = functionals.For(start, limit, delta, [2.0], body)
    with hr.Session() as session:
        assert session.run(total) == 2.0 + sum(range(start, limit, delta))


def test_loops_of_functions_have_gradients() -> None:
    x = hr.constant(2.0)
    scaled = functionals.For(0, 2, 1, [x], lambda i, x: x * x)
    chosen = functionals.If(x > 1.0, [x], lambda x: x * 3.0, lambda x: x)
    with hr.Session() as session:
        assert session.run(hr.gradients([*scaled, *chosen], x)) == [4 * 2.0**3 + 3.0]


def test_loops_over_numbers_may_only_count_them() -> None:
    assert functionals.For(1, 3, 1, [], lambda i: None) == []


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 10, -1), (10, 0, 1), (0, 10, 0)])
def test_loops_that_do_not_reach_their_limit_are_refused(
    start: int, limit: int, delta: int
) -> None:
    (total,) = functionals.For(start, limit, delta, [0.0], lambda i, x: x)
    with (
        hr.Session() as session,
        pytest.raises(hr.errors.InvalidArgumentError, match="steps of delta do not lead"),
    ):
        session.run(total)


def test_numbers_of_loops_are_scalars() -> None:
    with pytest.raises(ValueError, match="start must be a scalar"):
        functionals.For([0], 10, 1, [0.0], lambda i, x: x)
