"""Steps over several tasks: what crosses together, in which phases tasks wait, and that all end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.graph.graph import Graph
from headrace.runtime.execution.plan import Plan
from tests.core.partition.several_tasks import CLIENT, COMPILED, PLAIN, TASKS, Tasks, on

pytestmark = [pytest.mark.needs("backend-cpu")]


def types(parts: Mapping[DeviceName, Graph], kind: str) -> list[Any]:
    return [op for graph in parts.values() for op in graph.operations if op.type == kind]


def regions(plans: Mapping[DeviceName, Plan]) -> int:
    return sum(node.region is not None for plan in plans.values() for node in plan.nodes)


def mlp() -> tuple[hr.Tensor, hr.Operation]:
    """Return loss and update of four layers whose eight variables are on a ps."""
    h, variables = hr.constant(np.ones((2, 3), np.float32)), []
    for i in range(4):
        with on(TASKS[1]):
            w = hr.Variable(np.full((3, 3), 0.1 * (i + 1), np.float32))
            b = hr.Variable(np.zeros(3, np.float32))
        variables += [w, b]
        h = hr.tanh(hr.matmul(h, w) + b)
    loss = hr.reduce_sum(h)
    with on(CLIENT):
        grads = [hr.reduce_sum(h) * v for v in variables]
    updates = [hr.assign_sub(v, 0.1 * g) for v, g in zip(variables, grads, strict=True)]
    return loss, hr.group(*updates)


def test_a_network_on_a_worker_and_a_ps_is_three_regions() -> None:
    loss, update = mlp()
    tasks = Tasks()
    parts = tasks.parts([loss], [update])
    assert len(types(parts, "Send")) == 16, "eight variables there, eight gradients back"
    assert {(op.attrs["round"], op.attrs["sources"]) for op in types(parts, "Recv")} == {
        (1, 0),
        (2, 0),
    }
    plans = tasks.plans(parts, 1)
    assert regions(plans) == 3
    assert all(plan.in_turn for plan in plans.values())


def test_a_group_waits_for_the_operations_of_each_device_there() -> None:
    with on(TASKS[1]):
        a, b = hr.Variable(1.0), hr.Variable(2.0)
    with on(CLIENT):
        c = hr.Variable(3.0)
    every = hr.group(*(hr.assign_add(v, 1.0) for v in (a, b, c)))
    with hr.control_dependencies([every]), on(TASKS[2]):
        after = hr.identity(hr.constant(5.0))
    tasks = Tasks()
    parts = tasks.parts([after])
    # One token from the ps, one from the client, and what is fetched.
    assert len(types(parts, "Send")) == 3
    assert sorted(op.name for op in types(parts, "NoOp") if "_join" in op.name) == [
        f"_join/{every.name}{TASKS[1]}/device:cpu:0"
    ]
    # The end of a step waits for all anyway.
    assert not types(tasks.parts([], [every]), "Send")
    tasks.run([], [hr.global_variables_initializer()])
    assert tasks.run([after]) == [5.0]
    tasks.run([], [hr.group(hr.group(every))])
    assert tasks.run([a.value(), b.value(), c.value()]) == [3.0, 4.0, 5.0]


def test_what_waits_for_something_else_is_waited_for_by_itself() -> None:
    with on(TASKS[1]):
        early = hr.Variable(1.0).read_value()
        late = hr.py_func(lambda: np.float32(2.0), [], hr.float32)
        later = hr.identity(late)
    total = early + 1.0
    with hr.control_dependencies([total]):
        both = hr.identity(total) + late + later
    receives = types(Tasks().parts([both]), "Recv")
    assert sorted((op.attrs["round"], op.attrs["sources"]) for op in receives) == [
        (1, 0),
        (1, 1),
        (1, 1),
    ]


def test_what_may_be_dead_is_told_so_and_nothing_else_is() -> None:
    with on(TASKS[1]):
        data = hr.random_uniform([], 3.0, 4.0)
        pred = hr.random_uniform([]) < 2.0
        no, yes = hr.switch(data, pred)
    with on(CLIENT):
        merged, _ = hr.merge([no + 1.0, yes * 2.0])
        plain = data + 1.0
    tasks = Tasks()
    parts = tasks.parts([merged, plain])
    dead = {op.attrs["edge"]: op.attrs["may_be_dead"] for op in types(parts, "Recv")}
    assert dead == {no.name: True, yes.name: True, data.name: False}
    doubled, added = tasks.run([merged, plain])
    assert doubled == pytest.approx(2 * (added - 1))


def random_step(seed: int, *, anywhere: bool = False) -> tuple[list[hr.Tensor], list[hr.Operation]]:
    """Return fetches and targets of a random graph over all tasks, with calls of Python in some."""
    rng = random.Random(seed)
    place = (lambda task: hr.device(None)) if anywhere else on
    tensors: list[hr.Tensor] = []
    groups: list[hr.Operation] = []
    for task in TASKS:
        with place(task):
            tensors.append(hr.identity(hr.constant(float(rng.randrange(9)))))
    for _ in range(rng.randrange(10, 40)):
        inputs = [rng.choice(tensors) for _ in range(rng.randrange(1, 4))]
        waited: list[Any] = rng.sample(tensors, rng.randrange(2))
        if groups and rng.random() < 0.3:
            waited.append(rng.choice(groups))
        with place(rng.choice(TASKS)), hr.control_dependencies(waited):
            if seed % 3 == 0 and rng.random() < 0.15:
                tensors.append(hr.py_func(lambda x: x + 1, inputs[:1], hr.float32))
            else:
                tensors.append(hr.tanh(hr.add_n(inputs)))
        if rng.random() < 0.3:
            groups.append(hr.group(*rng.sample(tensors, 3)))
    return rng.sample(tensors, 3), groups[-2:]


def expected(seed: int) -> list[Any]:
    """Return the fetches of the same graph without devices, run in one process."""
    with hr.Graph().as_default(), hr.Session() as session:
        return session.run(random_step(seed, anywhere=True)[0])


@pytest.mark.parametrize("seed", range(24))
def test_random_steps_end_and_give_what_one_process_gives(seed: int) -> None:
    tensors, operations = random_step(seed)
    plain, compiled = (Tasks(options).run(tensors, operations) for options in (PLAIN, COMPILED))
    np.testing.assert_allclose(plain, compiled, rtol=1e-6)
    np.testing.assert_allclose(plain, expected(seed), rtol=1e-6)


def test_an_error_on_one_task_ends_the_step_on_all() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no")

    with on(TASKS[1]):
        bad = hr.py_func(fail, [hr.identity(hr.constant(1.0))], hr.float32)
    with pytest.raises(hr.errors.InvalidArgumentError, match="no"):
        Tasks().run([bad + 1.0])
