"""Sums of products over ranks: the factors travel where they are smaller, and all bits agree."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, InvalidArgumentError, ShapeError
from headrace_mpi.collectives import algorithms, factors, products
from headrace_mpi.collectives.factors import PASS
from headrace_mpi.ops import collective as ops
from headrace_mpi.shared_memory import mapped_memory
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory files"),
]
N, M = 1500, 1200


def drawn(rank: int, rows: int, columns: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng([rank, rows, columns]).standard_normal((rows, columns), dtype)


def texts(session: hr.Session, fetch: Any) -> str:
    return str(session.explain(fetch))


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize(("ranks", "reduction"), [(2, "mean"), (3, "sum")])
@pytest.mark.parametrize(
    ("turned", "dtype"),
    [
        ((True, False), "float32"),
        ((True, False), "float64"),
        ((False, False), "float32"),
        ((True, True), "float64"),
        ((False, True), "float32"),
    ],
)
def test_sums_of_products_are_those_of_the_products(
    near: bool, ranks: int, reduction: str, dtype: str, turned: tuple[bool, bool]
) -> None:
    def factor(values: np.ndarray[Any, Any], transposed: bool) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(values if transposed else values.T)

    def given(rank: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        # Ranks have batches of different sizes, and one an empty one.
        rows = 3 * rank
        a, b = drawn(rank, rows, N, dtype), drawn(rank, rows, M, dtype)
        return factor(a, turned[0]), factor(b, not turned[1])

    def program(rank: Rank) -> list[Any]:
        a = hr.placeholder(dtype, [None, N] if turned[0] else [N, None])
        b = hr.placeholder(dtype, [M, None] if turned[1] else [None, M])
        product = hr.matmul(a, b, transpose_a=turned[0], transpose_b=turned[1])
        total = hr.dist.all_reduce(product, reduction)
        with hr.Session() as session:
            feeds = dict(zip((a, b), given(rank.rank), strict=True))
            found = [session.run(total, feeds) for _ in range(3)]
        return [*found, rank.group.reduction_buffers.count]

    results = good(run_ranks(ranks, program, near=near))
    expected = np.zeros((N, M))
    for rank in range(ranks):
        a, b = (x.astype(np.float64) for x in given(rank))
        expected += (a.T if turned[0] else a) @ (b.T if turned[1] else b)
    if reduction == "mean":
        expected /= ranks
    exact = 1e-12 if dtype == "float64" else 1e-4
    for *found, _ in results:
        for x in found:
            assert x.dtype == dtype
            assert x.tobytes() == results[0][0].tobytes()
            np.testing.assert_allclose(x, expected, rtol=exact, atol=exact)
    # The first rank makes buffers; another one may still be at the end of the step before.
    assert [r[-1] for r in results][1:] == [0] * (ranks - 1)
    assert 1 <= results[0][-1] <= 3 if near else results[0][-1] == 0


def sums(rank: Rank, rows: int, n: int = N, m: int = M) -> tuple[Any, Any, Any]:
    a = hr.placeholder(hr.float32, [None, n])
    b = hr.placeholder(hr.float32, [None, m])
    total = hr.dist.all_reduce(hr.matmul(a, b, transpose_a=True), "mean")
    return total, a, {a: drawn(rank.rank, rows, n), b: drawn(rank.rank, rows, m)}


@pytest.mark.parametrize(("rows", "travel"), [(10, True), (160, True), (180, False), (400, False)])
def test_factors_travel_where_they_are_smaller(
    rows: int, travel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """666 rows of all ranks have half of the bytes of the product."""
    summed: list[int] = []
    was = algorithms.reduced
    # Where products are summed as before.
    monkeypatch.setattr(
        products, "reduced", lambda link, x, *more: summed.append(0) or was(link, x, *more)
    )

    def program(rank: Rank) -> Any:
        total, _, feeds = sums(rank, rows)
        with hr.Session() as session:
            found = [session.run(total, feeds) for _ in range(2)]
        return found[1], rank.group.reduction_buffers.count

    results = good(run_ranks(2, program, near=True))
    assert bool(summed) != travel
    wanted = sum(drawn(r, rows, N).T @ drawn(r, rows, M) for r in range(2)) / 2
    for found, _ in results:
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    # One that was offered for nothing is used for the sum.
    assert 1 <= results[0][1] <= 2


def test_bytes_of_the_product_do_not_travel() -> None:
    def program(rank: Rank) -> int:
        total, _, feeds = sums(rank, 8)
        with hr.Session() as session:
            session.run(hr.reduce_max(total), feeds)
        return sum(getattr(f.payload, "nbytes", len(f.payload)) for f in rank.wires.sent)

    # Without shared memory pieces of the result travel, and no sums of them.
    far = good(run_ranks(2, program))
    near = good(run_ranks(2, program, near=True))
    assert max(near) < 8 * (N + M) * 4 + 4000
    assert max(far) < max(near) + N * M * 2 + 4000


def test_a_rank_that_cannot_map_the_board_makes_all_hand_pieces_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(rank: Rank) -> tuple[Any, bool]:
        total, _, feeds = sums(rank, 8)
        with hr.Session() as session:
            session.run(hr.reduce_max(total), feeds)
            return session.run(total, feeds), rank.group.reduction_buffers.usable

    expected = good(run_ranks(3, program))
    found: Any = mapped_memory.find

    def refuse(address: Any) -> Any:
        raise OSError

    monkeypatch.setattr(mapped_memory, "find", refuse)
    for (got, usable), (wanted, _) in zip(
        good(run_ranks(3, program, near=True)), expected, strict=True
    ):
        assert got.tobytes() == wanted.tobytes()
        assert not usable
    assert found is not None


def test_other_shapes_are_told_apart() -> None:
    def program(rank: Rank) -> None:
        a = hr.placeholder(hr.float32, [None, N])
        b = hr.placeholder(hr.float32, [None, None])
        product = hr.ensure_shape(hr.matmul(a, b, transpose_a=True), [N, None])
        assert product.shape.as_list() == [N, None]
        total = ops.all_reduce_product(a, b, transpose_a=True, name="total")
        with hr.Session() as session:
            session.run(total, {a: drawn(0, 4, N), b: drawn(0, 4, M + rank.rank)})

    for error in run_ranks(2, program):
        assert isinstance(error, InvalidArgumentError)
        assert "rank 0: float32[1500, 1200]\n  rank 1: float32[1500, 1201]" in str(error)


def explained(make: Any, **config: Any) -> str:
    def program(rank: Rank) -> str:
        a = hr.placeholder(hr.float32, [None, N], name="a")
        b = hr.placeholder(hr.float32, [None, M], name="b")
        with hr.Session(config=hr.Config(**config)) as session:
            return texts(session, make(a, b))

    return str(good(run_ranks(2, program))[0])


def product(a: Any, b: Any) -> Any:
    return hr.matmul(a, b, transpose_a=True)


def fetched(a: Any, b: Any) -> Any:
    x = product(a, b)
    return [x, hr.dist.all_reduce(x)]


def waited_for(a: Any, b: Any) -> Any:
    x = product(a, b)
    with hr.control_dependencies([x.op]):
        y = hr.identity(a)
    return [hr.dist.all_reduce(x), y]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda a, b: hr.dist.all_reduce(product(a, b)), True),
        (lambda a, b: hr.dist.all_reduce(product(a, b), "mean"), True),
        (lambda a, b: hr.dist.all_reduce(product(a, b), "max"), False),
        (lambda a, b: hr.dist.all_reduce(product(a, b) * 2.0), False),
        (lambda a, b: hr.dist.all_reduce(product(a[:, :9], b)), False),
        (lambda a, b: hr.dist.all_reduce(hr.matmul(a[None], b[None], transpose_a=True)), False),
        (fetched, False),
        (waited_for, False),
    ],
    ids=["sum", "mean", "max", "scaled", "small", "batch", "fetched", "waited"],
)
def test_only_large_products_that_nothing_else_needs_are_found(make: Any, found: bool) -> None:
    assert (PASS in explained(make)) == found


def test_devices_that_are_quicker_at_products_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(a: Any, b: Any) -> Any:
        return hr.dist.all_reduce(product(a, b))

    monkeypatch.setattr(factors, "_is_on_host", lambda op: False)
    assert PASS not in explained(make)


def test_a_cluster_of_one_process_is_alone_too() -> None:
    with hr.dist.Cluster() as cluster, hr.Session(cluster.target) as session:
        a = hr.placeholder(hr.float32, [None, N])
        total = hr.dist.all_reduce(product(a, hr.placeholder(hr.float32, [None, M])))
        assert PASS not in texts(session, total)


def test_one_process_keeps_its_products() -> None:
    a = hr.placeholder(hr.float32, [None, N])
    b = hr.placeholder(hr.float32, [None, M])
    total = hr.dist.all_reduce(product(a, b))
    with hr.Session() as session:
        assert PASS not in texts(session, total)
    alone = ops.all_reduce_product(a, b, transpose_a=True)
    with hr.Session() as session:
        found = session.run(alone, {a: drawn(0, 5, N), b: drawn(0, 5, M)})
    np.testing.assert_allclose(found, drawn(0, 5, N).T @ drawn(0, 5, M), rtol=1e-4, atol=1e-5)


def test_a_network_trains_as_without_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rank: Rank) -> list[Any]:
        hr.set_random_seed(1)
        x = hr.placeholder(hr.float32, [None, N])
        w = hr.get_variable("w", [N, M], initializer=hr.random_uniform_initializer(-0.1, 0.1))
        v = hr.get_variable("v", [M, 3], initializer=hr.random_uniform_initializer(-0.1, 0.1))
        loss = hr.reduce_mean(hr.square(hr.matmul(hr.tanh(hr.matmul(x, w)), v) - 1.0))
        train = hr.dist.DistributedOptimizer(hr.train.MomentumOptimizer(0.05, 0.9)).minimize(loss)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            found = [
                session.run([loss, train], {x: drawn(rank.rank + 10 * i, 6, N)})[0]
                for i in range(4)
            ]
            return [*found, session.run(w)]

    with_factors = good(run_ranks(2, program, near=True))
    monkeypatch.setattr(factors, "is_alone", lambda: True)
    without = good(run_ranks(2, program, near=True))
    assert with_factors[0][-1].tobytes() == with_factors[1][-1].tobytes()
    for got, wanted in zip(with_factors, without, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"reduction": "max"}, AttributeValueError, "op must be 'sum' or 'mean', got 'max'"),
        ({"a": np.ones((2, 2), np.int32)}, DTypeError, "a must be float32 or float64, got int32"),
        ({"b": np.ones((2,), np.float32)}, ShapeError, r"b must be a matrix, got shape"),
    ],
)
def test_what_has_no_such_sum_is_refused(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {"a": np.ones((2, 2), np.float32), "b": np.ones((2, 2), np.float32), **arguments}
    if given["a"].dtype != given["b"].dtype:
        given["b"] = given["b"].astype(given["a"].dtype)
    reduction = given.pop("reduction", "sum")
    with pytest.raises(error, match=text):
        ops.all_reduce_product(
            hr.convert_to_tensor(given["a"]), hr.convert_to_tensor(given["b"]), reduction=reduction
        )
