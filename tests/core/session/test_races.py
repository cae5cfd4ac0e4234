"""Races: a step that uses a variable twice in no order is refused, and no other step is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, DeterminismError, FailedPreconditionError, RaceError
from headrace.passes.races import Use, unordered

pytestmark = pytest.mark.needs("backend-cpu")


def after(first: Any, then: Callable[[], Any]) -> Any:
    """Return what is built so that it waits."""
    with hr.control_dependencies([first]):
        return then()


def variable(name: str = "v", value: Any = 1.0) -> Any:
    return hr.Variable(value, name=name)


# -- programs that have a race: each is built in a graph of its own, and returns what it fetches


def read_and_write() -> Any:
    v = variable()
    return [v.read_value(), v.assign(2.0)]


def write_and_write() -> Any:
    v = variable()
    return [v.assign(2.0), v.assign(3.0)]


def two_additions() -> Any:
    v = variable()
    return [v.assign_add(2.0).op, v.assign_add(3.0).op]


def read_through_arithmetic() -> Any:
    v = variable()
    return [hr.exp(v * 2.0), v.assign_sub(1.0)]


def write_before_one_of_two_reads() -> Any:
    v = variable()
    change = v.assign(2.0)
    return [after(change, v.read_value), v.read_value()]


def in_a_branch() -> Any:
    v = variable()
    branch = hr.cond(hr.constant(True), lambda: v.assign(2.0), lambda: hr.constant(0.0))
    return [branch, v.read_value()]


def read_in_a_branch() -> Any:
    v = variable()
    return [hr.cond(hr.constant(True), v.read_value, lambda: hr.constant(0.0)), v.assign(2.0)]


def within_a_branch() -> Any:
    v = variable()
    branch = lambda: v.assign(2.0) + v.read_value()  # noqa: E731
    return hr.cond(hr.constant(True), branch, lambda: hr.constant(0.0))


def in_branches_of_two_conditions() -> Any:
    v, yes = variable(), hr.constant(True)
    return [hr.cond(yes, lambda: v.assign(2.0), v.read_value) for _ in range(2)]


def in_nested_branches() -> Any:
    v, yes = variable(), hr.constant(True)
    inner = lambda: hr.cond(yes, lambda: v.assign(2.0), v.read_value)  # noqa: E731
    return [hr.cond(yes, inner, lambda: hr.constant(0.0)), v.assign(3.0)]


def in_a_body() -> Any:
    v = variable()
    loop = hr.while_loop(lambda i: i < 3, lambda i: after(v.assign_add(1.0), lambda: i + 1), [0])
    return [loop, v.read_value()]


def within_a_body() -> Any:
    v = variable()

    def body(i: Any) -> Any:
        return i + hr.cast(v.assign(1.0) * v.read_value(), hr.int32)

    return hr.while_loop(lambda i: i < 3, body, [0])


def in_a_condition_of_a_loop() -> Any:
    v = variable()
    return [hr.while_loop(lambda i: v.read_value() > i, lambda i: i + 2.0, [0.0]), v.assign(1.0)]


def in_a_branch_of_a_body() -> Any:
    v = variable()
    add = lambda: v.assign_add(1.0)  # noqa: E731
    body = lambda x: hr.cond(x > 0, add, v.read_value) + v.read_value()  # noqa: E731
    return hr.while_loop(lambda x: x < 3, body, [0.0])


def in_a_called_function() -> Any:
    v = variable()

    @hr.function
    def add(x: Any) -> Any:
        return v.assign_add(x)

    return [add(hr.constant(1.0)), v.read_value()]


def rows_and_the_whole() -> Any:
    v = variable(value=[1.0, 2.0])
    return [hr.scatter_add(v, [0], [1.0]), hr.reduce_sum(v)]


def rows_and_rows() -> Any:
    v = variable(value=[1.0, 2.0])
    return [hr.scatter_update(v, [0], [1.0]).op, hr.scatter_update(v, [1], [1.0]).op]


def rows_read_beside_a_write() -> Any:
    v = variable(value=[1.0, 2.0])
    return [hr.gather(v, [0]), v.assign([3.0, 4.0])]


def a_part_and_the_whole() -> Any:
    v = variable(value=[1.0, 2.0])
    return [v[0:1].assign([3.0]), v.read_value()]


def under_one_shared_name() -> Any:
    # Another declaration of the same variable, as a second file of a program has it.
    from headrace.ops.state import assign_variable, read_variable, var_handle

    one, other = (
        var_handle(dtype=hr.float32, shape=(), container="", shared_name="v", name=name)
        for name in ("here", "there")
    )
    return [assign_variable(one, 1.0, name="write"), read_variable(other)]


def counting() -> Any:
    v = variable(value=0)
    return [hr.count_up_to(v, 5), hr.count_up_to(v, 5)]


def insertion_and_lookup() -> Any:
    table = hr.lookup.MutableHashTable(hr.int64, hr.int64, -1, name="v")
    key = hr.constant([1], hr.int64)
    return [table.insert(key, key), table.lookup(key)]


def one_of_two_variables() -> Any:
    v, w = variable(), variable("w")
    change = w.assign(2.0)
    return [after(change, w.read_value), v.assign(1.0), v.read_value()]


def a_regularizer_beside_an_update() -> Any:
    v = variable()
    gradient = v.read_value() * 2.0
    return [v.assign_sub(gradient), hr.square(v.read_value())]


def under_two_locks() -> Any:
    v = variable()
    sections = [hr.CriticalSection(name) for name in ("a", "b")]
    return [s.execute(lambda: v.assign_add(1.0), exclusive_resource_access=False) for s in sections]


RACES = [
    *(read_and_write, write_and_write, two_additions),
    *(read_through_arithmetic, write_before_one_of_two_reads, in_a_branch, read_in_a_branch),
    *(within_a_branch, in_branches_of_two_conditions, in_nested_branches, in_a_body),
    *(within_a_body, in_a_condition_of_a_loop, in_a_branch_of_a_body, in_a_called_function),
    *(rows_and_the_whole, rows_and_rows, rows_read_beside_a_write, a_part_and_the_whole),
    *(under_one_shared_name, counting, insertion_and_lookup, one_of_two_variables),
    *(a_regularizer_beside_an_update, under_two_locks),
]


# -- programs that have none


def reads_alone() -> Any:
    v = variable()
    return [v, v.read_value(), v * 2.0]


def write_alone() -> Any:
    return variable().assign(2.0)


def ordered_by_control() -> Any:
    v = variable()
    return [v.assign(2.0), after(v.assign(2.0), v.read_value)][1]


def ordered_by_data() -> Any:
    v = variable()
    return v.assign(v.read_value() * 2.0)


def new_value_of_a_write() -> Any:
    v = variable()
    change = v.assign_add(1.0)
    return [change, change * 2.0]


def ordered_through_others() -> Any:
    v = variable()
    between = after(after(v.assign(2.0), hr.no_op), lambda: hr.constant(1.0))
    return v.assign_add(hr.exp(between))


def in_both_branches() -> Any:
    v = variable()
    return hr.cond(hr.constant(True), lambda: v.assign(2.0), lambda: v.assign_add(1.0))


def a_branch_after_a_read() -> Any:
    v = variable()
    return hr.cond(v.read_value() > 0, lambda: v.assign(2.0), v.read_value)


def what_a_branch_does_not_return() -> Any:
    v = variable()

    def branch() -> Any:
        v.assign(3.0)  # no result depends on it, so it does not run
        return v.read_value()

    return hr.cond(hr.constant(True), branch, v.read_value)


def rounds_of_a_loop() -> Any:
    v = variable()
    return hr.while_loop(lambda i: v.read_value() < 3, lambda i: v.assign_add(1.0), [0.0])


def a_loop_before_a_read() -> Any:
    v = variable()
    loop = hr.while_loop(lambda x: x < 3, lambda x: v.assign_add(1.0), [0.0])
    return after(loop, v.read_value)


def locked() -> Any:
    v, section = variable(), hr.CriticalSection("section")
    return [section.execute(lambda: v.assign_add(1.0)) for _ in range(2)]


def two_variables() -> Any:
    return [variable().assign(1.0), variable("w").read_value()]


def of_two_names() -> Any:
    return [variable().assign(1.0), variable("v").assign(2.0)]


def queued() -> Any:
    queue = hr.FIFOQueue(3, hr.float32, shapes=[()])
    return [queue.enqueue(1.0), queue.dequeue(), queue.size()]


def staged() -> Any:
    area = hr.StagingArea([hr.float32], shapes=[()])
    return [area.put([1.0]), area.get()[0]]


def lookups_alone() -> Any:
    table = hr.lookup.MutableHashTable(hr.int64, hr.int64, -1)
    key = hr.constant([1], hr.int64)
    return [table.lookup(key), table.size()]


def a_value_that_may_be_there() -> Any:
    v = variable()
    w = hr.Variable(v.initialized_value() * 2.0)
    return [v.initializer, w.initializer]


def arrays_of_a_loop() -> Any:
    array = hr.TensorArray(hr.float32, 3)
    array = array.write(0, 1.0).write(1, 2.0)
    return [array.read(0), array.write(2, 3.0).stack()]


def fetched_beside_its_change() -> Any:
    v = variable()
    return [v, v.assign_add(1.0).op]


def the_global_step_beside_its_count() -> Any:
    step = hr.train.get_or_create_global_step()
    hr.train.StepCounterHook().begin()  # makes the tensor by which hooks read it
    return [*hr.get_collection("global_step_read_op_cache"), hr.assign_add(step, 1).op]


QUIET = [
    *(reads_alone, write_alone, ordered_by_control, ordered_by_data, new_value_of_a_write),
    *(ordered_through_others, in_both_branches, a_branch_after_a_read, rounds_of_a_loop),
    *(what_a_branch_does_not_return, a_loop_before_a_read, locked, two_variables, of_two_names),
    *(
        fetched_beside_its_change,
        queued,
        staged,
        lookups_alone,
        a_value_that_may_be_there,
        arrays_of_a_loop,
    ),
    pytest.param(the_global_step_beside_its_count, marks=pytest.mark.needs("train")),
]


@pytest.mark.parametrize("program", RACES, ids=lambda p: p.__name__)
def test_a_race_is_refused(graph: hr.Graph, program: Any) -> None:
    fetches = program()
    with hr.Session(config=hr.Config(check_races=True)) as session:
        session.run(hr.global_variables_initializer())
        before = session.run(hr.global_variables())
        with pytest.raises(RaceError, match="uses 'v' twice in no order") as raised:
            session.run(fetches)
        for was, now in zip(before, session.run(hr.global_variables()), strict=True):
            np.testing.assert_array_equal(was, now)
    # Both lines of this file, and no longer than errors are.
    text = str(raised.value)
    assert text.count(f"at {Path(__file__).name}") == 2 or text.count(f"at {__file__}") == 2
    assert len(text.splitlines()) <= 12


@pytest.mark.parametrize("program", QUIET, ids=lambda p: p.__name__)
def test_what_is_ordered_runs(graph: hr.Graph, program: Any) -> None:
    fetches = program()
    config = hr.Config(check_races=True, timeout=60)
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        session.run(fetches)


def test_the_message(graph: hr.Graph) -> None:
    v, w = variable(), variable("w")
    fetches = [v.assign_add(1.0), v.read_value(), w.assign(1.0), w.assign(2.0)]
    session = hr.Session(config=hr.Config(check_races=True))
    with session, pytest.raises(FailedPreconditionError, match="in no order") as raised:
        session.run(fetches)
    lines = [line.split(": ", 1)[-1].strip() for line in str(raised.value).splitlines()]
    assert lines[0] == "it uses 'v' twice in no order"
    assert lines[1] == "AssignAddVariable 'AssignAdd' changes it"
    assert lines[2] == "fetches = [v.assign_add(1.0), v.read_value(), w.assign(1.0), w.assign(2.0)]"
    assert lines[3] == "ReadVariable 'v/read' reads it" or "reads it" in lines[3]
    assert "hr.control_dependencies" in lines[5]
    assert lines[6].startswith("'w' (lines ")
    assert raised.value.op is v.graph.get_operation_by_name("AssignAdd")


def test_only_where_it_is_asked_for(graph: hr.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    fetches = read_and_write()
    start = hr.global_variables_initializer()
    monkeypatch.setenv("HEADRACE_CHECK_RACES", "0")
    with hr.Session() as session:
        session.run(start)
        session.run(fetches)
    monkeypatch.setenv("HEADRACE_CHECK_RACES", "1")
    assert hr.Config().check_races
    assert not hr.Config(check_races=False).check_races
    with hr.Session() as session, pytest.raises(RaceError, match="in no order"):
        session.run(fetches)


def test_a_setting_of_another_type() -> None:
    with pytest.raises(ConfigError, match="check_races must be True or False, got 1"):
        hr.Config(check_races=1)  # type: ignore[arg-type]


def test_deterministic_steps_that_wait_refuse_the_same(graph: hr.Graph) -> None:
    v, queue = variable(), hr.FIFOQueue(3, hr.float32, shapes=[()])
    fetches = [v.assign_add(queue.dequeue()).op, v.assign_add(1.0).op]
    session = hr.Session(config=hr.Config(deterministic=True))
    with session, pytest.raises(DeterminismError, match="in no order with"):
        session.run(fetches)


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_those_that_no_path_joins(seed: int) -> None:
    chance = random.Random(seed)
    with hr.Graph().as_default() as graph:
        for i in range(40):
            waits = chance.sample(graph.operations, k=min(i, chance.choice((0, 1, 1, 2))))
            with hr.control_dependencies(waits):
                hr.no_op(name=f"n{i}")
    ops = list(graph.operations)
    before: dict[Any, set[Any]] = {}
    for op in ops:
        before[op] = set().union(*({c} | before[c] for c in op.control_inputs))
    uses = {
        key: [Use(op, op, op if chance.random() < 0.4 else None) for op in chance.sample(ops, k=12)]
        for key in range(6)
    }
    expected = {
        (key, frozenset((one.op, other.op)))
        for key, several in uses.items()
        for one, other in itertools.combinations(several, 2)
        if (one.changes or other.changes)
        and one.op not in before[other.op]
        and other.op not in before[one.op]
    }
    found = {(key, frozenset((one.op, other.op))) for key, one, other in unordered(ops, uses)}
    assert found <= expected
    # Of each use that races, one race at least is told.
    assert {(k, op) for k, pair in found for op in pair} == {
        (k, op) for k, pair in expected for op in pair
    }


def test_more_changes_than_are_looked_at_together(graph: hr.Graph) -> None:
    ops = [hr.no_op(name=f"n{i}") for i in range(3000)]
    uses = {i: [Use(op, op, op) for op in ops[i : i + 2]] for i in range(0, 3000, 2)}
    assert len(list(unordered(ops, uses))) == 1500
