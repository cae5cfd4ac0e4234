"""What would be computed again for each step of a loop around it is computed once before."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

COMPILED = {"compile_after": 0, "compile_wait": True}


def programs():
    def divided(x, y):
        return x * hr.expand_dims(y / (1.0 + y * y), 1)

    def roots(x, y):
        return (x - y[0]) * hr.rsqrt(hr.square(y[1]) + 1.0) * hr.exp(y[2])

    def few(x, y):
        return x[:2] * (y[0] / (1.0 + hr.abs(y[1])))

    def gradient(x, y):
        lead = hr.exp(y) / 3.0
        return hr.gradients(hr.reduce_sum(hr.square(x * hr.expand_dims(lead, 1))), [x, y])

    return {
        "divided": (divided, (8, 50, 24), (8, 24)),
        "roots": (roots, (300, 16), (3, 16)),
        "few": (few, (9, 16), (3, 16)),
        "short_rows": (roots, (300, 5), (3, 5)),
        "gradient": (gradient, (8, 50, 24), (8, 24)),
    }


@pytest.mark.parametrize("name", programs())
def test_it_has_the_values_of_plain_kernels(name):
    build, *shapes = programs()[name]
    rng = np.random.default_rng(0)
    x, y = (hr.placeholder("float32", shape) for shape in shapes)
    given = {t: rng.standard_normal(t.shape.known).astype(np.float32) for t in (x, y)}
    fetches = build(x, y)
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = session.run(fetches, given)
    for threads in (1, 3):
        with hr.Session(config=hr.Config(threads=threads, **COMPILED)) as session:
            for _ in range(2):
                found = session.run(fetches, given)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_a_variable_that_is_updated_is_still_updated_in_the_kernel():
    rng = np.random.default_rng(1)
    x = hr.placeholder("float32", [400, 16])
    mean = hr.Variable(np.zeros(16, np.float32))
    scale = hr.rsqrt(hr.square(mean) + 1.0)
    moved = hr.assign(mean, 0.9 * mean + 0.1 * hr.reduce_mean(x * scale, 0))
    feed = {x: rng.standard_normal((400, 16)).astype(np.float32)}
    values = []
    for config in ({"executor": "plain"}, COMPILED):
        with hr.Session(config=hr.Config(**config)) as session:
            session.run(mean.initializer)
            for _ in range(4):
                found = session.run(moved, feed)
            values.append(found)
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6)


def test_the_kernel_has_a_nest_for_it():
    x, y = hr.placeholder("float32", [8, 50, 24]), hr.placeholder("float32", [8, 24])
    fetched = x * hr.expand_dims(hr.exp(y), 1)
    feed = {x: np.ones((8, 50, 24)), y: np.zeros((8, 24))}
    with hr.Session(config=hr.Config(**COMPILED)) as session:
        for _ in range(2):
            session.run(fetched, feed)
        (part,) = session.explain(fetched, feed).parts
    (kernel,) = part.kernels
    assert "over n0 x 24\n" in kernel.source
