"""Gradients through switch and merge: alive exactly where the values are."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def both(fetches: Any, pred: hr.Tensor) -> list[Any]:
    """Return what is fetched where the predicate is false, and where it is true."""
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        return [session.run(fetches, {pred: value}) for value in (False, True)]


def test_each_branch_has_its_own_derivative() -> None:
    pred = hr.placeholder(hr.bool, [])
    x = hr.constant(3.0)
    if_false, if_true = hr.switch(x, pred)
    y = hr.merge([if_false * if_false, if_true * 5])[0] * 2
    assert both(hr.gradients(y, x), pred) == [[12], [10]]


def test_branches_that_use_no_forward_value_in_their_gradient() -> None:
    """The gradients of these branches would be alive in every step if nothing confined them."""
    pred = hr.placeholder(hr.bool, [])
    x = hr.constant(3.0)
    if_false, if_true = hr.switch(x, pred)
    y = hr.merge([-if_false, hr.identity(if_true)])[0]
    assert both(hr.gradients(y, x), pred) == [[-1], [1]]


def test_one_branch_without_x_gives_zero() -> None:
    pred = hr.placeholder(hr.bool, [])
    x, c = hr.constant(3.0), hr.constant(1.0)
    y = hr.merge([hr.switch(c, pred)[0], hr.switch(x, pred)[1] * 4])[0]
    assert both(hr.gradients(y, x), pred) == [[0], [4]]


def test_a_branch_that_is_not_merged() -> None:
    pred = hr.placeholder(hr.bool, [])
    x = hr.constant(3.0)
    y = hr.switch(x, pred)[1] * 4
    assert both(hr.gradients(y, x), pred) == [[0], [4]]
    assert both(hr.gradients(y, x, grad_ys=2.0), pred) == [[0], [8]]


def test_a_variable_used_inside_a_branch() -> None:
    """It is read outside, and has a gradient, zero, when the branch does not run."""
    pred = hr.placeholder(hr.bool, [])
    x, v = hr.constant([[3.0]]), hr.Variable([[2.0], [2.0]])
    if_false, if_true = hr.switch(x, pred)
    y = hr.merge([hr.matmul(v, if_false), if_true * [[1.0], [1.0]]])[0]
    (grad,) = hr.gradients(y, v)
    assert [g.tolist() for g in both(grad, pred)] == [[[3], [3]], [[0], [0]]]


def test_a_variable_read_inside_a_branch() -> None:
    pred = hr.placeholder(hr.bool, [])
    x, v = hr.constant(3.0), hr.Variable(2.0)
    if_false, if_true = hr.switch(x, pred)
    with hr.control_dependencies([if_true.op]):
        pass
    with hr.control_dependencies([hr.identity(if_true)]):
        read = v.value()
    y = hr.merge([if_false, read * 7])[0]
    assert both(hr.gradients(y, v), pred) == [[0], [7]]


def test_rows_gathered_inside_a_branch() -> None:
    pred = hr.placeholder(hr.bool, [])
    ids, v = hr.constant([1]), hr.Variable([1.0, 2.0])
    rows = hr.gather(v, hr.switch(ids, pred)[1])
    y = hr.merge([hr.switch(hr.constant([0.0]), pred)[0], rows])[0]
    (grad,) = hr.gradients(y, v)
    assert [g.tolist() for g in both(hr.convert_to_tensor(grad), pred)] == [[0, 0], [0, 1]]


def test_nested_branches() -> None:
    outer, inner = hr.placeholder(hr.bool, []), hr.placeholder(hr.bool, [])
    x, w = hr.constant(3.0), hr.constant(2.0)
    low, high = hr.switch(x, outer)
    _, predicate = hr.switch(inner, outer)
    a, b = hr.switch(high, predicate)
    chosen = hr.merge([a * w, b * b * w])[0]
    y = hr.merge([low, chosen])[0] + w
    grads = hr.gradients(y, [x, w])
    with hr.Session() as session:
        got = {
            (o, i): session.run(grads, {outer: o, inner: i})
            for o in (False, True)
            for i in (False, True)
        }
    assert got == {
        (False, False): [1, 1],
        (False, True): [1, 1],
        (True, False): [2, 4],
        (True, True): [12, 10],
    }


def test_second_derivatives_through_branches() -> None:
    pred = hr.placeholder(hr.bool, [])
    x = hr.constant(3.0)
    if_false, if_true = hr.switch(x, pred)
    y = hr.merge([if_false * if_false, if_true * if_true * if_true])[0]
    (first,) = hr.gradients(y, x)
    second = hr.gradients(first * x, x)
    assert both(second, pred) == [[12], [81]]


def test_shapes_that_only_steps_know() -> None:
    pred = hr.placeholder(hr.bool, [])
    x = hr.placeholder(hr.float32, [None])
    y = hr.merge([hr.switch(hr.constant([0.0]), pred)[0], hr.switch(x, pred)[1] * 2])[0]
    (grad,) = hr.gradients(y, x)
    with hr.Session() as session:
        assert session.run(grad, {x: [1.0, 2.0], pred: False}).tolist() == [0, 0]
        assert session.run(grad, {x: [1.0, 2.0], pred: True}).tolist() == [2, 2]


def test_the_index_of_a_merge_has_no_gradient() -> None:
    pred = hr.placeholder(hr.bool, [])
    x = hr.constant(3.0)
    index = hr.merge(list(hr.switch(x, pred)))[1]
    assert hr.gradients(hr.cast(index, hr.float32), x) == [None]
