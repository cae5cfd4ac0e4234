"""Kernels of random streams as values, and of the event of a model that is ready, on the host."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DataLossError, InvalidArgumentError
from headrace.extend import KernelContext, KernelTable
from headrace_train.resumption import random_streams as random_streams
from headrace_train.resumption import readiness as readiness
from headrace_train.resumption.event import ModelEvent

KERNELS = KernelTable()
_LONGEST_SECS = 1e6

KERNELS.resource("ModelEvent")(ModelEvent)


@KERNELS.stateful("RandomStreams")
def streams(ctx: KernelContext) -> Any:
    """Return how far the streams have been drawn from."""
    made = np.empty((), object)
    made[()] = json.dumps(ctx.state.streams(), sort_keys=True).encode()
    return made


@KERNELS.stateful("RestoreRandomStreams")
def restore(ctx: KernelContext, streams: Any) -> None:
    """Go on from there."""
    try:
        found = json.loads(np.asarray(streams, object).item())
        ctx.state.set_streams(
            {str(name): (int(a), int(b), int(drawn)) for name, (a, b, drawn) in found.items()}
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as reason:
        raise DataLossError(f"no saved random streams: {reason}") from reason


@KERNELS.stateful("ModelEventSignal", answers=True)
def signal(ctx: KernelContext, event: ModelEvent) -> None:
    """Let the event happen."""
    event.signal()


@KERNELS.stateful("ModelEventCount")
def count(ctx: KernelContext, event: ModelEvent) -> Any:
    """Return how often it has happened."""
    return np.asarray(event.count, np.int64)


@KERNELS.blocking("ModelEventWait")
def wait(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    event: ModelEvent,
    seen: Any,
    timeout_secs: Any,
) -> None:
    """Wait for it."""
    limit = float(timeout_secs)
    if np.ndim(seen) or not 0 <= limit <= _LONGEST_SECS:
        raise InvalidArgumentError(
            f"seen must be a scalar and timeout_secs from 0 to {_LONGEST_SECS:g}, got "
            f"{np.asarray(seen).tolist()} and {limit:g}"
        )

    def answer(result: Any) -> None:
        done(result if isinstance(result, BaseException) else np.asarray(result, np.int64))

    event.wait(int(seen), limit, answer, step.cancellation)
