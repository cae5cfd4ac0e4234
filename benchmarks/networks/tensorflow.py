"""The networks as a TensorFlow graph, channels last."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.networks import dataflow, reference
from benchmarks.networks.tasks import TASKS
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.tensorflow_session import open_session, stepper


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    tf.disable_v2_behavior()
    task = TASKS[request.workload]
    program = dataflow.build(tf, task)
    session = open_session(request.threads)
    session.run(tf.global_variables_initializer())
    dataflow.load(session, program, task)
    return StepLoop(
        stepper(session, request.variant, program.train, program.feeds),
        task.feeds(),
        final_loss=lambda: reference.loss(task, session.run(program.variables)),
        lead_in=task.lead_in,
    )
