"""Arrays of other libraries, which share their memory by DLPack, as feeds and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, FeedTypeError
from headrace.graph.convert import shared_array


class Shared:
    """An array of a library that knows DLPack and not NumPy."""

    def __init__(self, array: Any, refusal: Exception | None = None) -> None:
        self.array = array
        self.refusal = refusal

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.refusal is not None:
            raise self.refusal
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return (1, 0) if self.refusal is None else (2, 0)


class Both(Shared):
    """One that NumPy can read, too."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([5.0, 6.0], np.float32)


class Neither(Shared):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("the array is on a GPU: move it to the host\nfirst")


def test_the_memory_is_that_of_the_other_library() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = shared_array(Shared(array))
    assert found is not None
    assert np.shares_memory(found, array)
    assert shared_array(array) is None
    assert shared_array([1.0]) is None
    assert shared_array(np.float32(1)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_feeds_and_constants(mini: Any, dtype: Any) -> None:
    values = np.arange(6, dtype=dtype).reshape(2, 3)
    x = hr.placeholder(hr.float32, [None, 3])
    y = hr.constant(Shared(values[:, ::2]))
    assert y.dtype.numpy == dtype
    with hr.Session() as session:
        doubled = session.run(x + x, {x: Shared(values)})
        np.testing.assert_array_equal(doubled, 2.0 * values)
        np.testing.assert_array_equal(session.run(y), values[:, ::2])


def test_what_comes_out_is_not_shared(mini: Any) -> None:
    array = np.ones(3, np.float32)
    x = hr.placeholder(hr.float32, [3])
    with hr.Session() as session:
        found = session.run(x, {x: Shared(array)})
    found[:] = 7
    assert array.tolist() == [1, 1, 1]


def test_what_cannot_be_shared_is_read_otherwise_or_refused(mini: Any) -> None:
    refusal = BufferError("it requires a gradient")
    x = hr.placeholder(hr.float32, [2])
    with hr.Session() as session:
        assert session.run(x, {x: Both(np.ones(2), refusal)}).tolist() == [5, 6]
        match = r"cannot feed 'Placeholder:0'.*cannot be converted to an array: it requires a grad"
        with pytest.raises(FeedTypeError, match=match):
            session.run(x, {x: Shared(np.ones(2), refusal)})
    with pytest.raises(DTypeError, match="converted to an array: the array is on a GPU: move"):
        hr.constant(Neither(np.ones(2), refusal))
