"""What is done when something is collected leaves the context of the thread alone."""

from __future__ import annotations

import contextvars
import gc

import pytest

from headrace.finalizers import apart, when_collected
from tests.children import run_program

_NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)


class Thing:
    """Something to collect."""


def test_a_context_of_its_own():
    token = _NUMBER.set(1)
    seen = []

    def call(number: int, *, more: int) -> int:
        seen.append(_NUMBER.get())
        _NUMBER.set(number)
        return number + more

    assert apart(call, 5, more=2) == 7
    assert (seen, _NUMBER.get()) == ([0], 1)
    _NUMBER.reset(token)


def test_what_is_collected_is_told_once():
    told: list[int] = []
    thing = Thing()
    when_collected(thing, told.append, 1)
    del thing
    gc.collect()
    assert told == [1]


def test_called_before_it_is_collected():
    told: list[int] = []
    thing = Thing()
    tell = when_collected(thing, lambda x: told.append(x) or x, 1)
    assert tell() == 1
    del thing
    gc.collect()
    assert told == [1]


@pytest.mark.parametrize("at_exit", [False, True])
def test_at_the_end_of_the_program(at_exit: bool):
    code = (
        "from headrace.finalizers import when_collected\n"
        "class Thing: pass\n"
        "thing = Thing()\n"
        f"when_collected(thing, print, 'told', at_exit={at_exit})\n"
    )
    done = run_program(code)
    assert (done.stdout.strip(), done.stderr) == ("told" if at_exit else "", "")


# Sessions with a shuffling queue, which makes a generator of random numbers as it is closed.
_SESSIONS = """
import contextvars, gc, sys
import headrace as hr

of_this_thread = contextvars.ContextVar("of this thread", default=False)
of_this_thread.set(True)
changes = []

def look(frame, event, called):
    if event == "c_call" and isinstance(getattr(called, "__self__", None), contextvars.ContextVar):
        if called.__name__ in ("set", "reset"):
            changes.append(of_this_thread.get())

gc.disable()
for _ in range(3):
    with hr.Graph().as_default():
        queue = hr.RandomShuffleQueue(10, 1, hr.float32, shapes=[[]])
        session = hr.Session()
        session.run(queue.enqueue(1.0))
    session.cycle = [session]
    del session, queue
    sys.setprofile(look)
    gc.collect()
    sys.setprofile(None)
print(any(changes), not changes)
"""


@pytest.mark.needs("backend-cpu")
def test_sessions_that_are_collected_set_no_variables_of_the_thread():
    """Up to Python 3.11 they did so inside of ContextVar.set, and the process crashed."""
    done = run_program(_SESSIONS)
    assert (done.stdout.strip(), done.stderr) == ("False False", "")
