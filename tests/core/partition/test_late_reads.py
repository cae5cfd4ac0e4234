"""Reads of variables on other tasks: as late as they can be, so that updates happen in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.extend.state import VariableCell
from headrace.runtime.execution.plan import Plan
from headrace.runtime.options import Options
from tests.core.partition.several_tasks import COMPILED, PLAIN, Tasks, on

pytestmark = [pytest.mark.needs("backend-cpu")]

PS, HERE = DeviceName("ps", 0), DeviceName("worker", 0)


def momentum() -> tuple[Any, Any, list[Any]]:
    """Return a weight, its momentum, and what moves both by what a worker makes of the weight."""
    with on(PS):
        weight = hr.Variable(np.full(4, 3.0, np.float32), name="weight")
        speed = hr.Variable(np.ones(4, np.float32), name="speed")
    with on(HERE):
        change = hr.identity(weight) * 0.5
    with on(PS):
        read = speed.value()
        faster = read + (change - read) * 0.5
        moved = hr.assign(speed, faster)
        done = [moved.op, hr.assign_sub(weight, moved * 0.1).op]
    return weight, speed, done


def stretch_of_reads(plan: Plan, name: str) -> list[int]:
    """Return in which stretches of a plan a variable is read."""
    return [
        index
        for index, stretch in enumerate(plan.stretches)
        for node in stretch.nodes
        for op in node.ops
        if op.type == "ReadVariable" and op.inputs[0].op.name == name
    ]


@pytest.mark.parametrize("options", [COMPILED, PLAIN], ids=["compiled", "plain"])
def test_what_only_an_update_needs_is_read_with_it(options: Options) -> None:
    tasks = Tasks(options)
    weight, speed, done = momentum()
    tasks.run([], [weight.initializer, speed.initializer])
    plan = tasks.plans(tasks.parts([], done), 0)[PS]
    assert plan.in_turn
    assert len(plan.stretches) == 2
    # The weight goes to the worker first; its momentum is needed when the change is there.
    assert stretch_of_reads(plan, "weight")[0] == 0
    assert stretch_of_reads(plan, "speed") == [1]
    expected = np.full(4, 3.0, np.float32), np.ones(4, np.float32)
    for _ in range(3):
        tasks.run([], done)
        faster = expected[1] + (expected[0] * np.float32(0.5) - expected[1]) * np.float32(0.5)
        expected = expected[0] - faster * np.float32(0.1), faster
    found = tasks.run([weight.value(), speed.value()])
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


def test_an_update_on_another_task_happens_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks()
    weight, speed, done = momentum()
    tasks.run([], [weight.initializer, speed.initializer])
    in_place = []
    take = VariableCell.take

    def noted(self: VariableCell, replacement: Any = None) -> Any:
        found = take(self, replacement)
        in_place.append(found[0] is found[1])
        return found

    monkeypatch.setattr(VariableCell, "take", noted)
    for _ in range(3):
        tasks.run([], done)
    assert len(in_place) == 6
    # The first step finds what the initializers left.
    assert all(in_place[2:])


@pytest.mark.parametrize("options", [COMPILED, PLAIN], ids=["compiled", "plain"])
def test_a_read_is_moved_over_no_effect(options: Options) -> None:
    tasks = Tasks(options)
    with on(PS):
        weight = hr.Variable(np.full(4, 3.0, np.float32), name="weight")
        old = weight.value()
        reset = hr.assign(weight, np.zeros(4, np.float32))
        other = hr.Variable(np.full(4, 2.0, np.float32), name="other")
    with on(HERE):
        change = hr.identity(other) * 0.5
    with on(PS):
        total = hr.identity(old + change)
    with on(HERE):
        result = hr.identity(total)
    tasks.run([], [weight.initializer, other.initializer])
    plan = tasks.plans(tasks.parts([result], [reset.op]), 1)[PS]
    assert stretch_of_reads(plan, "weight") == [0]


def test_a_read_that_something_waits_for_comes_before_it() -> None:
    tasks = Tasks()
    with on(PS):
        weight = hr.Variable(np.full(4, 3.0, np.float32), name="weight")
        other = hr.Variable(np.full(4, 2.0, np.float32), name="other")
        old = weight.value()
        with hr.control_dependencies([old]):
            first = hr.identity(other)
    with on(HERE):
        change = hr.identity(first) * 0.5
    with on(PS):
        total = hr.identity(old + change)
    with on(HERE):
        result = hr.identity(total)
    tasks.run([], [weight.initializer, other.initializer])
    plan = tasks.plans(tasks.parts([result]), 1)[PS]
    assert stretch_of_reads(plan, "weight") == [0]
    np.testing.assert_array_equal(tasks.run([result])[0], np.full(4, 4.0))
