"""A TensorFlow session that runs a no-op, and a callable made of it."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.tensorflow_session import open_session
from benchmarks.workloads.noop import STEPS


def build(request: Request) -> Participant:
    """Build a graph of one no-op, and a session on it."""
    tf.disable_v2_behavior()
    nothing = tf.no_op()
    session = open_session(request.threads)
    if request.variant == "make_callable":
        return StepLoop(session.make_callable(nothing), [()] * STEPS)
    return StepLoop(session.run, [(nothing,)] * STEPS)
