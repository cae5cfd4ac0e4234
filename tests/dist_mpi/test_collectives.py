"""Collectives give what NumPy gives from the tensors of all ranks, with gradients, on any path."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace as hr
from headrace_mpi.collectives.algorithms import DIRECT_BYTES
from headrace_mpi.collectives.group_step import READ_BYTES
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

# Rows of tensors of three columns of float64: one that travels in one message, one that goes to
# all ranks as a whole, and one that goes in pieces.
ROWS = {"small": 7, "middle": READ_BYTES // 16, "large": DIRECT_BYTES // 16}


@pytest.fixture(params=["read", "sent"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large values are read out of the memory of other ranks, or sent."""
    monkeypatch.setenv("HEADRACE_READ_MEMORY", "1" if request.param == "read" else "0")


def value(rank: int, rows: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([rank, rows, seed]).standard_normal((rows, 3))


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.usefixtures("way")
def test_values_are_those_of_numpy(size: int, rows: int) -> None:
    own_rows = [rows + rank for rank in range(size)]
    even = rows - rows % size

    def program(rank: Rank) -> dict[str, Any]:
        x = hr.constant(value(rank.rank, rows))
        tensors = {op: hr.dist.all_reduce(x, op) for op in ("sum", "mean", "min", "max")}
        tensors |= {
            "gather": hr.dist.all_gather(hr.constant(value(rank.rank, own_rows[rank.rank]))),
            "scatter": hr.dist.reduce_scatter(x),
            "scatter mean": hr.dist.reduce_scatter(x, "mean"),
            "broadcast": hr.dist.broadcast(x, root=size - 1),
            "exchange": hr.dist.all_to_all(hr.constant(value(rank.rank, even))),
        }
        with hr.Session() as session:
            session.run(hr.dist.barrier())
            first = session.run(tensors)
            again = session.run(tensors)
        for name, found in first.items():
            np.testing.assert_array_equal(found, again[name])
        return first

    results = good(run_ranks(size, program))
    everyone = [value(rank, rows) for rank in range(size)]
    total = everyone[0]
    for x in everyone[1:]:
        total = total + x
    mine = np.array_split(total, size)
    blocks = [np.split(value(rank, even), size) for rank in range(size)]
    for rank, found in enumerate(results):
        expected = {
            "sum": total,
            "mean": total / size,
            "min": np.min(everyone, 0),
            "max": np.max(everyone, 0),
            "gather": np.concatenate([value(r, own_rows[r]) for r in range(size)]),
            "scatter": mine[rank],
            "scatter mean": mine[rank] / size,
            "broadcast": everyone[-1],
            "exchange": np.concatenate([blocks[source][rank] for source in range(size)]),
        }
        for name, array in expected.items():
            # In rank order, so to the bit.
            np.testing.assert_array_equal(found[name], array, err_msg=name)


DTYPES = [
    *("float16", "float32", "float64", "bfloat16", "int8", "int32", "int64", "uint8"),
    *("complex64", "complex128"),
]


def test_sums_of_every_dtype() -> None:
    arrays = [
        {name: (np.arange(-3, 4) * (rank + 1)).astype(hr.as_dtype(name).numpy) for name in DTYPES}
        for rank in range(3)
    ]

    def program(rank: Rank) -> list[Any]:
        sums = [hr.dist.all_reduce(hr.constant(arrays[rank.rank][name])) for name in DTYPES]
        with hr.Session() as session:
            return session.run(sums)  # type: ignore[no-any-return]

    for found in good(run_ranks(3, program)):
        for name, total in zip(DTYPES, found, strict=True):
            expected = sum(a[name].astype(np.complex128) for a in arrays)
            assert total.dtype == hr.as_dtype(name).numpy
            wrapped = expected.real.astype(np.int64).astype(total.dtype)
            np.testing.assert_array_equal(
                total, expected.astype(total.dtype) if "complex" in name else wrapped
            )


def test_floats_of_16_bits_are_rounded_once() -> None:
    # 256 + 1 + 1 is 258 in float32; in bfloat16 each of the two would be lost.
    def program(rank: Rank) -> Any:
        x = np.array([256, 1, 1], ml_dtypes.bfloat16)[rank.rank : rank.rank + 1]
        with hr.Session() as session:
            return session.run(hr.dist.all_reduce(hr.constant(x)))

    assert [float(found[0]) for found in good(run_ranks(3, program))] == [258, 258, 258]


def test_strings_handles_of_state_and_odd_shapes_travel() -> None:
    def program(rank: Rank) -> list[Any]:
        words = hr.constant([[b"a", b"bc" * rank.rank]])
        empty = hr.zeros([0, 4])
        scalar = hr.constant(2.0 * rank.rank)
        flags = hr.constant([rank.rank == 1, True])
        with hr.Session() as session:
            return session.run(  # type: ignore[no-any-return]
                [
                    hr.dist.all_gather(words),
                    hr.dist.broadcast(words, root=1),
                    hr.dist.all_reduce(empty),
                    hr.dist.all_gather(empty),
                    hr.dist.all_reduce(scalar),
                    hr.dist.broadcast(flags),
                    hr.dist.all_to_all(flags),
                ]
            )

    for rank, found in enumerate(good(run_ranks(2, program))):
        assert found[0].tolist() == [[b"a", b""], [b"a", b"bc"]]
        assert found[1].tolist() == [[b"a", b"bc"]]
        assert found[2].shape == found[3].shape == (0, 4)
        assert found[4] == 2.0
        assert found[5].tolist() == [False, True]
        assert found[6].tolist() == [[False, True], [True, True]][rank]


BY_NAME: dict[str, Any] = {
    "sum": lambda x: hr.dist.all_reduce(x),
    "mean": lambda x: hr.dist.all_reduce(x, "mean"),
    "min": lambda x: hr.dist.all_reduce(x, "min"),
    "max": lambda x: hr.dist.all_reduce(x, "max"),
    "gather": lambda x: hr.dist.all_gather(x),
    "gather uneven": lambda x: hr.dist.all_gather(x[: hr.dist.rank() + 1]),
    "scatter": lambda x: hr.dist.reduce_scatter(x),
    "scatter mean": lambda x: hr.dist.reduce_scatter(x, "mean"),
    "scatter max": lambda x: hr.dist.reduce_scatter(x, "max"),
    "broadcast": lambda x: hr.dist.broadcast(x, root=1),
    "exchange": lambda x: hr.dist.all_to_all(x),
}


def test_gradients_are_those_of_the_sum_over_all_ranks() -> None:
    """Along a random direction of all ranks' tensors, against central differences."""
    size, rows, epsilon = 3, 6, 1e-6

    def program(rank: Rank) -> list[tuple[float, float]]:
        x = hr.placeholder(hr.float64, [rows, 3])
        start, way = value(rank.rank, rows, 1), value(rank.rank, rows, 2)
        losses, slopes = [], []
        for collective in BY_NAME.values():
            y = collective(x)
            # Weights of each rank's own, so that the outputs of ranks count differently.
            weights = hr.cos(hr.cast(hr.range(hr.size(y)), hr.float64) * (1.0 + rank.rank))
            loss = hr.reduce_sum(hr.reshape(y, [-1]) * weights + hr.reshape(y * y, [-1]))
            losses.append(loss)
            slopes.append(hr.reduce_sum(hr.gradients(loss, x)[0] * way))
        with hr.Session() as session:
            above = session.run(losses, {x: start + epsilon * way})
            below = session.run(losses, {x: start - epsilon * way})
            by_rule = session.run(slopes, {x: start})
        return [((a - b) / (2 * epsilon), s) for a, b, s in zip(above, below, by_rule, strict=True)]

    found = np.array(good(run_ranks(size, program))).sum(0)
    for name, (by_difference, by_rule) in zip(BY_NAME, found, strict=True):
        assert by_rule == pytest.approx(by_difference, rel=1e-6, abs=1e-6), name


def test_second_gradients_go_through_collectives() -> None:
    def program(rank: Rank) -> Any:
        x = hr.constant(float(rank.rank + 1))
        cube = hr.dist.all_reduce(x) ** 3
        first = hr.gradients(cube, x)[0]
        with hr.Session() as session:
            return session.run([first, hr.gradients(first, x)[0]])

    # Each of two ranks has the cube of 3 as loss: 2 * 3 * 9, and the slope of that: 4 * 6 * 3.
    for found in good(run_ranks(2, program)):
        assert [float(v) for v in found] == [54.0, 72.0]


def test_equal_extremes_share_the_gradient() -> None:
    def program(rank: Rank) -> Any:
        x = hr.constant([1.0, float(rank.rank)])
        with hr.Session() as session:
            return session.run(hr.gradients(hr.dist.all_reduce(x, "max"), x)[0]).tolist()

    assert good(run_ranks(2, program)) == [[1.0, 0.0], [1.0, 2.0]]


def test_slices_of_rows_are_gathered() -> None:
    def program(rank: Rank) -> Any:
        table = hr.Variable(hr.ones([4, 2]))
        loss = hr.reduce_sum(hr.gather(table, [rank.rank, 3])) * (1.0 + rank.rank)
        gradient = hr.dist.all_reduce(hr.gradients(loss, table)[0], "mean")
        assert isinstance(gradient, hr.IndexedSlices)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            return session.run(hr.convert_to_tensor(gradient)).tolist()

    expected = [[0.5, 0.5], [1.0, 1.0], [0.0, 0.0], [1.5, 1.5]]
    assert good(run_ranks(2, program)) == [expected, expected]


def test_one_process_needs_no_launcher_and_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace_mpi.collectives import groups

    monkeypatch.setattr(groups, "_of_job", None)
    monkeypatch.setattr(groups, "_of_clusters", [])
    monkeypatch.setattr("headrace_mpi.world.get_world", lambda *_: pytest.fail("MPI was started"))
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.delenv("PMIX_RANK", raising=False)
    with hr.Graph().as_default(), hr.Session() as session:
        assert session.run(hr.dist.all_reduce([1.0, 2.0], "mean")).tolist() == [1.0, 2.0]
    assert (hr.dist.rank(), hr.dist.size(), hr.dist.local_rank()) == (0, 1, 0)


@pytest.mark.parametrize(
    ("near", "read", "nbytes", "frames"),
    [
        (True, True, 4 * READ_BYTES, 1),
        (False, True, 4 * READ_BYTES, 2),
        (False, False, 4 * READ_BYTES, 1),
        (False, True, READ_BYTES, 1),
    ],
)
def test_only_what_is_read_in_other_memory_takes_thanks(
    near: bool, read: bool, nbytes: int, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_READ_MEMORY", "1" if read else "0")

    def program(rank: Rank) -> tuple[Any, int]:
        x = hr.placeholder(hr.float32, [nbytes // 4])
        total = hr.dist.all_reduce(x, "max")
        fed = np.full(nbytes // 4, float(rank.rank), np.float32)
        with hr.Session() as session:
            session.run(total, {x: fed})
            before = len(rank.wires.sent)
            return session.run(total, {x: fed}), len(rank.wires.sent) - before

    for found, sent in good(run_ranks(2, program, near=near)):
        assert sent == frames
        np.testing.assert_array_equal(found, np.ones(nbytes // 4))
