"""Pipelines of many threads lose and double nothing, mix, end quietly, and fail with one error."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DTypeError,
    InvalidArgumentError,
    ShapeError,
    SymbolicTensorError,
)
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu", "train")


def drive(build: Callable[[], Any], most: int = 100_000) -> list[Any]:
    """Return what a pipeline yields until it ends, and make sure that its threads have ended."""
    taken: list[Any] = []
    with hr.Graph().as_default():
        fetches = build()
        with hr.Session() as session:
            session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])
            coordinator = hr.train.Coordinator()
            threads = hr.train.start_queue_runners(session, coordinator)
            with coordinator.stop_on_exception():
                while not coordinator.should_stop() and len(taken) < most:
                    taken.append(session.run(fetches))
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=20)
            assert not any(thread.is_alive() for thread in threads)
    return taken


def numbers(limit: int, epochs: int = 1, **options: Any) -> Any:
    return hr.train.range_input_producer(limit, epochs, **options).dequeue()


# -- nothing lost, nothing doubled

COUNT = 600
JOINED = {
    "batch": lambda x: hr.train.batch([x], 7, 4, 16, allow_smaller_final_batch=True),
    "batch many": lambda x: hr.train.batch(
        [hr.stack([x])], 7, 4, 5, enqueue_many=True, allow_smaller_final_batch=True
    ),
    "padded": lambda x: hr.train.batch(
        [x], 7, 4, 16, dynamic_pad=True, allow_smaller_final_batch=True
    ),
    "shuffled": lambda x: hr.train.shuffle_batch(
        [x], 7, 60, 40, 4, seed=1, allow_smaller_final_batch=True
    ),
    "shuffled many": lambda x: hr.train.shuffle_batch(
        [hr.stack([x])], 7, 60, 40, 4, enqueue_many=True, allow_smaller_final_batch=True
    ),
    "kept": lambda x: hr.train.maybe_batch(
        [x], hr.greater_equal(x, 0), 7, 4, allow_smaller_final_batch=True
    ),
    "bucket": lambda x: hr.train.bucket(
        [x], x % 5, 7, 5, num_threads=4, allow_smaller_final_batch=True
    )[1],
    "batch of batches": lambda x: hr.train.batch(
        [hr.train.batch([x], 5, 2, allow_smaller_final_batch=True)],
        *(7, 2, 20, True),
        allow_smaller_final_batch=True,
    ),
}


@pytest.mark.parametrize("kind", JOINED)
def test_every_example_comes_once_in_each_epoch(kind: str) -> None:
    taken = drive(lambda: JOINED[kind](numbers(COUNT, 2, capacity=50)))
    found = collections.Counter(np.concatenate(taken).tolist())
    assert found == dict.fromkeys(range(COUNT), 2)


def test_no_rows_end_at_once_where_epochs_are_counted() -> None:
    assert drive(lambda: numbers(0, 2)) == []


@pytest.mark.parametrize("shuffled", [False, True])
def test_every_source_of_a_join_gives_all(shuffled: bool) -> None:
    def build() -> Any:
        examples = [{"x": numbers(100) + 1000 * i} for i in range(6)]
        if shuffled:
            return hr.train.shuffle_batch_join(examples, 25, 80, 40)["x"]
        return hr.train.batch_join(examples, 25)["x"]

    found = np.sort(np.concatenate(drive(build)))
    np.testing.assert_array_equal(found, np.add.outer(1000 * np.arange(6), np.arange(100)).ravel())


def test_parts_of_an_example_stay_together() -> None:
    def build() -> Any:
        x = numbers(300)
        sparse = hr.SparseTensor([[0]], hr.stack([x]), [1])
        return hr.train.shuffle_batch([x, hr.as_string(x), hr.fill([2], x), sparse], 6, 50, 20, 3)

    for number, text, pair, sparse in drive(build):
        assert [int(t) for t in text] == number.tolist() == sparse.values.tolist()
        np.testing.assert_array_equal(pair, np.stack([number, number], 1))


# -- order


def test_each_epoch_is_shuffled_anew_and_complete() -> None:
    taken = [int(x) for x in drive(lambda: numbers(50, 3, seed=4))]
    epochs = [taken[i : i + 50] for i in range(0, 150, 50)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(50))] * 3
    assert len({tuple(epoch) for epoch in [*epochs, list(range(50))]}) == 4


@pytest.mark.parametrize(
    "build",
    [
        lambda: numbers(40, seed=4),
        lambda: hr.train.string_input_producer(list("abcdefgh"), 2, seed=3).dequeue(),
        lambda: hr.train.slice_input_producer([np.arange(30)], 2, seed=3),
    ],
    ids=["range", "strings", "slices"],
)
def test_a_seed_decides_the_order(build: Callable[[], Any]) -> None:
    first, second = drive(build), drive(build)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_more_that_stay_mix_better() -> None:
    def distance(kept: int) -> float:
        x = np.concatenate(
            drive(
                lambda: hr.train.shuffle_batch(
                    [numbers(400, shuffle=False)], 10, kept + 20, kept, seed=2
                )
            )
        )
        return float(np.abs(x - np.arange(len(x))).mean())

    assert distance(150) > 3 * distance(10)


# -- the end


def test_the_end_of_an_epoch_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    drive(lambda: hr.train.shuffle_batch([numbers(30)], 4, 20, 10, num_threads=3))
    drive(lambda: hr.train.bucket([numbers(30)], 0, 4, 1))
    assert capfd.readouterr() == ("", "")


def test_a_stop_in_the_middle_ends_all_threads_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    start = time.monotonic()
    for kind in JOINED.values():
        drive(lambda kind=kind: kind(numbers(10, None, capacity=5)), most=3)
    assert time.monotonic() - start < 20
    assert threading.active_count() == before
    assert capfd.readouterr() == ("", "")


def test_epochs_go_on_counting_where_they_were_restored() -> None:
    before = hr.local_variables()
    limited = hr.train.limit_epochs(hr.constant(1), 3)
    (epochs,) = [v for v in hr.local_variables() if v not in before]
    with hr.Session() as session:
        session.run(epochs.assign(2))
        assert session.run(limited) == 1
        with pytest.raises(hr.errors.OutOfRangeError, match="has reached its limit 3"):
            session.run(limited)


def test_sessions_share_a_queue_by_name() -> None:
    with hr.Graph().as_default():
        with hr.container("shared pipelines"):
            batch = hr.train.batch([hr.constant(7)], 2, shared_name="pipeline")
        with hr.Session() as first, hr.Session() as second:
            coordinator = hr.train.Coordinator()
            threads = hr.train.start_queue_runners(first, coordinator)
            assert second.run(batch).tolist() == [7, 7]
            coordinator.request_stop()
            coordinator.join(threads)


# -- errors while it runs


def test_an_error_in_one_thread_ends_all_and_is_raised() -> None:
    def fail(x: Any) -> Any:
        if x == 5:
            raise ValueError("example 5 is broken")
        return x

    def build() -> Any:
        x = hr.py_func(fail, [numbers(20, shuffle=False)], hr.int32)
        x.set_shape([])
        return hr.train.batch([x], 3, num_threads=2)

    with pytest.raises(hr.errors.OpError, match="example 5 is broken"):
        drive(build)


def test_an_example_of_another_shape_names_the_queue_and_the_line() -> None:
    def build() -> Any:
        row = hr.placeholder_with_default(hr.range(numbers(5, shuffle=False)), None)
        return hr.train.batch([row], 2, shapes=[[0]])

    with pytest.raises(InvalidArgumentError, match=r"must have shape \[0\], got \[1\]") as caught:
        drive(build)
    assert "test_pipelines.py" in str(caught.value)


def test_rows_of_different_numbers() -> None:
    def build() -> Any:
        rows = [hr.range(numbers(3)), hr.range(hr.constant(7))]
        rows[1] = hr.placeholder_with_default(rows[1], [None])
        return hr.train.shuffle_batch(rows, 2, 10, 2, enqueue_many=True)

    with pytest.raises(InvalidArgumentError, match="one leading size"):
        drive(build)


@pytest.mark.parametrize("number", [-1, 3])
def test_a_bucket_that_is_not_there(number: int) -> None:
    def build() -> Any:
        which = hr.placeholder_with_default(hr.constant(number), [])
        return hr.train.bucket([numbers(3)], which, 2, 3)

    with pytest.raises(InvalidArgumentError, match=f"queue {number} in a list of 3"):
        drive(build)


def test_a_queue_closed_under_its_threads() -> None:
    with hr.Graph().as_default():
        queue = hr.train.range_input_producer(4)
        batch = hr.train.batch([queue.dequeue()], 2)
        close = queue.close(cancel_pending_enqueues=True)
        with hr.Session() as session:
            coordinator = hr.train.Coordinator()
            threads = hr.train.start_queue_runners(session, coordinator)
            assert session.run(batch).shape == (2,)
            session.run(close)
            with pytest.raises(CancelledError, match="closed"):
                coordinator.join(threads, stop_grace_period_secs=20)
            assert not any(thread.is_alive() for thread in threads)


# -- what is refused when the graph is built

REFUSED: list[tuple[str, type[Exception], str, Callable[[], Any]]] = [
    (
        "a tensor",
        SymbolicTensorError,
        r"takes examples as lists or dicts of tensors, got .*pass \[tensor\]",
        lambda: hr.train.batch(hr.constant([1]), 2),
    ),
    (
        "a number",
        DTypeError,
        "takes examples as lists or dicts of tensors, got 5",
        lambda: hr.train.shuffle_batch(5, 2, 10, 3),  # type: ignore[arg-type]
    ),
    (
        "nothing",
        AttributeValueError,
        "batch needs at least one tensor",
        lambda: hr.train.batch({}, 2),
    ),
    (
        "other lengths",
        AttributeValueError,
        "2 tensors and, in place 1, 1 tensors",
        lambda: hr.train.batch_join([[1, 2], [1]], 2),
    ),
    (
        "other keys",
        AttributeValueError,
        "the keys 'a' and, in place 1, the keys 'b'",
        lambda: hr.train.batch_join([{"a": 1}, {"b": 1}], 2),
    ),
    (
        "a join of a tensor",
        DTypeError,
        "takes a list of examples, one for each thread",
        lambda: hr.train.shuffle_batch_join(hr.constant([1]), 2, 10, 3),
    ),
    (
        "keep_input of numbers",
        DTypeError,
        "bool",
        lambda: hr.train.maybe_batch([1], 2.5, 2),
    ),
    (
        "sparse rows",
        ShapeError,
        "2 dimensions or more",
        lambda: hr.train.batch([hr.SparseTensor([[0]], [1], [2])], 2, enqueue_many=True),
    ),
    (
        "no buckets",
        AttributeValueError,
        "at least one bucket, got num_buckets=0",
        lambda: hr.train.bucket([1], 0, 2, 0),
    ),
    (
        "slices of numbers",
        ShapeError,
        "takes rows, got the scalar",
        lambda: hr.train.slice_input_producer([1]),
    ),
    (
        "rows of a number",
        ShapeError,
        "takes the rows of a tensor, got the scalar",
        lambda: hr.train.input_producer(1),
    ),
    (
        "no rows for ever",
        AttributeValueError,
        "has no rows to go through again and again; with num_epochs=1 the input ends",
        lambda: hr.train.input_producer(hr.zeros([0, 2])),
    ),
    (
        "no numbers for ever",
        AttributeValueError,
        "has no rows to go through again and again",
        lambda: hr.train.range_input_producer(0),
    ),
    (
        "no slices for ever",
        AttributeValueError,
        "has no rows to go through again and again",
        lambda: hr.train.slice_input_producer([np.zeros((0, 2))]),
    ),
    (
        "capacity",
        AttributeValueError,
        "capacity must be more than min_after_dequeue, got 5 and 5",
        lambda: hr.train.shuffle_batch([1], 2, 5, 5),
    ),
    (
        "unknown shapes",
        ShapeError,
        "known as .* only; pass element_shape=",
        lambda: hr.train.input_producer(hr.placeholder(hr.int32, [3, None])),
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_say_what_is_wrong(case: tuple[str, type[Exception], str, Any]) -> None:
    _, kind, match, build = case
    with hr.Graph().as_default(), pytest.raises(kind, match=match):
        build()


def test_names_are_those_of_tensorflow() -> None:
    with hr.Graph().as_default():
        assert hr.train.string_input_producer(["a"], name="files").name == "files"
        assert hr.train.range_input_producer(3).name == "input_producer"
        assert hr.train.limit_epochs(hr.constant(1), 2).name == "limit_epochs:0"
        assert [v.name for v in hr.local_variables()] == ["limit_epochs/epochs:0"]
        first, second = hr.train.batch([1, 2], 2)
        assert (first.name, second.name) == ("batch:0", "batch:1")
        assert hr.train.shuffle_batch([1], 2, 5, 1, name="mixed").name == "mixed:0"


NEVER_STARTED = """
import headrace as hr
number = hr.train.range_input_producer(4).dequeue()
for batch in (
    hr.train.batch([number], 2),
    hr.train.shuffle_batch([number], 2, 10, 3),
    hr.train.bucket([number], 0, 2, 1)[1],
):
    with hr.Session(config=hr.Config(wait_report=0.2)) as session:
        try:
            session.run(batch)
        except hr.errors.FailedPreconditionError as error:
            print(error)
"""


def test_pipelines_whose_threads_were_never_started_say_so() -> None:
    # In a process of its own, which has no other threads.
    done = run_program(NEVER_STARTED)
    told = "its queue runner was never started in this session: call hr.train.start_queue_runners"
    assert done.stdout.count(told) == 3
