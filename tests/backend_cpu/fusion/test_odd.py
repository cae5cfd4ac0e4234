"""Odd functions of a number and of its negative: kernels compute them once."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr


@pytest.mark.parametrize("name", ["erf", "sin", "tanh"])
@pytest.mark.parametrize("negate", ["scaled", "constant first", "negative"])
def test_a_function_of_the_opposite_is_not_computed_again(name, negate):
    function = {"erf": hr.erf, "sin": hr.sin, "tanh": hr.tanh}[name]
    opposite = {
        "scaled": lambda x: (x * 0.75, x * -0.75),
        "constant first": lambda x: (0.75 * x, -0.75 * x),
        "negative": lambda x: (x, -x),
    }[negate]
    values = np.array([0.0, -0.0, 0.3, -0.3, 5.0, np.inf, -np.inf, np.nan], np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [8])
        one, other = opposite(x)
        first, second = function(one), function(other)
        with hr.Session(config=hr.Config(compile_after=1)) as session:
            for _ in range(4):
                got, back = session.run([first, second], {x: values})
            source = session.explain([first, second], {x: values}).source()
    np.testing.assert_array_equal(back, -got)
    np.testing.assert_array_equal(np.signbit(back[:7]), ~np.signbit(got[:7]))
    assert source.count(f"{name}_f32(") == 1


def test_a_negative_factor_alone_changes_nothing():
    values = np.linspace(-3, 3, 50).astype(np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [50])
        y = hr.erf(x * -0.5) + hr.cos(x * -2.0)
        with hr.Session(config=hr.Config(compile_after=1)) as session:
            for _ in range(4):
                got = session.run(y, {x: values})
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [50])
        y = hr.erf(x * -0.5) + hr.cos(x * -2.0)
        with hr.Session(config=hr.Config(compile_after=1000)) as session:
            want = session.run(y, {x: values})
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-7)
