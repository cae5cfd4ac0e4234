"""Accumulators: steps that wait for enough gradients, and those that add them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, CancelledError, DTypeError, ShapeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_accumulators_have_all_their_names() -> None:
    assert hr.sparse.SparseConditionalAccumulator is hr.SparseConditionalAccumulator
    assert issubclass(hr.ConditionalAccumulator, hr.ConditionalAccumulatorBase)


def test_synchronous_steps_of_several_workers() -> None:
    accumulator = hr.ConditionalAccumulator(hr.float64, [])
    gradient, step = hr.placeholder(hr.float64, []), hr.placeholder(hr.int64, [])
    apply = accumulator.apply_grad(gradient, local_step=step)
    taken = accumulator.take_grad(4)
    count = accumulator.num_accumulated()
    with hr.Session() as session, ThreadPoolExecutor(4) as pool:
        means = []
        for round_ in range(20):
            future = pool.submit(session.run, taken)
            for i in range(4):
                assert not future.done()
                session.run(apply, {gradient: round_ + i, step: round_})
                session.run(apply, {gradient: 1000.0, step: round_ - 1})
            means.append(future.result(10))
            assert session.run(count) == 0
    assert means == [round_ + 1.5 for round_ in range(20)]


def test_no_gradient_is_lost_or_doubled_between_threads() -> None:
    accumulator = hr.SparseConditionalAccumulator(hr.float64, [64], reduction_type="SUM")
    row = hr.placeholder(hr.int64, [None])
    apply = accumulator.apply_grad(row, hr.ones_like(row, dtype=hr.float64), local_step=10**9)
    taken = accumulator.take_grad(10)
    totals = np.zeros(64)
    with hr.Session() as session, ThreadPoolExecutor(4) as pool:

        def add(worker: int) -> None:
            for i in range(250):
                session.run(apply, {row: [(worker * 7 + i) % 64]})

        futures = [pool.submit(add, worker) for worker in range(4)]
        for future in futures:
            future.result(60)
        while session.run(accumulator.num_accumulated()) >= 10:
            indices, values, _ = session.run(taken)
            np.add.at(totals, indices, values)
    assert totals.sum() == 1000


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_closing_the_session_ends_what_waits(kind: str) -> None:
    made = hr.ConditionalAccumulator if kind == "dense" else hr.SparseConditionalAccumulator
    taken = made(hr.float32, [2, 2]).take_grad(1)
    session, caught = hr.Session(), []

    def run() -> None:
        try:
            session.run(taken)
        except CancelledError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    session.close()
    thread.join(10)
    assert len(caught) == 1


def test_what_accumulators_refuse() -> None:
    with pytest.raises(DTypeError, match="takes gradients, which are floating, got int32"):
        hr.ConditionalAccumulator(hr.int32)
    with pytest.raises(AttributeValueError, match="reduction_type must be MEAN or SUM, got 'MAX'"):
        hr.SparseConditionalAccumulator(hr.float32, reduction_type="MAX")
    sparse = hr.SparseConditionalAccumulator(hr.float32, [5, 2], name="s")
    with pytest.raises(DTypeError, match="a gradient for 's' must be float32, got"):
        sparse.apply_grad([0], hr.constant([[1.0, 2.0]], hr.float64))
    free = hr.ConditionalAccumulator(hr.float32, name="free")
    x = hr.placeholder(hr.float32)
    with hr.Session() as session:
        session.run(free.apply_grad(x), {x: [1, 2]})
        with pytest.raises(ShapeError, match=r"'free' takes gradients of shape \[2\], got \[3\]"):
            session.run(free.apply_grad(x), {x: [1, 2, 3]})
        assert session.run(free.take_grad(1)).tolist() == [1, 2]
        with pytest.raises(ShapeError, match="has rows 0 to 4, got the indices -1 to -1"):
            session.run(sparse.apply_grad([-1], [[1.0, 2.0]]))


def test_an_accumulator_refuses_numbers_that_are_no_scalars() -> None:
    gathered = hr.ConditionalAccumulator(hr.float32, [2])
    with pytest.raises(ShapeError, match=r"num_required must be a scalar, got shape \[2\]"):
        gathered.take_grad([1, 2])
    with pytest.raises(ShapeError, match=r"new_global_step must be a scalar, got shape \[1\]"):
        gathered.set_global_step([1])
    with pytest.raises(ShapeError, match=r"local_step must be a scalar, got shape \[1\]"):
        gathered.apply_grad([1.0, 2.0], local_step=[1])


@pytest.mark.parametrize(
    ("shape", "rows", "dense_shape", "expected"),
    [
        ((), (2,), [3, 2], [-1, 2]),
        ((), (), None, [-1]),
        ([2, None], (2, 2, 2), None, [2, 2, 2, 2]),
        ([None, 2], (2, 3), None, [-1, 2, 3]),
        (None, (4,), [5, 4], [-1, 4]),
    ],
)
def test_rows_may_have_more_axes_than_the_shape_of_the_accumulator(
    shape: Any, rows: Any, dense_shape: Any, expected: list[int]
) -> None:
    accumulator = hr.SparseConditionalAccumulator(hr.float32, shape=shape)
    values = np.arange(2 * np.prod(rows), dtype=np.float32).reshape(2, *rows)
    apply = accumulator.apply_grad([0, 1], values, dense_shape)
    taken = accumulator.take_indexed_slices_grad(1)
    assert taken.values.shape.rank is None
    with hr.Session() as session:
        session.run(apply)
        found = session.run(taken)
    np.testing.assert_array_equal(found.values, values)
    assert found.dense_shape.tolist() == expected


def test_rows_fit_the_first_axes_and_those_before() -> None:
    accumulator = hr.SparseConditionalAccumulator(hr.float32, shape=[2, 2, None], name="s")
    whole = accumulator.apply_grad([0], np.ones([1, 2, 2, 2], np.float32))
    refused = [
        accumulator.apply_grad([0], np.ones(shape, np.float32), dense)
        for shape, dense in (([1, 2], None), ([1, 3, 2], None), ([1, 2, 2], [2, 2]))
    ]
    later = [
        accumulator.apply_grad([0], np.ones(shape, np.float32))
        for shape in ([1, 2, 2], [1, 2, 2, 3])
    ]
    with hr.Session() as session:
        for apply in refused:
            with pytest.raises(ShapeError, match="'s' takes gradients of shape"):
                session.run(apply)
        session.run(whole)
        for apply in later:
            with pytest.raises(ShapeError, match="'s' takes gradients of shape"):
                session.run(apply)
