"""Whatever a step waits for is told after a while, and a deadline ends it: all that may wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.errors import DeadlineExceededError

pytestmark = [pytest.mark.needs("backend-cpu", "train", "io"), pytest.mark.timeout(60)]


def dequeue() -> Any:
    queue = hr.FIFOQueue(10, hr.int32, [[]], name="batches")
    return [queue.dequeue()]


def dequeue_many() -> Any:
    queue = hr.PaddingFIFOQueue(10, hr.int32, [[]], name="batches")
    return [queue.dequeue_many(3), queue.enqueue_many([[1, 2]])]


def dequeue_up_to() -> Any:
    queue = hr.PriorityQueue(10, hr.int32, [[]], name="batches")
    return [queue.dequeue_up_to(2), queue.enqueue((hr.constant(1, hr.int64), 2), name="put")]


def shuffled() -> Any:
    queue = hr.RandomShuffleQueue(10, 4, hr.int32, [[]], name="batches")
    return [queue.dequeue(), queue.enqueue_many([[1, 2]], name="put")]


def barrier() -> Any:
    barrier = hr.Barrier([hr.int32, hr.int32], shapes=[[], []], name="batches")
    return [barrier.take_many(2), barrier.insert_many(0, ["a"], [1], name="put")]


def staging_area() -> Any:
    area = hr.StagingArea([hr.int32], shapes=[[]], shared_name="batches")
    return [area.get()]


def accumulator() -> Any:
    sums = hr.ConditionalAccumulator(hr.float32, shape=[], shared_name="batches")
    return [sums.take_grad(3), sums.apply_grad(1.0, name="put")]


def sparse_accumulator() -> Any:
    sums = hr.SparseConditionalAccumulator(hr.float32, shape=[2], shared_name="batches")
    return [sums.take_grad(1)]


def mutex() -> Any:
    mutex = hr.Mutex("batches")
    first = mutex.acquire()
    with hr.control_dependencies([first.op]):
        return [mutex.acquire().op]


def reader() -> Any:
    names = hr.FIFOQueue(10, hr.string, [[]], name="batches")
    return [hr.TextLineReader().read(names)]


def in_a_loop() -> Any:
    queue = hr.FIFOQueue(10, hr.int32, [[]], name="batches")
    return [hr.while_loop(lambda i: i < 3, lambda i: i + queue.dequeue(), [0])]


# What is told of each: what it is and what is in it, and what could be done.
WAITS = {
    dequeue: ("queue 'batches', which holds 0 of at most 10 elements", "enqueue something, or"),
    # What it has taken so far it holds itself.
    dequeue_many: ("queue 'batches', which holds 0 of", "filled by 'batches_EnqueueMany' (line "),
    dequeue_up_to: ("queue 'batches', which holds 0 of", "filled by 'put' (line "),
    shuffled: ("which holds 2 of at most 10 elements and keeps 4", "filled by 'put' (line "),
    barrier: ("which has 0 complete values and 1 others", "filled by 'put' (line "),
    staging_area: ("staging area 'batches', which holds 0", "enqueue something, or close it"),
    accumulator: ("'batches', which holds 1 of the 3 that are wanted", "filled by 'put' (line "),
    sparse_accumulator: (
        "accumulator 'batches', which holds 0 of the 1",
        "what apply_grad returns",
    ),
    mutex: ("mutex 'batches', whose lock is in use", "release it, or let its step end"),
    reader: ("queue 'batches', which holds 0 of", "enqueue something, or close it"),
    in_a_loop: ("queue 'batches', which holds 0 of", "enqueue something, or close it"),
}


@pytest.fixture(scope="module", autouse=True)
def _other_thread() -> Iterator[None]:
    """Another thread, which might end the waiting: a program's only thread gets an error."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.parametrize("program", WAITS, ids=lambda program: program.__name__)
def test_it_is_told_and_ends(program: Any) -> None:
    what, how = WAITS[program]
    with hr.Graph().as_default():
        take, *puts = program()
        config = hr.Config(wait_report=0.1, timeout=0.4)
        with hr.Session(config=config) as session:
            session.run(puts)
            with (
                pytest.warns(RuntimeWarning, match="has waited for 0.1 seconds") as seen,
                pytest.raises(DeadlineExceededError, match=r"not done within 0\.4 s"),
            ):
                session.run(take)
        # A session ends its own waits only.
        with hr.Session() as session, pytest.raises(DeadlineExceededError, match=r"0\.02 s"):
            session.run(take, options=hr.RunOptions(timeout_in_ms=20))
    (text,) = [str(warning.message) for warning in seen]
    assert what in text
    assert how in text
    assert __file__.rpartition("/")[2] in text
    assert len(text.splitlines()) <= 12


def test_a_deadline_leaves_what_came_to_others() -> None:
    with hr.Graph().as_default():
        queue = hr.FIFOQueue(10, hr.int32, [[]])
        many, one, put = queue.dequeue_many(3), queue.dequeue(), queue.enqueue_many([[1, 2]])
        with hr.Session() as session:
            session.run(put)
            with pytest.raises(DeadlineExceededError, match=r"0\.02 s"):
                session.run(many, options=hr.RunOptions(timeout_in_ms=20))
            assert [session.run(one), session.run(one)] == [1, 2]


def test_a_deadline_is_kept_beside_other_steps() -> None:
    with hr.Graph().as_default():
        queue = hr.FIFOQueue(10, hr.int32, [[]])
        with hr.Session() as session:
            begin = time.monotonic()
            with pytest.raises(DeadlineExceededError, match=r"0\.05 s"):
                session.run(queue.dequeue(), options=hr.RunOptions(timeout_in_ms=50))
            assert time.monotonic() - begin < 5
            assert session.run(queue.size()) == 0
