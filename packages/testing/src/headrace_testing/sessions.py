"""How the checks open sessions: on this process, or on the cluster whose target is in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from headrace import Config, Graph, Session
from headrace.extend.devices import DeviceName
from headrace.extend.state import block_value, within_block

_TARGET: ContextVar[str] = ContextVar("target", default="")


def open_session(graph: Graph | None = None, config: Config | None = None) -> Session:
    """Open a session on the target in use."""
    return Session(block_value(_TARGET), graph=graph, config=config)


@contextmanager
def use_target(target: str) -> Iterator[None]:
    """Let checks open their sessions on a target, such as a cluster's."""
    with within_block(_TARGET, target):
        yield


def kind_of(device: str) -> str:
    """Return the kind of a device's name, as in ``"cpu"`` for ``"/job:ps/task:0/cpu:0"``."""
    return DeviceName.parse(device).kind or ""
