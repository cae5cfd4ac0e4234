"""Collectives that do not fit together, or whose ranks fail, end on all ranks with the reason."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AbortedError,
    AttributeValueError,
    ClusterError,
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    PluginError,
    ShapeError,
    TaskLostError,
)
from headrace.extend.runtime import Cancellation, Wakeup
from headrace_mpi.collectives import algorithms
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = pytest.mark.needs("backend-cpu")

Build = Callable[[int], list[Any]]


def x(*shape: int) -> hr.Tensor:
    return hr.ones(shape or [4], name="x")


# What a rank builds, by its number, and what each of two ranks is told.
MISMATCHES: dict[str, tuple[Build, str]] = {
    "shape": (
        lambda rank: [hr.dist.all_reduce(x(4 + rank), name="loss")],
        r"number 1\n  rank 0: AllReduce sum float32\[4\] 'loss' \(of 1 .*\n  rank 1: .*\[5\] 'l",
    ),
    "dtype": (
        lambda rank: [hr.dist.all_gather(hr.cast(x(4), [hr.int32, hr.int64][rank]), name="ids")],
        r"rank 0: AllGather int32\[rows\] 'ids'.*\n  rank 1: AllGather int64\[rows\] 'ids'",
    ),
    "op": (
        lambda rank: [hr.dist.reduce_scatter(x(4), ["sum", "mean"][rank], name="g")],
        r"rank 0: ReduceScatter sum float32\[4\] 'g'.*\n  rank 1: ReduceScatter mean",
    ),
    "root": (
        lambda rank: [hr.dist.broadcast(x(4), root=rank, name="w")],
        r"rank 0: BroadcastFromRank root=0 float32\[4\] 'w'.*\n  rank 1: BroadcastFromRank root=1",
    ),
    "order": (
        lambda rank: [
            hr.dist.all_gather(x(4), name=name) for name in (["a", "b"], ["b", "a"])[rank]
        ],
        r"number 1\n  rank 0: AllGather float32\[rows\] 'a' \(of 2.*\n  rank 1: .*'b' \(of 2",
    ),
    "number": (
        lambda rank: [hr.dist.all_reduce(x(4), name=f"g{i}") for i in range(2 + rank)],
        r"number 3\n  rank 0: nothing \(of 2 in the step\)\n  rank 1: .*'g2' \(of 3 in the step\)",
    ),
    "collective": (
        lambda rank: [[hr.dist.all_reduce, hr.dist.all_to_all][rank](x(4), name="y")],
        r"rank 0: AllReduce sum float32\[4\] 'y'.*\n  rank 1: AllToAll float32\[rows\] 'y'",
    ),
    "name": (
        lambda rank: [hr.dist.all_reduce(x(4), name=["encoder", "decoder"][rank])],
        r"rank 0: AllReduce sum float32\[4\] 'encoder'.*\n  rank 1: .* 'decoder'",
    ),
    "sparse": (
        lambda rank: hr.nest.flatten(
            hr.dist.all_reduce([x(4, 2), hr.IndexedSlices(x(4, 2), [0, 1, 2, 3])][rank], name="e")
        ),
        r"rank 0: AllReduce sum float32\[4, 2\] 'e.*\n  rank 1: AllGather",
    ),
}


@pytest.mark.parametrize("kind", MISMATCHES)
def test_ranks_that_do_not_fit_together_are_told_apart(kind: str) -> None:
    build, text = MISMATCHES[kind]

    def program(rank: Rank) -> Any:
        tensors = build(rank.rank)
        with hr.Session() as session:
            with pytest.raises(InvalidArgumentError, match=text):
                session.run(tensors)
            # The next step is one again.
            return session.run(hr.dist.all_reduce(x(1), name="after")).tolist()

    begin = time.monotonic()
    assert good(run_ranks(2, program)) == [[2.0], [2.0]]
    assert time.monotonic() - begin < 5


def test_shapes_that_only_the_step_knows_are_compared() -> None:
    feeds = {
        "small": [3, 4],
        "large": [300_000, 300_001],
        "direct": [20_000, 20_001],
        "either": [20_000, 300_000],
        "rank": [[2, 2], 4],
    }
    expected = {
        "direct": r"rank 0: float32\[20000\]\n  rank 1: float32\[20001\]",
        "either": r"rank 0: float32\[20000\]\n  rank 1: float32\[300000\]",
        "small": r"rank 0: float32\[3\]\n  rank 1: float32\[4\]",
        "large": r"rank 0: float32\[300000\]\n  rank 1: float32\[300001\]",
        "rank": r"rank 0: float32\[2, 2\]\n  rank 1: float32\[4\]",
    }

    def program(rank: Rank) -> None:
        fed = hr.placeholder(hr.float32, None)
        y = hr.dist.all_reduce(fed)
        with hr.Session() as session:
            for name, shapes in feeds.items():
                with pytest.raises(InvalidArgumentError, match=expected[name]):
                    session.run(y, {fed: np.ones(shapes[rank.rank])})

    begin = time.monotonic()
    good(run_ranks(2, program))
    assert time.monotonic() - begin < 5


def test_a_step_that_only_one_rank_changes_is_told_apart_later_too() -> None:
    def program(rank: Rank) -> None:
        first, second = (hr.dist.all_reduce(x(n), name=f"n{n}") for n in (1, 2))
        with hr.Session() as session:
            session.run(first)
            session.run(second)
            with pytest.raises(InvalidArgumentError, match=r"rank 0: .*'n1'.*\n  rank 1: .*'n2'"):
                session.run([first, second][rank.rank])

    good(run_ranks(2, program))


def test_a_rank_that_leaves_is_missed_at_once() -> None:
    def program(rank: Rank) -> None:
        y = hr.dist.all_reduce(x(), name="loss")
        with hr.Session() as session:
            session.run(y)
            if rank.rank == 1:
                return
            text = r"rank 1 takes part in no collective .*rank 0 waits for it in AllReduce 'loss'"
            with pytest.raises(ClusterError, match=text):
                session.run(y)

    begin = time.monotonic()
    good(run_ranks(2, program))
    assert time.monotonic() - begin < 5


def test_a_rank_that_does_not_come_is_waited_for_so_long() -> None:
    late = threading.Event()

    def program(rank: Rank) -> None:
        y = hr.dist.all_reduce(x(300_000), name="loss")
        with hr.Session() as session:
            session.run(y)
            rank.group.timeout_s = 0.4
            if rank.rank == 1:
                assert late.wait(20)
            text = r"rank 0 waited \d\.\d s for rank 1\n(  on rank 0\n)?  in AllReduce 'loss'"
            with pytest.raises(DeadlineExceededError, match=text):
                session.run(y)
            late.set()
            # Who came too late was told, and both go on together.
            rank.group.timeout_s = 20
            session.run(y)

    good(run_ranks(2, program))


def test_who_waits_for_long_says_so_and_for_whom(capfd: pytest.CaptureFixture[str]) -> None:
    groups: list[Any] = []

    def program(rank: Rank) -> None:
        y = hr.dist.all_reduce(x(), name="loss")
        with hr.Session() as session:
            session.run(y)
            # Said after a fifth of it.
            rank.group.timeout_s = 3.0
            if rank.rank == 0:
                groups.append(rank.group)
            while rank.rank and not (groups and groups[0].told):
                time.sleep(0.01)
            session.run(y)

    good(run_ranks(2, program))
    assert re.match(
        r"headrace: rank 0 waited \d\.\d s for rank 1\n  in AllReduce 'loss'\n$",
        capfd.readouterr().err,
    )


def test_a_rank_that_is_lost_is_named_now_and_later() -> None:
    lost = threading.Event()

    def program(rank: Rank) -> None:
        y = hr.dist.all_reduce(x(300_000), name="loss")
        with hr.Session() as session:
            session.run(y)
            if rank.rank == 1:
                # Its process is gone: it says nothing any more.
                assert lost.wait(20)
                return
            error = TaskLostError("/job:worker/task:1 (rank 1) is lost")
            threading.Timer(0.1, rank.group.lose_member, (1, error)).start()
            text = r"\(rank 1\) is lost; rank 0 waits for it in AllReduce 'loss'"
            for _ in range(2):
                with pytest.raises(TaskLostError, match=text):
                    session.run(y)
            lost.set()

    begin = time.monotonic()
    good(run_ranks(2, program))
    assert time.monotonic() - begin < 5


def test_an_error_of_one_rank_ends_the_step_of_all() -> None:
    def program(rank: Rank) -> Any:
        fed = hr.placeholder(hr.float32, [2])
        total = hr.dist.all_reduce(fed, name="total")
        broken = hr.check_numerics(fed * 2, "the batch") if rank.rank == 1 else fed * 2
        with hr.control_dependencies([total]):
            after = hr.check_numerics(total, "the total") if rank.rank == 1 else total
        second = hr.dist.all_reduce(after * 2, name="second")
        with hr.Session(config=hr.Config(optimize=False)) as session:
            bad = [1.0, np.inf if rank.rank == 1 else 1.0]
            kind = InvalidArgumentError if rank.rank == 1 else AbortedError
            text = "total" if rank.rank == 1 else r"rank 1 gave up the step.*\n.*on rank 1"
            with pytest.raises(kind, match=text):
                session.run(second, {fed: bad})
            if rank.rank == 1:
                # Before its first collective: nobody is told, and it may try again.
                with pytest.raises(InvalidArgumentError, match="the batch"):
                    session.run(broken, {fed: bad})
            return session.run(second, {fed: [1.0, 2.0]}).tolist()

    assert good(run_ranks(2, program)) == [[8.0, 16.0]] * 2


def test_a_step_that_is_cancelled_ends_on_all_ranks() -> None:
    def program(rank: Rank) -> None:
        y = hr.dist.all_reduce(x(300_000), name="loss")
        with hr.Session() as session:
            session.run(y)
            if rank.rank == 1:
                options = hr.RunOptions(timeout_in_ms=200)
                with pytest.raises(DeadlineExceededError, match=r"0\.2"):
                    session.run(y, options=options)
            else:
                time.sleep(0.6)
                with pytest.raises(AbortedError, match="rank 1 gave up the step"):
                    session.run(y)

    good(run_ranks(2, program))


def test_two_steps_with_collectives_at_once_are_refused() -> None:
    def program(rank: Rank) -> None:
        one = hr.dist.all_reduce(x(), name="one")
        two = hr.dist.all_reduce(x(), name="two")
        if rank.rank == 1:
            with hr.Session() as session:
                time.sleep(0.5)
                session.run(one)
                session.run(two)
            return
        with hr.Session() as session:
            other = threading.Thread(target=copy_context().run, args=(session.run, one))
            other.start()
            while rank.group.current is None:
                time.sleep(0.001)
            text = r"(?s)one after the other, in one thread.*'one'.*'two'"
            with pytest.raises(FailedPreconditionError, match=text):
                session.run(two)
            other.join(20)
            session.run(two)

    good(run_ranks(2, program))


def test_roots_and_rows_that_there_are_not_are_refused() -> None:
    def program(rank: Rank) -> None:
        with hr.Session() as session:
            with pytest.raises(InvalidArgumentError, match="one of the ranks 0 to 1, got 2"):
                session.run(hr.dist.broadcast(x(), root=2))
            with pytest.raises(InvalidArgumentError, match="3 rows cannot be dealt out evenly to"):
                session.run(hr.dist.all_to_all(x(3)))
            fed = hr.placeholder(hr.float32, None)
            with pytest.raises(InvalidArgumentError, match="one dimension, got a scalar"):
                session.run(hr.dist.all_gather(fed), {fed: 1.0})

    good(run_ranks(2, program))


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "op": (lambda: hr.dist.all_reduce(x(), "avg"), AttributeValueError, "'sum', .* got 'avg'"),
    "mean of integers": (
        lambda: hr.dist.all_reduce([1, 2], "mean"),
        DTypeError,
        "floating or complex tensors, got .*int32",
    ),
    "order of complex": (
        lambda: hr.dist.reduce_scatter(hr.complex(x(), x()), "max"),
        DTypeError,
        "real tensors, got .*complex64",
    ),
    "scalar rows": (lambda: hr.dist.all_gather(1.0), ShapeError, "got a scalar"),
    "root": (lambda: hr.dist.broadcast(x(), -1), AttributeValueError, "of a rank, got -1"),
    "slices": (
        lambda: hr.dist.all_reduce(hr.IndexedSlices(x(1, 2), [0]), "max"),
        AttributeValueError,
        "op='sum' or 'mean', got 'max'",
    ),
    "slices elsewhere": (
        lambda: hr.dist.all_gather(hr.IndexedSlices(x(1, 2), [0])),
        TypeError,
        "expected a dense tensor, got IndexedSlices",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_when_built(case: str) -> None:
    build, kind, text = REFUSED[case]
    with hr.Graph().as_default(), pytest.raises(kind, match=text):
        build()


def in_a_branch() -> Any:
    fed = hr.placeholder_with_default(True, [])
    return hr.cond(fed, lambda: hr.dist.all_reduce(x(), name="deep"), lambda: x())


def in_a_loop() -> Any:
    step = lambda i, y: (i + 1, hr.dist.all_reduce(y, name="deep"))  # noqa: E731
    return hr.while_loop(lambda i, y: i < 2, step, [0, x()])


@pytest.mark.parametrize("build", [in_a_branch, in_a_loop])
def test_a_collective_in_a_branch_or_loop_is_refused(build: Callable[[], Any]) -> None:
    text = "a collective was built inside the function '.*'.*move it out"
    with hr.Graph().as_default(), pytest.raises(GraphError, match=text):
        build()


@pytest.mark.parametrize("optimize", [True, False])
def test_one_in_a_branch_of_a_graph_that_was_read_is_refused(optimize: bool) -> None:
    from headrace_mpi.ops import collective

    text = re.compile(r"AllReduce '.*' is inside the function.*move it out.*\n  at .*test_coll")
    with hr.Graph().as_default():
        fed = hr.placeholder_with_default(True, [])
        y = hr.cond(fed, lambda: collective.all_reduce([x()])[0], lambda: x())
        session = hr.Session(config=hr.Config(optimize=optimize))
        with session, pytest.raises(PluginError, match=text):
            session.run(y)


def test_a_step_that_fails_before_others_told_their_plan_leaves_the_next_one_good() -> None:
    plan = ("0: AllReduce sum float32[2] 'x'",)

    def program(rank: Rank) -> list[Any]:
        def total(give_up: bool) -> Any:
            found: list[Any] = []
            cancellation, woken = Cancellation(), Wakeup()

            def done(value: Any) -> None:
                found.append(value)
                woken.wake()

            rank.group.run(
                *(plan, 0, 1, "AllReduce 'x'"),
                lambda link: algorithms.all_reduce(link, [np.ones(2)], "sum"),
                cancellation,
                done,
            )
            if give_up:
                # Nothing of the other rank was received yet.
                cancellation.cancel(AbortedError("enough"))
            rank.group.wait(woken, 5.0)
            return found[0]

        return [total(give_up=rank.rank == 0), total(give_up=False)]

    (_, first), (told, second) = good(run_ranks(2, program, timeout_s=5.0))
    assert isinstance(told, AbortedError)
    assert "enough" in str(told)
    np.testing.assert_array_equal([*first, *second], np.full((2, 2), 2.0))
