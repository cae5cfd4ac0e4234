"""The random streams of a session as a value: how far each has been drawn from."""

from __future__ import annotations

import headrace as hr
from headrace.extend.ops import Shape, Spec, String, TensorSpec, op

_TEXT = "a position is text"


@op("RandomStreams", effects="reads", public="", no_gradient=_TEXT)
def random_streams() -> Spec:
    """How far the random streams of a session have been drawn from, on one task.

    Returns:
        [], string: JSON.
    """
    return TensorSpec(hr.string, Shape(()))


@op("RestoreRandomStreams", effects="changes", public="", no_gradient=_TEXT)
def restore_random_streams(streams: String) -> None:
    """Let the random streams of a session go on where they were.

    Args:
        streams: [], string, what ``RandomStreams`` yielded.
    """
