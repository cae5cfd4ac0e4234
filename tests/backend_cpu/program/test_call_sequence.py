"""Sequences: short kernels that one kernel calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import InvalidInputError
from headrace_cpu.native.memory import address
from headrace_cpu.program.call_sequence import CallSequence
from headrace_cpu.program.instruction import Addresses, Bound, Instruction, Native, NativeCall
from headrace_cpu.program.program import Program
from headrace_cpu.program.schedule import Item

COMPILED = {"compile_after": 0}


def programs(session: hr.Session, fetches: Any) -> list[Program]:
    """Return the programs of a step that has run and is one region."""
    prepared = [p for key, p in session._prepared.items() if key[0] is fetches]
    (node,) = prepared[0].step.plan.nodes
    return list(node.region.programs.values())


def sequences(session: hr.Session, fetches: Any) -> list[list[str]]:
    """Return the types of the last operations of the parts of each sequence of a step."""
    (program,) = programs(session, fetches)
    found = [i for i in program._lowered.calls if isinstance(i, CallSequence)]
    return [[part.op.type for part in each.parts] for each in found]


def open_session(**settings: Any) -> hr.Session:
    return hr.Session(config=hr.Config(**{"executor": "plan", "threads": 1, **settings}))


def rows_of(table: hr.Tensor, ids: hr.Tensor) -> hr.Tensor:
    """Return products of rows that are gathered twice: several kernels."""
    first = hr.gather(table, ids)
    second = hr.gather(first * 2.0, ids)
    return hr.matmul(hr.tanh(second), hr.transpose(second))


TABLE = np.linspace(-1, 1, 40, dtype=np.float32).reshape(8, 5)
IDS = np.array([3, 0, 7, 7, 1, 2, 3, 4], np.int32)


def test_short_kernels_are_one_call_and_compute_the_same() -> None:
    table, ids = hr.placeholder(hr.float32, [8, 5]), hr.placeholder(hr.int32, [8])
    y = rows_of(table, ids)
    with open_session(executor="plain") as plain, open_session(**COMPILED) as session:
        for shift in range(3):
            feeds = {table: TABLE + shift, ids: np.roll(IDS, shift)}
            found = session.run(y, feeds)
            np.testing.assert_allclose(found, plain.run(y, feeds), rtol=1e-5)
        (parts,) = sequences(session, y)
        assert parts == ["Gather", "Tanh", "MatMul"]


def test_a_part_that_refuses_is_named_and_the_next_step_runs() -> None:
    table, ids = hr.placeholder(hr.float32, [8, 5]), hr.placeholder(hr.int32, [8])
    y = rows_of(table, ids)
    feeds = {table: TABLE, ids: IDS}
    with open_session(**COMPILED) as session:
        expected = session.run(y, feeds)
        for _ in range(2):
            message = r"index 8 is out of range \[0, 8\) of axis 0(.|\n)*in Gather(.|\n)*test_call_"
            with pytest.raises(InvalidInputError, match=message):
                session.run(y, {table: TABLE, ids: np.full(8, 8, np.int32)})
            np.testing.assert_array_equal(session.run(y, feeds), expected)
        assert len(sequences(session, y)) == 1


def test_a_fused_kernel_that_refuses_is_named() -> None:
    x, by = hr.placeholder(hr.int32, [6]), hr.placeholder(hr.int32, [6])
    shifted = hr.gather(x, by) + 1
    quotient = hr.reduce_sum(hr.gather(shifted // by, by))
    values, divisors = np.arange(6, dtype=np.int32), np.array([1, 2, 3, 4, 5, 1], np.int32)
    with open_session(executor="plain") as plain, open_session(**COMPILED) as session:
        feeds = {x: values, by: divisors}
        assert session.run(quotient, feeds) == plain.run(quotient, feeds)
        with pytest.raises(hr.errors.HeadraceError, match="zero") as told:
            session.run(quotient, {x: values, by: divisors * 0})
        assert "FloorDiv" in str(told.value)
        assert session.run(quotient, feeds) == plain.run(quotient, feeds)


def test_a_long_kernel_and_a_changed_variable_stay_by_themselves() -> None:
    long = hr.placeholder(hr.float32, [400, 400])
    counter = hr.Variable(np.zeros(5, np.float32))
    short = hr.gather(hr.constant(TABLE), [1, 2])
    added = counter.assign_add(hr.reduce_sum(short, axis=0))
    y = hr.reduce_sum(hr.gather(hr.cumsum(long) * 0.0 + 1.0, hr.constant([1, 0])), axis=0)
    with hr.control_dependencies([added]):
        both = hr.identity(y)
    with open_session(**COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for round in range(1, 3):
            sums = session.run(both, {long: np.zeros((400, 400), np.float32)})
            np.testing.assert_array_equal(sums, np.full(400, 2.0, np.float32))
            expected = round * TABLE[[1, 2]].sum(axis=0)
            np.testing.assert_allclose(session.run(counter), expected, rtol=1e-6)
        (program,) = programs(session, both)
        joined = [i for i in program._lowered.calls if isinstance(i, CallSequence)]
        parts = [part.instruction for each in joined for part in each.parts]
        assert all(not i.updates and i.moved() <= 4 * 400 * 400 for i in parts)
        calls = [i for i in program._lowered.calls if i not in joined]
        assert any(i.updates for i in calls)
        assert any(i.moved() > 4 * 400 * 400 for i in calls)


def test_values_that_are_read_between_kernels_are_read_before_them() -> None:
    first, second = (hr.Variable(TABLE * scale) for scale in (1.0, 3.0))
    ids = hr.placeholder(hr.int32, [8])
    y = hr.gather(second, ids) - hr.gather(hr.gather(first, ids), ids)
    with open_session(executor="plain") as plain, open_session(**COMPILED) as session:
        for one in (plain, session):
            one.run(hr.global_variables_initializer())
        np.testing.assert_array_equal(session.run(y, {ids: IDS}), plain.run(y, {ids: IDS}))
        (parts,) = sequences(session, y)
        assert parts == ["Gather", "Gather", "Gather"]


def test_a_session_that_measures_calls_each_kernel_by_itself() -> None:
    table, ids = hr.placeholder(hr.float32, [8, 5]), hr.placeholder(hr.int32, [8])
    y = rows_of(table, ids)
    with open_session(profile=True, **COMPILED) as session:
        session.run(y, {table: TABLE, ids: IDS})
        assert sequences(session, y) == []


class _Numbered(Instruction):
    """Calls a function with two numbers, one after the other."""

    reads = writes = ()

    def __init__(self, place: int, number: int, report: int, refused: Callable[[], object]) -> None:
        self.ops = ()
        calls = tuple(NativeCall(place, (n,), report=report) for n in (number, number + 1))
        self._native = Native(calls, refused=refused)

    def bind(self, at: Addresses) -> Bound:
        return Bound(lambda: None, {}, self._native)


def test_the_driver_goes_on_behind_a_part_that_makes_up_for_what_it_refused() -> None:
    called: list[Any] = []
    report = np.zeros(1, np.int64)

    def work(number: int) -> None:
        called.append(number)
        report[0] = number in (10, 21)

    def refused() -> None:
        report[0] = 0
        called.append("made up for")

    function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(work)
    place = ctypes.cast(function, ctypes.c_void_p).value
    assert place is not None
    parts = [_Numbered(place, n, address(report), refused) for n in (0, 10, 20, 30)]
    sequence = CallSequence([Item((), part, i) for i, part in enumerate(parts)])
    sequence.prepare()
    at: Any = SimpleNamespace(part=lambda instruction: None)
    bound = sequence.bind(at)
    for _ in range(2):
        called.clear()
        bound.call()
        # What is left of a part that has refused is not called: its first call was 10.
        assert called == [0, 1, 10, "made up for", 20, 21, "made up for", 30, 31]
