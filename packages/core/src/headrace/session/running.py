"""Running a prepared step: from what a caller feeds to what it gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import DeadTensorError, NodeDef, OpError, ResourceExhaustedError
from headrace.graph.graph import Graph
from headrace.graph.tensor import Tensor
from headrace.records import dataclass
from headrace.runtime.devices.device import HostArray
from headrace.runtime.runtime import RegisteredStep
from headrace.runtime.transfers.rendezvous import DEAD
from headrace.session.feeds import Binder, feed_parts
from headrace.session.fetches import Fetches

# Runs a step with its feeds as arrays.
RunStep: TypeAlias = Callable[[Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step of one signature, ready to run.

    Attributes:
        step: The step as its runtime holds it.
        fetches: The fetches, flattened.
        run: Runs one step with values for all feeds, in order.
        run_by: Makes another ``run`` of another way to run the step with its feeds as arrays.
        run_within: Makes such another way, which ends the step after so many seconds.
        repeat: Runs steps without feeds while a condition holds, in a better way than by ``run``;
            None where there is none.
    """

    step: RegisteredStep
    fetches: Fetches
    run: Callable[[Sequence[Any]], Any]
    run_by: Callable[[RunStep], Callable[[Sequence[Any]], Any]]
    run_within: Callable[[float | None], RunStep]
    repeat: Callable[[Callable[[], bool]], None] | None = None


def runner(
    run_step: RunStep,
    binders: Sequence[Binder],
    fetches: Fetches,
    composite: list[tuple[Any, int]] | None,
    graph: Graph,
) -> Callable[[Sequence[Any]], Any]:
    """Return the function that runs a step with values for its feeds.

    Args:
        run_step: Runs the step with its feeds as arrays.
        binders: For each feed the function that checks and converts its value.
        fetches: The fetches, flattened.
        composite: What is fed, and how many tensors each is, where some of it is not just one.
        graph: The graph of the session, in which errors name their operation.
    """
    rebuild, tensors = fetches.rebuild, fetches.tensors

    # Steps that fetch nothing are the training steps that run most often, and those that read
    # their input in the graph are fed nothing either.
    def run_unfed_targets(values: Sequence[Any]) -> Any:
        try:
            run_step(())
        except OpError as error:
            attribute(error, graph)
            raise
        return rebuild(())

    def run_targets(values: Sequence[Any]) -> Any:
        feeds = [bind(value) for bind, value in zip(binders, values, strict=True)]
        try:
            run_step(feeds)
        except OpError as error:
            attribute(error, graph)
            raise
        return rebuild(())

    def run(values: Sequence[Any]) -> Any:
        feeds = [bind(value) for bind, value in zip(binders, values, strict=True)]
        try:
            values = run_step(feeds)
        except OpError as error:
            attribute(error, graph)
            raise
        fetched = [
            owned(value, feeds, tensor) for value, tensor in zip(values, tensors, strict=True)
        ]
        if len(fetched) > 1:
            separate(fetched)
        return rebuild(fetched)

    def run_composite(values: Sequence[Any]) -> Any:
        assert composite is not None
        pairs = zip(composite, values, strict=True)
        return run([part for (key, n), value in pairs for part in feed_parts(key, value, n)])

    if composite is not None:
        return run_composite
    if tensors:
        return run
    return run_targets if binders else run_unfed_targets


def separate(fetched: list[Any]) -> None:
    """Copy arrays that were fetched under two names, such as a tensor and its identity."""
    seen: set[int] = set()
    for i, value in enumerate(fetched):
        if isinstance(value, np.ndarray):
            if id(value) in seen:
                fetched[i] = value.copy()
            seen.add(id(value))


def attribute(error: OpError, graph: Graph) -> None:
    """Let an error name the operation of the program instead of a copy of it in the step."""
    known = error.node_def
    if isinstance(known, NodeDef):
        error.concerns(graph.find_operation(known.name), known)


def owned(value: Any, feeds: Sequence[HostArray], tensor: Tensor) -> Any:
    """Return a fetched value that shares no memory with the session or the feeds."""
    if value is DEAD:
        raise DeadTensorError(
            f"{tensor.name!r} is dead in this step: it depends on the branch of a switch that was "
            f"not taken\n  at {tensor.op.site}"
        )
    array = np.asarray(value)
    if array.ndim == 0:
        return array[()]
    shared = array.base is not None or not array.flags.writeable
    if shared or any(array is feed for feed in feeds):
        try:
            return array.copy()
        except MemoryError:
            raise ResourceExhaustedError(
                f"{tensor.name!r} is {array.dtype}{list(array.shape)}, of which the memory has no "
                f"room for a copy of {array.nbytes} bytes\n  at {tensor.op.site}"
            ) from None
    return array
