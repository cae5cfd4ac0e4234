"""What programs leave without a name is called what TensorFlow 1.15 calls it."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from tests.core.graph.tf_names import INPUTS, NAMES

CALLS = [line.split(" -> ") for line in NAMES.strip().splitlines()]

# Functions that end in an operation of their own name, made of several.
COMPOSITES = {
    "elu": lambda x, name: hr.nn.elu(x, name=name),
    "clip": lambda x, name: hr.clip_by_value(x, 0.0, 1.0, name=name),
    "norm": lambda x, name: hr.clip_by_norm(x, 1.0, name=name),
    "uniform": lambda x, name: hr.random_uniform([3], name=name),
    "loss": lambda x, name: hr.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x, name=name),
}


@pytest.mark.needs("autodiff", "train")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("call", "name"), CALLS, ids=[call for call, _ in CALLS])
def test_names_are_those_of_tensorflow(call: str, name: str) -> None:
    inputs: dict[str, Any] = {"T": hr}
    exec(INPUTS, inputs)
    result = eval(call, inputs)
    first = result[0] if isinstance(result, list | tuple) else result
    values = getattr(first, "values", first)
    assert (first if callable(values) else values).name == name


@pytest.mark.parametrize("function", COMPOSITES)
def test_a_composite_of_a_name_returns_the_tensor_of_that_name(function: str) -> None:
    x = hr.constant([0.5, 2.0])
    with hr.name_scope("tower"):
        made = [COMPOSITES[function](x, "out") for _ in range(2)]
    assert [tensor.name for tensor in made] == ["tower/out:0", "tower/out_1:0"]
    graph = hr.get_default_graph()
    assert graph.get_tensor_by_name("tower/out:0") is made[0]
    assert all(graph.get_operation_by_name(op.name) is op for op in graph.operations)


def test_a_composite_that_returns_what_it_was_given_leaves_it_its_name() -> None:
    with hr.name_scope("other"):
        x = hr.constant([1, 2], hr.int32, name="x")
    hr.saturate_cast(x, hr.int32)
    assert x.name == "other/x:0"
