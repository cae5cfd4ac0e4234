"""What the fuzzer found once: each call has one clear error, or the right result."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    ExecutionError,
    HeadraceError,
    ResourceExhaustedError,
    ShapeError,
)
from headrace.graph.graph import Graph

pytestmark = pytest.mark.needs("backend-cpu")


def zeros(*shape):
    return np.zeros(shape, np.float32)


HUGE = np.array([1 << 62], np.int64)


@pytest.mark.parametrize(
    ("build", "arrays", "match"),
    [
        (lambda x, y: x + y, [zeros(3), zeros(4)], "shapes of the inputs do not broadcast"),
        (hr.broadcast_to, [zeros(4), np.array([2], np.int32)], "[4] does not broadcast to [2]"),
        (lambda x, y: hr.stack([x, y]), [zeros(2), zeros(3)], "values must have one shape"),
        (lambda x, y: hr.concat([x, y], 0), [zeros(2, 3), zeros(3, 2)], "one shape but along"),
        (lambda x: hr.concat([x, x], 0), [zeros()], "out of range"),
        (hr.matmul, [zeros(2, 3, 4), zeros(5, 4, 3)], "do not broadcast"),
        (lambda x: x[4], [zeros(3)], "index 4 is out of range for axis 0 of [3]"),
        (lambda d: hr.fill(d, 0.0), [np.array([1 << 31] * 2)], "too large"),
        (hr.tile, [zeros(3), HUGE], "too large"),
        (hr.pad, [zeros(3), np.array([[1, 1 << 62]])], "too large"),
        (lambda d: hr.one_hot([[0, 1]], d), [np.array(1 << 62)], "too large"),
        (lambda d: hr.random_normal(d), [HUGE], "too large"),
        (lambda s: hr.random_shuffle(hr.zeros(s)), [HUGE], "too large"),
        (
            lambda i, j: hr.dynamic_stitch([i, j], [[1.0], [2.0]]),
            [HUGE, np.array([0])],
            "too large",
        ),
        (
            lambda m, r: hr.matrix_triangular_solve(m, r),
            [np.ones((2, 3, 3)), np.ones((5, 3, 1))],
            "do not broadcast",
        ),
        (
            lambda x, r: hr.linalg.pinv(x, r),
            [zeros(2, 3, 3), zeros(4)],
            "do not broadcast",
        ),
        (
            lambda x: hr.strings.unicode_transcode(x, "UTF-8", "UTF-8", errors="strict"),
            [np.array([b"\xff"], object)],
            "is not valid UTF-8",
        ),
    ],
    ids=[
        "add",
        "broadcast",
        "stack",
        "concat",
        "scalar",
        "matmul",
        "index",
        "fill",
        "tile",
        "pad",
        "one_hot",
        "normal",
        "shuffle",
        "stitch",
        "triangular",
        "pinv",
        "transcode",
    ],
)
def test_step_says_what_is_wrong(build, arrays, match):
    with Graph().as_default():
        tensors = [hr.placeholder("string" if a.dtype == object else a.dtype, None) for a in arrays]
        made = build(*tensors)
        with hr.Session() as session, pytest.raises(HeadraceError, match=re.escape(match)):
            session.run(made, dict(zip(tensors, arrays, strict=True)))


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: hr.range(-1e18, 0.0, hr.constant(2e-308, "float64")), AttributeValueError),
        (lambda: hr.linalg.lu_reconstruct([1.0], [0]), ShapeError),
        (
            lambda: hr.linalg.tridiagonal_matmul([1.0, [1.0], [1]], [[1.0]], "sequence"),
            ShapeError,
        ),
        (lambda: hr.image.crop_and_resize(zeros(1, 2, 2, 1), 1.0, [0], [2, 2]), ShapeError),
        (lambda: hr.image.ssim(zeros(2, 2, 1), zeros(2, 2, 1), 1.0, 1 << 40), ShapeError),
        (
            lambda: hr.sparse_split(
                sp_input=hr.SparseTensor([[0]], [1.0], hr.placeholder("int64", [1])),
                num_split=1 << 62,
                axis=0,
            ),
            ShapeError,
        ),
    ],
    ids=["range", "lu", "tridiagonal", "crop", "ssim", "split"],
)
def test_rule_says_what_is_wrong(build, error):
    with Graph().as_default(), pytest.raises(error):
        build()


def test_range_of_large_unsigned_integers_is_known():
    with Graph().as_default(), hr.Session() as session:
        top = np.uint64(2**64 - 1)
        made = hr.range(hr.constant(top - np.uint64(3)), hr.constant(top))
        assert session.run(made).tolist() == [2**64 - 4, 2**64 - 3, 2**64 - 2]


def test_fed_placeholder_may_be_waited_for():
    with Graph().as_default(), hr.Session() as session:
        x = hr.placeholder("float32", [])
        with hr.control_dependencies([x]):
            y = hr.constant(2.0)
        assert session.run(y, {x: 1.0}) == 2.0
        assert session.run(hr.group(x), {x: 1.0}) is None


def test_shape_that_one_side_tells_is_not_taken_for_known():
    with Graph().as_default(), hr.Session() as session:
        other = hr.placeholder("int32", [2])
        joined = hr.broadcast_dynamic_shape([5, 3], other)
        assert session.run(joined, {other: [1, 3]}).tolist() == [5, 3]
        with pytest.raises(ExecutionError, match="do not broadcast"):
            session.run(joined, {other: [4, 3]})


def test_default_that_does_not_fit_is_refused():
    with Graph().as_default(), hr.Session() as session:
        x = hr.placeholder("float32", None)
        y = hr.placeholder_with_default(x, [])
        with pytest.raises(ExecutionError, match=r"expected shape \[\]"):
            session.run(y, {x: zeros(3)})


def test_lack_of_memory_has_an_error_of_its_own():
    with Graph().as_default(), hr.Session() as session:
        size = hr.placeholder("int64", [1])
        # More than processes can address, yet countable.
        with pytest.raises(ResourceExhaustedError, match="Fill needs more memory than there is"):
            session.run(hr.fill(size, 0.0), {size: [1 << 50]})


def test_a_known_result_without_room_has_the_error_too():
    with Graph().as_default(), hr.Session() as session:
        with pytest.raises(ResourceExhaustedError, match="more memory than there is"):
            session.run(hr.fill([1 << 50], 0.0))
        index = hr.placeholder("int32", [2])
        for size in (1 << 50, (1 << 63) - 1):
            with pytest.raises(ResourceExhaustedError, match="more memory than there is"):
                session.run(hr.one_hot(index, size), {index: [0, 1]})


@pytest.mark.parametrize("optimize", [True, False])
def test_steps_of_new_axes_mean_nothing(optimize):
    config = hr.Config(optimize=optimize)
    with Graph().as_default(), hr.Session(config=config) as session:
        steps = hr.placeholder("int32", [2])
        row = hr.strided_slice([1, 2, 3], [0, 0], [0, 2], steps, new_axis_mask=1)
        assert session.run(row, {steps: [0, 1]}).tolist() == [[1, 2]]
        with pytest.raises(ExecutionError, match="step of a slice must not be 0"):
            session.run(row, {steps: [1, 0]})


@pytest.mark.parametrize("optimize", [True, False])
def test_boxes_outside_of_images_that_do_not_exist_are_refused(optimize):
    outside = np.array([[5.0, 5.0, 6.0, 6.0]], np.float32)
    config = hr.Config(optimize=optimize)
    with Graph().as_default(), hr.Session(config=config) as session:
        cut = hr.image.crop_and_resize(np.ones((2, 3, 3, 1), np.float32), outside, [2], [2, 2])
        with pytest.raises(ExecutionError, match=r"index 2 is out of range \[0, 2\)"):
            session.run(cut)
