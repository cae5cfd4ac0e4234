"""The language model as a TensorFlow graph."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.tensorflow_session import open_session, stepper
from benchmarks.workloads.lstm import data, dataflow


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    tf.disable_v2_behavior()
    program = dataflow.build(tf, request.variant)
    session = open_session(request.threads)
    session.run(tf.global_variables_initializer())
    dataflow.load(session, program)
    return StepLoop(
        stepper(session, request.variant, program.train, program.feeds),
        data.feeds(),
        final_loss=lambda: data.loss(data.Parameters(*session.run(tuple(program.variables)))),
        lead_in=data.LEAD_IN,
    )
