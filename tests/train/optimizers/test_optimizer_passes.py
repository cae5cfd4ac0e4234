"""What updates cost: one pass for dense gradients, and only the named rows for others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("no_races")]

ROWS, WIDTH = 512, 16


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what is compiled, whatever the other tests run with."""
    monkeypatch.setenv("HEADRACE_EXECUTOR", "plan")


def counted(**arguments: Any) -> hr.train.Optimizer:
    step = hr.train.get_or_create_global_step()
    return hr.train.AdagradDAOptimizer(0.1, step, **arguments)


# Makes an optimizer, and what one element costs: values that are read and written, the gradient
# among them.
DENSE: dict[str, tuple[Callable[[], Any], int]] = {
    "descent": (lambda: hr.train.GradientDescentOptimizer(0.1), 3),
    "momentum": (lambda: hr.train.MomentumOptimizer(0.1, 0.9), 5),
    "nesterov": (lambda: hr.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), 5),
    "adam": (lambda: hr.train.AdamOptimizer(0.1), 7),
    "adam, a schedule": (lambda: hr.train.AdamOptimizer(scheduled()), 7),
    "adamw": (lambda: hr.train.AdamWOptimizer(0.1), 7),
    "adagrad": (lambda: hr.train.AdagradOptimizer(0.1), 5),
    "adagrad da": (lambda: counted(l1_regularization_strength=0.1), 7),
    "adadelta": (lambda: hr.train.AdadeltaOptimizer(0.1), 7),
    "rmsprop": (lambda: hr.train.RMSPropOptimizer(0.1), 7),
    "rmsprop, centered": (lambda: hr.train.RMSPropOptimizer(0.1, centered=True), 9),
    "ftrl": (lambda: hr.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1), 7),
    "ftrl, shrinkage": (
        lambda: hr.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
        7,
    ),
    "proximal descent": (lambda: hr.train.ProximalGradientDescentOptimizer(0.1, 0.1, 0.1), 3),
    "proximal adagrad": (lambda: hr.train.ProximalAdagradOptimizer(0.1, 0.1, 0.1, 0.1), 5),
    "lion": (lambda: hr.train.LionOptimizer(0.1, weight_decay=0.1), 5),
}


def scheduled() -> hr.Tensor:
    return hr.train.cosine_decay(0.1, hr.train.get_or_create_global_step(), 100)


def large_kernels(step: hr.Operation, feeds: dict[Any, Any], session: hr.Session) -> list[float]:
    """Return for each kernel that works on whole variables how many it reads and writes."""
    size = ROWS * WIDTH * 4
    works = session.explain(step, feeds).kernels
    return [work.bytes / size for work in works if work.bytes > size / 2]


@pytest.mark.parametrize("case", DENSE)
def test_a_dense_update_is_one_pass(case: str) -> None:
    make, values = DENSE[case]
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.Variable(hr.zeros([ROWS, WIDTH]))
        gradient = hr.placeholder(hr.float32, x.shape)
        step = make().apply_gradients([(gradient, x)])
        session.run(hr.global_variables_initializer())
        found = large_kernels(step, {gradient: np.ones((ROWS, WIDTH), np.float32)}, session)
    assert len(found) == 1
    assert found[0] == pytest.approx(values, abs=0.1)


def test_lars_reads_twice_and_updates_in_one_pass() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.Variable(hr.zeros([ROWS, WIDTH]))
        gradient = hr.placeholder(hr.float32, x.shape)
        step = hr.train.LARSOptimizer(0.1).apply_gradients([(gradient, x)])
        session.run(hr.global_variables_initializer())
        found = large_kernels(step, {gradient: np.ones((ROWS, WIDTH), np.float32)}, session)
    assert max(found) == pytest.approx(5, abs=0.1)
    assert sum(found) <= 7.1


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda: hr.train.AdamOptimizer(0.1), 6),
        (lambda: hr.train.AdamWOptimizer(0.1), 6),
        (lambda: hr.train.LionOptimizer(0.1), 4),
    ],
    ids=["adam", "adamw", "lion"],
)
def test_where_idle_rows_move_that_is_one_pass_without_a_gradient(make: Any, values: int) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.Variable(hr.zeros([ROWS, WIDTH]))
        part, rows = hr.placeholder(hr.float32, [None, WIDTH]), hr.placeholder(hr.int32, [None])
        slices = hr.IndexedSlices(part, rows, hr.constant([ROWS, WIDTH]))
        step = make().apply_gradients([(slices, x)])
        session.run(hr.global_variables_initializer())
        feeds = {part: np.ones((5, WIDTH), np.float32), rows: [1, 2, 1, 7, 8]}
        found = large_kernels(step, feeds, session)
    assert found == [pytest.approx(values, abs=0.1)]


SPARSE: dict[str, Callable[[], Any]] = {
    "descent": lambda: hr.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: hr.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: hr.train.AdagradOptimizer(0.1),
    "adagrad da": counted,
    "adadelta": lambda: hr.train.AdadeltaOptimizer(0.1),
    "rmsprop": lambda: hr.train.RMSPropOptimizer(0.1, momentum=0.9),
    "ftrl": lambda: hr.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal descent": lambda: hr.train.ProximalGradientDescentOptimizer(0.1, 0.1),
    "proximal adagrad": lambda: hr.train.ProximalAdagradOptimizer(0.1, 0.1, 0.1),
    "lazy adam": lambda: hr.train.LazyAdamOptimizer(0.1),
    "momentumw": lambda: hr.train.MomentumWOptimizer(0.1, 0.1, 0.9),
    "lars": lambda: hr.train.LARSOptimizer(0.1),
}


def step_time(make: Callable[[], Any], rows: int) -> float:
    """Return the least time of a step that names 20 rows of many, in seconds."""
    with hr.Graph().as_default(), hr.Session() as session:
        table = hr.Variable(hr.zeros([rows, 8]))
        ids = hr.placeholder(hr.int64, [20])
        step = make().minimize(hr.reduce_sum(hr.square(hr.gather(table, ids) - 1.0)))
        session.run(hr.global_variables_initializer())
        times = []
        for count in range(16):
            named = (np.arange(20) * 17 + count) % 50
            before = time.perf_counter()
            session.run(step, {ids: named})
            times.append(time.perf_counter() - before)
        return min(times[6:])


@pytest.mark.parametrize("case", SPARSE)
def test_a_sparse_update_does_not_touch_other_rows(case: str) -> None:
    # A copy of the large table alone takes more than ten times the step of the small one.
    assert step_time(SPARSE[case], 500_000) < 5 * step_time(SPARSE[case], 100)


@pytest.mark.parametrize("case", SPARSE)
def test_other_rows_stay_bit_by_bit(case: str) -> None:
    start = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    with hr.Graph().as_default(), hr.Session() as session:
        table = hr.Variable(start)
        optimizer = SPARSE[case]()
        step = optimizer.minimize(hr.reduce_sum(hr.square(hr.gather(table, [4, 1, 4]) - 1.0)))
        slots = [optimizer.get_slot(table, name) for name in optimizer.get_slot_names()]
        session.run(hr.global_variables_initializer())
        before = session.run([table, *slots])
        for _ in range(4):
            session.run(step)
        for old, new in zip(before, session.run([table, *slots]), strict=True):
            np.testing.assert_array_equal(new[[0, 2, 3, 5]], old[[0, 2, 3, 5]])
            assert (new[[1, 4]] != old[[1, 4]]).any()


@pytest.mark.parametrize(
    "make",
    [lambda: hr.train.AdamOptimizer(0.1), lambda: hr.train.LionOptimizer(0.1)],
    ids=["adam", "lion"],
)
@pytest.mark.parametrize("executor", ["plain", "plan"])
def test_rows_of_small_and_large_tables_get_the_same_bits(make: Any, executor: str) -> None:
    """The gradient of a small one is made one of all rows, where idle ones move, too."""
    first = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    found = []
    for height in (7, 20_000):
        with hr.Graph().as_default():
            table = hr.Variable(np.resize(first, (height, 3)))
            part, rows = hr.placeholder(hr.float32, [4, 3]), hr.placeholder(hr.int32, [4])
            slices = hr.IndexedSlices(part, rows, hr.constant([height, 3]))
            step = make().apply_gradients([(slices, table)])
            with hr.Session(config=hr.Config(executor=executor, compile_after=0)) as session:
                session.run(hr.global_variables_initializer())
                for named in ([1, 5, 1, 0], [2, 2, 2, 2], [6, 3, 0, 1]):
                    given = np.outer(named, [0.5, -1.0, 2.0]).astype(np.float32)
                    session.run(step, {part: given, rows: named})
                with pytest.raises(hr.errors.InvalidArgumentError, match="range"):
                    session.run(step, {part: given, rows: [0, 1, -1, 2]})
                found.append(session.run(table)[:7])
    assert found[0].tobytes() == found[1].tobytes()
