"""Turns that keep updates from being too stale, and fences."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import CancelledError, ConfigError, DeadlineExceededError
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.step_order import Bound, Gate, Order, bound_of


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("relaxed", None),
        ("sequential", Bound(0, True)),
        ("bounded:0", Bound(0)),
        ("bounded:12", Bound(12)),
    ],
)
def test_what_is_asked_for_is_read(text: str, bound: Bound | None) -> None:
    assert bound_of(text) == bound


WRONG = [
    *("", "bounded", "bounded:", "bounded:-1", "bounded: 1", "Bounded:1", "bounded:01"),
    *("bounded:9999999999", "strict", 3, None),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"consistency must be 'relaxed', 'sequential', or 'boun"):
        bound_of(wrong)  # type: ignore[arg-type]


class Model:
    """What a gate is to promise, kept the plain way: each step knows who ran beside it."""

    def __init__(self, gate: Gate[int], bound: Bound) -> None:
        self.gate, self.bound = gate, bound
        self.running: dict[int, tuple[bool, set[int]]] = {}
        self.line: list[tuple[int, bool]] = []

    def begin(self, step: int) -> None:
        place = next(i for i, (other, _) in enumerate(self.line) if other == step)
        assert place == 0, "nobody overtakes"
        _, changes = self.line.pop(0)
        beside = {other for other, (too, _) in self.running.items() if too} if changes else set()
        self.running[step] = (changes, beside)
        for other, (too, known) in self.running.items():
            if changes and too and other != step:
                known.add(step)
        for changing, known in self.running.values():
            if changing:
                assert len(known) <= self.bound.most
        if self.bound.reads and any(changing for changing, _ in self.running.values()):
            assert len(self.running) == 1


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 4),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=60),
)
def test_no_step_is_stale_by_more_than_the_bound(
    most: int, apart: bool, moves: list[tuple[int, int, bool]]
) -> None:
    bound = Bound(0 if apart else most, apart)
    gate: Gate[int] = Gate(bound)
    model = Model(gate, bound)
    for number, (move, which, changes) in enumerate(moves):
        if move:
            model.line.append((number, changes))
            if gate.enter(number, changes=changes):
                model.begin(number)
        elif model.running or model.line:
            # One that runs ends, or one that waits gives up.
            known = [*model.running, *(step for step, _ in model.line)]
            step = known[which % len(known)]
            model.running.pop(step, None)
            model.line = [entry for entry in model.line if entry[0] != step]
            for admitted in gate.leave(step):
                model.begin(admitted)
        assert gate.under_way == [
            *(s for s, (c, _) in model.running.items() if c),
            *(s for s in gate.under_way if not model.running[s][0]),
        ]
        assert gate.waiting == [step for step, _ in model.line]
        # Whoever waits has a reason: the first could not begin now.
        if model.line and not model.running:
            raise AssertionError("somebody waits for nobody")


def test_readers_of_a_bounded_order_are_not_held_up() -> None:
    gate: Gate[str] = Gate(Bound(0))
    assert gate.enter("write", changes=True)
    assert gate.enter("read", changes=False)
    assert not gate.enter("write too", changes=True)
    assert gate.leave("write") == ["write too"]


def test_those_that_wait_begin_in_their_order() -> None:
    gate: Gate[str] = Gate(Bound(0, True))
    assert gate.enter("a", changes=True)
    assert not gate.enter("b", changes=False)
    assert not gate.enter("c", changes=False)
    assert not gate.enter("d", changes=True)
    # It could run beside the two that read, but would overtake.
    assert not gate.enter("e", changes=False)
    assert gate.leave("a") == ["b", "c"]
    assert gate.leave("b") == []
    assert gate.leave("c") == ["d"]
    assert gate.leave("d") == ["e"]


def in_thread(work: object) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_who_waits_for_a_turn_gets_it_when_another_ends() -> None:
    order, told = Order(), []
    first = order.enter(Bound(0), True, Cancellation())
    thread = in_thread(lambda: told.append(order.enter(Bound(0), True, Cancellation())))
    time.sleep(0.02)
    assert not told
    order.end(first)
    thread.join(5)
    assert len(told) == 1


def test_the_end_of_a_session_ends_the_wait_for_a_turn() -> None:
    order, ending = Order(), Cancellation()
    order.enter(Bound(0), True, Cancellation())
    threading.Timer(0.02, lambda: ending.cancel(CancelledError("closed"))).start()
    with pytest.raises(CancelledError, match="closed"):
        order.enter(Bound(0), True, ending)
    # It does not stand in the way of others.
    assert order._gate is not None
    assert not order._gate.waiting


def test_sessions_that_do_not_agree_are_refused() -> None:
    order = Order()
    order.join("a", "bounded:2")
    order.join("b", "bounded:2")
    with pytest.raises(ConfigError, match="do not agree") as refused:
        order.join("c", "relaxed")
    assert str(refused.value).splitlines()[1:3] == [
        "  'relaxed': this session",
        "  'bounded:2': another session",
    ]
    order.leave("a")
    order.leave("b")
    order.join("c", "relaxed")


def test_a_fence_waits_for_steps_under_way_and_holds_back_others() -> None:
    order, seen = Order(), []
    order.running.append(None)

    def look() -> None:
        with order.fence(5.0):
            seen.append("inside")
            time.sleep(0.05)
            seen.append("leaves")

    looking = in_thread(look)
    while not order.held:
        time.sleep(0.001)
    time.sleep(0.02)
    assert not seen

    def step() -> None:
        order.running.append(None)
        order.hold_back(Cancellation())
        seen.append("step")
        order.running.pop()

    stepping = in_thread(step)
    time.sleep(0.02)
    assert not seen
    order.running.pop()
    order.left()
    looking.join(5)
    stepping.join(5)
    assert seen == ["inside", "leaves", "step"]
    assert not order.held
    assert not order.running


def test_a_fence_lets_its_own_thread_pass_and_ends_with_an_error_after_its_time() -> None:
    order = Order()
    with order.fence(1.0), order.fence(1.0):
        order.running.append(None)
        order.hold_back(Cancellation())
        order.running.pop()
    order.running.append(None)
    with (
        pytest.raises(DeadlineExceededError, match=r"still under way after 0.02 s: 1 of them"),
        order.fence(0.02),
    ):
        raise AssertionError("a step is under way")
    assert not order.held
    ending = Cancellation()
    ending.cancel(CancelledError("closed"))
    order.held += 1
    with pytest.raises(CancelledError, match="closed"):
        order.hold_back(ending)
    assert order.running == [None]
