"""Specialisation: every shape follows from those of the inputs, and what asks for them is known."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.graph.spec import TensorSpec
from headrace.passes.specialize import specialize
from headrace.passes.step_graph import StepGraph, verify

pytestmark = pytest.mark.needs("backend-cpu")


def specialized(given: dict[hr.Tensor, list[int]], wanted: list[hr.Tensor]) -> StepGraph:
    """Return a program's graph for inputs of the given shapes."""
    from headrace.passes.evaluate import evaluate
    from headrace.plugins.host import host

    kernels = host().kernels
    graph = wanted[0].op.graph
    inputs = [(t, TensorSpec(t.dtype).with_shape(shape)) for t, shape in given.items()]
    step = specialize(
        graph.operations,
        inputs,
        wanted,
        lambda op, values: evaluate(op, values, kernels),
        lambda op: False,
    )
    verify(step)
    return step


def test_shapes_follow_from_the_inputs() -> None:
    x = hr.placeholder(hr.float32, [None, None])
    y = hr.matmul(x, x, transpose_b=True)
    z = hr.reduce_sum(hr.concat([y, y], 1), axis=0)
    step = specialized({x: [3, 4]}, [y, z])
    assert [t.shape.as_list() for t in step.fetches] == [[3, 3], [6]]


def test_what_asks_for_shapes_is_a_constant() -> None:
    x = hr.placeholder(hr.float32, [None, None])
    rows = hr.shape(x)[0]
    y = hr.reshape(hr.tile(x, [1, 2]), [rows * 2, -1])
    step = specialized({x: [3, 4]}, [y, rows * 2])
    assert step.fetches[0].shape.as_list() == [6, 4]
    assert step.fetches[1].op.type == "Const"
    assert step.fetches[1].op.attrs["value"] == 6
    # Its line is still that of the program.
    assert "test_specialize.py" in str(step.fetches[1].op.site)


def test_unknown_ranks_become_known() -> None:
    x = hr.placeholder(hr.float32)
    y = hr.reduce_mean(x, axis=-1) + hr.cast(hr.rank(x), hr.float32)
    step = specialized({x: [2, 5]}, [y])
    assert step.fetches[0].shape.as_list() == [2]


def test_what_depends_on_data_stays_unknown() -> None:
    x = hr.placeholder(hr.float32, [None])
    y = hr.boolean_mask(x, x > 0)
    step = specialized({x: [5]}, [y])
    assert step.fetches[0].shape.as_list() == [None]


def test_inputs_that_do_not_fit_are_refused() -> None:
    a, b = hr.placeholder(hr.float32, [None]), hr.placeholder(hr.float32, [None])
    with pytest.raises(hr.errors.ShapeError, match="broadcast"):
        specialized({a: [2], b: [3]}, [a + b])


def test_inputs_may_be_in_the_middle_of_a_program() -> None:
    x = hr.placeholder(hr.float32, [None])
    middle = hr.tanh(x)
    y = middle * 2.0
    step = specialized({middle: [7]}, [y])
    assert [op.type for op in step.graph.operations if op.type == "Tanh"] == []
    assert step.fetches[0].shape.as_list() == [7]


def test_the_values_agree_with_the_unspecialised_program() -> None:
    x = hr.placeholder(hr.float32, [None, None])
    y = hr.nn.softmax(hr.reshape(x, [-1, hr.shape(x)[0]]))
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    for executor in ("plan", "plain"):
        with hr.Session(config=hr.Config(executor=executor)) as session:
            found = session.run(y, {x: value})
        e = np.exp(value.reshape(3, 2))
        np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)
