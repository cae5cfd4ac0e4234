"""Functions mapped over ragged tensors get their rows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def run(fetch, **options):
    with hr.Session(config=hr.Config(**options)) as session:
        return session.run(fetch)


@pytest.mark.parametrize("options", [{"executor": "plain"}, {"compile_after": 0}])
def test_each_row_is_mapped(options):
    rows = hr.ragged.constant([[1, 2, 3], [], [4]])
    assert run(hr.map_fn(hr.reduce_sum, rows), **options).tolist() == [6, 0, 4]
    sizes, sums = hr.map_fn(lambda x: (hr.size(x), hr.reduce_sum(x)), rows, (hr.int32, hr.int32))
    assert run(sizes, **options).tolist() == [3, 0, 1]
    assert run(sums, **options).tolist() == [6, 0, 4]


def test_rows_go_beside_parts_of_tensors():
    rows = hr.ragged.constant([[1, 2, 3], [], [4]])
    made = hr.map_fn(lambda p: hr.reduce_sum(p[0]) * p[1], (rows, hr.constant([1, 2, 3])), hr.int32)
    assert run(made).tolist() == [6, 0, 12]


def test_rows_may_be_ragged_themselves():
    rows = hr.ragged.constant([[[1, 2], [3]], [], [[4]]])
    made = hr.map_fn(lambda row: hr.reduce_sum(row.flat_values), rows, hr.int32)
    assert run(made).tolist() == [6, 0, 4]


def test_gradients_reach_the_values():
    rows = hr.ragged.constant([[1.0, 2.0], [3.0]])
    (slope,) = hr.gradients(hr.map_fn(lambda x: hr.reduce_sum(x) ** 2, rows), rows.flat_values)
    np.testing.assert_allclose(run(slope), [6.0, 6.0, 6.0])
