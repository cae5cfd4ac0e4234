"""Sparse tensors as strings: what goes in comes back, a row more where there are several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    InvalidArgumentError,
    ResourceExhaustedError,
    ShapeError,
)

pytestmark = pytest.mark.needs("backend-cpu")


def sparse(values: Any = (1.0, 2.0, 3.0)) -> hr.SparseTensor:
    return hr.SparseTensor([[0, 1], [1, 0], [1, 2]], values, [3, 4])


@pytest.mark.parametrize(
    "values", [(1.0, 2.0, 3.0), (1, 2, 3), ("a", "", "bcd"), (True, False, True), (1j, 2j, 3j)]
)
def test_rows_come_back(values: Any) -> None:
    with hr.Session() as session:
        given = sparse(list(values))
        back = hr.deserialize_many_sparse(hr.serialize_many_sparse(given), given.dtype)
        for a, b in zip(*session.run([given, back]), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_sparse_tensors_become_rows() -> None:
    with hr.Session() as session:
        strings = hr.stack([hr.serialize_sparse(sparse()), hr.serialize_sparse(sparse())])
        joined = hr.deserialize_many_sparse(strings, hr.float32, rank=3)
        assert strings.shape == [2, 3]
        assert joined.shape == [None, None, None]
        assert joined.dense_shape.shape == [3]
        dense = session.run(hr.sparse.to_dense(joined))
        np.testing.assert_array_equal(dense, [session.run(hr.sparse.to_dense(sparse()))] * 2)


def test_known_shapes() -> None:
    assert hr.serialize_many_sparse(sparse()).shape == [3, 3]
    unknown = hr.deserialize_many_sparse(hr.placeholder(hr.string), hr.int32)
    assert unknown.shape == hr.Shape(None)
    assert unknown.dtype == hr.int32


def test_what_is_refused() -> None:
    with pytest.raises(DTypeError, match="sp_input must be a SparseTensor"):
        hr.serialize_sparse([1, 2])
    with pytest.raises(AttributeValueError, match="serialized as string, got"):
        hr.serialize_sparse(sparse(), out_type=hr.int32)
    with pytest.raises(ShapeError, match="needs 2 dimensions or more, got 1"):
        hr.serialize_many_sparse(hr.SparseTensor([[0]], [1], [3]))
    empty, none = hr.zeros([0, 2], hr.int64), hr.zeros([0])
    with pytest.raises(ShapeError, match="cannot have -1 rows"):
        hr.serialize_many_sparse(hr.SparseTensor(empty, none, hr.constant([-1, 2], hr.int64)))
    huge = hr.SparseTensor(empty, none, hr.constant([2**62, 2], hr.int64))
    negative = hr.placeholder_with_default(np.array([-3, 2]), [2])
    with hr.Session() as session:
        with pytest.raises(ResourceExhaustedError, match=f"of {2**62} rows takes more memory"):
            session.run(hr.serialize_many_sparse(huge))
        with pytest.raises(InvalidArgumentError, match="cannot have -3 rows"):
            session.run(hr.serialize_many_sparse(hr.SparseTensor(empty, none, negative)))
    with pytest.raises(ShapeError, match=r"must be \[rows, 3\], got shape \[3\]"):
        hr.deserialize_many_sparse(hr.serialize_sparse(sparse()), hr.float32)
