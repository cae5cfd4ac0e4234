"""What a step is given may not fit what the program said of it, and compiled steps say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

CONFIGS = [hr.Config(executor="plain"), hr.Config(compile_after=0)]


def unknown(value: Any) -> hr.Tensor:
    """Return a tensor whose shape the program does not know, and a step does."""
    return hr.placeholder_with_default(np.asarray(value), None)


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "compiled"])
@pytest.mark.parametrize(
    "then",
    [lambda x: x, lambda x: x * 2, lambda x: hr.abs(x + 1)],
    ids=["alone", "a product", "several functions"],
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_a_shape_that_was_stated_is_checked_though_as_many_elements_are_there(
    config: hr.Config, then: Callable[[Any], Any], dtype: str
) -> None:
    x = hr.ensure_shape(unknown(np.array([3]).astype(dtype)), [])
    with (
        hr.Session(config=config) as session,
        pytest.raises(hr.errors.InvalidArgumentError, match=r"expected shape \[\], got \[1\]"),
    ):
        session.run(then(x))


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "compiled"])
def test_a_shape_that_was_stated_and_fits_is_passed_on(config: hr.Config) -> None:
    with hr.Session(config=config) as session:
        assert session.run(hr.ensure_shape(unknown([[3.0]]), [None, 1]) + 1).tolist() == [[4.0]]


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "compiled"])
@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "SYMMETRIC"])
def test_borders_of_nothing_are_of_as_many_axes_as_there_are(config: hr.Config, mode: str) -> None:
    with (
        hr.Session(config=config) as session,
        pytest.raises(hr.errors.InvalidArgumentError, match=r"must have shape \[1, 2\]"),
    ):
        session.run(hr.pad(unknown([3.0]), [[0, 0], [0, 0]], mode))


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "compiled"])
@pytest.mark.parametrize("index", [1, -2, (slice(None), slice(None)), (0, 0)])
def test_an_index_that_is_not_there_is_refused(config: hr.Config, index: Any) -> None:
    with (
        hr.Session(config=config) as session,
        pytest.raises(hr.errors.InvalidArgumentError, match="ind"),
    ):
        session.run(unknown([3.0])[index])


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "compiled"])
@pytest.mark.parametrize("axis", [-3, 2])
def test_an_axis_that_is_not_there_is_not_reversed(config: hr.Config, axis: int) -> None:
    with (
        hr.Session(config=config) as session,
        pytest.raises(hr.errors.InvalidArgumentError, match=f"axis {axis}"),
    ):
        session.run(hr.reverse(unknown([[1.0]]), [axis]))
