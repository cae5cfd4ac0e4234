"""Lookups of rows in tables, whole and in shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

TABLE = np.random.default_rng(0).standard_normal((13, 3))
IDS = {
    "scalar": np.array(4),
    "vector": np.array([0, 12, 3, 3, 7]),
    "matrix": np.array([[11, 0], [5, 5], [1, 2]]),
    "empty": np.zeros((2, 0), np.int32),
}


def divided(table: Any, count: int, strategy: str) -> list[Any]:
    if strategy == "div":
        return np.array_split(table, count)
    return [table[i::count] for i in range(count)]


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("count", [1, 2, 5, 13])
@pytest.mark.parametrize("ids", IDS)
def test_rows_and_gradients_of_shards(ids: str, count: int, strategy: str) -> None:
    wanted = IDS[ids]
    weights = np.random.default_rng(1).standard_normal((*wanted.shape, 3))
    with hr.Graph().as_default(), hr.Session() as session:
        shards = [hr.Variable(part) for part in divided(TABLE, count, strategy)]
        rows = hr.nn.embedding_lookup(shards, wanted, strategy)
        gradients = hr.gradients(hr.reduce_sum(rows * weights), shards)
        assert all(isinstance(g, hr.IndexedSlices) for g in gradients)
        assert rows.shape == [*wanted.shape, 3]
        session.run(hr.global_variables_initializer())
        dense = [hr.convert_to_tensor(g) for g in gradients]
        found, slopes = session.run([rows, dense])
    np.testing.assert_array_equal(found, TABLE[wanted])
    expected = np.zeros(TABLE.shape)
    np.add.at(expected, wanted, weights)
    for slope, part in zip(slopes, divided(expected, count, strategy), strict=True):
        np.testing.assert_allclose(slope, part)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_shards_of_unknown_shape(strategy: str) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        parts = divided(TABLE, 3, strategy)
        shards = [hr.placeholder(hr.float64, [None, None]) for _ in parts]
        ids = hr.placeholder(hr.int64)
        rows = hr.nn.embedding_lookup(shards, ids, strategy)
        for wanted in IDS.values():
            feeds = {ids: wanted.astype(np.int64), **dict(zip(shards, parts, strict=True))}
            np.testing.assert_array_equal(session.run(rows, feeds), TABLE[wanted])


@pytest.mark.parametrize("count", [1, 3])
def test_long_rows_are_scaled_down(count: int) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        shards = [hr.constant(part) for part in divided(TABLE, count, "mod")]
        rows = hr.nn.embedding_lookup(shards, IDS["matrix"], max_norm=1.2)
        found = session.run(rows)
    expected = TABLE[IDS["matrix"]]
    length = np.linalg.norm(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected * np.minimum(1, 1.2 / length))


def test_rows_of_zeros_have_gradients() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        table = hr.constant(np.zeros((2, 3)))
        rows = hr.nn.embedding_lookup(table, [1], max_norm=1.0)
        (slope,) = hr.gradients(rows, [table])
        np.testing.assert_array_equal(session.run(hr.convert_to_tensor(slope))[1], np.ones(3))


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("wanted", [-1, 13])
def test_ids_out_of_range_are_refused(wanted: int, strategy: str) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        ids = hr.placeholder(hr.int32, [1])
        for count in (1, 2):
            shards = [hr.constant(part) for part in divided(TABLE, count, strategy)]
            rows = hr.nn.embedding_lookup(shards, ids, strategy)
            with pytest.raises(ExecutionError, match=r"out of range|must be in"):
                session.run(rows, {ids: [wanted]})


def test_what_is_refused() -> None:
    with hr.Graph().as_default():
        nothing: list[Any] = [None, []]
        for tables in nothing:
            with pytest.raises(AttributeValueError, match="needs a table"):
                hr.nn.embedding_lookup(tables, [0])
        with pytest.raises(AttributeValueError, match="'mod' or 'div', got 'hash'"):
            hr.nn.embedding_lookup(TABLE, [0], "hash")
        with pytest.raises(ShapeError, match="incompatible"):
            hr.nn.embedding_lookup([TABLE, TABLE[:, :2]], [0])
        with pytest.raises(ShapeError, match="max_norm needs"):
            hr.nn.embedding_lookup(TABLE, hr.placeholder(hr.int32), max_norm=1.0)
