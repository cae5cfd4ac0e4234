"""Collectives that start while the region which makes their inputs still runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError, InvalidArgumentError
from headrace.runtime.execution.early_start import EarlyStart
from headrace_mpi.collectives.functions import bucketed_all_reduce
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory files"),
]
ROWS, N, M = 8, 1500, 1200
KERNELS = hr.Config(compile_after=0)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each collective that could start early had done so when its node ran."""
    found: list[bool] = []
    was = EarlyStart.__call__

    def call(self: EarlyStart, step: Any, done: Any, *values: Any) -> None:
        found.append(step in self._runs and self._runs[step].started)
        was(self, step, done, *values)

    monkeypatch.setattr(EarlyStart, "__call__", call)
    return found


def layer(rank: int) -> tuple[dict[Any, Any], Any, Any]:
    """Return feeds, the sum of a product whose factors are computed, and what comes after them."""
    a = hr.placeholder(hr.float32, [None, N])
    b = hr.placeholder(hr.float32, [None, M])
    left, right = hr.nn.relu(a + 1.0), hr.tanh(b)
    total = hr.dist.all_reduce(hr.matmul(left, right, transpose_a=True), "sum")
    rng = np.random.default_rng(rank)
    feeds = {
        a: rng.standard_normal((ROWS, N), np.float32),
        b: rng.standard_normal((ROWS, M), np.float32),
    }
    return feeds, total, hr.reduce_sum(left) * hr.reduce_sum(right)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_factors_travel_before_the_region_has_ended(
    near: bool, threads: int, starts: list[bool]
) -> None:
    config = hr.Config(compile_after=0, threads=threads)

    def program(rank: Rank) -> Any:
        feeds, total, after = layer(rank.rank)
        with hr.Session(config=config) as session:
            return [session.run([total, after], feeds)[0] for _ in range(3)]

    results = good(run_ranks(2, program, near=near))
    assert starts == [True] * 6
    wanted = np.zeros((N, M))
    for number in range(2):
        a, b = (x.astype(np.float64) for x in layer_values(number))
        wanted += np.maximum(a + 1, 0).T @ np.tanh(b)
    for found in (x for each in results for x in each):
        assert found.tobytes() == results[0][0].tobytes()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_profiles_and_traces_have_collectives_that_started_early(
    tmp_path: Path, starts: list[bool]
) -> None:
    def program(rank: Rank) -> tuple[Any, str, str]:
        feeds, total, after = layer(rank.rank)
        file = tmp_path / f"{rank.rank}.json"
        with hr.Session(config=hr.Config(compile_after=0, trace=file, profile=True)) as session:
            found = session.run([total, after], feeds)[0]
            profile = str(session.profile())
        return found, profile, file.read_text()

    results = good(run_ranks(2, program))
    assert starts == [True] * 2
    for found, profile, trace in results:
        assert found.tobytes() == results[0][0].tobytes()
        assert "AllReduceProduct" in profile
        assert "AllReduceProduct" in trace


def layer_values(rank: int) -> list[Any]:
    with hr.Graph().as_default():
        return list(layer(rank)[0].values())


def test_a_bucket_starts_with_its_last_sum(starts: list[bool]) -> None:
    def program(rank: Rank) -> Any:
        x = hr.placeholder(hr.float32, [200, 200])
        parts = [hr.tanh(x), hr.exp(x), hr.reduce_sum(x, axis=0)]
        sums = [bucketed_all_reduce(part, "sum", 1 << 20) for part in parts]
        with hr.Session(config=KERNELS) as session:
            return session.run(sums, {x: np.full((200, 200), float(rank.rank), np.float32)})

    first, second = good(run_ranks(2, program))
    assert starts == [True] * 2
    for one, other, wanted in zip(first, second, (np.tanh(1), 1 + np.e, 200), strict=True):
        np.testing.assert_allclose(one, np.full_like(one, wanted), rtol=1e-6)
        assert one.tobytes() == other.tobytes()


def test_what_others_need_too_leaves_with_the_region(starts: list[bool]) -> None:
    def program(rank: Rank) -> Any:
        x = hr.placeholder(hr.float32, [200, 200])
        y = hr.tanh(x)
        total = hr.dist.all_reduce(y, "sum")
        with hr.Session(config=KERNELS) as session:
            return session.run([y, total - y], {x: np.ones((200, 200), np.float32)})

    for y, rest in good(run_ranks(2, program)):
        np.testing.assert_array_equal(rest, y)
    assert not starts


def test_a_region_that_fails_after_a_start_fails_the_step_of_all_ranks() -> None:
    def program(rank: Rank) -> Any:
        feeds, total, after = layer(rank.rank)
        limit = hr.placeholder(hr.float32, [])
        checked = hr.check_numerics(after / limit, "the ratio")
        with hr.Session(config=KERNELS) as session:
            error = None
            try:
                session.run([total, checked], {**feeds, limit: float(rank.rank)})
            except HeadraceError as failed:
                error = failed
            return error, session.run(total, feeds)

    (own, first), (others, second) = good(run_ranks(2, program))
    assert isinstance(own, InvalidArgumentError)
    assert "the ratio" in str(own)
    assert others is None or "rank 0" in str(others)
    # The next step is as if nothing had been.
    assert first.tobytes() == second.tobytes()
