"""Gradients through distinct elements: each goes to the element that the result holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

CONFIGS = (hr.Config(executor="plain"), hr.Config(compile_after=0))


def gradient(function: Any, elements: list[float], *, fed: bool) -> list[float]:
    """Return the gradient of elements times 1, 10, 100 and so on; the same from both executors."""
    found = []
    for config in CONFIGS:
        with hr.Graph().as_default(), hr.Session(config=config) as session:
            array = np.array(elements, np.float32)
            x = hr.placeholder_with_default(array, None) if fed else hr.constant(array)
            y = function(x)
            weights = 10.0 ** hr.cast(hr.range(hr.size(y)), hr.float32)
            (made,) = hr.gradients(hr.reduce_sum(y * weights), x)
            found.append(session.run(made).tolist())
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("function", "elements", "expected"),
    [
        (lambda x: hr.unique(x).y, [1.0, 5.0, 3.0, 5.0], [1.0, 10.0, 100.0, 0.0]),
        (lambda x: hr.unique(x).y, [2.0, 2.0, 2.0], [1.0, 0.0, 0.0]),
        (lambda x: hr.unique(x, hr.int64).y, [4.0, 3.0, 4.0, 3.0], [1.0, 10.0, 0.0, 0.0]),
        (lambda x: hr.unique_with_counts(x).y, [1.0, 1.0, 0.0], [1.0, 0.0, 10.0]),
        (lambda x: hr.setdiff1d(x, [5.0]).out, [1.0, 5.0, 3.0, 1.0], [1.0, 0.0, 10.0, 100.0]),
        (lambda x: hr.setdiff1d(x, [1.0, 2.0]).out, [1.0, 2.0], [0.0, 0.0]),
        (lambda x: hr.setdiff1d(x, [9.0], hr.int64).out, [1.0, 2.0], [1.0, 10.0]),
        (lambda x: hr.unique(x).y, [], []),
    ],
)
def test_an_element_of_the_result_has_its_gradient(
    function: Any, elements: list[float], expected: list[float], fed: bool
) -> None:
    assert gradient(function, elements, fed=fed) == expected


def test_what_is_left_out_and_where_elements_are_has_none() -> None:
    with hr.Graph().as_default():
        x, y = hr.constant([1.0, 2.0]), hr.constant([2.0])
        assert hr.gradients(hr.setdiff1d(x, y).out, y) == [None]
        assert hr.gradients(hr.cast(hr.unique(x).idx, hr.float32), x) == [None]


def test_gradients_differentiate_again() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.constant([2.0, 3.0, 2.0])
        (first,) = hr.gradients(hr.unique(x).y ** 3, x)
        (second,) = hr.gradients(first, x)
        assert session.run(second).tolist() == [12.0, 18.0, 0.0]
