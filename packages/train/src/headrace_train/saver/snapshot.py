"""Snapshots: reading variables as they all are at one moment, while others train."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError, HeadraceError, TaskLostError, shown

_log = logging.getLogger(__name__)

# The collection of pairs of operations that stop what applies gradients of several replicas, and
# let it go on.
PAUSES = "sync_replicas_pauses"

# How long to wait for steps under way.
MOST_SECS = 60.0
# What checkpoints say in their metadata, and of which variables that holds.
KEY = "consistency"
ONE_MOMENT = "one moment"


@contextlib.contextmanager
def one_moment(session: Any, timeout: float) -> Iterator[None]:
    """Let nobody change variables that sessions share while the block runs.

    Args:
        session: A session.
        timeout: How many seconds to wait for what is being changed.

    Raises:
        ArgumentTypeError: if the session cannot do that.
        DeadlineExceededError: if it takes longer.
    """
    fence = getattr(session, "fence", None)
    if fence is None:
        raise ArgumentTypeError(
            f"a consistent checkpoint needs a session that has fences, got {shown(session)}"
        )
    options = hr.RunOptions(timeout_in_ms=max(int(timeout * 1000), 1))
    with contextlib.ExitStack() as stack:
        # The thread that applies gradients waits for replicas in its step, which no fence may
        # wait for: this replica may be one of them.
        for pause, resume in session.graph.get_collection(PAUSES):
            session.run(pause, options=options)
            stack.callback(_resumed, session, resume)
        stack.enter_context(fence(timeout))
        yield


def _resumed(session: Any, resume: Any) -> None:
    """Let gradients be applied again.

    Raises:
        HeadraceError: if that fails twice: training would wait for ever.
    """
    for attempts_left in (1, 0):
        try:
            session.run(resume)
        except TaskLostError as error:
            # What was saved is saved: whoever trains on learns of the loss in the next step.
            _log.warning("the pause did not end: %s", error)
        except HeadraceError:
            if not attempts_left:
                raise
            continue
        return
