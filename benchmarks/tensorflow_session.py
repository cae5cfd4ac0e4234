"""Opens the TensorFlow sessions of all workloads alike."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def open_session(threads: int) -> Any:
    """Return a session on the default graph that computes with this many threads."""
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    return tf.Session(config=config)
