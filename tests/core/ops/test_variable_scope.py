"""Variables that are found by name, and the initializers that they start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
)

pytestmark = pytest.mark.needs("backend-cpu")


def values(*variables: hr.Variable) -> list[Any]:
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        return list(session.run(list(variables)))


def test_names_come_from_variable_scopes_not_from_name_scopes() -> None:
    with hr.name_scope("names"), hr.variable_scope("outer"):
        v = hr.get_variable("v", [2])
        with hr.variable_scope("inner") as inner:
            w = hr.get_variable("w", [1])
            x = hr.constant(1.0, name="x")
    assert (v.name, w.name, x.name) == ("outer/v:0", "outer/inner/w:0", "names/outer/inner/x:0")
    assert (inner.name, inner.original_name_scope) == ("outer/inner", "names/outer/inner/")
    assert hr.get_variable_scope().name == ""


def test_variables_are_shared_where_the_scope_reuses() -> None:
    with hr.variable_scope("a"):
        v = hr.get_variable("v", [2])
    with hr.variable_scope("a", reuse=True):
        assert hr.get_variable("v", [2]) is v
        with hr.variable_scope("b"):
            assert hr.get_variable_scope().reuse is True
    with hr.variable_scope("a", reuse=hr.AUTO_REUSE):
        assert hr.get_variable("v", [2]) is v
        new = hr.get_variable("new", [])
        assert hr.get_variable("new", []) is new
    with hr.variable_scope("a") as scope:
        scope.reuse_variables()
        assert hr.get_variable("v") is v
    with hr.variable_scope(scope, reuse=True):
        assert hr.get_variable("v") is v


def test_entering_a_scope_again_opens_a_new_name_scope() -> None:
    with hr.variable_scope("a") as scope:
        pass
    with hr.variable_scope(scope):
        assert hr.constant(1.0, name="x").name == "a_1/x:0"
        assert hr.get_variable("v", []).name == "a/v:0"
    with hr.variable_scope(scope, auxiliary_name_scope=False):
        assert hr.constant(1.0, name="x").name == "x:0"


def test_default_names_are_made_unique() -> None:
    names = []
    for _ in range(2):
        with hr.variable_scope(None, "layer") as outer:
            names.append(outer.name)
            for _ in range(2):
                with hr.variable_scope(None, "part") as inner:
                    names.append(inner.name)
    assert names == [
        *("layer", "layer/part", "layer/part_1"),
        *("layer_1", "layer_1/part", "layer_1/part_1"),
    ]


def test_scopes_hand_on_what_variables_get() -> None:
    with hr.variable_scope(
        "a",
        initializer=hr.ones_initializer(),
        regularizer=lambda v: 2.0 * hr.reduce_sum(v),
        dtype=hr.float64,
        constraint=hr.abs,
    ):
        v = hr.get_variable("v", [3])
        with hr.variable_scope("b", regularizer=hr.no_regularizer):
            w = hr.get_variable("w", [2], initializer=hr.zeros_initializer)
    assert (v.dtype, v.constraint, w.constraint) == (hr.float64, hr.abs, hr.abs)
    assert [x.tolist() for x in values(v, w)] == [[1.0] * 3, [0.0] * 2]
    losses = hr.get_collection(hr.GraphKeys.REGULARIZATION_LOSSES)
    assert [loss.name.rpartition("/")[0] for loss in losses] == ["a/v/Regularizer"]


def test_custom_getters_wrap_each_other() -> None:
    seen: list[str] = []

    def getter(label: str) -> Callable[..., Any]:
        def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            seen.append(f"{label} {name}")
            return getter(name, *args, **kwargs) * 2.0

        return get

    with (
        hr.variable_scope("a", custom_getter=getter("outer")),
        hr.variable_scope("b", custom_getter=getter("inner")),
    ):
        v = hr.get_variable("v", initializer=[1.0, 3.0])
    assert seen == ["inner a/b/v", "outer a/b/v"]
    assert [x.tolist() for x in values(v)] == [[4.0, 12.0]]


STARTS: dict[str, tuple[dict[str, Any], Any]] = {
    "value": ({"initializer": [1.0, 2.0]}, np.array([1, 2], "f")),
    "integers": ({"initializer": [1, 2]}, np.array([1, 2], np.int32)),
    "array": ({"initializer": np.array([1.0, 2.0])}, np.array([1.0, 2.0])),
    "function": ({"initializer": lambda: hr.constant([7.0])}, np.array([7], "f")),
    "of_shape": (
        {"shape": [2], "initializer": lambda shape, dtype=None: hr.ones(shape, dtype) * 3.0},
        np.array([3, 3], "f"),
    ),
    "of_partition": (
        {"shape": [1], "initializer": lambda shape, dtype, partition_info: hr.ones(shape, dtype)},
        np.ones(1, "f"),
    ),
    "zeros_of_integers": ({"shape": 2, "dtype": hr.int64}, np.zeros(2, np.int64)),
    "false": ({"shape": [2], "dtype": hr.bool}, np.zeros(2, bool)),
    "constant": (
        {"shape": [2, 2], "initializer": hr.constant_initializer([1, 2, 3])},
        np.array([[1, 2], [3, 3]], "f"),
    ),
    "number": (
        {"shape": [2], "dtype": hr.int32, "initializer": hr.constant_initializer(4)},
        np.array([4, 4], np.int32),
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_initial_values(name: str) -> None:
    arguments, expected = STARTS[name]
    (found,) = values(hr.get_variable("v", **arguments))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


RANDOM: dict[str, tuple[Callable[[], Any], float, float]] = {
    "uniform": (lambda: hr.random_uniform_initializer(-2.0, 4.0, seed=1), 1.0, 6 / 12**0.5),
    "normal": (lambda: hr.random_normal_initializer(1.0, 0.5, seed=1), 1.0, 0.5),
    "truncated": (lambda: hr.truncated_normal_initializer(0.0, 1.0, seed=1), 0.0, 0.8796),
    "unit": (lambda: hr.uniform_unit_scaling_initializer(seed=1), 0.0, (1 / 200) ** 0.5),
    "fan_in": (lambda: hr.variance_scaling_initializer(seed=1), 0.0, (1 / 200) ** 0.5),
    "fan_out": (
        lambda: hr.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=1),
        0.0,
        (2 / 300) ** 0.5,
    ),
    "untruncated": (
        lambda: hr.variance_scaling_initializer(distribution="untruncated_normal", seed=1),
        0.0,
        (1 / 200) ** 0.5,
    ),
    "glorot": (lambda: hr.glorot_uniform_initializer(seed=1), 0.0, (1 / 250) ** 0.5),
    "glorot_normal": (lambda: hr.glorot_normal_initializer(seed=1), 0.0, (1 / 250) ** 0.5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_initializers_have_their_moments(name: str) -> None:
    make, mean, deviation = RANDOM[name]
    (found,) = values(hr.get_variable("v", [200, 300], initializer=make()))
    assert found.dtype == np.float32
    assert found.mean() == pytest.approx(mean, abs=deviation * 0.03)
    assert found.std() == pytest.approx(deviation, rel=0.02)


def test_floating_variables_start_uniform_by_default() -> None:
    (found,) = values(hr.get_variable("v", [200, 300]))
    assert abs(found).max() == pytest.approx((6 / 500) ** 0.5, rel=1e-3)


def test_local_variables_are_listed_as_such() -> None:
    v = hr.get_local_variable("v", [2], initializer=hr.zeros_initializer())
    assert hr.local_variables() == [v]
    assert hr.global_variables() == hr.trainable_variables() == []


def shared(**arguments: Any) -> Any:
    hr.get_variable("v", [1])
    with hr.variable_scope("", reuse=True):
        return hr.get_variable("v", **arguments)


def enter(*args: Any, **kwargs: Any) -> None:
    with hr.variable_scope(*args, **kwargs):
        pass


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "twice": (
        lambda: [hr.get_variable("v", [1]) for _ in range(2)],
        GraphError,
        "exists already",
    ),
    "shape": (lambda: shared(shape=[2]), ShapeError, r"has shape \[1\], expected \[2\]"),
    "dtype": (lambda: shared(shape=[1], dtype=hr.int32), DTypeError, "to share it"),
    "no_shape": (lambda: hr.get_variable("v"), ShapeError, "fully known"),
    "unknown": (lambda: hr.get_variable("v", [None]), ShapeError, "fully known"),
    "value_and_shape": (
        lambda: hr.get_variable("v", [1], initializer=[1.0]),
        GraphError,
        "leave shape out",
    ),
    "value_of_dtype": (
        lambda: hr.get_variable("v", dtype=hr.float32, initializer=np.zeros(2)),
        DTypeError,
        "the initializer is float64",
    ),
    "partitioner": (
        lambda: hr.get_variable("v", [1], partitioner=lambda **_: [1, 1]),
        AttributeValueError,
        "returned 2 numbers",
    ),
    "no_name": (lambda: enter(None), ArgumentTypeError, "needs a name"),
    "odd_name": (lambda: enter(3), ArgumentTypeError, "VariableScope"),
    "odd_reuse": (lambda: enter("a", reuse="yes"), AttributeValueError, "AUTO_REUSE"),
    "default_reuse": (lambda: enter(None, "a", reuse=True), AttributeValueError, "made unique"),
    "mode": (lambda: hr.variance_scaling_initializer(mode="x"), AttributeValueError, "mode"),
    "scale": (lambda: hr.variance_scaling_initializer(0.0), AttributeValueError, "positive"),
    "kind": (lambda: hr.variance_scaling_initializer(distribution="x"), AttributeValueError, "one"),
    "integer": (lambda: hr.random_normal_initializer(dtype=hr.int32), DTypeError, "floating"),
    "too_many": (
        lambda: hr.constant_initializer([1, 2])([1]),
        ShapeError,
        "2 values",
    ),
    "verified": (
        lambda: hr.constant_initializer([1, 2], verify_shape=True)([2, 1]),
        ArgumentTypeError,
        "expected",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


def test_what_was_not_made_cannot_be_reused() -> None:
    with hr.variable_scope("a", reuse=True), pytest.raises(GraphError, match="there is no"):
        hr.get_variable("v", [1])
