"""Arguments of the methods of a saver."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace import Tensor, Variable
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CheckpointNotFoundError,
    FetchError,
    GraphError,
    shown,
)
from headrace.extend.arguments import real
from headrace_train.checkpoint.opening import OpenCheckpoint, open_checkpoint


def step_in(sess: Any, global_step: Any) -> int | None:
    """Return the step that a program gave, fetched where it is a tensor."""
    if global_step is None:
        return None
    if isinstance(global_step, Variable | Tensor | str):
        try:
            global_step = sess.run(global_step)
        except FetchError as reason:
            raise GraphError(f"global_step cannot be fetched: {reason}") from reason
    if isinstance(global_step, np.ndarray) and global_step.size == 1:
        global_step = global_step.item()
    try:
        step = operator.index(global_step)
    except TypeError:
        raise ArgumentTypeError(
            f"global_step must be a whole number, got {shown(global_step)}"
        ) from None
    if not -(2**63) <= step < 2**63:
        # It becomes part of a name, and a number of 64 bits.
        raise AttributeValueError(f"global_step must be an integer of 64 bits, got {shown(step)}")
    return step


def number(metric: Any) -> float | None:
    """Return a metric as a number."""
    if metric is None:
        return None
    return real(metric, "metric")


@contextlib.contextmanager
def known_checkpoint(prefix: str) -> Iterator[OpenCheckpoint]:
    """Open a checkpoint; one that is not there is refused as TensorFlow refuses it."""
    try:
        reader = open_checkpoint(prefix)
    except CheckpointNotFoundError as reason:
        raise CheckpointNotFoundError(
            f"The passed save_path is not a valid checkpoint: {reason}"
        ) from reason
    with reader:
        yield reader


def check_list(label: str, value: Any) -> None:
    """Refuse what is no list."""
    if not isinstance(value, list):
        raise _NoListError(f"{label} must be a list, got {shown(value)}")


class _NoListError(ArgumentTypeError, AssertionError):
    """What should be a list and is none; TensorFlow asserts it."""
