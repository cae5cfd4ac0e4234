"""Requests that come at the same time are answered by one step, each as if it were alone."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError
from headrace_serve import Batching, Limits, LoadedModel, Signature
from headrace_serve.batching.batcher import Batcher
from headrace_serve.counters import Counters
from headrace_serve.errors import RequestError
from headrace_serve.models.model import Version
from tests.serve.serving import function, info

LIMIT = 30.0


class Gate:
    """A model that says what it is asked, and answers when it is let."""

    def __init__(self, call: Callable[[Any], Any] = lambda x: x * 2) -> None:
        self.asked: list[Any] = []
        self.free = threading.Event()
        self.began = threading.Semaphore(0)
        self._call = call

    def __call__(self, x: Any) -> Any:
        self.asked.append(x.tolist())
        self.began.release()
        assert self.free.wait(LIMIT)
        return self._call(x)


def run(main: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT):
            await main

    asyncio.run(limited())


def batcher(call: Any, shape: Any = (None,), **settings: Any) -> Batcher:
    made: Signature = function(call, {"x": info(shape=shape)}, {"y": info(shape=shape)})
    settings = {"check": False, "pad": False, **settings}
    return Batcher(made, Batching(**settings), name="toy")


def ask(batcher: Batcher, *values: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(batcher.run({"x": np.array(values, np.float32)}))


async def values(task: asyncio.Task[Any]) -> Any:
    return (await task)["y"].tolist()


async def began(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.began.acquire, timeout=LIMIT)


def test_requests_that_wait_are_joined_and_split_again() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate, max_batch_size=4)
        first = ask(toy, 1)
        await began(gate)
        others = [ask(toy, 2, 3), ask(toy), ask(toy, 4), ask(toy, 5, 6)]
        await asyncio.sleep(0)
        assert toy.waiting == 4
        gate.free.set()
        assert [await values(task) for task in [first, *others]] == [
            *([2.0], [4.0, 6.0], [], [8.0], [10.0, 12.0])
        ]
        # In the order in which they came, and no more rows than the limit allows.
        assert gate.asked == [[1], [2, 3, 4], [5, 6]]
        assert toy.waiting == 0
        await toy.close()

    run(main())


def test_steps_of_several_requests_are_filled_to_a_power_of_two() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate, max_batch_size=6, pad=True)
        tasks = [ask(toy, 0)]
        await began(gate)
        tasks += [ask(toy, 1), ask(toy, 2, 3), ask(toy, 4, 5, 6), ask(toy, 7), ask(toy, 8, 9)]
        await asyncio.sleep(0)
        gate.free.set()
        expected = [[0], [2], [4, 6], [8, 10, 12], [14], [16, 18]]
        assert [await values(task) for task in tasks] == expected
        # A power of two, at most the largest batch; a request alone is left as it is.
        assert gate.asked == [[0], [1, 2, 3, 4, 5, 6], [7, 8, 9, 9]]
        await toy.close()

    run(main())


def test_a_request_of_more_rows_than_a_batch_runs_alone() -> None:
    async def main() -> None:
        gate = Gate()
        gate.free.set()
        toy = batcher(gate, max_batch_size=2)
        assert await values(ask(toy, 1, 2, 3)) == [2, 4, 6]
        await toy.close()

    run(main())


def test_requests_of_other_shapes_are_steps_of_their_own() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate, shape=(None, None))
        first = ask(toy, [0])
        await began(gate)
        tasks = [ask(toy, [1]), ask(toy, [2, 3]), ask(toy, [4]), ask(toy, [5, 6])]
        await asyncio.sleep(0)
        gate.free.set()
        found = [await values(task) for task in [first, *tasks]]
        assert found == [[[0]], [[2]], [[4, 6]], [[8]], [[10, 12]]]
        assert gate.asked == [[[0]], [[1], [4]], [[2, 3], [5, 6]]]
        await toy.close()

    run(main())


def test_requests_wait_for_others_no_longer_than_the_delay() -> None:
    async def main() -> None:
        gate = Gate()
        gate.free.set()
        toy = batcher(gate, max_batch_size=3, max_delay=LIMIT * 10)
        full = [ask(toy, 1), ask(toy, 2), ask(toy, 3)]
        assert [await values(task) for task in full] == [[2], [4], [6]]
        toy = batcher(gate, max_batch_size=3, max_delay=0.05)
        assert [await values(task) for task in [ask(toy, 4), ask(toy, 5)]] == [[8], [10]]
        assert gate.asked == [[1, 2, 3], [4, 5]]

    run(main())


def test_a_full_queue_refuses_and_goes_on() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate, max_queue=2)
        tasks = [ask(toy, 0)]
        await began(gate)
        tasks += [ask(toy, 1), ask(toy, 2)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="2 requests wait for toy already") as caught:
            await ask(toy, 3)
        assert (caught.value.status, caught.value.headers) == (503, {"retry-after": "1"})
        gate.free.set()
        assert [await values(task) for task in tasks] == [[0], [2], [4]]
        assert await values(ask(toy, 4)) == [8]
        await toy.close()

    run(main())


def odd(x: Any) -> Any:
    if (x < 0).any():
        raise ValueError("a number below 0")
    return np.sqrt(x)


def test_a_request_that_fails_does_not_fail_its_neighbours() -> None:
    async def main() -> None:
        gate = Gate(odd)
        toy = batcher(gate)
        first = ask(toy, 0)
        await began(gate)
        tasks = [ask(toy, 1), ask(toy, -1), ask(toy, 4)]
        await asyncio.sleep(0)
        gate.free.set()
        assert await values(first) == [0]
        assert await values(tasks[0]) == [1]
        with pytest.raises(ValueError, match="a number below 0"):
            await tasks[1]
        assert await values(tasks[2]) == [2]
        # Requests are joined also after one that was at fault.
        assert toy.joins
        assert gate.asked[1] == [1, -1, 4]
        await toy.close()

    run(main())


def test_nobody_waits_for_a_request_that_was_given_up() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate)
        first = ask(toy, 0)
        await began(gate)
        given_up, other = ask(toy, 1), ask(toy, 2)
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        assert toy.waiting == 1
        first.cancel()
        gate.free.set()
        assert await values(other) == [4]
        assert gate.asked == [[0], [2]]
        await toy.close()

    run(main())


def test_several_steps_run_at_once_where_that_is_allowed() -> None:
    async def main() -> None:
        gate = Gate()
        toy = batcher(gate, steps=2)
        first = ask(toy, 0)
        await began(gate)
        second = ask(toy, 1)
        await began(gate)
        third = ask(toy, 2)
        await asyncio.sleep(0)
        assert toy.waiting == 1
        gate.free.set()
        assert [await values(task) for task in (first, second, third)] == [[0], [2], [4]]
        await toy.close()

    run(main())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x - x.mean(), "requests get other answers together than one by one"),
        (lambda x: x[:1], "a step of several requests fails that they do not fail alone"),
        (lambda x: x.reshape(1), "a step of several requests fails that they do not fail alone"),
    ],
    ids=["mean", "first", "one"],
)
def test_what_must_not_be_joined_is_found_out(
    call: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        gate = Gate(call)
        toy = batcher(gate, check=True)
        first = ask(toy, 1)
        await began(gate)
        tasks = [ask(toy, 2), ask(toy, 3)]
        await asyncio.sleep(0)
        gate.free.set()
        expected = [[call(np.array([v])).tolist()] for v in (1.0, 2.0, 3.0)]
        assert [[await values(task)] for task in [first, *tasks]] == expected
        assert not toy.joins
        await toy.close()

    with caplog.at_level(logging.WARNING, "headrace.serve"):
        run(main())
    assert said in caplog.text


@pytest.mark.parametrize(
    "call",
    [lambda x: x * np.float32(1 + 1e-6 * (len(x) > 1)), lambda x: x * np.nan, lambda x: x > 2],
    ids=["rounding", "nan", "bool"],
)
def test_what_may_be_joined_passes_the_check(call: Any) -> None:
    async def main() -> None:
        gate = Gate(call)
        toy = batcher(gate, check=True)
        first = ask(toy, 1)
        await began(gate)
        tasks = [ask(toy, 2), ask(toy, 3)]
        await asyncio.sleep(0)
        gate.free.set()
        await asyncio.gather(first, *tasks)
        assert toy.joins
        # Checked once: the next ones are joined and not run again.
        before = len(gate.asked)
        gate.free.clear()
        first = ask(toy, 4)
        await asyncio.sleep(0)
        tasks = [ask(toy, 5), ask(toy, 6)]
        await asyncio.sleep(0)
        gate.free.set()
        await asyncio.gather(first, *tasks)
        assert gate.asked[before:] == [[4], [5, 6]]
        await toy.close()

    run(main())


@pytest.mark.parametrize(
    ("inputs", "outputs", "joined"),
    [
        ({"x": info()}, {"y": info()}, True),
        ({"x": info(shape=(None, None)), "z": info(hr.string)}, {"y": info(hr.int32)}, True),
        ({"x": info(shape=(4,))}, {"y": info()}, False),
        ({"x": info()}, {"y": info(shape=())}, False),
        ({"x": info(), "rate": info(shape=())}, {"y": info()}, False),
        ({"x": info(shape=None)}, {"y": info()}, False),
        ({}, {"y": info()}, False),
    ],
)
def test_requests_are_joined_where_every_tensor_has_rows(
    inputs: Any, outputs: Any, joined: bool
) -> None:
    made = function(lambda **arrays: None, inputs, outputs)
    assert Batcher(made, Batching(), name="toy").joins is joined
    assert not Batcher(made, Batching(max_batch_size=1), name="toy").joins


def test_inputs_of_different_numbers_of_rows_run_alone() -> None:
    async def main() -> None:
        two = function(lambda x, z: x + z.sum(), {"x": info(), "z": info()})
        toy = Batcher(two, Batching(check=False), name="toy")
        tasks = [
            asyncio.create_task(toy.run({"x": np.ones(2), "z": np.full(size, 1.0)}))
            for size in (1, 2, 3)
        ]
        assert [await values(task) for task in tasks] == [[2, 2], [3, 3], [4, 4]]
        await toy.close()

    run(main())


def test_a_version_is_let_go_of_when_it_has_answered() -> None:
    async def main() -> None:
        closed: list[int] = []
        signatures = {"serving_default": function(lambda x: x * 2)}
        model = LoadedModel(signatures, lambda: closed.append(1))
        version = Version(1, model, Batching(), model="m", counters=Counters())
        with version.in_use():
            # Its folder goes between the choice of the version and the step.
            closing = asyncio.create_task(version.close())
            await asyncio.sleep(0.01)
            answer = await version.batcher("serving_default").run({"x": np.ones(1)})
            assert answer["y"].tolist() == [2]
            assert (version.state, closed) == ("UNLOADING", [])
        await closing
        assert (version.state, closed) == ("END", [1])

    run(main())


def test_a_version_whose_step_does_not_end_is_left_as_it_is() -> None:
    async def main() -> None:
        closed: list[int] = []
        gate = Gate()
        model = LoadedModel({"serving_default": function(gate)}, lambda: closed.append(1))
        version = Version(1, model, Batching(), model="m", counters=Counters())
        batcher = version.batcher("serving_default")
        request = asyncio.create_task(batcher.run({"x": np.ones(1)}))
        await began(gate)
        await version.close(timeout=0.01)
        assert (version.state, closed) == ("UNLOADING", [])
        gate.free.set()
        await request

    run(main())


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (Batching, {"max_batch_size": 0}, "max_batch_size: expected a whole number >= 1, got 0"),
        (Batching, {"max_queue": 2.5}, "max_queue: expected a whole number >= 1, got 2.5"),
        (Batching, {"steps": True}, "steps: expected a whole number >= 1, got True"),
        (Batching, {"max_delay": -1}, "max_delay: expected a number >= 0, got -1"),
        (Limits, {"timeout": 0}, "timeout: expected a number > 0, got 0"),
        (Limits, {"read_timeout": float("nan")}, "read_timeout: expected a number > 0, got nan"),
        (Limits, {"max_body": "1"}, "max_body: expected a whole number >= 1, got '1'"),
    ],
)
def test_limits_are_numbers_in_their_ranges(kind: Any, options: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        kind(**options)
