"""Blocks that set context variables, and in which a generator may be dropped.

A generator that is suspended inside of a ``with`` block may be collected, wherever the program
happens to be: up to Python 3.11 also inside of ``ContextVar.set``, while that copies the values of
the thread's context. Whoever sets a context variable then takes away what is being copied, and the
process crashes. So a block that nobody leaves is only noted, and is left when its variable is next
read or set.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

# Of threads that have ended nobody reads a variable again.
_MOST_NOTES = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    """A block that nobody left.

    Attributes:
        variable: What it set.
        thread: In which thread.
        value: To what.
        before: What the variable was before.
    """

    variable: ContextVar[Any]
    thread: int
    value: Any
    before: Any


_NOTES: list[_Note] = []


def read(variable: ContextVar[T]) -> T:
    """Return the value of a variable, after leaving the blocks that were dropped.

    Args:
        variable: One that ``within`` sets.
    """
    return _settled(variable) if _NOTES else variable.get()


def drop(variable: ContextVar[Any], value: Any, before: Any) -> None:
    """Note that the innermost block of a variable was dropped, wherever that may be.

    Args:
        variable: The variable; it is not set now.
        value: What the block set it to; nothing is noted where something else is in force.
        before: What it was before.
    """
    if value is not before and _in_force(variable, tuple(_NOTES)) is value:
        del _NOTES[: -_MOST_NOTES + 1]
        _NOTES.append(_Note(variable, threading.get_ident(), value, before))


@contextmanager
def within(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Set a variable within the block, which may be dropped.

    Args:
        variable: The variable; whoever wants its value asks ``read``.
        value: What it is in the block.
    """
    before = read(variable)
    token = variable.set(value)
    try:
        yield value
    except GeneratorExit:
        drop(variable, value, before)
        raise
    except BaseException:
        _leave(variable, token)
        raise
    else:
        _leave(variable, token)


def _leave(variable: ContextVar[Any], token: Any) -> None:
    read(variable)
    variable.reset(token)


def _in_force(variable: ContextVar[Any], notes: tuple[_Note, ...]) -> Any:
    """Return what a variable is when the blocks that were dropped are left."""
    value, thread = variable.get(), threading.get_ident()
    own = [note for note in notes if note.variable is variable and note.thread == thread]
    for _ in own:
        note = next((note for note in own if note.value is value), None)
        if note is None:
            break
        value = note.before
    return value


def _settled(variable: ContextVar[T]) -> T:
    notes, thread = tuple(_NOTES), threading.get_ident()
    value: T = _in_force(variable, notes)
    if value is not variable.get():
        variable.set(value)
    for note in notes:
        # Others may be added meanwhile, whatever is called here.
        if note.variable is variable and note.thread == thread and note in _NOTES:
            _NOTES.remove(note)
    return value
