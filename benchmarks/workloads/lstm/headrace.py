"""The language model as a Headrace graph."""

from __future__ import annotations

import headrace as hr
from benchmarks.headrace_session import open_session, stepper
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.lstm import data, dataflow


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    program = dataflow.build(hr, request.variant)
    session = open_session(request.threads, request.variant)
    session.run(hr.global_variables_initializer())
    dataflow.load(session, program)
    return StepLoop(
        stepper(session, request.variant, program.train, program.feeds),
        data.feeds(),
        final_loss=lambda: data.loss(data.Parameters(*session.run(tuple(program.variables)))),
        lead_in=data.LEAD_IN,
    )
