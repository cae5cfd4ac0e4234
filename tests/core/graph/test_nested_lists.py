"""Nested lists with tensors in them become tensors of a dtype that holds them all."""

from __future__ import annotations

import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(hr.float32, hr.float64), (hr.int32, hr.int64), (hr.int32, hr.float64)],
    ids=str,
)
def test_rows_of_tensors_of_several_dtypes_lose_nothing(narrow: hr.DType, wide: hr.DType) -> None:
    a, b = hr.constant(3, narrow), hr.cast(hr.constant(2**40, hr.int64), wide) + hr.cast(1, wide)
    for rows in ([[a], [b]], [[b], [a]], [a, b], [[a, 1], [2, b]], [[1], [b]]):
        tensor = hr.convert_to_tensor(rows)
        assert tensor.dtype == wide
        with hr.Session() as session:
            assert 2**40 + 1 in session.run(tensor)
