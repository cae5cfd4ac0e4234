"""Single steps in sessions of their own."""

from __future__ import annotations

from typing import Any

import headrace as hr


def run(fetches: Any, feeds: Any = None, **config: Any) -> Any:
    """Return what a step yields in a new session.

    Args:
        fetches: What it fetches.
        feeds: What it is fed.
        **config: Of the session, as ``hr.Config`` takes it.
    """
    with hr.Session(config=hr.Config(**config) if config else None) as session:
        return session.run(fetches, feeds)


def run_ready(fetches: Any, feeds: Any = None, **config: Any) -> Any:
    """Return what a step yields in a new session, whose variables have their first values."""
    with hr.Session(config=hr.Config(**config) if config else None) as session:
        session.run(hr.global_variables_initializer())
        return session.run(fetches, feeds)
