"""Limiting values and norms."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


VALUES = {
    "value": (lambda: hr.clip_by_value([-2.0, 0.5, np.nan], -1.0, 1.0), [-1, 0.5, np.nan]),
    "value by element": (lambda: hr.clip_by_value([1.0, 2.0], [0.0, 3.0], 4.0), [1, 3]),
    "value integers": (
        lambda: hr.clip_by_value([-9, 9], -3, clip_value_max=3),
        [-3, 3],
    ),
    "norm": (lambda: hr.clip_by_norm([3.0, 4.0], 1.0), [0.6, 0.8]),
    "norm small": (lambda: hr.clip_by_norm([3.0, 4.0], 10.0), [3, 4]),
    "norm of rows": (
        lambda: hr.clip_by_norm([[3.0, 4.0], [0.0, 0.0]], 1.0, axes=[1]),
        [[0.6, 0.8], [0, 0]],
    ),
    "norm of zeros": (lambda: hr.clip_by_norm([0.0, 0.0], 1.0), [0, 0]),
    "average": (lambda: hr.clip_by_average_norm([3.0, 4.0], 1.0), [1.2, 1.6]),
    "average small": (lambda: hr.clip_by_average_norm([3.0, 4.0], 10.0), [3, 4]),
    "global": (lambda: hr.global_norm([[3.0], None, [[4.0]]]), 5),
    "global of nothing": (lambda: hr.global_norm([]), 0),
    "global of a tuple": (lambda: hr.global_norm((hr.constant(3.0), hr.constant([4.0]))), 5),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    np.testing.assert_allclose(run(build()), expected, rtol=1e-6)


def test_global_clipping_scales_all_alike():
    clipped, norm = hr.clip_by_global_norm([[3.0], None, [[4.0]]], 1.0)
    assert clipped[1] is None
    values = run([clipped[0], clipped[2], norm])
    np.testing.assert_allclose(values[0], [0.6], rtol=1e-6)
    np.testing.assert_allclose(values[1], [[0.8]], rtol=1e-6)
    assert values[2] == 5


def test_global_clipping_with_a_known_norm():
    (clipped,), norm = hr.clip_by_global_norm([hr.constant([3.0])], 1.0, use_norm=hr.constant(10.0))
    assert run([clipped, norm]) == [pytest.approx(0.3), 10]


def test_an_infinite_norm_is_told_by_nan():
    (clipped,), norm = hr.clip_by_global_norm([[np.inf, 1.0]], 1.0)
    values, size = run([clipped, norm])
    assert np.isnan(values).all()
    assert size == np.inf


def test_gradients():
    x = hr.constant([-2.0, -1.0, 0.0, 1.0, 2.0])
    (grad,) = hr.gradients(hr.clip_by_value(x, -1.0, 1.0), [x])
    assert run(grad).tolist() == [0, 1, 1, 1, 0]
    zeros = hr.constant([0.0, 0.0])
    (grad,) = hr.gradients(hr.clip_by_norm(zeros, 2.0), [zeros])
    assert run(grad).tolist() == [1, 1]


REFUSED = {
    "limits": (lambda: hr.clip_by_value(1.0, [0.0, 1.0], 2.0), ShapeError, "not extend it"),
    "norm": (lambda: hr.clip_by_norm(1.0, [1.0, 2.0]), ShapeError, "clip_norm must broadcast"),
    "no list": (lambda: hr.global_norm(hr.constant([1.0])), AttributeValueError, "t_list must be"),
    "array": (lambda: hr.global_norm(np.array(1.0)), AttributeValueError, "t_list must be"),
    "number": (lambda: hr.clip_by_global_norm(3.0, 1.0), AttributeValueError, "t_list must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()
