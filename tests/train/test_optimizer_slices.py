"""Row-sparse gradients through every optimizer, against their dense equivalents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: hr.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: hr.train.MomentumOptimizer(0.5, 0.9),
    "nesterov": lambda: hr.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    "adam": lambda: hr.train.AdamOptimizer(0.1),
}
TABLE = np.arange(12.0).reshape(6, 2)


def trained(make: Callable[[], Any], loss_of: Callable[[hr.Variable], Any], steps: int = 3) -> Any:
    """Return a table after some steps, and the values of the optimizer's own variables."""
    with hr.Graph().as_default():
        table = hr.Variable(TABLE, name="table")
        optimizer = make()
        train = optimizer.minimize(loss_of(table))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return session.run([table, optimizer.variables()])


def dense_rows(table: hr.Variable, ids: list[int]) -> Any:
    """Return rows by a product, whose gradient is dense."""
    return hr.matmul(hr.one_hot(ids, 6, dtype=hr.float64), table)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("ids", [[0, 1, 2, 3, 4, 5], [5, 0, 5, 1, 2, 3, 4, 5, 0]])
def test_where_all_rows_are_named_it_is_the_dense_update(name: str, ids: list[int]) -> None:
    weights = np.arange(1.0, 1 + 2 * len(ids)).reshape(-1, 2)

    def sparse(table: hr.Variable) -> Any:
        return hr.reduce_sum(hr.square(hr.gather(table, ids)) * weights)

    def dense(table: hr.Variable) -> Any:
        return hr.reduce_sum(hr.square(dense_rows(table, ids)) * weights)

    with hr.Graph().as_default():
        table = hr.Variable(TABLE)
        (gradient,) = hr.gradients(sparse(table), [table])
        assert isinstance(gradient, hr.IndexedSlices)
    found, expected = trained(OPTIMIZERS[name], sparse), trained(OPTIMIZERS[name], dense)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    for mine, theirs in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_in_several_uses_add_up(name: str) -> None:
    def sparse(table: hr.Variable) -> Any:
        first, second = hr.gather(table, [1, 1, 4]), hr.gather(table, [[4], [0]])
        return hr.reduce_sum(hr.square(first)) + hr.reduce_sum(second * 3.0)

    def dense(table: hr.Variable) -> Any:
        first, second = dense_rows(table, [1, 1, 4]), dense_rows(table, [4, 0])
        return hr.reduce_sum(hr.square(first)) + hr.reduce_sum(second * 3.0)

    found, expected = trained(OPTIMIZERS[name], sparse), trained(OPTIMIZERS[name], dense)
    named = [0, 1, 4]
    np.testing.assert_allclose(found[0][named], expected[0][named], rtol=1e-12)
    np.testing.assert_array_equal(found[0][[2, 3, 5]], TABLE[[2, 3, 5]])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_slices_need_no_dense_shape(name: str) -> None:
    results = []
    for shape in (None, [6, 2]):
        with hr.Graph().as_default():
            table = hr.Variable(TABLE, name="table")
            slices = hr.IndexedSlices(hr.constant(np.ones((3, 2))), hr.constant([2, 0, 2]), shape)
            train = OPTIMIZERS[name]().apply_gradients([(slices, table)])
            with hr.Session() as session:
                session.run(hr.global_variables_initializer())
                session.run(train)
                session.run(train)
                results.append(session.run(table))
    np.testing.assert_array_equal(*results)
    assert (results[0][[0, 2]] < TABLE[[0, 2]]).all()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_rows_change_nothing(name: str) -> None:
    with hr.Graph().as_default():
        table = hr.Variable(TABLE, name="table")
        ids = hr.placeholder(hr.int32, [None])
        train = OPTIMIZERS[name]().minimize(hr.reduce_sum(hr.gather(table, ids)))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(train, {ids: np.zeros((0,), np.int32)})
            np.testing.assert_array_equal(session.run(table), TABLE)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_constraint_holds_after_each_step(name: str, sparse: bool) -> None:
    with hr.Graph().as_default():
        table = hr.Variable(TABLE, name="table", constraint=lambda value: hr.maximum(value, 3.0))
        rows = hr.gather(table, [0, 5, 0]) if sparse else table
        train = OPTIMIZERS[name]().minimize(hr.reduce_sum(rows * 1e3))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for _ in range(2):
                session.run(train)
                assert session.run(table).min() >= 3.0


def test_gradients_of_sparse_products_train_the_dense_table() -> None:
    with hr.Graph().as_default():
        table = hr.Variable(TABLE, name="table")
        bag = hr.SparseTensor([[0, 1], [0, 4], [1, 1]], [1.0, 2.0, 3.0], [2, 6])
        bag = hr.SparseTensor(bag.indices, hr.cast(bag.values, hr.float64), bag.dense_shape)
        loss = hr.reduce_sum(hr.sparse.matmul(bag, table))
        train = hr.train.GradientDescentOptimizer(1.0).minimize(loss)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(train)
            expected = TABLE.copy()
            expected[1] -= 4.0
            expected[4] -= 2.0
            np.testing.assert_allclose(session.run(table), expected)
