"""Any case of the suite as a TensorFlow graph, run by a session."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.suite import dataflow
from benchmarks.suite.case import checksum
from benchmarks.suite.cases import all_cases
from benchmarks.tensorflow_session import open_session, stepper


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    tf.disable_v2_behavior()
    tf.reset_default_graph()
    case = all_cases()[request.workload]
    state = case.first_state()
    built = dataflow.build(tf, case, state)
    session = open_session(request.threads)
    built.load(session, state)
    feed = {built.inputs[name]: value for name, value in case.feeds()[0].items()}
    return StepLoop(
        stepper(session, request.variant, built.step, list(built.inputs.values())),
        [built.feeds(batch) for batch in case.feeds()],
        final_loss=lambda: checksum(session.run(built.result, feed)),
        lead_in=2,
    )
