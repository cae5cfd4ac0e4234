"""The program in TensorFlow."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request
from benchmarks.records import program
from benchmarks.tensorflow_session import open_session


def build(request: Request) -> Participant:
    """Build the program with one of its two sources."""
    tf.disable_v2_behavior()
    return program.build(
        tf, request.workload, request.variant, lambda: open_session(request.threads)
    )
