"""Staging areas: limits, looks, and what waits."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    InvalidArgumentError,
    ResourceExhaustedError,
)

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def later(session: hr.Session, step: Any, feeds: Any = None) -> tuple[threading.Thread, list[Any]]:
    """Start a step that waits, and return its thread and the list into which its result goes."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(session.run(step, feeds))
        except hr.HeadraceError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    assert not found
    return thread, found


def test_a_pipeline_of_two_stages() -> None:
    area = hr.StagingArea([hr.float32], [[2]])
    assert hr.queue.StagingArea is hr.StagingArea
    x = hr.placeholder(hr.float32, [2])
    put = area.put([x])
    (got,) = area.get()
    step = hr.reduce_sum(got) * 2
    sums = []
    with hr.Session() as session:
        session.run(put, {x: [0, 1]})
        for i in range(1, 5):
            total, _ = session.run([step, put], {x: [i, i + 1]})
            sums.append(float(total))
        assert session.run(area.size()) == 1
    assert sums == [2, 6, 10, 14]


def test_what_waits_for_room_of_number() -> None:
    area = hr.StagingArea([hr.int32], capacity=2)
    x = hr.placeholder(hr.int32)
    put, (got,) = area.put([x]), area.get()
    with hr.Session() as session:
        for i in range(2):
            session.run(put, {x: i})
        thread, found = later(session, put, {x: 2})
        assert session.run(got) == 0
        thread.join(10)
        assert found == [None]
        assert [session.run(got) for _ in range(2)] == [1, 2]


def test_what_waits_for_room_of_bytes() -> None:
    area = hr.StagingArea([hr.int32], memory_limit=40)
    x = hr.placeholder(hr.int32)
    put, (got,) = area.put([x]), area.get()
    with hr.Session() as session:
        session.run(put, {x: [0] * 8})
        thread, found = later(session, put, {x: [1] * 4})
        session.run(got)
        thread.join(10)
        assert found == [None]
        with pytest.raises(ResourceExhaustedError, match="44 bytes has no room in staging area"):
            session.run(put, {x: [0] * 11})
        session.run(put, {x: [0] * 6})
        thread, found = later(session, put, {x: [1] * 1})
        session.run(area.clear())
        thread.join(10)
        assert session.run(area.size()) == 1


def test_looking_at_what_is_not_there_yet() -> None:
    area = hr.StagingArea([hr.int32, hr.string], names=["n", "s"])
    n, s = hr.placeholder(hr.int32, []), hr.placeholder(hr.string, [])
    put, look = area.put({"n": n, "s": s}), area.peek(1)
    with hr.Session() as session:
        session.run(put, {n: 1, s: "a"})
        thread, found = later(session, look)
        session.run(put, {n: 2, s: "b"})
        thread.join(10)
        assert found == [{"n": 2, "s": b"b"}]
        assert session.run(area.size()) == 2
        assert session.run(area.peek(0)) == {"n": 1, "s": b"a"}
        with pytest.raises(InvalidArgumentError, match="index must be at least 0, got -1"):
            session.run(area.peek(hr.placeholder_with_default(-1, [])))


@pytest.mark.parametrize("method", ["get", "peek", "put"])
def test_closing_the_session_ends_what_waits(method: str) -> None:
    area = hr.StagingArea([hr.int32], capacity=1)
    put = area.put([1])
    step = {"get": area.get(), "peek": area.peek(1), "put": put}[method]
    session = hr.Session()
    if method != "get":
        session.run(put)
    thread, found = later(session, step)
    session.close()
    thread.join(10)
    assert isinstance(found[0], CancelledError)


def test_a_name_may_be_shared() -> None:
    first = hr.StagingArea([hr.int32], shared_name="mine")
    second = hr.StagingArea([hr.int32], shared_name="mine")
    with hr.Session() as session:
        session.run(first.put([7]))
        assert session.run(second.get()) == [7]


def test_what_staging_areas_refuse() -> None:
    with pytest.raises(AttributeValueError, match="capacity and memory_limit must be at least 0"):
        hr.StagingArea([hr.int32], capacity=-1)
    with pytest.raises(AttributeValueError, match="shared_name must be a string, got 3"):
        hr.StagingArea([hr.int32], shared_name=3)  # type: ignore[arg-type]
