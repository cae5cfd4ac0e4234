"""A loop of training under a supervisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.errors import AbortedError
from headrace.extend.arguments import items, mapping
from headrace_train.supervisor.supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call a function again and again with a session of a supervisor, until that should stop.

    When a step is aborted, as where a task of a cluster was lost, another session goes on.

    Args:
        supervisor: The supervisor.
        train_step_fn: Called as ``train_step_fn(session, *args, **kwargs)``.
        args: Further arguments.
        kwargs: Arguments by name.
        master: The target of the session.
    """
    further, named = items(args or (), "args"), mapping(kwargs, "kwargs")
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *further, **named)
        except AbortedError:
            continue
        return
