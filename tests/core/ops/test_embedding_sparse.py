"""Combined lookups for the ids of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

TABLE = np.random.default_rng(0).standard_normal((11, 3))
INDICES = np.array([[0, 0], [0, 1], [0, 3], [2, 0], [3, 2], [3, 4]], np.int64)
IDS = np.array([3, 3, 10, 0, 5, 1])
WEIGHTS = np.array([1.0, 2.0, 0.5, -1.0, 3.0, 1.0])
SHAPE = [5, 5]


def sparse(values: Any, indices: Any = INDICES, shape: Any = SHAPE) -> hr.SparseTensor:
    return hr.SparseTensor(indices, values, np.array(shape, np.int64))


def combined(ids: Any, weights: Any, rows: Any, combiner: str, count: int) -> Any:
    """Return [count, 3] combinations, and how far each depends on each row of the table."""
    shares = np.zeros((count, len(TABLE)))
    for row in range(count):
        mine = rows == row
        each = weights[mine]
        scale = {"sum": 1, "mean": each.sum(), "sqrtn": np.sqrt((each**2).sum())}[combiner]
        if mine.any():
            np.add.at(shares[row], ids[mine], each / scale)
    return shares @ TABLE, shares


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_values_and_gradients(combiner: str, weighted: bool, count: int) -> None:
    weights = WEIGHTS if weighted else np.ones(6)
    expected, shares = combined(IDS, weights, INDICES[:, 0], combiner, 4)
    with hr.Graph().as_default(), hr.Session() as session:
        shards = [hr.Variable(TABLE[i::count]) for i in range(count)]
        rows = hr.nn.embedding_lookup_sparse(
            shards, sparse(IDS), sparse(WEIGHTS) if weighted else None, combiner=combiner
        )
        gradients = hr.gradients(rows[:, 0], shards)
        assert all(isinstance(g, hr.IndexedSlices) for g in gradients)
        session.run(hr.global_variables_initializer())
        found, slopes = session.run([rows, [hr.convert_to_tensor(g) for g in gradients]])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    for i, slope in enumerate(slopes):
        np.testing.assert_allclose(slope[:, 0], shares.sum(0)[i::count], rtol=1e-6, atol=1e-12)
        assert not slope[:, 1:].any()


@pytest.mark.parametrize("default_id", [None, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_safe_lookup_leaves_out_what_is_not_valid(
    combiner: str, weighted: bool, default_id: int | None
) -> None:
    ids, rows = np.array([3, -1, 10, 0, -5, 1]), INDICES[:, 0]
    weights = WEIGHTS if weighted else np.ones(6)
    valid = (ids >= 0) & ((weights > 0) | (combiner == "sum"))
    expected, _ = combined(ids[valid], weights[valid], rows[valid], combiner, 5)
    empty = ~np.isin(np.arange(5), rows[valid])
    expected[empty] = 0 if default_id is None else TABLE[default_id]
    # The same rows as a matrix of 5 and as a block of 5 by 1.
    blocks = np.insert(INDICES, 1, 0, axis=1)
    with hr.Graph().as_default(), hr.Session() as session:
        found = [
            hr.nn.safe_embedding_lookup_sparse(
                np.array_split(TABLE, 2),
                sparse(ids, indices, shape),
                sparse(WEIGHTS, indices, shape) if weighted else None,
                combiner,
                default_id,
            )
            for indices, shape in ((INDICES, SHAPE), (blocks, [5, 1, 5]))
        ]
        matrix, block = session.run(found)
    np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(block, expected[:, None], rtol=1e-6, atol=1e-12)


def test_the_mean_over_weights_of_no_sum_is_zero() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        ids, weights = sparse([1], [[0, 0]], [1, 1]), sparse([0.0], [[0, 0]], [1, 1])
        assert not session.run(hr.nn.embedding_lookup_sparse(TABLE, ids, weights)).any()


def test_what_is_refused() -> None:
    with hr.Graph().as_default():
        with pytest.raises(AttributeValueError, match="'mean', 'sqrtn' or 'sum', got 'max'"):
            hr.nn.embedding_lookup_sparse(TABLE, sparse(IDS), None, combiner="max")
        with pytest.raises(DTypeError, match="sp_ids must be a SparseTensor"):
            hr.nn.embedding_lookup_sparse(TABLE, IDS, None)
        with pytest.raises(DTypeError, match="sp_weights must be a SparseTensor"):
            hr.nn.embedding_lookup_sparse(TABLE, sparse(IDS), WEIGHTS)
        short = sparse(WEIGHTS[:2], INDICES[:2])
        with pytest.raises(ShapeError, match="one weight per id"):
            hr.nn.embedding_lookup_sparse(TABLE, sparse(IDS), short)
        with pytest.raises(AttributeValueError, match="needs a table"):
            hr.nn.safe_embedding_lookup_sparse([], sparse(IDS))
