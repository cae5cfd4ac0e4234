"""The kernel is used where it should be, beside whatever stands around it, and only there."""

import numpy as np
import pytest

import headrace as hr
from headrace.testing import uses_kernel

X = np.linspace(-2, 2, 41, dtype=np.float32)
CONFIGS = {
    "plain": hr.Config(executor="plain"),
    "compiled": hr.Config(compile_after=0),
}


def beside(x):
    return hr.exp(x**5 + 1.0) * 2.0


def in_a_loop(x):
    return hr.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y**5 * 0.5), [0, x])[1]


def gradient(x):
    return hr.gradients(x**6, [x])[0]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: x**7, X**7),
        (lambda x: x**16, X**16),
        (beside, np.exp(X**5 + 1) * 2),
        (in_a_loop, (X**5 * 0.5) ** 5 * 0.5),
        (gradient, 6 * X**5),
    ],
    ids=["alone", "large", "beside", "loop", "gradient"],
)
def test_whole_powers_are_computed_by_it(build, expected, config):
    x = hr.placeholder(hr.float32, [None])
    y = build(x)
    with hr.Session(config=config) as session:
        assert uses_kernel(y, "Pow", "headrace-power", {x: X}, session=session)
        np.testing.assert_allclose(session.run(y, {x: X}), expected, rtol=1e-5)


@pytest.mark.parametrize("exponent", [0.5, 17.0, -3.0], ids=str)
def test_other_powers_are_left_to_others(exponent):
    x = hr.placeholder(hr.float32, [None])
    y = x**exponent
    assert not uses_kernel(y, "Pow", "headrace-power", {x: X})
    values = np.float32([0.5, 2.0])
    with hr.Session() as session:
        np.testing.assert_allclose(session.run(y, {x: values}), values**exponent, rtol=1e-6)


def test_what_it_replaces_is_shown(capsys):
    from headrace.cli.main import main

    main(["plugins"])
    assert "whole exponents take multiplications only" in capsys.readouterr().out
