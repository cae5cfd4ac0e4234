"""Cutting: regions never wait for themselves, and hold up nothing that could run."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

import headrace as hr
from headrace.graph.operation import Operation
from headrace.runtime.planning.clustering import Role, Unit, cluster


def random_graph(seed: int) -> tuple[list[Operation], dict[Operation, Role]]:
    """Return operations in random order of dependence, with a random role for each."""
    rng = random.Random(seed)
    roles: dict[Operation, Role] = {}
    with hr.Graph().as_default() as graph:
        tensors = [hr.constant(1.0)]
        roles[tensors[0].op] = Role.SHARED
        for _ in range(rng.randrange(3, 30)):
            waited = [t.op for t in rng.sample(tensors, rng.randrange(min(2, len(tensors))))]
            with hr.control_dependencies(waited):
                made = hr.add_n([rng.choice(tensors) for _ in range(rng.randrange(1, 4))])
            kinds = [Role.INSIDE] * 6 + [Role.SOURCE, Role.HOLDER]
            roles[made.op] = rng.choice(kinds)
            tensors.append(made)
        return list(graph.operations), roles


def needed(op: Operation) -> Iterable[Operation]:
    return (*(t.op for t in op.inputs), *op.control_inputs)


def sources_of(op: Operation, roles: dict[Operation, Role]) -> set[Operation]:
    """Return the last operations above ``op`` that may wait."""
    found: set[Operation] = set()
    stack = list(needed(op))
    while stack:
        other = stack.pop()
        if roles[other] is Role.SOURCE:
            found.add(other)
        else:
            stack.extend(needed(other))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_units_follow_what_they_wait_for_and_wait_for_nothing_else(seed: int) -> None:
    order, roles = random_graph(seed)
    units = cluster(order, roles.__getitem__)
    unit_of: dict[Operation, Unit] = {op: unit for unit in units for op in unit.ops}
    assert set(unit_of) == {op for op in order if roles[op] is not Role.SHARED}
    place = {unit: i for i, unit in enumerate(units)}
    for op, unit in unit_of.items():
        assert unit.region == (roles[op] is Role.INSIDE)
        for other in needed(op):
            if other in unit_of and unit_of[other] is not unit:
                assert place[unit_of[other]] < place[unit]
    for unit in units:
        positions = [order.index(op) for op in unit.ops]
        assert positions == sorted(positions)
        waits = {frozenset(sources_of(op, roles)) for op in unit.ops}
        assert len(waits) == 1, "part of a region would wait for what it does not need"


def test_what_depends_on_nothing_that_waits_is_one_region() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.constant([1.0])
        y = hr.tanh(x) * hr.exp(x)
        hr.sigmoid(y)
        order = list(graph.operations)
        units = cluster(order, lambda op: Role.SHARED if op.type == "Const" else Role.INSIDE)
    assert [len(unit.ops) for unit in units] == [4]


def test_the_outputs_of_a_switch_are_sources_of_their_own() -> None:
    with hr.Graph().as_default() as graph:
        x, p = hr.constant([1.0]), hr.constant(True)
        dead, alive = hr.switch(x, p)
        a, b = hr.tanh(dead), hr.tanh(alive)
        order = list(graph.operations)
        roles = dict.fromkeys(order, Role.INSIDE)
        roles.update({x.op: Role.SHARED, p.op: Role.SHARED, dead.op: Role.SOURCE})
        units = cluster(order, roles.__getitem__)
    unit_of = {op: unit for unit in units for op in unit.ops}
    assert unit_of[a.op] is not unit_of[b.op]


def test_the_outputs_of_what_waits_are_one_source() -> None:
    with hr.Graph().as_default() as graph:
        first, second = hr.split(hr.constant([1.0, 2.0]), 2)
        a = hr.tanh(first)
        b = a + second
        order = list(graph.operations)
        roles = {op: Role.SHARED if op.type == "Const" else Role.INSIDE for op in order}
        roles[first.op] = Role.SOURCE
        units = cluster(order, roles.__getitem__)
    unit_of = {op: unit for unit in units for op in unit.ops}
    assert unit_of[a.op] is unit_of[b.op]
