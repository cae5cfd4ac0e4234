"""Arrays of tensors, and the maps, folds and scans that are built on loops with them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    GraphError,
    HeadraceError,
    ShapeError,
)
from tests.steps import run_ready

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


# -- TensorArray


def test_arrays_are_written_and_read():
    array = hr.TensorArray(hr.float32, 3)
    array = array.write(0, [1.0, 2.0]).write(2, [5.0, 6.0]).write(1, [3.0, 4.0])
    assert array.element_shape.as_list() == [2]
    found = run_ready(
        [array.read(1), array.stack(), array.gather([2, 0]), array.concat(), array.size()]
    )
    np.testing.assert_array_equal(found[0], [3, 4])
    np.testing.assert_array_equal(found[1], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found[2], [[5, 6], [1, 2]])
    np.testing.assert_array_equal(found[3], [1, 2, 3, 4, 5, 6])
    assert found[4] == 3


def test_arrays_are_taken_apart():
    whole = hr.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    unstacked = hr.TensorArray(hr.float32, 3).unstack(whole)
    scattered = hr.TensorArray(hr.float32, 4).scatter([3, 0, 1], whole)
    split = hr.TensorArray(hr.float32, 2, infer_shape=False).split(whole, [1, 2])
    found = run_ready([unstacked.read(2), scattered.read(3), split.read(1), split.concat()])
    np.testing.assert_array_equal(found[0], [5, 6])
    np.testing.assert_array_equal(found[1], [1, 2])
    np.testing.assert_array_equal(found[2], [[3, 4], [5, 6]])
    np.testing.assert_array_equal(found[3], [[1, 2], [3, 4], [5, 6]])


def test_arrays_that_grow():
    def body(i, array):
        return i + 1, array.write(i, hr.cast(i * i, hr.float32))

    array = hr.TensorArray(hr.float32, 0, dynamic_size=True, element_shape=[])
    made = hr.while_loop(lambda i, _: i < 5, body, (0, array))[1]
    np.testing.assert_array_equal(run_ready(made.stack()), [0, 1, 4, 9, 16])


def test_gradients_through_arrays():
    x = hr.placeholder(hr.float64, [4])
    source = hr.TensorArray(hr.float64, 4).unstack(x)

    def body(i, array):
        return i + 1, array.write(3 - i, source.read(i) * source.read(0))

    array = hr.while_loop(lambda i, _: i < 4, body, (0, hr.TensorArray(hr.float64, 4)))[1]
    y = hr.reduce_sum(array.stack() * [1.0, 2.0, 3.0, 4.0]) + array.gather([1, 1])[0]
    (slope,) = hr.gradients(y, [x])
    (bend,) = hr.gradients(slope, [x], grad_ys=hr.constant([1.0, 0, 0, 0], hr.float64))
    v = np.array([0.5, -1.0, 2.0, 3.0])
    weights = np.array([4.0, 3.0, 3.0, 1.0])  # that of x[2] counts twice: 2 + 1
    expected = weights * v[0]
    expected[0] += weights @ v
    second = weights.copy()
    second[0] *= 2
    found = run_ready([slope, bend], {x: v})
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], second)


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda a: a.write(3, 1.0).stack(), "index 3 is out of range for a list of 3"),
        (lambda a: a.read(-1), "index -1 is out of range"),
        (lambda a: a.write(0, 1.0).write(0, 2.0).stack(), "written already"),
        (lambda a: hr.TensorArray(hr.float32, 2).read(0), "read before it was set"),
        (lambda a: hr.TensorArray(hr.float32, 0).stack(), "give the TensorArray an element_shape"),
        (lambda a: hr.TensorArray(hr.float32, -1).size(), "between 0 and"),
        (lambda a: a.split([1.0, 2.0, 3.0], [1, 1]).concat(), "do not add up"),
    ],
)
def test_array_mistakes_when_it_runs(use, match):
    made = use(hr.TensorArray(hr.float32, 3, infer_shape=False))
    with hr.Session() as session, pytest.raises(ExecutionError, match=match):
        session.run(made)


@pytest.mark.parametrize(
    ("use", "error", "match"),
    [
        (lambda: hr.TensorArray(hr.float32), AttributeValueError, "one of size and handle"),
        (lambda: hr.TensorArray(hr.float32, handle=3), DTypeError, "handle of another one"),
        (
            lambda: hr.TensorArray(hr.float32, 2).write(0, hr.constant(1)),
            DTypeError,
            "holds float32",
        ),
        (
            lambda: hr.TensorArray(hr.float32, 2).write(0, [1.0]).write(1, [1.0, 2.0]),
            ShapeError,
            r"holds tensors of shape \[1\], got \[2\]",
        ),
        (lambda: hr.TensorArray(hr.float32, 2).unstack(1.0), ShapeError, "no axis"),
    ],
)
def test_array_mistakes_when_built(use, error, match):
    with pytest.raises(error, match=match):
        use()


def test_reading_an_element_of_known_shape_that_was_never_written_gives_zeros():
    array = hr.TensorArray(hr.float32, 2, element_shape=[2]).write(1, [1.0, 2.0])
    np.testing.assert_array_equal(run_ready(array.stack()), [[0, 0], [1, 2]])


def test_a_list_cannot_be_fetched():
    array = hr.TensorArray(hr.float32, 2)
    with hr.Session() as session, pytest.raises(HeadraceError, match="list"):
        session.run(array.flow)


# -- maps, folds and scans

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_maps():
    x = hr.placeholder(hr.float32, [None, 3])
    squares = hr.map_fn(lambda r: r * r, x)
    counted = hr.map_fn(lambda r: hr.cast(hr.reduce_sum(r), hr.int32), x, dtype=hr.int32)
    two = hr.map_fn(
        lambda t: (t[0] + t[1], t[0] - t[1]), (x, x * 2), dtype=(hr.float32, hr.float32)
    )
    named = hr.map_fn(lambda d: {"m": d["a"] + 1}, {"a": x}, dtype={"m": hr.float32})
    found = run_ready([squares, counted, two, named], {x: ROWS})
    np.testing.assert_array_equal(found[0], ROWS**2)
    np.testing.assert_array_equal(found[1], ROWS.sum(1))
    np.testing.assert_array_equal(found[2][1], -ROWS)
    np.testing.assert_array_equal(found[3]["m"], ROWS + 1)
    assert squares.shape.as_list() == [None, 3]
    assert run_ready(hr.map_fn(lambda v: v * 2, hr.zeros([0, 2]))).shape == (0, 2)


def test_folds_and_scans():
    x = hr.constant(ROWS)
    left = hr.foldl(lambda a, r: a * 2 - r, x)
    right = hr.foldr(lambda a, r: a * 2 - r, x)
    start = hr.foldl(lambda a, r: a + hr.reduce_sum(r), x, initializer=1.0)
    sums = hr.scan(lambda a, r: a + r, x)
    back = hr.scan(lambda a, r: a + r, x, reverse=True)
    pairs = hr.scan(
        lambda a, r: (a[1], a[0] + r),
        hr.constant([1, 2, 3]),
        initializer=(hr.constant(0), hr.constant(1)),
    )

    def fold(rows):
        a = rows[0]
        for r in rows[1:]:
            a = a * 2 - r
        return a

    found = run_ready([left, right, start, sums, back, pairs])
    np.testing.assert_array_equal(found[0], fold(ROWS))
    np.testing.assert_array_equal(found[1], fold(ROWS[::-1]))
    assert found[2] == 1 + ROWS.sum()
    np.testing.assert_array_equal(found[3], np.cumsum(ROWS, 0))
    np.testing.assert_array_equal(found[4], np.cumsum(ROWS[::-1], 0)[::-1])
    np.testing.assert_array_equal(found[5][0], [1, 1, 3])
    np.testing.assert_array_equal(found[5][1], [1, 3, 4])


def test_a_list_that_no_gradient_reaches_in_some_iterations():
    x = hr.constant(0.5, hr.float64)

    def chained():
        array = hr.TensorArray(hr.float64, 2).write(0, x)
        loop = hr.while_loop(
            lambda i, _: i < 2,
            lambda i, a: (i + 1, a.write(i, hr.tanh(a.read(i - 1) * x))),
            (1, array),
        )
        return loop[1].read(0) * loop[1].read(1)

    made = hr.map_fn(lambda v: hr.cond(v > 0, lambda: v * x, chained), hr.stack([x, -x, x]))
    (slope,) = hr.gradients(made, x)
    (bent,) = hr.gradients(slope, x)
    u = 0.25
    t, d = np.tanh(u), 1 - np.tanh(u) ** 2
    # Of 2 x^2 + x tanh(x^2).
    expected = [2 + t + 2 * u * d, 4 + 6 * 0.5 * d - 8 * 0.5**3 * t * d]
    np.testing.assert_allclose(run_ready([slope, bent]), expected)


@pytest.mark.parametrize("size", [5, None])
def test_unstack_keeps_the_size(size):
    x = hr.constant([1.0, 2.0, 3.0])
    length = hr.placeholder(hr.int32, []) if size is None else size
    array = hr.TensorArray(hr.float32, length).unstack(x)
    feeds = {length: 5} if size is None else None
    twice = array.read(2) * array.read(0)
    found = run_ready(
        [array.size(), array.write(4, 9.0).read(4), twice, hr.gradients(twice, x)], feeds
    )
    assert found[:3] == [5, 9.0, 3.0]
    np.testing.assert_array_equal(found[3][0], [3.0, 0.0, 1.0])
    if size is None:
        with pytest.raises(ExecutionError, match="index 2 is out of range for a list of 2"):
            run_ready(array.read(0), {length: 2})


def test_unstack_grows_only_where_the_size_is_dynamic():
    grown = hr.TensorArray(hr.float32, 0, dynamic_size=True).unstack([1.0, 2.0])
    assert run_ready([grown.size(), grown.write(2, 3.0).stack()[2]]) == [2, 3.0]
    with pytest.raises(ExecutionError, match="index 1 is out of range for a list of 1"):
        run_ready(hr.TensorArray(hr.float32, 1).unstack([1.0, 2.0]).stack())
    with pytest.raises(ExecutionError, match="was written already"):
        run_ready(hr.TensorArray(hr.float32, 2).write(0, 1.0).unstack([1.0, 2.0]).stack())


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: hr.map_fn(1, hr.zeros([2])), GraphError, "takes a function first"),
        (lambda: hr.map_fn(lambda v: v, 1.0), ShapeError, "must have a first axis"),
        (
            lambda: hr.map_fn(lambda t: t[0], (hr.zeros([2]), hr.zeros([3]))),
            ShapeError,
            r"different lengths \[2, 3\]",
        ),
        (
            lambda: hr.map_fn(lambda v: (v, v), hr.zeros([2])),
            GraphError,
            "map_fn: fn must return the structure",
        ),
        (
            lambda: hr.scan(lambda a, v: (a, v), hr.zeros([2])),
            GraphError,
            "scan: fn must return the structure",
        ),
        (lambda: hr.foldl(lambda a, v: a, hr.zeros([0])), ShapeError, "give an initializer"),
        (lambda: hr.map_fn(lambda v: v, []), GraphError, "at least one tensor"),
        (
            lambda: hr.map_fn(lambda v: v, hr.SparseTensor([[0]], [1.0], [2])),
            DTypeError,
            "a SparseTensor has no parts",
        ),
    ],
)
def test_mistakes_of_maps_and_folds(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("lengths", [[1, 1, 1], np.array([1, 1, 1]), [3], [1, 2]])
def test_parts_of_one_length_have_a_known_shape(lengths):
    whole = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    array = hr.TensorArray(hr.float32, 0, dynamic_size=True).split(whole, lengths)
    known = None if list(lengths) == [1, 2] else lengths[0]
    assert array.read(0).shape.as_list() == [known, 2]
    assert run_ready(array.read(0)).tolist() == whole[: lengths[0]].tolist()


def test_strings_that_were_not_written_are_empty() -> None:
    array = hr.TensorArray(hr.string, 2, element_shape=[2]).write(1, ["a", "b"])
    assert run_ready(array.read(0)).tolist() == [b"", b""]
    assert run_ready(array.stack()).tolist() == [[b"", b""], [b"a", b"b"]]
