"""Slices, reversals and borders in fused kernels, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("autodiff")

COMPILED = hr.Config(compile_after=0, compile_wait=True)

INDICES = {
    "part": np.s_[2:9, 1:],
    "steps": np.s_[1::3, ::2],
    "backwards": np.s_[::-1, 10:2:-2],
    "row": np.s_[3],
    "column": np.s_[:, -2],
    "new axis": np.s_[:, None, 2:5],
    "ellipsis": np.s_[..., 1:4],
    "element": np.s_[2, 3],
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_slice_is_what_numpy_takes(index, dtype):
    x = hr.placeholder(dtype, (11, 13))
    given = np.random.default_rng(0).integers(0, 2, (11, 13)).astype(dtype)
    part = x[index]
    computed = hr.cast(part, "float64") * 2.0 + 1.0
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run([part, computed], {x: given})
    np.testing.assert_array_equal(found[0], given[index])
    np.testing.assert_array_equal(found[1], given[index].astype("float64") * 2 + 1)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_slice_of_what_is_computed_is_what_numpy_takes(index):
    x = hr.placeholder("float32", (11, 13))
    given = np.random.default_rng(1).normal(size=(11, 13)).astype("float32")
    both = (x * 3.0)[index] - (x + 1.0)[index]
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run(both, {x: given})
    np.testing.assert_array_equal(found, (given * np.float32(3))[index] - (given + 1)[index])


@pytest.mark.parametrize("axes", [[0], [1], [0, 2], [-1], []])
def test_reversed_is_what_numpy_reverses(axes):
    x = hr.placeholder("float32", (4, 5, 6))
    given = np.random.default_rng(2).normal(size=(4, 5, 6)).astype("float32")
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run(hr.reverse(x, axes) * 2.0 - x, {x: given})
    expected = np.flip(given, axes) if axes else given
    np.testing.assert_array_equal(found, expected * 2 - given)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64", "bool"])
@pytest.mark.parametrize("axes", [[1], [2], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("shape", [(20, 30, 4), (9, 40, 8), (3, 1000, 1), (0, 30, 4), (70, 1, 40)])
def test_reversed_alone_is_what_numpy_reverses(shape, axes, dtype):
    x = hr.placeholder(dtype, shape)
    given = (np.random.default_rng(2).normal(size=shape) * 50).astype(dtype)
    if dtype.startswith("float") and given.size:
        given[0, 0, 0], given[-1, -1, -1] = np.nan, np.inf
    with hr.Session(config=COMPILED) as session:
        for _ in range(2):
            found = session.run(hr.reverse(x, axes), {x: given})
    np.testing.assert_array_equal(found, np.flip(given, axes))
    assert found.dtype == given.dtype


def test_pieces_that_are_turned_round_have_a_kernel_and_long_rows_have_none():
    with hr.Session(config=COMPILED) as session:
        for shape, axes, kernels in (((20, 30, 4), [1], 1), ((30, 20, 40), [0], 0)):
            x = hr.placeholder("float32", shape)
            explained = session.explain(hr.reverse(x, axes), {x: np.zeros(shape, np.float32)})
            assert str(explained).count("fused_0") == kernels


@pytest.mark.parametrize("filler", [0.0, -1.5])
@pytest.mark.parametrize(
    "paddings", [[[1, 2], [0, 3], [4, 0]], [[0, 0], [0, 0], [1, 1]], [[2, 0], [0, 0], [0, 0]]]
)
def test_border_is_what_numpy_pads(paddings, filler):
    x = hr.placeholder("float32", (3, 50, 70))
    given = np.random.default_rng(3).normal(size=(3, 50, 70)).astype("float32")
    padded = hr.pad(x * 2.0, paddings, constant_values=filler)
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run([padded, padded + 1.0], {x: given})
    expected = np.pad(given * 2, paddings, constant_values=filler)
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], expected + 1)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_gradient_of_a_slice_lies_where_it_was_taken(index):
    x = hr.placeholder("float32", (11, 13))
    given = np.random.default_rng(4).normal(size=(11, 13)).astype("float32")
    loss = hr.reduce_sum(hr.square(x[index])) + hr.reduce_sum(x[1:] * x[:-1])
    (gradient,) = hr.gradients(loss, [x])
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            found = session.run(gradient, {x: given})
    expected = np.zeros_like(given)
    expected[index] += 2 * given[index]
    expected[1:] += given[:-1]
    expected[:-1] += given[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_variable_is_not_updated_before_its_neighbors_are_read():
    v = hr.Variable(np.arange(40, dtype="float32").reshape(8, 5))
    step = v.assign(hr.pad(v[1:], [[0, 1], [0, 0]]) + hr.reverse(v, [0]))
    expected = np.arange(40, dtype="float32").reshape(8, 5)
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(4):
            found = session.run(step)
            expected = np.pad(expected[1:], [[0, 1], [0, 0]]) + expected[::-1]
            np.testing.assert_array_equal(found, expected)


def test_stencil_is_one_pass_over_what_is_padded():
    u = hr.placeholder("float32", (300, 300))
    q = hr.pad(u, [[1, 1], [1, 1]])
    step = u + 0.1 * (q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2] - 4.0 * u)
    with hr.Session(config=COMPILED) as session:
        given = np.ones((300, 300), np.float32)
        for _ in range(3):
            session.run(step, {u: given})
        kernels = session.explain(step, {u: given}).kernels
    assert len(kernels) == 2


def sliced(x, h, t):
    return hr.concat([x[:, t], h], 1)[:, :8] * 0.5 + h


def begun(x, h, t):
    return hr.tanh(h) + hr.slice(x, [0, t, 0], [8, 1, 8])[:, 0] * h


def stepped(x, h, t):
    return hr.tanh(h) * x[:, t::-1, :][:, 0]


def padded(x, h, t):
    return hr.tanh(h) + hr.pad(h[:, :3] * 2.0, [[0, 0], [t % 5, 5 - t % 5]])


def turned(x, h, t):
    return hr.tanh(h) + hr.reverse(h * 2.0, [t % 2])


@pytest.mark.parametrize("compute", [sliced, begun, stepped, padded, turned])
def test_kernels_that_differ_in_the_part_alone_are_kernels_of_their_own(compute):
    """Each kernel begins where a product ends, so that they are the same but for their parts."""
    rng = np.random.default_rng(5)
    numbers = rng.standard_normal((8, 6, 8)).astype(np.float32)
    weights = rng.standard_normal((8, 8)).astype(np.float32) * 0.5

    def found(**config):
        with hr.Graph().as_default(), hr.Session(config=hr.Config(**config)) as session:
            x = hr.placeholder(hr.float32, numbers.shape)
            h = hr.ones([8, 8])
            for t in range(6):
                h = hr.matmul(compute(x, h, t), hr.constant(weights))
            gradient = hr.gradients(hr.reduce_sum(h * h), x)
            wanted = [h] if gradient[0] is None else [h, *gradient]
            return session.run(wanted, {x: numbers})

    for left, right in zip(found(executor="plain"), found(compile_after=0), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-4, atol=1e-4)
