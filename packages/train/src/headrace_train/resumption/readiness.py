"""Ops by which one process tells others that a model is ready."""

from __future__ import annotations

import headrace as hr
from headrace.extend.ops import Floating, Index, Resource, Shape, Spec, TensorSpec, op

_EVENT = "an event is no number"
_COUNT = TensorSpec(hr.int64, Shape(()))


@op("ModelEvent", concurrent=True, effects="reads", public="", no_gradient=_EVENT)
def model_event(container: str, shared_name: str) -> Spec:
    """A handle to an event of a name in a container of the device.

    Args:
        container: The container; empty for the default one.
        shared_name: The name in the container.

    Returns:
        [], a resource handle.
    """
    return TensorSpec(hr.resource, Shape(()))


@op("ModelEventSignal", effects="changes", public="", no_gradient=_EVENT)
def model_event_signal(handle: Resource) -> None:
    """Let the event happen once more: all that wait for it go on.

    Args:
        handle: [], the event.
    """


@op("ModelEventCount", effects="reads", public="", no_gradient=_EVENT)
def model_event_count(handle: Resource) -> Spec:
    """How often the event has happened.

    Args:
        handle: [], the event.

    Returns:
        [], int64.
    """
    return _COUNT


@op("ModelEventWait", effects="changes", blocking=True, public="", no_gradient=_EVENT)
def model_event_wait(handle: Resource, seen: Index, timeout_secs: Floating) -> Spec:
    """Wait until the event has happened more often than was seen, or some time is over.

    Args:
        handle: [], the event.
        seen: [], how often it had happened.
        timeout_secs: [], how many seconds to wait at most.

    Returns:
        [], int64: how often it has happened now.
    """
    return _COUNT
