"""Queues that hold small elements side by side: what comes out, and that no place is lost."""

import contextlib
import queue as queue_of_batches
import random
import threading

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CancelledError
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace_cpu.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from headrace_cpu.queues.slots import LARGEST, Slots

DTYPES = [hr.int64, hr.uint8, hr.string]
SHAPES = [hr.Shape([]), hr.Shape([2, 3]), hr.Shape([2])]


def rows(numbers):
    """Return elements that hold their number in each component."""
    texts = np.empty((len(numbers), 2), object)
    texts[:, 0] = [b"%d" % n for n in numbers]
    texts[:, 1] = b"b"
    return (
        np.array(numbers, np.int64),
        np.broadcast_to(np.array(numbers, np.uint8)[:, None, None], (len(numbers), 2, 3)),
        texts,
    )


def numbers_of(columns):
    """Return the numbers of elements, which all components must hold."""
    found = columns[0].tolist()
    for column, expected in zip(columns, rows(found), strict=True):
        np.testing.assert_array_equal(column, expected)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_places_hold_what_was_put_until_it_is_taken(seed):
    rng, slots = random.Random(seed), Slots.fitting(DTYPES, SHAPES)
    there = {}
    for _ in range(300):
        count = rng.randrange(5)
        if rng.random() < 0.55:
            numbers = [rng.randrange(200) for _ in range(count)]
            places = slots.put(rows(numbers))
            assert there.keys().isdisjoint(places.tolist())
            there.update(zip(places.tolist(), numbers, strict=True))
        else:
            places = np.array(rng.sample(sorted(there), min(count, len(there))), np.int64)
            numbers = [there[place] for place in places.tolist()]
            assert numbers_of(slots.read(places)) == numbers
            assert numbers_of(slots.take(places)) == numbers
            for place in places.tolist():
                del there[place]
        assert slots.used == len(there)
    slots.free(np.array(list(there), np.int64))
    assert slots.used == 0


def test_what_came_is_copied():
    slots = Slots.fitting([hr.int64], [hr.Shape([2])])
    given = np.ones((3, 2), np.int64)
    places = slots.put([given])
    given[:] = 7
    taken = slots.take(places)
    slots.put([given])
    np.testing.assert_array_equal(taken[0], np.ones((3, 2)))


def test_the_memory_of_many_elements_is_given_back():
    slots = Slots.fitting([hr.uint8], [hr.Shape([LARGEST])])
    places = slots.put([np.zeros((1000, LARGEST), np.uint8)])
    assert slots.held_bytes >= 1000 * LARGEST
    slots.free(places)
    assert slots.held_bytes < 1 << 22


@pytest.mark.parametrize(
    ("dtypes", "shapes"),
    [([hr.int64], [hr.Shape([None])]), ([hr.uint8], [hr.Shape([LARGEST + 1])])],
)
def test_only_small_elements_of_one_shape_stand_side_by_side(dtypes, shapes):
    assert Slots.fitting(dtypes, shapes) is None


def kinds():
    yield "fifo", lambda: FIFOQueue("q", 6, DTYPES, SHAPES)
    yield "shuffle", lambda: RandomShuffleQueue("q", 6, DTYPES, SHAPES, 0, (1, 2))
    yield "padding", lambda: PaddingFIFOQueue("q", 6, DTYPES, SHAPES)


@pytest.fixture(params=dict(kinds()).items(), ids=dict(kinds()))
def queue(request):
    return request.param[1]()


def put(queue, numbers, log, cancellation=None):
    components = rows(numbers)
    queue.elements.check(components, many=True)
    queue.put(queue.held(np, components, many=True), log.append, cancellation)


def used(queue):
    return queue._slots.used if queue._slots is not None else queue.size


def test_elements_come_out_as_tuples_and_joined(queue):
    log = []
    put(queue, [1, 2, 3, 4], log)
    queue.take(2, log.append)
    queue.collect(2, log.append)
    assert log[0] is None
    singles = [int(element[0]) for element in log[1]]
    for number, element in zip(singles, log[1], strict=True):
        for part, column in zip(element, rows([number]), strict=True):
            np.testing.assert_array_equal(part, column[0])
    assert sorted([*singles, *numbers_of(queue.join(np, log[2]))]) == [1, 2, 3, 4]
    assert used(queue) == 0


def test_one_element(queue):
    log = []
    queue.put(queue.held(np, [part[0, ...] for part in rows([5])], many=False), log.append)
    queue.collect(1, log.append)
    arrays = queue.arrays(np, log[1][0])
    for part, column in zip(arrays, rows([5]), strict=True):
        assert part.dtype == column.dtype
        np.testing.assert_array_equal(part, column[0])
    assert used(queue) == 0


@pytest.mark.parametrize("end", ["reset", "close", "finish", "cancel"])
def test_elements_that_are_dropped_leave_their_places(queue, end):
    log, cancellation = [], Cancellation()
    put(queue, range(6), log)
    put(queue, [6, 7], log, cancellation)
    match end:
        case "reset":
            queue.reset()
        case "close":
            queue.close(CancelledError("over"))
        case "finish":
            queue.finish(cancel_pending_enqueues=True)
        case "cancel":
            cancellation.cancel(CancelledError("over"))
    assert isinstance(log[1], CancelledError)
    kept = 6 if end in ("finish", "cancel") else 0
    assert queue.size == kept
    assert used(queue) == kept
    if end in ("close", "finish"):
        put(queue, [8], log)
        assert isinstance(log[2], CancelledError)
        assert used(queue) == kept


def test_what_a_dequeue_collected_goes_back_or_is_dropped(queue):
    log, cancellation = [], Cancellation()
    put(queue, [1, 2], log)
    queue.collect(5, log.append, cancellation)
    assert queue.size == 0
    cancellation.cancel(CancelledError("over"))
    assert queue.size == used(queue) == 2
    queue.collect(5, log.append)
    queue.reset()
    assert used(queue) == 0


def test_contents_replace_those_of_another(queue):
    log = []
    put(queue, [1, 2, 3, 4, 5], log)
    queue.take(1, log.append)
    saved = queue.contents()
    put(queue, [9, 9], log)
    queue.replace(saved)
    assert used(queue) == 4
    again = queue.contents()
    assert [int(e[0]) for e in again.elements] == [int(e[0]) for e in saved.elements]
    assert again.drawn == saved.drawn


def test_a_shuffling_queue_draws_as_python_does():
    queue = RandomShuffleQueue("q", -1, [hr.int64], [hr.Shape([])], 0, (3, 4))
    numbers = list(range(900))
    queue.put(queue.held(np, [np.array(numbers)], many=True), lambda result: None)
    drawing, log = random.Random((3 << 64) ^ 4), []
    for count in (1, 100, 7, 400):
        queue.collect(count, log.append)
        expected = []
        for _ in range(count):
            place = int(drawing.random() * len(numbers))
            expected.append(numbers[place])
            numbers[place] = numbers[-1]
            numbers.pop()
        assert queue.join(np, log[-1])[0].tolist() == expected
        assert queue.contents().drawn == drawing.getstate()


def test_rows_that_come_in_while_others_leave_are_kept():
    slots, stop = Slots.fitting([hr.int64], [hr.Shape([64])]), threading.Event()
    ready, wrong = queue_of_batches.Queue(maxsize=20), []

    def fill():
        start = 0
        while not stop.is_set():
            # More each time: rows are moved, too.
            numbers = np.arange(start, start + 50 + start % 300)
            start += len(numbers)
            rows = np.broadcast_to(numbers[:, None], (len(numbers), 64))
            ready.put((slots.put([rows]), numbers))

    threads = [threading.Thread(target=fill, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        places, numbers = ready.get(timeout=20)
        (found,) = slots.take(places)
        if not (found == numbers[:, None]).all():
            wrong.append(numbers)
    stop.set()
    while any(thread.is_alive() for thread in threads) or not ready.empty():
        with contextlib.suppress(queue_of_batches.Empty):
            slots.free(ready.get(timeout=0.01)[0])
    assert not wrong
    assert slots.used == 0
