"""The kinds of queues: in which order elements leave, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, InvalidInputError, OutOfRangeError, ShapeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_queues_have_all_their_names() -> None:
    for name in ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase"):
        assert getattr(hr, name) is getattr(hr.queue, name)
    assert hr.queue.RandomShuffleQueue is hr.RandomShuffleQueue
    assert hr.train.FIFOQueue is hr.FIFOQueue


@pytest.mark.needs("io")
def test_queues_have_names_in_io() -> None:
    assert hr.io.PriorityQueue is hr.PriorityQueue
    assert hr.io.QueueBase is hr.QueueBase
    assert not hasattr(hr.io, "FIFOQueue")


def shuffled(seed: int | None, graph_seed: int | None, **arguments: Any) -> list[int]:
    with hr.Graph().as_default(), hr.Session() as session:
        hr.set_random_seed(graph_seed)
        queue = hr.RandomShuffleQueue(100, 0, hr.int32, [[]], seed=seed, **arguments)
        session.run(queue.enqueue_many([np.arange(100, dtype=np.int32)]))
        return [int(n) for n in session.run(queue.dequeue_many(100))]


def test_equal_seeds_shuffle_alike() -> None:
    assert shuffled(3, None) == shuffled(3, None)
    assert shuffled(3, 4) == shuffled(3, 4)
    assert shuffled(None, 4) == shuffled(None, 4)
    assert shuffled(None, 4, shared_name="s") == shuffled(None, 4, shared_name="s")
    orders = [shuffled(*seeds) for seeds in ((3, None), (3, 4), (4, None), (None, None))]
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == list(range(100)) for order in orders)


def test_every_element_may_come_first() -> None:
    # 4000 draws of the first of 4: each is near 1000, within 6 standard deviations (27.4 each).
    queue = hr.RandomShuffleQueue(4, 0, hr.int32, [[]], seed=11)
    fill, one = queue.enqueue_many([np.arange(4, dtype=np.int32)]), queue.dequeue()
    rest = queue.dequeue_many(3)
    counts = [0] * 4
    with hr.Session() as session:
        for _ in range(4000):
            session.run(fill)
            counts[session.run(one)] += 1
            session.run(rest)
    assert all(abs(count - 1000) < 165 for count in counts), counts


def test_what_is_left_after_dequeuing_waits_for_more_or_the_end() -> None:
    queue = hr.RandomShuffleQueue(10, 3, hr.int32, [[]])
    put, take = queue.enqueue_many([[1, 2, 3, 4]]), queue.dequeue()
    many = queue.dequeue_many(3)
    with hr.Session() as session:
        session.run(put)
        session.run(take)
        assert session.run(queue.size()) == 3
        session.run(queue.close())
        assert session.run(many).shape == (3,)
        with pytest.raises(OutOfRangeError, match="is closed and has too few elements"):
            session.run(take)


def test_equal_priorities_leave_in_the_order_in_which_they_came() -> None:
    queue = hr.PriorityQueue(100, hr.int32, [[]])
    priorities = np.array([5, 1] * 20, np.int64)
    numbers = np.arange(40, dtype=np.int32)
    with hr.Session() as session:
        session.run(queue.enqueue_many([priorities, numbers]))
        _, out = session.run(queue.dequeue_many(40))
    assert out.tolist() == [*range(1, 40, 2), *range(0, 40, 2)]


def test_what_a_closed_queue_cannot_give_stays_in_order() -> None:
    numbers = np.array([4, 2, 9], np.int64)
    for queue, expected in (
        (hr.FIFOQueue(5, [hr.int64], [[]]), [4, 2, 9]),
        (hr.PaddingFIFOQueue(5, [hr.int64], [[]]), [4, 2, 9]),
    ):
        with hr.Session() as session:
            session.run([queue.enqueue_many([numbers])])
            session.run(queue.close())
            with pytest.raises(OutOfRangeError, match="expected 4, got 3"):
                session.run(queue.dequeue_many(4))
            assert session.run(queue.dequeue_up_to(4)).tolist() == expected
    priority = hr.PriorityQueue(5, [hr.int32], [[]])
    with hr.Session() as session:
        session.run(priority.enqueue_many([[1, 1, 0], [10, 11, 12]]))
        session.run(priority.close())
        with pytest.raises(OutOfRangeError, match="expected 4, got 3"):
            session.run(priority.dequeue_many(4))
        assert session.run(priority.dequeue_up_to(4))[1].tolist() == [12, 10, 11]


@pytest.mark.parametrize(
    ("dtype", "rows", "expected"),
    [
        (hr.float32, [[1.5], [], [2, 3]], [[1.5, 0], [0, 0], [2, 3]]),
        (hr.int64, [[1], [2, 3]], [[1, 0], [2, 3]]),
        (hr.bool, [[True], [True, True]], [[True, False], [True, True]]),
        (hr.string, [["a"], ["b", "c"]], [[b"a", b""], [b"b", b"c"]]),
        (hr.complex64, [[1j], [2, 3]], [[1j, 0], [2, 3]]),
    ],
    ids=["float32", "int64", "bool", "string", "complex64"],
)
def test_padding(dtype: Any, rows: Any, expected: Any) -> None:
    queue = hr.PaddingFIFOQueue(5, dtype, [[None]])
    with hr.Session() as session:
        for row in rows:
            session.run(queue.enqueue(hr.constant(row, dtype)))
        assert session.run(queue.dequeue_many(len(rows))).tolist() == expected


def test_padding_takes_no_other_rank_or_fixed_size() -> None:
    queue = hr.PaddingFIFOQueue(5, [hr.float32], [[None, 2]], name="p")
    with pytest.raises(ShapeError, match=r"component 0 of 'p' must have shape \[\?, 2\], got"):
        queue.enqueue([np.zeros((3, 3), np.float32)])
    x = hr.placeholder(hr.float32)
    put = queue.enqueue([x])
    with hr.Session() as session:
        with pytest.raises(ShapeError, match=r"must have shape \[\?, 2\], got \[3\]"):
            session.run(put, {x: [1, 2, 3]})
        assert session.run(queue.size()) == 0


def test_a_priority_is_an_integer() -> None:
    queue = hr.PriorityQueue(5, [hr.string], [[]], name="p")
    with pytest.raises(DTypeError, match="component 0 of 'p' is int64"):
        queue.enqueue([hr.constant(1.0), "a"])
    with pytest.raises(ShapeError, match=r"component 0 of 'p' must have shape \[\], got"):
        queue.enqueue([[1, 2], "a"])


def test_choosing_a_queue_that_is_not_there() -> None:
    queues: list[Any] = [hr.FIFOQueue(5, hr.int32, [[]]) for _ in range(2)]
    index = hr.placeholder(hr.int32, [])
    size = hr.QueueBase.from_list(index, queues).size()
    with hr.Session() as session:
        session.run(queues[1].enqueue(1))
        assert [session.run(size, {index: i}) for i in (0, 1)] == [0, 1]
        with pytest.raises(InvalidInputError, match="there is no queue 2 in a list of 2"):
            session.run(size, {index: 2})


def test_chosen_queues_that_pad_join_any_shape() -> None:
    queues: list[Any] = [hr.PaddingFIFOQueue(5, [hr.int32], [[None]]) for _ in range(2)]
    chosen = hr.QueueBase.from_list(1, queues)
    with hr.Session() as session:
        session.run(chosen.enqueue([[1]]))
        session.run(chosen.enqueue([[1, 2]]))
        assert session.run(chosen.dequeue_many(2)).tolist() == [[1, 0], [1, 2]]


@pytest.mark.parametrize("executor", ["plain", "plan"])
def test_a_step_may_move_elements_between_queues(executor: str) -> None:
    source = hr.FIFOQueue(20, hr.int32, [[]])
    target = hr.PriorityQueue(20, hr.int32, [[]])
    x = source.dequeue()
    move = target.enqueue([hr.cast(-x, hr.int64), x * 10])
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(source.enqueue_many([np.arange(8, dtype=np.int32)]))
        for _ in range(8):
            session.run(move)
        out = session.run(target.dequeue_many(8))
    assert out[0].tolist() == list(range(-7, 1))
    assert out[1].tolist() == list(range(70, -1, -10))
