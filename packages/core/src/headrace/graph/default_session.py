"""The session of the innermost ``with session`` block, per thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from headrace.errors import GraphError

_SESSION: ContextVar[Any] = ContextVar("headrace_session", default=None)


def default_session() -> Any:
    """Return the default session.

    Raises:
        GraphError: if there is none.
    """
    session = _SESSION.get()
    if session is None:
        raise GraphError(
            "there is no default session: use 'with hr.Session() as session:' around this call, or "
            "pass session="
        )
    return session


def get_default_session() -> Any:
    """Return the default session of this thread, or None."""
    return _SESSION.get()


@contextmanager
def use_session(session: Any) -> Iterator[Any]:
    """Make ``session`` the default within the block."""
    token = _SESSION.set(session)
    try:
        yield session
    finally:
        _SESSION.reset(token)
