"""Opens the TensorFlow sessions of all workloads alike."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def open_session(threads: int) -> Any:
    """Return a session on the default graph that computes with this many threads."""
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    return tf.Session(config=config)


def stepper(session: Any, variant: str, fetch: Any, feeds: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of the feeds' values that runs one step the way a variant says."""
    if variant == "make_callable":
        made: Callable[..., Any] = session.make_callable(fetch, list(feeds))
        return made

    def step(*values: Any) -> Any:
        return session.run(fetch, feed_dict=dict(zip(feeds, values, strict=True)))

    return step
