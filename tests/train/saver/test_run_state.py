"""A Saver keeps what else a run needs to go on: contents of queues, positions, random streams."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DataLossError, GraphError, InvalidArgumentError
from headrace.extend.primitives import queue_contents, restore_queue_contents

pytestmark = [pytest.mark.needs("backend-cpu", "data"), pytest.mark.usefixtures("graph")]


TYPES, SHAPES = [hr.int64, hr.string, hr.bfloat16], [[], [2], []]

QUEUES: dict[str, Callable[[], Any]] = {
    "fifo": lambda: hr.FIFOQueue(9, TYPES, SHAPES, name="q"),
    "padding": lambda: hr.PaddingFIFOQueue(9, TYPES, [[], [None], []], name="q"),
    "priority": lambda: hr.PriorityQueue(9, TYPES[1:], SHAPES[1:], name="q"),
    "shuffle": lambda: hr.RandomShuffleQueue(9, 2, TYPES, SHAPES, seed=3, name="q"),
}


def rows(count: int) -> list[Any]:
    """Return elements; their numbers are not in order, as priorities are not."""
    return [
        np.array([(5 * n) % 7 for n in range(count)]),
        np.array([[b"a\0%d" % n, b""] for n in range(count)], object),
        np.arange(count).astype(hr.bfloat16.numpy),
    ]


@pytest.mark.parametrize("kind", QUEUES)
def test_a_queue_goes_on_where_it_was(kind: str, tmp_path: Path) -> None:
    queue = QUEUES[kind]()
    fill, take = queue.enqueue_many(rows(8)), queue.dequeue()
    noise = hr.random_normal([3], seed=4)
    weight = hr.Variable(1.5)
    saver = hr.train.Saver(run_state=True)
    with hr.Session() as session:
        session.run([hr.global_variables_initializer(), fill])
        session.run([take, noise])
        path = saver.save(session, tmp_path / "run")
        expected = [session.run([take, noise]) for _ in range(4)]
        saver.restore(session, path)
        again = [session.run([take, noise]) for _ in range(4)]
    with hr.Session() as session:
        saver.restore(session, path)
        later = [session.run([take, noise]) for _ in range(4)]
        assert session.run(weight) == 1.5
    for found in (again, later):
        for (got, drawn), (want, drew) in zip(found, expected, strict=True):
            assert [np.asarray(part).tolist() for part in got] == [
                np.asarray(part).tolist() for part in want
            ]
            np.testing.assert_array_equal(drawn, drew)


def test_random_streams_are_in_every_checkpoint_of_all_variables(tmp_path: Path) -> None:
    hr.Variable(0.0)
    noise = hr.random_uniform([4], seed=1)
    saver = hr.train.Saver()
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        first = session.run(noise)
        path = saver.save(session, tmp_path / "run")
        second = session.run(noise)
    with hr.Session() as session:
        # As in TensorFlow, unless a program asks for them.
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(noise), first)
        saver.restore(session, path, run_state=True)
        np.testing.assert_array_equal(session.run(noise), second)


def test_a_monitored_session_goes_on_from_a_checkpoint_of_a_saver(tmp_path: Path) -> None:
    step = hr.train.get_or_create_global_step()
    noise = hr.random_uniform([4], seed=1)
    saver = hr.train.Saver()
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(noise)
        saver.save(session, tmp_path / "run", step)
        expected = session.run(noise)
    creator = hr.train.ChiefSessionCreator(checkpoint_dir=str(tmp_path))
    with hr.train.MonitoredSession(creator) as session:
        np.testing.assert_array_equal(session.run(noise), expected)


def test_a_checkpoint_without_it_restores(tmp_path: Path, caplog: Any) -> None:
    weight = hr.Variable(2.0)
    path_of_old = hr.train.Saver([weight])
    queue = hr.FIFOQueue(3, hr.float32, [[]])
    saver = hr.train.Saver(run_state=True)
    with hr.Session() as session:
        session.run([weight.initializer, queue.enqueue(7.0)])
        path = path_of_old.save(session, tmp_path / "old")
        saver.restore(session, path)
        assert session.run([weight, queue.size()]) == [2.0, 1]
    assert "has no state of a run" in caplog.text


def test_elements_of_a_dequeue_that_waits_are_in_it() -> None:
    queue = hr.FIFOQueue(9, hr.int32, [[]])
    put, both = queue.enqueue_many([[1, 2]]), queue.dequeue_many(3)
    contents, value = queue_contents(queue.queue_ref), hr.placeholder(hr.string, [])
    restore = restore_queue_contents(queue.queue_ref, value)
    with hr.Session() as session:
        session.run(put)
        found: list[Any] = []
        waiting = threading.Thread(target=lambda: found.append(session.run(both)), daemon=True)
        waiting.start()
        while session.run(queue.size()):
            pass
        saved = session.run(contents)
        # What it held is replaced with it, not given to it twice.
        session.run(restore, {value: saved})
        session.run(queue.enqueue(3))
        waiting.join(30)
        assert not waiting.is_alive()
        assert found[0].tolist() == [1, 2, 3]
    with hr.Session() as session:
        session.run(restore, {value: saved})
        assert session.run(queue.size()) == 2


def test_a_closed_queue_stays_closed() -> None:
    queue = hr.FIFOQueue(9, hr.int32, [[]])
    contents, value = queue_contents(queue.queue_ref), hr.placeholder(hr.string, [])
    restore = restore_queue_contents(queue.queue_ref, value)
    with hr.Session() as session:
        session.run(queue.enqueue(1))
        session.run(queue.close())
        saved = session.run(contents)
    with hr.Session() as session:
        session.run(restore, {value: saved})
        assert session.run(queue.is_closed())
        assert session.run(queue.dequeue()) == 1
        with pytest.raises(hr.errors.OutOfRangeError, match="is closed and has too few"):
            session.run(queue.dequeue())


@pytest.mark.parametrize(
    ("other", "change", "error", "message"),
    [
        (
            lambda: hr.FIFOQueue(9, hr.int32, [[]]),
            bytes,
            DataLossError,
            "what was saved has float32",
        ),
        (lambda: hr.FIFOQueue(1, hr.float32, [[]]), bytes, InvalidArgumentError, "at most 1 elem"),
        (
            lambda: hr.FIFOQueue(9, hr.float32, [[2]]),
            bytes,
            InvalidArgumentError,
            "must have shape",
        ),
        (lambda: hr.FIFOQueue(9, hr.float32), lambda b: b[:-9], DataLossError, "are damaged"),
        (lambda: hr.FIFOQueue(9, hr.float32), lambda b: b"", DataLossError, "no saved contents"),
    ],
)
def test_contents_of_another_queue_are_refused(
    other: Callable[[], Any],
    change: Callable[[bytes], bytes],
    error: type[Exception],
    message: str,
) -> None:
    queue, target = hr.FIFOQueue(9, hr.float32, [[]]), other()
    value = hr.placeholder(hr.string, [])
    restore = restore_queue_contents(target.queue_ref, value)
    with hr.Session() as session:
        session.run(queue.enqueue_many([[1.0, 2.0]]))
        saved = session.run(queue_contents(queue.queue_ref))
        with pytest.raises(error, match=message):
            session.run(restore, {value: change(saved)})
        assert session.run(target.size()) == 0


def test_queues_that_runners_fill_are_refused() -> None:
    hr.Variable(0.0)
    hr.train.string_input_producer(["a", "b"])
    with pytest.raises(GraphError, match="queue runners fill input_producer"):
        hr.train.Saver(run_state=True)
    hr.train.Saver()


def test_too_much_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("headrace_train.resumption.run_state._MOST_BYTES", 1 << 10)
    hr.Variable(0.0)
    queue = hr.FIFOQueue(9, hr.float32, [[300]])
    saver = hr.train.Saver(run_state=True)
    with hr.Session() as session:
        session.run([hr.global_variables_initializer(), queue.enqueue(np.zeros(300, np.float32))])
        with pytest.raises(hr.errors.CheckpointError, match="let queues and shuffle buffers hold"):
            saver.save(session, tmp_path / "run")
