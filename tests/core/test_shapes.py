"""Shapes: what is known, merged, broadcast."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ShapeError
from headrace.shapes import Shape, broadcast, normalize_axis

DIMS = st.lists(st.integers(0, 4), max_size=4)


@pytest.mark.parametrize(
    ("shape", "text", "rank", "elements"),
    [
        (None, "[...]", None, None),
        ([], "[]", 0, 1),
        ([None, 3], "[?, 3]", 2, None),
        ([2, 3], "[2, 3]", 2, 6),
        ([None, 0], "[?, 0]", 2, 0),
        (5, "[5]", 1, 5),
        (np.array([2, 2]), "[2, 2]", 2, 4),
    ],
)
def test_shape(shape, text, rank, elements):
    made = Shape(shape)
    assert (str(made), made.rank, made.num_elements()) == (text, rank, elements)
    assert Shape(made) == made
    assert hash(Shape(made)) == hash(made)


@pytest.mark.parametrize("bad", ["ab", [-1], [1.5], ["x"], 2.5])
def test_shape_refuses(bad):
    with pytest.raises(ShapeError, match=r"a shape is|a dimension is"):
        Shape(bad)


def test_shape_is_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        Shape([1]).dims = ()


def test_merge():
    assert Shape([None, 3]).merge_with([2, None]) == [2, 3]
    assert Shape(None).merge_with([2]) == [2]
    with pytest.raises(ShapeError, match=r"shapes \[2\] and \[3\] are incompatible"):
        Shape([2]).merge_with([3])


def test_slices_and_concatenation():
    shape = Shape([2, None, 4])
    assert shape[1:] == [None, 4]
    assert shape[-1] == 4
    assert shape[:1].concatenate([7]) == [2, 7]
    assert Shape(None)[0] is None
    with pytest.raises(ShapeError, match="not fully defined"):
        _ = shape.known
    with pytest.raises(ShapeError, match="unknown rank"):
        list(Shape(None))


@given(DIMS, DIMS)
def test_broadcast_agrees_with_numpy(left, right):
    try:
        expected = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast(Shape(left), Shape(right))
    else:
        assert broadcast(Shape(left), Shape(right)) == expected


@given(DIMS, st.data())
def test_broadcast_with_unknowns_is_never_wrong(dims, data):
    """What is inferred from partial shapes is compatible with what the full shapes give."""
    left = Shape(dims)
    other = Shape(data.draw(DIMS))
    try:
        full = broadcast(left, other)
    except ShapeError:
        return
    hidden = Shape([None if data.draw(st.booleans()) else d for d in dims])
    assert broadcast(hidden, other).is_compatible_with(full)


def test_normalize_axis():
    assert normalize_axis(-1, 3) == 2
    with pytest.raises(ShapeError, match="axis 3 is out of range for a tensor of rank 3"):
        normalize_axis(3, 3)
