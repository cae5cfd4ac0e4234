"""The formula as a TensorFlow graph on three variables; the caller gets the result."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.tensorflow_session import open_session, stepper
from benchmarks.workloads.chain import data


def build(request: Request) -> Participant:
    """Build the graph, and a session that holds the numbers."""
    tf.disable_v2_behavior()
    a, b, c = (tf.Variable(tf.zeros([data.COUNT])) for _ in range(3))
    y = tf.tanh(a * b + c) * tf.exp(-a)
    session = open_session(request.threads)
    session.run(tf.global_variables_initializer())
    for variable, value in zip((a, b, c), data.arrays(), strict=True):
        variable.load(value, session)
    step = stepper(session, request.variant, y, ())
    return StepLoop(
        step, data.feeds(), final_loss=lambda: data.checksum(step()), lead_in=data.LEAD_IN
    )
