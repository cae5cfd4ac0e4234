"""``Session.run`` of a no-op, and a callable made of it."""

from __future__ import annotations

import headrace as hr
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.noop import STEPS


def build(request: Request) -> Participant:
    """Build a graph of one no-op, and a session on it."""
    nothing = hr.no_op()
    session = hr.Session()
    if request.variant == "make_callable":
        return StepLoop(session.make_callable(nothing), [()] * STEPS)
    return StepLoop(session.run, [(nothing,)] * STEPS)
