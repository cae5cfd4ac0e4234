"""Kernels that start while the region which makes their inputs still runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import CancelledError, InvalidArgumentError
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.execution.early_start import EarlyStart
from headrace.runtime.execution.step import Step
from headrace.runtime.transfers.rendezvous import LocalRendezvous


class Kernel:
    """A blocking kernel that answers when it is told to."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []
        self.answers: list[Callable[[Any], None]] = []

    def __call__(self, step: Step, done: Callable[[Any], None], *values: Any) -> None:
        self.given.append(values)
        self.answers.append(done)


def new_step() -> Step:
    return Step(1, (), 0, LocalRendezvous(), Cancellation())


def test_a_kernel_starts_with_its_last_input_and_answers_to_its_node() -> None:
    kernel, step, found = Kernel(), new_step(), list[Any]()
    start = EarlyStart(kernel, 2)
    start.outlet(1)(step, "b")
    assert not kernel.given
    start.outlet(0)(step, "a")
    assert kernel.given == [("a", "b")]
    start(step, found.append, "a", "b")
    assert not found
    kernel.answers[0]("sum")
    assert found == ["sum"]
    assert len(kernel.given) == 1
    assert start.started == 0


def test_an_answer_that_comes_before_the_node_waits_for_it() -> None:
    kernel, step, found = Kernel(), new_step(), list[Any]()
    start = EarlyStart(kernel, 1)
    assert start.outlet(0)(step, "a") == "a"
    kernel.answers[0]("sum")
    start(step, found.append, "a")
    assert found == ["sum"]


def test_what_no_region_lets_go_starts_with_the_node() -> None:
    kernel, step, found = Kernel(), new_step(), list[Any]()
    start = EarlyStart(kernel, 2)
    start(step, found.append, "a", "b")
    start.outlet(1)(step, "d")
    start(step, found.append, "c", "d")
    assert kernel.given == [("a", "b"), ("c", "d")]
    for answer, value in zip(kernel.answers, ("first", "second"), strict=True):
        answer(value)
    assert found == ["first", "second"]
    assert start.started == 0


def test_steps_that_run_at_once_start_each_its_own() -> None:
    kernel, steps = Kernel(), [new_step(), new_step()]
    start = EarlyStart(kernel, 1)
    found: list[list[Any]] = [[], []]
    for number, step in enumerate(steps):
        start.outlet(0)(step, number)
    for number in (1, 0):
        start(steps[number], found[number].append, number)
        kernel.answers[number](f"of {number}")
    assert found == [["of 0"], ["of 1"]]


def test_an_error_of_a_start_is_that_of_the_node() -> None:
    def refuse(step: Step, done: Callable[[Any], None], *values: Any) -> None:
        raise InvalidArgumentError("no such rank")

    start, step = EarlyStart(refuse, 1), new_step()
    start.outlet(0)(step, "a")
    with pytest.raises(InvalidArgumentError, match="no such rank"):
        start(step, lambda value: None, "a")


def test_a_step_that_is_cancelled_in_the_region_leaves_nothing() -> None:
    kernel, step = Kernel(), new_step()
    start = EarlyStart(kernel, 1)
    start.outlet(0)(step, "a")
    assert start.started == 1
    step.cancellation.cancel(CancelledError("the step ended"))
    assert start.started == 0
    assert kernel.given == [("a",)]
