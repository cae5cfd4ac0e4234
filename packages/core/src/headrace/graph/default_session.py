"""The session of the innermost ``with session`` block, per thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from headrace.errors import GraphError, NestingError, shown
from headrace.graph.context_blocks import drop, read

_SESSION: ContextVar[Any] = ContextVar("headrace_session", default=None)


def default_session() -> Any:
    """Return the default session.

    Raises:
        GraphError: if there is none.
    """
    session = read(_SESSION)
    if session is None:
        raise GraphError(
            "there is no default session: use 'with hr.Session() as session:' around this call, or "
            "pass session="
        )
    return session


def get_default_session() -> Any:
    """Return the default session of this thread, or None."""
    return read(_SESSION)


@contextmanager
def use_session(session: Any) -> Iterator[Any]:
    """Make ``session`` the default within the block."""
    before = read(_SESSION)
    token = _SESSION.set(session)
    closed = False
    try:
        yield session
    except GeneratorExit:
        # Nobody left the block: it is collected with what held it.
        closed = True
        drop(_SESSION, session, before)
        raise
    finally:
        innermost = not closed and read(_SESSION) is session
        if not innermost and not closed:
            raise NestingError(
                f"{shown(session)} is left as the default before a session that was entered inside "
                "of its block; leave them in the opposite order, as 'with' does"
            )
        if innermost:
            _SESSION.reset(token)
