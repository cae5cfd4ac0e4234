"""Ctrl-C in a step that answers another thread, or while plugins load, loses nothing."""

from __future__ import annotations

import gc
import importlib.util
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import headrace as hr
from headrace.runtime.concurrency.wakeup import Wakeup
from headrace.runtime.engine import LocalStep
from tests.children import run_program

pytestmark = [pytest.mark.needs("autodiff", "backend-cpu"), pytest.mark.usefixtures("interrupts")]

_PACKAGES = tuple(
    f"{Path(spec.origin or '').parent}/"
    for spec in map(importlib.util.find_spec, ("headrace", "headrace_cpu"))
    if spec is not None
)

# Returns the step that waits, and that which ends its wait.
Kind = Callable[[], tuple[hr.Tensor | hr.Operation, hr.Tensor | hr.Operation]]


def _fifo(capacity: int = 1) -> hr.FIFOQueue:
    return hr.FIFOQueue(capacity, [hr.float32], shapes=[[]])


def _waits_to_enqueue() -> Any:
    queue = _fifo()
    with hr.control_dependencies([queue.enqueue(1.0)]):
        waits = queue.enqueue(2.0)
    return waits, queue.dequeue()


def _waits_to_dequeue() -> Any:
    queue = _fifo(1000)
    return queue.dequeue(), queue.enqueue(1.0)


def _waits_to_dequeue_many() -> Any:
    queue = _fifo(1000)
    return queue.dequeue_many(3), queue.enqueue_many(([1.0, 2.0, 3.0],))


def _waits_to_shuffle() -> Any:
    queue = hr.RandomShuffleQueue(1000, 0, [hr.float32], shapes=[[]])
    return queue.dequeue(), queue.enqueue(1.0)


def _waits_for_a_closed_queue() -> Any:
    queue = _fifo()
    return queue.dequeue(), queue.close(cancel_pending_enqueues=True)


def _waits_to_unstage() -> Any:
    area = hr.StagingArea([hr.float32], shapes=[[]])
    return area.get(), area.put([hr.constant(1.0)])


def _waits_to_take_gradients() -> Any:
    accumulator = hr.ConditionalAccumulator(hr.float32, shape=[])
    return accumulator.take_grad(1), accumulator.apply_grad(1.0, local_step=1 << 40)


KINDS: dict[str, Kind] = {
    "enqueue": _waits_to_enqueue,
    "dequeue": _waits_to_dequeue,
    "dequeue many": _waits_to_dequeue_many,
    "shuffle": _waits_to_shuffle,
    "close": _waits_for_a_closed_queue,
    "unstage": _waits_to_unstage,
    "take gradients": _waits_to_take_gradients,
}


class _Interrupt:
    """Interrupts the main thread at the n-th place of a step at which Python looks for signals.

    It does so where a function begins, and where a call returns; not before each line.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self._begun = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self._begun = self._begun or frame.f_code is LocalStep.run.__code__
        if not self._begun or event in {"c_call", "c_exception"}:
            return
        if frame.f_code.co_filename.startswith(_PACKAGES):
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)


def _interrupted(call: Callable[[], object], at: int) -> bool:
    """Call, with an interrupt at a place; return whether it came to that place."""
    interrupt, before = _Interrupt(at), sys.getprofile()
    # What is collected meanwhile says what interrupts it, and goes on.
    gc.disable()
    sys.setprofile(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
        gc.enable()
    return interrupt.left <= 0


def _await_wait(thread: threading.Thread) -> None:
    """Wait until a thread has nothing left to do but to wait."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is Wakeup.wait.__code__:
            return
        time.sleep(0.0002)
    pytest.fail("the step does not wait")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", list(KINDS))
def test_an_interrupt_at_any_place_loses_nobody_who_waits(name: str) -> None:
    with hr.Graph().as_default():
        waits, ends = KINDS[name]()
        at, came = 0, True
        while came:
            at += 1
            with hr.Session(config=hr.Config(executor="plain")) as session:
                told = threading.Event()
                run = session.make_callable(waits)
                end = session.make_callable(ends)

                def wait(run: Callable[[], object] = run, told: threading.Event = told) -> None:
                    try:
                        run()
                    except hr.errors.OutOfRangeError:
                        assert name == "close"
                    told.set()

                thread = threading.Thread(target=wait, daemon=True)
                thread.start()
                _await_wait(thread)
                came = _interrupted(end, at)
                # It may have come before anything was done: then it was not, and is done now.
                if not told.wait(0.01):
                    end()
                    assert told.wait(20), f"interrupted at place {at}, it waits for ever"
                thread.join(20)
    assert at > 20


LOADING = """
import signal, sys
import headrace as hr

left = int(sys.argv[1])

def interrupt(frame, event, argument):
    global left
    if event == "call" and frame.f_code.co_name == "<module>":
        left -= "headrace_" in frame.f_code.co_filename
        if left == 0:
            left -= 1
            signal.raise_signal(signal.SIGINT)

def program():
    with hr.Graph().as_default(), hr.Session() as session:
        w = hr.Variable([1.0, 2.0])
        (slope,) = hr.gradients(hr.reduce_mean(w * w), [w])
        session.run(w.initializer)
        return session.run(slope).tolist()

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.setprofile(interrupt)
try:
    program()
except KeyboardInterrupt:
    print("interrupted")
sys.setprofile(None)
print(program())
"""


@pytest.mark.parametrize("at", [1, 2, 5, 20, 40, 60])
def test_an_interrupt_while_plugins_load_loses_nothing_of_them(at: int) -> None:
    done = run_program(LOADING, at)
    assert done.stdout.splitlines() == ["interrupted", "[1.0, 2.0]"], done.stderr
