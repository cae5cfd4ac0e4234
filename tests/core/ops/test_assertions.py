"""Assertions about tensors: at once for constants, in the step for all else."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, InvalidArgumentError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


HOLD = [
    ("assert_equal", [1, 2], [1, 2]),
    ("assert_equal", ["a", "b"], ["a", "b"]),
    ("assert_equal", [], []),
    ("assert_none_equal", [1, 2], 3),
    ("assert_less", [1.0, 2.0], [1.5, 3.0]),
    ("assert_less_equal", [1, 2], [1, 3]),
    ("assert_greater", [[3], [4]], [1, 2]),
    ("assert_greater_equal", [3, 4], 3),
    ("assert_near", [1.0, 2.0], [1.0, 2.0000001]),
    ("assert_near", [1j, 2], [1j, 2]),
]
FAIL = [
    ("assert_equal", [1, 2], [1, 3]),
    ("assert_equal", [np.nan], [np.nan]),
    ("assert_none_equal", [1, 2], [3, 2]),
    ("assert_less", [1.0, 2.0], [1.5, 2.0]),
    ("assert_less_equal", [1, 4], [1, 3]),
    ("assert_greater", [[3], [4]], [1, 3]),
    ("assert_greater_equal", [3, 4], 4),
    ("assert_near", [1.0, 2.0], [1.0, 2.1]),
    ("assert_near", [np.nan], [np.nan]),
]


def fed(*values):
    arrays = [hr.convert_to_tensor(v).spec.value for v in values]
    tensors = [hr.placeholder(hr.string if a.dtype == object else a.dtype) for a in arrays]
    return tensors, dict(zip(tensors, arrays, strict=True))


@pytest.mark.parametrize(("name", "x", "y"), HOLD)
def test_pairs_that_pass(name, x, y):
    run(getattr(hr, name)(x, y))
    tensors, feeds = fed(x, y)
    run(getattr(hr.debugging, name)(*tensors), feeds)


@pytest.mark.parametrize(("name", "x", "y"), FAIL)
def test_pairs_that_fail(name, x, y):
    with pytest.raises(InvalidArgumentError, match="said first"):
        run(getattr(hr, name)(x, y, message="said first"))
    tensors, feeds = fed(x, y)
    with pytest.raises(InvalidArgumentError, match="assertion failed"):
        run(getattr(hr, name)(*tensors), feeds)


def test_constants_fail_at_once():
    with pytest.raises(InvalidArgumentError, match="did not hold") as caught:
        hr.assert_equal([1, 2], [1, 3], message="M")
    lines = str(caught.value).splitlines()
    assert lines[0] == "M"
    assert lines[1] == "Condition x == y did not hold element-wise:"
    assert lines[2].endswith("= [1 2]")
    with pytest.raises(ShapeError, match="broadcast"):
        hr.assert_equal([1, 2], [1, 2, 3])


def test_the_error_of_a_step_shows_both_tensors():
    (x, y), feeds = fed([1, 2], [1, 3])
    with pytest.raises(InvalidArgumentError, match=r"== y did not hold .*\[1 2\].*\[1 3\]"):
        run(hr.assert_equal(x, y), feeds)
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[mine\] \[1\.\.\.\]"):
        run(hr.assert_equal(x, y, ["mine", x], 1), feeds)


def test_data_take_the_dtype_of_the_tensor():
    x = hr.placeholder(hr.float64, [])
    run(hr.assert_greater(x, 1), {x: 2.0})
    run(hr.assert_less(1, x), {x: 2.0})


def test_tolerances():
    run(hr.assert_near([1.0, 2.0], [1.0, 2.1], rtol=0.1))
    run(hr.assert_near([1.0, 2.0], [1.0, 2.1], atol=hr.constant(0.2)))
    run(hr.assert_near(hr.cast([1.0], hr.bfloat16), hr.cast([1.01], hr.bfloat16)))
    with pytest.raises(DTypeError, match="floating or complex"):
        hr.assert_near([1], [1])


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("assert_positive", [1, 2], [1, 0]),
        ("assert_negative", [-1.0], [0.0]),
        ("assert_non_negative", [0, 2], [0, -1]),
        ("assert_non_positive", [0, -2], [0, 1]),
    ],
)
def test_signs(name, good, bad):
    function = getattr(hr, name)
    run(function(good))
    run(function(np.zeros(0, np.float32)))
    with pytest.raises(InvalidArgumentError, match=r"Condition x .* 0 did not hold"):
        function(bad)
    (x,), feeds = fed(bad)
    with pytest.raises(InvalidArgumentError, match=r"M: Condition x .* 0 did not hold"):
        run(function(x, message="M"), feeds)


def test_unsigned_numbers_are_never_negative():
    run(hr.assert_non_negative(hr.constant([1], hr.uint8)))


def test_ranks():
    x = hr.placeholder(hr.float32, [None, 2])
    for op in (
        hr.assert_rank(x, 2),
        hr.assert_rank_at_least(x, 1),
        hr.assert_rank_in(x, (1, 2)),
        hr.assert_rank(hr.SparseTensor([[0, 0]], [1.0], [2, 2]), 2),
    ):
        run(op)
    with pytest.raises(ShapeError, match=r"M: .* must have rank 1, got rank 2"):
        hr.assert_rank(x, 1, message="M")
    with pytest.raises(ShapeError, match="rank at least 3"):
        hr.assert_rank_at_least(x, 3)
    with pytest.raises(ShapeError, match="rank in 0, 1"):
        hr.assert_rank_in(x, [0, 1])
    with pytest.raises(DTypeError, match="a rank is an integer"):
        hr.assert_rank(x, 1.5)
    with pytest.raises(ShapeError, match="a rank is a scalar"):
        hr.assert_rank(x, [1])
    with pytest.raises(AttributeValueError, match="at least one rank"):
        hr.assert_rank_in(x, [])


def test_ranks_that_a_step_tells():
    x, r = hr.placeholder(hr.float32), hr.placeholder(hr.int64, [])
    feeds = {x: [[1.0]], r: 2}
    for op in (hr.assert_rank(x, r), hr.assert_rank_at_least(x, 2), hr.assert_rank_in(x, [0, 2])):
        run(op, feeds)
    for op in (hr.assert_rank(x, 1), hr.assert_rank_at_least(x, 3), hr.assert_rank_in(x, [0, 1])):
        with pytest.raises(InvalidArgumentError, match="the tensor must have rank"):
            run(op, feeds)


def test_scalars():
    assert run(hr.assert_scalar(3)) == 3
    with pytest.raises(ShapeError, match=r"M: .*must be a scalar"):
        hr.assert_scalar([3], message="M")


def test_shapes():
    assert_shapes = hr.debugging.assert_shapes
    x, y = hr.zeros([2, 3]), hr.zeros([3, 4])
    run(assert_shapes([(x, ("N", "M")), (y, ("M", 4))]))
    run(assert_shapes({x: (None, 3), y: ".Q"}))
    run(assert_shapes([(x, "NM"), (hr.zeros([5, 2, 3]), "...NM")]))
    with pytest.raises(ShapeError, match="must have size 3, as 'M' has elsewhere"):
        assert_shapes([(x, ("N", "M")), (y, ("Q", "M"))])
    with pytest.raises(ShapeError, match="must have size 5"):
        assert_shapes([(y, (3, 5))])
    with pytest.raises(ShapeError, match="must have rank 3"):
        assert_shapes([(y, (3, 4, 5))])


def test_shapes_that_a_step_tells():
    x, y = hr.placeholder(hr.float32), hr.placeholder(hr.float32, [None])
    op = hr.debugging.assert_shapes([(x, ("N", 2)), (y, ("N",))])
    run(op, {x: np.zeros((3, 2)), y: np.zeros(3)})
    for shape, size in (((3, 2), 4), ((3, 1), 3), ((3,), 3)):
        with pytest.raises(InvalidArgumentError, match="assertion failed"):
            run(op, {x: np.zeros(shape), y: np.zeros(size)})


def test_dtypes():
    x = hr.constant([1.0])
    run([hr.assert_type(x, hr.float32), hr.assert_integer(hr.constant(1))])
    with pytest.raises(DTypeError, match=r"M: .* must be of dtype int32, got float32"):
        hr.assert_type(x, hr.int32, "M")
    with pytest.raises(DTypeError, match="an integer dtype, got float32"):
        hr.assert_integer(x)
    assert hr.assert_same_float_dtype() == hr.float32
    assert hr.assert_same_float_dtype([None, hr.constant(1, hr.float64)]) == hr.float64
    assert hr.assert_same_float_dtype([x], "float32") == hr.float32
    with pytest.raises(DTypeError, match="expected float32"):
        hr.assert_same_float_dtype([x, hr.constant(1, hr.float64)])
    with pytest.raises(DTypeError, match="expected a floating dtype"):
        hr.assert_same_float_dtype([hr.constant(1)])


def test_questions():
    assert hr.is_numeric_tensor(hr.constant(1j))
    for value in (hr.constant("a"), hr.constant(True), 3, np.ones(2)):
        assert not hr.is_numeric_tensor(value)
    hr.debugging.assert_proper_iterable([1])
    for value in ("ab", np.ones(2), hr.constant([1]), 3):
        with pytest.raises(DTypeError, match="expected a list of values"):
            hr.debugging.assert_proper_iterable(value)


@pytest.mark.parametrize(
    ("values", "non_decreasing", "increasing"),
    [
        ([1, 1, 2], True, False),
        ([2, 1], False, False),
        ([[1, 2], [3, 4]], True, True),
        ([[1, 2], [0, 3]], False, False),
        ([], True, True),
        (5.0, True, True),
        ([1.0, np.nan], False, False),
    ],
)
def test_order(values, non_decreasing, increasing):
    found = run([hr.is_non_decreasing(values), hr.is_strictly_increasing(values)])
    assert found == [non_decreasing, increasing]


def test_order_needs_real_numbers():
    with pytest.raises(DTypeError, match="must be real"):
        hr.is_non_decreasing("a")
