"""Creators of variables are called in TensorFlow 1.15.5's order, with its arguments."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError

ARGUMENTS = [
    *("aggregation", "caching_device", "collections", "constraint", "dtype", "expected_shape"),
    *("import_scope", "initial_value", "name", "shape", "synchronization", "trainable"),
    *("use_resource", "validate_shape", "variable_def"),
]


def creator(tag: str, calls: list[Any], **changes: Any) -> Any:
    def create(next_creator: Any, **kwargs: Any) -> Any:
        assert sorted(kwargs) == ARGUMENTS
        calls.append((tag, kwargs["name"], kwargs["trainable"]))
        return next_creator(**{**kwargs, **changes})

    return create


def test_the_innermost_is_called_first() -> None:
    calls: list[Any] = []
    with hr.variable_creator_scope(creator("out", calls)):
        with hr.variable_creator_scope(creator("in", calls, trainable=False)):
            assert not hr.Variable(1.0, name="a").trainable
            assert not hr.get_variable("b", [2]).trainable
            with hr.Graph().as_default():
                # A scope is one of its graph.
                assert hr.Variable(2.0).trainable
        hr.Variable(1.0, False)
    assert hr.Variable(1.0).trainable
    assert calls == [
        ("in", "a", None),
        ("out", "a", False),
        ("in", "b", True),
        ("out", "b", False),
        ("out", None, False),
    ]


def test_another_object_takes_the_place() -> None:
    with hr.variable_creator_scope(lambda next_creator, **kwargs: "mine"):
        assert hr.Variable(3.0) == "mine"


def test_a_creator_that_raises_leaves_nothing() -> None:
    def fail(next_creator: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no variables here")

    with (
        pytest.raises(RuntimeError, match="no variables here"),
        hr.variable_creator_scope(fail),
    ):
        hr.get_variable("v", [2])
    assert hr.global_variables() == []
    assert hr.get_variable("v", [2]).op_name == "v"


def test_only_functions_are_creators() -> None:
    with (
        pytest.raises(ArgumentTypeError, match="variable_creator must be a function"),
        hr.variable_creator_scope(3),  # type: ignore[arg-type]
    ):
        pass
