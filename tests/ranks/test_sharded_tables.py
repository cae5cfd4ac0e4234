"""Tables in shards on parameter servers: the same numbers, only the rows that are asked for."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")

ROWS, DIM = 53, 3
TABLE = np.random.default_rng(0).normal(size=(ROWS, DIM)).astype(np.float32)
IDS = np.array([[0, 5, 5, 52], [17, 0, 5, 33]])


@pytest.fixture
def servers() -> Iterator[Any]:
    """A cluster of parameter servers and one worker, on as many ranks as there are."""
    size = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    jobs = {"ps": 4 if size == 1 else size - 1, "worker": 1}
    with hr.Graph().as_default(), hr.dist.Cluster(jobs=jobs) as formed:
        yield formed


def shards(table: np.ndarray[Any, Any], count: int, strategy: str) -> list[np.ndarray[Any, Any]]:
    """The rows that each shard holds."""
    if strategy == "mod":
        return [table[i::count] for i in range(count)]
    return np.array_split(table, count)


def joined(parts: list[np.ndarray[Any, Any]], strategy: str) -> np.ndarray[Any, Any]:
    """The table whose shards these are."""
    if strategy == "div":
        return np.concatenate(parts)
    table = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    for i, part in enumerate(parts):
        table[i :: len(parts)] = part
    return table


def variables(
    cluster: Any, table: np.ndarray[Any, Any], count: int, strategy: str, name: str = "table"
) -> list[hr.Variable]:
    """A table in shards, which go around the parameter servers."""
    found = []
    for i, part in enumerate(shards(table, count, strategy)):
        with hr.device(f"/job:ps/task:{i % cluster.num_tasks('ps')}"):
            found.append(hr.Variable(part, name=f"{name}_{count}_{strategy}_{i}"))
    return found


@pytest.mark.ranks(1, 2, 4)
@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_values_and_updates_are_the_same_bits_in_any_number_of_shards(
    servers: Any, strategy: str
) -> None:
    if not servers.is_chief:
        return
    goal = np.random.default_rng(1).normal(size=(*IDS.shape, DIM)).astype(np.float32)
    results = []
    for count in (1, 4, 16):
        with hr.Graph().as_default():
            parts = variables(servers, TABLE, count, strategy)
            ids = hr.placeholder(hr.int64, [None, 4])
            found = hr.nn.embedding_lookup(parts, ids, strategy)
            loss = hr.reduce_sum(hr.square(found - goal))
            gradients = hr.gradients(loss, parts)
            assert all(isinstance(g, hr.IndexedSlices) for g in gradients)
            step = hr.train.AdagradOptimizer(0.1).minimize(loss)
            with hr.Session(servers.target) as session:
                session.run(hr.global_variables_initializer())
                values = session.run(found, {ids: IDS})
                slices = session.run(gradients, {ids: IDS})
                touched = sum(len(np.unique(s.indices)) for s in slices)
                assert touched == len(np.unique(IDS))
                for i in range(3):
                    session.run(step, {ids: np.roll(IDS, i)})
                results.append((values, joined(session.run(parts), strategy)))
    np.testing.assert_array_equal(results[0][0], TABLE[IDS])
    untouched = np.setdiff1d(np.arange(ROWS), IDS)
    np.testing.assert_array_equal(results[0][1][untouched], TABLE[untouched])
    for values, table in results[1:]:
        assert values.tobytes() == results[0][0].tobytes()
        assert table.tobytes() == results[0][1].tobytes()


@pytest.mark.ranks(4)
@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_every_server_sends_as_much(strategy: str) -> None:
    from mpi4py import MPI

    rows, dim, count = 3000, 16, 9000
    with hr.Graph().as_default(), hr.dist.Cluster(ps=3) as cluster:
        transport = cluster.node.transport
        if cluster.is_chief:
            table = np.arange(rows * dim, dtype=np.float32).reshape(rows, dim)
            parts = variables(cluster, table, 6, strategy)
            ids = np.random.default_rng(0).integers(0, rows, count)
            found = hr.nn.embedding_lookup(parts, hr.constant(ids), strategy)
            with hr.Session(cluster.target) as session:
                session.run(hr.global_variables_initializer())
                np.testing.assert_array_equal(session.run(found), table[ids])
    sent = MPI.COMM_WORLD.allgather(transport.bytes_sent)[:3]
    assert max(sent) < 1.1 * min(sent)
    # The rows and nothing else.
    assert sum(sent) == pytest.approx(count * dim * 4, rel=0.01)


@pytest.mark.ranks(1)
def test_a_step_copies_rows_and_not_the_table(servers: Any) -> None:
    dim, batch = 32, 64
    peaks = []
    for rows in (4_000, 64_000):
        with hr.Graph().as_default():
            parts = []
            for i in range(4):
                with hr.device(f"/job:ps/task:{i}"):
                    parts.append(hr.Variable(hr.zeros([rows // 4, dim]), name=f"t_{rows}_{i}"))
            ids = hr.placeholder(hr.int64, [batch])
            loss = hr.reduce_sum(hr.square(hr.nn.embedding_lookup(parts, ids) - 1.0))
            step = hr.train.AdagradOptimizer(0.1).minimize(loss)
            rng = np.random.default_rng(0)
            with hr.Session(servers.target) as session:
                session.run(hr.global_variables_initializer())
                for _ in range(6):
                    session.run(step, {ids: rng.integers(0, rows, batch)})
                tracemalloc.start()
                session.run(step, {ids: rng.integers(0, rows, batch)})
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    # A copy of one shard would be 2 MB.
    assert peaks[1] < 1_000_000
    assert peaks[1] < 1.5 * peaks[0] + 50_000


@pytest.mark.ranks(1, 2, 4)
@pytest.mark.parametrize("loss_of", [hr.nn.sampled_softmax_loss, hr.nn.nce_loss])
def test_sampled_losses_move_their_classes_only(servers: Any, loss_of: Any) -> None:
    if not servers.is_chief:
        return
    classes, dim, batch, sampled = 20_000, 16, 8, 24
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(classes, dim)).astype(np.float32)
    losses = []
    for count in (1, 4):
        with hr.Graph().as_default():
            parts = variables(servers, weights, count, "div", f"weights_{loss_of.__name__}")
            biases = variables(servers, weights[:, 0], count, "div", f"biases_{loss_of.__name__}")
            hidden = hr.placeholder(hr.float32, [batch, dim])
            labels = hr.placeholder(hr.int64, [batch, 1])
            drawn = (
                hr.constant(np.arange(sampled) * 700),
                hr.fill([batch, 1], 0.5),
                hr.fill([sampled], 0.5),
            )
            loss = loss_of(
                parts,
                biases,
                labels,
                hidden,
                sampled,
                classes,
                sampled_values=drawn,
                partition_strategy="div",
            )
            step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)
            feed = {
                hidden: np.ones((batch, dim), np.float32),
                labels: np.arange(batch)[:, None] * 2000,
            }
            with hr.Session(servers.target) as session:
                session.run(hr.global_variables_initializer())
                session.run(step, feed)
                transport = getattr(servers.node, "transport", None)
                if transport is not None:
                    begin = transport.bytes_sent
                    session.run(step, feed)
                    # Their numbers twice, and gradients of rows and biases.
                    most = (batch + sampled) * (4 * 8 + 4 * (dim + 1)) + 4096
                    assert transport.bytes_sent - begin < most < weights.nbytes / 100
                # What is of a size known before the step is small, too.
                assert session.explain(step, feed).transferred < 20_000
                session.run(hr.global_variables_initializer())
                losses.append(session.run(loss, feed))
    np.testing.assert_array_equal(losses[0], losses[1])


@pytest.mark.ranks(1, 2, 4)
@pytest.mark.parametrize(
    ("strategy", "split_biases"), [("div", True), ("mod", True), ("mod", False)]
)
def test_a_full_softmax_is_computed_where_its_weights_are(
    servers: Any, strategy: str, split_biases: bool
) -> None:
    if not servers.is_chief:
        return
    classes, dim, batch = 1001, 64, 4
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(classes, dim)).astype(np.float32)
    offsets = rng.normal(size=classes).astype(np.float32)
    hidden = rng.normal(size=(batch, dim)).astype(np.float32)
    name = f"full_{split_biases}"
    parts = variables(servers, weights, 4, strategy, name)
    biases: Any = variables(servers, offsets, 4, strategy, f"{name}_b")
    if not split_biases:
        biases = hr.constant(offsets)
    x = hr.placeholder(hr.float32, [batch, dim])
    logits = hr.nn.sharded_logits(x, parts, biases, strategy)
    assert logits.shape == [batch, classes]
    loss = hr.reduce_sum(hr.square(logits))
    gradients = hr.gradients(loss, [x, *parts])
    updates = [hr.assign_sub(v, g).op for v, g in zip(parts, gradients[1:], strict=True)]
    with hr.Session(servers.target) as session:
        session.run(hr.global_variables_initializer())
        explanation = session.explain([logits, *updates], {x: hidden})
        # The hidden layer and the logits move, and their gradients, and no weights.
        assert max(m.bytes or 0 for m in explanation.transfers) <= (classes + 3) // 4 * batch * 4
        found, of_x, of_parts = session.run([logits, gradients[0], gradients[1:]], {x: hidden})
    expected = hidden.astype(np.float64) @ weights.T.astype(np.float64) + offsets
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(of_x, 2 * expected @ weights, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(
        joined(of_parts, strategy), 2 * expected.T @ hidden, rtol=1e-3, atol=1e-2
    )


def test_what_is_no_sharded_softmax_is_refused() -> None:
    x = hr.placeholder(hr.float32, [2, 3])
    two = [hr.zeros([2, 3]), hr.zeros([3, 3])]
    with pytest.raises(ShapeError, match=r"with partition_strategy 'mod' .* these have \[2, 3\]"):
        hr.nn.sharded_logits(x, two, partition_strategy="mod")
    open_rows = [hr.placeholder(hr.float32, [None, 3]) for _ in range(2)]
    with pytest.raises(ShapeError, match=r"these have \[None, None\]"):
        hr.nn.sharded_logits(x, open_rows, partition_strategy="mod")
    with pytest.raises(ShapeError, match=r"biases must be whole or in 2 shards .* got 3"):
        hr.nn.sharded_logits(x, two, [hr.zeros([1])] * 3)
    with pytest.raises(AttributeValueError, match="must be 'mod' or 'div', got 'rows'"):
        hr.nn.sharded_logits(x, two, partition_strategy="rows")
    with pytest.raises(AttributeValueError, match="needs weights, or a list of their shards"):
        hr.nn.sharded_logits(x, [])


def test_more_shards_than_rows_are_refused() -> None:
    with pytest.raises(AttributeValueError, match="4 parts of axis 0, which has 3 indices: take f"):
        hr.get_variable("few", [3, 2], partitioner=lambda shape, dtype: [4, 1])
    # As in TensorFlow, a fixed number is cut to what there is.
    assert len(hr.get_variable("cut", [3, 2], partitioner=hr.fixed_size_partitioner(4))) == 3


@pytest.mark.ranks(1, 2, 4)
def test_a_shared_variable_has_one_shape(servers: Any) -> None:
    if not servers.is_chief:
        return
    sessions = []
    for size in (3, 4):
        with hr.Graph().as_default() as graph:
            with hr.device("/job:ps/task:0"):
                v = hr.Variable(hr.zeros([size]), name="two_shapes")
            session = hr.Session(servers.target, graph=graph)
            sessions.append(session)
            if size == 3:
                session.run(v.initializer)
                continue
            with pytest.raises(
                hr.errors.InvalidArgumentError,
                match=r"(?s)'two_shapes' is declared in two ways: shape \[3\] and \[4\].*alike",
            ):
                session.run(v.initializer)
    for session in sessions:
        session.close()
