"""Copies of operations: on other inputs, for themselves, and in the graphs of functions."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import GraphError
from headrace.extend.graphs import Function, copied, identity_after, inside, with_inputs
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.prune import extract


def chain():
    x = hr.placeholder(hr.float32, [2])
    with hr.device("/cpu:0"), hr.name_scope("layer"):
        y = hr.add(x, 1.0)
    return x, y, y.op.inputs[1]


def test_a_copy_does_what_the_operation_does_with_other_inputs():
    _, y, one = chain()
    z = hr.placeholder(hr.float32, [2])
    with hr.name_scope("again"):
        made = copied(y.op, [z, one], origin="for a test")
    assert made.type == y.op.type
    assert list(made.inputs) == [z, one]
    assert made.device_name == y.op.device_name
    assert made.site == y.op.site
    assert (made.name, made.origin) == ("again/Add", "for a test")
    assert made.outputs[0].spec == y.spec


def test_a_copy_waits_for_what_it_is_told_to_alone():
    x = hr.placeholder(hr.float32, [2])
    with hr.control_dependencies([hr.no_op()]):
        y = hr.negative(x)
    assert copied(y.op, [x]).control_inputs == ()
    last = hr.exp(y).op
    assert copied(y.op, [x], control_inputs=[last]).control_inputs == (last,)


def test_the_attributes_of_a_copy_may_differ():
    x = hr.placeholder(hr.float32, [2, 3])
    y = hr.concat([x, x], 0)
    made = copied(y.op, list(y.op.inputs), attrs={})
    assert dict(made.attrs) == dict(y.op.attrs)


def test_a_copy_in_a_function_takes_tensors_in():
    x, y, one = chain()
    function = Function("f", hr.get_default_graph())
    with inside(function):
        made = copied(y.op, [x, one])
    assert made.graph is function
    assert set(function.captures) == {x, one}


@pytest.mark.parametrize("waits", [True, False])
def test_only_a_copy_that_waits_is_kept_apart(waits):
    x, y, one = chain()
    arrived = hr.exp(y).op
    start = identity_after(x, [arrived] if waits else [])
    again = copied(y.op, [start if waits else x, one])
    step = dedupe(extract([x], [y, again.outputs[0], arrived.outputs[0]], []))
    assert len([op for op in step.graph.operations if op.type == "Add"]) == (2 if waits else 1)


def test_an_identity_goes_where_another_operation_is():
    x, y, _ = chain()
    made = identity_after(x, [], like=y.op).op
    assert made.colocated_with == (y.op,)
    assert made.device_name == y.op.device_name
    assert identity_after(y, []).op.device_name == y.op.device_name


def test_looking_at_an_operation_with_other_inputs_adds_nothing():
    x, y, one = chain()
    z = hr.placeholder(hr.float32, [2])
    before = len(hr.get_default_graph())
    seen = with_inputs(y.op, [z, one])
    assert len(hr.get_default_graph()) == before
    assert (list(seen.inputs), seen.outputs) == ([z, one], y.op.outputs)
    assert with_inputs(y.op, [x, one], [z]).outputs == (z,)


def test_the_graph_of_a_copy_does_not_take_in_tensors_of_others():
    _, y, one = chain()
    with hr.Graph().as_default(), pytest.raises(GraphError, match="belongs to another graph"):
        copied(y.op, [y, one])


@pytest.mark.parametrize("draws", [True, False])
def test_a_function_with_parameters_holds_state_only_if_something_in_it_does(draws):
    x = hr.placeholder(hr.float32, [2])

    def body(k, h):
        return k + 1, h * (hr.random_uniform([2]) if draws else 2.0)

    _, y = hr.while_loop(lambda k, h: k < 3, body, [0, x])
    assert y.op.stateful == draws
