"""Narrow products: which splits narrow their product, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import call_op
from headrace.passes.narrow_products import narrow_products
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import verify

pytestmark = pytest.mark.needs("backend-cpu")


def parts(shape_a, shape_b, axis, sizes, **turned):
    a, b = hr.placeholder("float32", shape_a), hr.placeholder("float32", shape_b)
    product = hr.matmul(a, b, **turned)
    return (a, b), product, call_op("Split", product, sizes, axis)


def products(fetches, feeds):
    """Return the shapes of the products that are left in a step."""
    step = prune(narrow_products(extract(list(feeds), list(fetches), [])))
    verify(step)
    found = [op.outputs[0] for op in step.graph.operations if op.type == "MatMul"]
    return [tuple(t.spec.shape.known) for t in found]


def values(fetches, feeds):
    rng = np.random.default_rng(0)
    feed = {t: rng.normal(size=t.shape.as_list()) for t in feeds}
    found = []
    for config in ({"optimize": False}, {"verify": True}):
        with hr.Session(config=hr.Config(**config)) as session:
            found.append([session.run(fetches, feed) for _ in range(4)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "axis", "turned", "index", "left"),
    [
        (((4, 6), (5, 6)), 1, {"transpose_b": True}, 1, (4, 3)),
        (((4, 6), (5, 6)), -1, {"transpose_b": True}, 0, (4, 2)),
        (((6, 4), (5, 6)), 1, {"transpose_a": True, "transpose_b": True}, 1, (4, 3)),
        (((5, 6), (6, 4)), 0, {}, 1, (3, 4)),
        (((5, 6), (4, 6)), 0, {"transpose_b": True}, 0, (2, 4)),
        # The columns of a matrix do not lie together.
        (((4, 6), (6, 5)), 1, {}, 1, (4, 5)),
        (((6, 5), (6, 4)), 0, {"transpose_a": True}, 1, (5, 4)),
    ],
)
def test_the_part_that_is_needed_is_computed(shapes, axis, turned, index, left):
    feeds, _, split = parts(*shapes, axis, [2, 3], **turned)
    assert products([split[index]], feeds) == [left]
    values(split[index], feeds)


def test_what_others_need_is_left_alone():
    feeds, product, split = parts((4, 6), (5, 6), 1, [2, 3], transpose_b=True)
    for fetches in (split, [split[0], product], [split[0], product + 1.0]):
        assert products(fetches, feeds) == [(4, 5)]
    with hr.control_dependencies([product]):
        waits = hr.identity(feeds[0])
    assert products([split[0], waits], feeds) == [(4, 5)]
    with hr.control_dependencies([hr.exp(feeds[0])]):
        late = call_op("Split", hr.matmul(*feeds, transpose_b=True), [2, 3], 1)
    assert products([late[0]], feeds) == [(4, 5)]


def test_batches_and_unknown_shapes_are_left_alone():
    feeds, _, split = parts((2, 4, 6), (2, 5, 6), 2, [2, 3], transpose_b=True)
    assert products([split[0]], feeds) == [(2, 4, 5)]
    a, b = hr.placeholder("float32", [None, 6]), hr.placeholder("float32", [5, 6])
    (first, _) = call_op("Split", hr.matmul(a, b, transpose_b=True), [2, 3], 1)
    step = extract([a, b], [first], [])
    assert narrow_products(step) is step
    with hr.Session() as session:
        x, y = np.ones((3, 6)), np.arange(30.0).reshape(5, 6)
        np.testing.assert_allclose(session.run(first, {a: x, b: y}), (x @ y.T)[:, :2])


def test_equal_parts_of_a_matrix_are_one():
    a, b, c = (hr.placeholder("float32", [k, 6]) for k in (4, 3, 5))
    found = [call_op("Split", hr.matmul(x, c, transpose_b=True), [2, 3], 1)[0] for x in (a, b)]
    step = prune(narrow_products(extract([a, b, c], found, [])))
    assert [op.type for op in step.graph.operations].count("Split") == 1
    for one, feeds in zip(found, ((a, c), (b, c)), strict=True):
        values(one, feeds)
