"""Training by collectives: buckets, the optimizer, and variables that start alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError
from headrace_mpi.collectives.planning import ALONE_BYTES
from headrace_mpi.transport.wire import Kind
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")


def messages_to(rank: Rank) -> int:
    """Return how many values a rank has sent to each other one."""
    values = [f for f in rank.wires.sent if f.kind is Kind.COLLECTIVE]
    return len(values) // (rank.size - 1)


@pytest.mark.slow
def test_160_small_tensors_travel_in_one_message() -> None:
    def program(rank: Rank) -> tuple[int, list[float]]:
        sums = [
            hr.dist.all_reduce(hr.fill([i % 7 + 1], float(i + rank.rank)), "mean")
            for i in range(160)
        ]
        with hr.Session() as session:
            values = session.run(sums)
        assert [len(v) for v in values] == [i % 7 + 1 for i in range(160)]
        return messages_to(rank), [float(v[-1]) for v in values]

    for count, values in good(run_ranks(3, program)):
        assert count == 1
        assert values == [i + 1.0 for i in range(160)]


def test_buckets_hold_what_fits_and_what_may_go_together() -> None:
    """Of one level, dtype and reduction; what needs another's result comes after it."""

    def program(rank: Rank) -> int:
        part = hr.ones([100]) * (rank.rank + 1.0)
        from headrace_mpi.collectives.functions import bucketed_all_reduce

        # 400 bytes each, two to a bucket of 1000.
        small = [bucketed_all_reduce(part * i, "sum", 1000) for i in range(5)]
        wide = bucketed_all_reduce(hr.cast(part, hr.float64), "sum", 1000)
        best = bucketed_all_reduce(part, "max", 1000)
        # Of a level of its own, though its input was built first.
        later = bucketed_all_reduce(small[0] + part, "sum", 1000)
        last = bucketed_all_reduce(later * small[1], "sum", 1000)
        open_shape = hr.placeholder_with_default(part, [None])
        alone = bucketed_all_reduce(open_shape, "sum", 1000)
        with hr.Session() as session:
            found = session.run([small, wide, best, later, last, alone])
        assert [v[0] for v in found[0]] == [3.0 * i for i in range(5)]
        assert [v[0] for v in found[1:]] == [3.0, 2.0, 3.0, 18.0, 3.0]
        return messages_to(rank)

    # Three for the small ones, and one for each of the others.
    assert good(run_ranks(2, program)) == [8, 8]


def test_large_sums_travel_alone_and_small_ones_together() -> None:
    many = ALONE_BYTES // 4

    def program(rank: Rank) -> int:
        sizes = [*range(1, 41), many - 16, many, many + 1]
        sums = [hr.dist.all_reduce(hr.fill([n], 1.0 + rank.rank)) for n in sizes]
        with hr.Session() as session:
            found = session.run(sums)
            explained = str(session.explain(sums))
        assert [len(v) for v in found] == sizes
        assert all((v == 3.0).all() for v in found)
        assert f"41 sums of {4 * sum(sizes[:41])} bytes travel together" in explained
        return len({f.edge // 16 for f in rank.wires.sent if f.kind is Kind.COLLECTIVE})

    # The last but two fits into the bucket of the small ones.
    assert good(run_ranks(2, program)) == [3, 3]


def test_a_bucket_runs_after_all_that_any_of_its_sums_waits_for() -> None:
    def program(rank: Rank) -> list[float]:
        v = hr.Variable(1.0)
        first = hr.dist.all_reduce(hr.constant(1.0))
        with hr.control_dependencies([v.assign(5.0)]):
            second = hr.dist.all_reduce(hr.constant(2.0))
        with hr.control_dependencies([first]):
            read = v.read_value()
        with hr.Session() as session:
            session.run(v.initializer)
            return [float(x) for x in session.run([first, second, read])]

    # Both sums travel in one message, so what follows one of them follows both.
    assert good(run_ranks(2, program)) == [[2.0, 4.0, 5.0]] * 2


DATA = np.random.default_rng(3).standard_normal((24, 8)).astype(np.float32)
TARGETS = np.sin(DATA.sum(1, keepdims=True)).astype(np.float32)
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: hr.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: hr.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: hr.train.AdamOptimizer(0.02),
}


def train(rank: Rank, optimizer: str, **options: Any) -> list[Any]:
    """Train on this rank's rows of each batch; return the variables."""
    rng = np.random.default_rng(rank.rank)
    rows = len(DATA) // rank.size
    share = slice(rank.rank * rows, (rank.rank + 1) * rows)
    # Ranks start with variables of their own.
    hidden = hr.Variable(rng.standard_normal((8, 16)).astype(np.float32))
    out = hr.Variable(rng.standard_normal((16, 1)).astype(np.float32))
    guess = hr.matmul(hr.tanh(hr.matmul(DATA[share], hidden)), out)
    loss = hr.reduce_mean((guess - TARGETS[share]) ** 2)
    opt = hr.dist.DistributedOptimizer(OPTIMIZERS[optimizer](), **options)
    step = opt.minimize(loss)
    assert opt.variables() == opt._optimizer.variables()
    alike = hr.dist.broadcast_global_variables(0)
    with hr.Session(config=hr.Config(deterministic=True)) as session:
        session.run(hr.global_variables_initializer())
        session.run(alike)
        for _ in range(10):
            session.run(step)
        return session.run([hidden, out])  # type: ignore[no-any-return]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_ranks_of_small_batches_train_as_one_of_a_large_batch(optimizer: str) -> None:
    alone = good(run_ranks(1, lambda rank: train(rank, optimizer)))[0]
    for size in (2, 3):
        once = good(run_ranks(size, lambda rank: train(rank, optimizer)))
        for variables in once:
            for found, same, expected in zip(variables, once[0], alone, strict=True):
                # All ranks have the same bits.
                np.testing.assert_array_equal(found, same)
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    again = good(run_ranks(3, lambda rank: train(rank, optimizer)))
    for found, same in zip(again[0], once[0], strict=True):
        np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("compression", ["float16", "bfloat16"])
def test_compressed_gradients_travel_in_16_bits(compression: str) -> None:
    def program(rank: Rank) -> tuple[list[Any], set[str]]:
        variables = train(rank, "sgd", compression=compression)
        sent = {str(f.payload.dtype) for f in rank.wires.sent if f.kind is Kind.COLLECTIVE}
        return variables, sent

    exact = good(run_ranks(2, lambda rank: train(rank, "sgd")))[0]
    for variables, sent in good(run_ranks(2, program)):
        # Variables are broadcast as they are, by one rank.
        assert compression in sent
        assert sent <= {"float32", compression}
        for found, expected in zip(variables, exact, strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, atol=0.02)
            assert np.abs(found - expected).max() > 0


def test_gradients_of_rows_stay_rows() -> None:
    def program(rank: Rank) -> Any:
        table = hr.Variable(hr.ones([5, 2]))
        loss = hr.reduce_sum(hr.gather(table, [rank.rank, 4]))
        opt = hr.dist.DistributedOptimizer(
            hr.train.GradientDescentOptimizer(1.0), compression="float16"
        )
        unused = hr.Variable(1.0)
        pairs = opt.compute_gradients(loss, [table, unused])
        assert isinstance(pairs[0][0], hr.IndexedSlices)
        assert pairs[1][0] is None
        step = opt.apply_gradients(pairs)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(step)
            return session.run(table)[:, 0].tolist()

    assert good(run_ranks(2, program)) == [[0.5, 0.5, 1.0, 1.0, 0.0]] * 2


def test_the_hook_makes_ranks_start_alike() -> None:
    def program(rank: Rank) -> list[float]:
        v = hr.Variable(float(rank.rank))
        n = hr.Variable(np.int64(rank.rank), trainable=False)
        hook = hr.dist.BroadcastGlobalVariablesHook(1)
        hook.begin()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            hook.after_create_session(session, None)
            return [float(x) for x in session.run([v, n])]

    assert good(run_ranks(2, program)) == [[1.0, 1.0]] * 2


def test_options_of_the_optimizer_are_checked() -> None:
    sgd = hr.train.GradientDescentOptimizer(0.1)
    assert isinstance(hr.dist.DistributedOptimizer(sgd), hr.train.Optimizer)
    assert hr.dist.DistributedOptimizer(sgd).get_name() == "DistributedGradientDescentOptimizer"
    with pytest.raises(ArgumentTypeError, match="must be an optimizer, got float"):
        hr.dist.DistributedOptimizer(0.1)
    with pytest.raises(AttributeValueError, match="'bfloat16' or 'float16', got 'int8'"):
        hr.dist.DistributedOptimizer(sgd, compression="int8")
    with pytest.raises(AttributeValueError, match=r"number of bytes >= 0, got -1"):
        hr.dist.DistributedOptimizer(sgd, bucket_bytes=-1)


def test_memory_of_results_is_used_again_when_nobody_holds_it() -> None:
    from headrace_mpi.transport.buffers import LEAST_BYTES, Buffers

    buffers = Buffers()
    first = buffers.empty((LEAST_BYTES,), np.float32)
    place = first.ctypes.data
    part = first[10:20].reshape(2, 5)
    assert buffers.empty((LEAST_BYTES,), np.float32).ctypes.data != place
    del first
    second = buffers.empty((LEAST_BYTES,), np.float32)
    assert second.ctypes.data != place
    del part
    assert buffers.empty((2, LEAST_BYTES // 2), np.int32).ctypes.data == place
    assert buffers.empty((3,), np.float32).base is None
