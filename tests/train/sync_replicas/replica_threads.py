"""Replicas as sessions of one process, which share a named container."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import headrace as hr

_numbers = itertools.count()


class Sharing:
    """Sessions that share state, where a cluster would have tasks."""

    def __init__(self, **config: Any) -> None:
        self.name = f"replicas_{next(_numbers)}"
        self.config = hr.Config(**config)
        self.sessions: list[Any] = []

    def scope(self) -> Any:
        return hr.container(self.name)

    def device(self, name: str) -> Any:
        return contextlib.nullcontext()

    def arguments(self, index: int) -> dict[str, Any]:
        return {"replica_index": index, "timeout_secs": 30.0}

    def session(self, replica: Any) -> Any:
        with replica.graph.as_default():
            session = hr.train.MonitoredTrainingSession(
                is_chief=replica.index == 0, hooks=[replica.hook], config=self.config
            )
        self.sessions.append(session)
        return session

    def close(self) -> None:
        """Close the sessions, those of other replicas before that of the chief."""
        for session in reversed(self.sessions):
            with contextlib.suppress(Exception):
                session.close()
        hr.Session.reset("", [self.name])
