"""Threads of pipelines: none is left when a session closes, an iterator goes, or a process ends."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.errors import HeadraceError, OutOfRangeError
from tests.children import run_program
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("headrace-data")]


def wait_until_gone() -> None:
    wait_until(lambda: not threads(), within_s=1.0)


PIPELINES: dict[str, Callable[[], Any]] = {
    "prefetch": lambda: Dataset.range(10**9).prefetch(4),
    "parallel_map": lambda: Dataset.range(10**9).map(lambda x: x + 1, 4),
    "interleave": lambda: Dataset.range(9).interleave(
        lambda x: Dataset.range(10**9), 4, num_parallel_calls=2
    ),
    "all": lambda: (
        Dataset.range(10**9).shuffle(8).map(lambda x: x + 1, 2).batch(3).prefetch(2).prefetch(2)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_closing_the_session_ends_all_threads_in_a_second(name: str) -> None:
    wait_until_gone()
    element = PIPELINES[name]().make_one_shot_iterator().get_next()
    session = hr.Session()
    for _ in range(5):
        session.run(element)
    assert threads()
    session.close()
    wait_until_gone()


def test_starting_an_iterator_anew_ends_the_threads_of_before() -> None:
    iterator = PIPELINES["prefetch"]().make_initializable_iterator()
    element = iterator.get_next()
    with hr.Session() as session:
        for _ in range(5):
            session.run(iterator.initializer)
            session.run(element)
        wait_until(lambda: len(threads()) <= 1, within_s=1.0)
        assert len(threads()) == 1
    wait_until_gone()


def test_a_session_that_nobody_closed_leaves_no_threads() -> None:
    def use() -> None:
        with hr.Graph().as_default():
            element = PIPELINES["all"]().make_one_shot_iterator().get_next()
            session = hr.Session()
            session.run(element)

    use()
    gc.collect()
    wait_until_gone()


def test_threads_end_with_the_elements() -> None:
    element = Dataset.range(9).map(lambda x: x, 2).prefetch(2).make_one_shot_iterator().get_next()
    with hr.Session() as session:
        for _ in range(9):
            session.run(element)
        with pytest.raises(OutOfRangeError, match="no elements left"):
            session.run(element)
        assert all("worker" in thread.name for thread in threads())
    wait_until_gone()


def test_closing_the_session_wakes_who_waits_for_an_element() -> None:
    blocked, release = threading.Event(), threading.Event()

    def slow() -> Any:
        yield 1
        blocked.set()
        release.wait(30)
        yield 2

    element = Dataset.from_generator(slow, hr.int64).prefetch(1).make_one_shot_iterator().get_next()
    session = hr.Session()
    assert session.run(element) == 1
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            session.run(element)
        except HeadraceError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        assert blocked.wait(10)
        session.close()
        waiting.join(1)
        assert not waiting.is_alive()
        assert "closed" in str(raised[0])
    finally:
        release.set()
    wait_until_gone()


PROGRAM = """
import headrace as hr
dataset = hr.data.Dataset.range(10**9).map(lambda x: x * 2, 2).batch(4).prefetch(3)
element = dataset.make_one_shot_iterator().get_next()
session = hr.Session()
print(session.run(element).tolist())
"""


def test_a_process_ends_while_its_threads_run() -> None:
    began = time.monotonic()
    done = run_program(PROGRAM, check=False)
    assert (done.returncode, done.stdout) == (0, "[0, 2, 4, 6]\n")
    assert "Error" not in done.stderr
    assert time.monotonic() - began < 40


@pytest.mark.parametrize(
    "make",
    [lambda d: d.take(2), lambda d: Dataset.zip((Dataset.range(2), d)).map(lambda _, x: x)],
    ids=["take", "zip"],
)
def test_a_generator_is_let_go_where_nothing_more_is_taken(make: Any) -> None:
    ended = threading.Event()

    def numbers() -> Any:
        try:
            yield from range(9)
        finally:
            ended.set()

    with hr.Graph().as_default(), hr.Session() as session:
        dataset = make(Dataset.from_generator(numbers, hr.int64, []))
        element = dataset.make_one_shot_iterator().get_next()
        assert [session.run(element), session.run(element)] == [0, 1]
        assert not ended.is_set()
        for _ in range(2):
            with pytest.raises(hr.errors.OutOfRangeError, match="no elements left"):
                session.run(element)
        assert ended.is_set()
