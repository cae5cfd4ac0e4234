"""The formula as a Headrace graph on three variables; the caller gets the result."""

from __future__ import annotations

import headrace as hr
from benchmarks.headrace_session import open_session, stepper
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.chain import data


def build(request: Request) -> Participant:
    """Build the graph, and a session that holds the numbers."""
    a, b, c = (hr.Variable(hr.zeros([data.COUNT])) for _ in range(3))
    y = hr.tanh(a * b + c) * hr.exp(-a)
    session = open_session(request.threads, request.variant)
    session.run(hr.global_variables_initializer())
    for variable, value in zip((a, b, c), data.arrays(), strict=True):
        variable.load(value, session)
    step = stepper(session, request.variant, y, ())
    return StepLoop(
        step, data.feeds(), final_loss=lambda: data.checksum(step()), lead_in=data.LEAD_IN
    )
