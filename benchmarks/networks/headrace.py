"""The networks as a Headrace graph."""

from __future__ import annotations

import headrace as hr
from benchmarks.headrace_session import open_session, stepper
from benchmarks.networks import dataflow, reference
from benchmarks.networks.tasks import TASKS
from benchmarks.participant import Participant, Request, StepLoop


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    task = TASKS[request.workload]
    program = dataflow.build(hr, task)
    session = open_session(request.threads, request.variant)
    session.run(hr.global_variables_initializer())
    dataflow.load(session, program, task)
    return StepLoop(
        stepper(session, request.variant, program.train, program.feeds),
        task.feeds(),
        final_loss=lambda: reference.loss(task, session.run(program.variables)),
        lead_in=task.lead_in,
    )
