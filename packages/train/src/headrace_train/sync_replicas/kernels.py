"""Kernels by which replicas are admitted to a step, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.extend import KernelContext, KernelTable
from headrace_train.sync_replicas import replicas as replicas
from headrace_train.sync_replicas.admission import CHIEF, CHIEFS, UNKNOWN, WORKER, Admission

KERNELS = KernelTable()

KERNELS.resource("SyncReplicas")(Admission)


@KERNELS.stateful("SyncReplicasTask")
def task(ctx: KernelContext) -> Any:
    """Return the index of the task."""
    name = ctx.device.name
    index = UNKNOWN
    if name.job in CHIEFS:
        index = CHIEF
    elif name.job == WORKER and name.task is not None:
        index = name.task
    return np.asarray(index, np.int64)


@KERNELS.stateful("SyncReplicasOpen", answers=True)
def open_(ctx: KernelContext, admission: Admission, global_step: Any) -> None:
    """Begin with a step."""
    admission.open(_number(global_step, "global_step"))


@KERNELS.stateful("SyncReplicasTakeOver", answers=True)
def take_over(ctx: KernelContext, admission: Admission, global_step: Any, num_tokens: Any) -> None:
    """Go on for a chief that is lost."""
    admission.take_over(_number(global_step, "global_step"), _count(num_tokens))


@KERNELS.stateful("SyncReplicasJoin", answers=True)
def join(ctx: KernelContext, admission: Admission, replica: Any, task: Any) -> None:
    """Take part."""
    admission.join(_number(replica, "replica"), _number(task, "task"))


@KERNELS.stateful("SyncReplicasLeave", answers=True)
def leave(ctx: KernelContext, admission: Admission, replica: Any) -> None:
    """Take no part any more."""
    admission.leave(_number(replica, "replica"))


@KERNELS.stateful("SyncReplicasClose", answers=True)
def close(ctx: KernelContext, admission: Admission, *, everybody: bool) -> None:
    """End the waiting."""
    admission.end(everybody=everybody)


@KERNELS.stateful("SyncReplicasAdmit", answers=True)
def admit(ctx: KernelContext, admission: Admission, replica: Any, local_step: Any) -> Any:
    """Ask whether a gradient is wanted."""
    step = _number(local_step, "local_step")
    return np.asarray(admission.admit(_number(replica, "replica"), step), np.int64)


@KERNELS.blocking("SyncReplicasAdmitted")
def admitted(
    ctx: KernelContext, step: Any, done: Callable[[Any], None], admission: Admission
) -> None:
    """Wait until the step is full."""
    admission.admitted(_as_arrays(done), step.cancellation)


@KERNELS.blocking("SyncReplicasPause")
def pause(ctx: KernelContext, step: Any, done: Callable[[Any], None], admission: Admission) -> None:
    """Wait until nothing is applied."""

    def paused(result: Any) -> None:
        done(result if isinstance(result, BaseException) else ())

    admission.pause(paused, step.cancellation)


@KERNELS.stateful("SyncReplicasResume", answers=True)
def resume(ctx: KernelContext, admission: Admission) -> None:
    """Go on."""
    admission.resume()


@KERNELS.stateful("SyncReplicasFinish", answers=True)
def finish(ctx: KernelContext, admission: Admission, global_step: Any, num_tokens: Any) -> None:
    """Begin the next step."""
    admission.finish(_number(global_step, "global_step"), _count(num_tokens))


@KERNELS.stateful("SyncReplicasAddTokens", answers=True)
def add_tokens(ctx: KernelContext, admission: Admission, global_step: Any, num_tokens: Any) -> None:
    """Give out tokens."""
    admission.add_tokens(_number(global_step, "global_step"), _count(num_tokens))


@KERNELS.blocking("SyncReplicasToken")
def token(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    admission: Admission,
    replica: Any,
    number: Any,
    *,
    timeout_secs: float,
) -> None:
    """Take a token."""
    index, brought = _number(replica, "replica"), _number(number, "number")
    admission.token(index, timeout_secs, _as_arrays(done), step.cancellation, brought)


@KERNELS.stateful("SyncReplicasCounters")
def counters(ctx: KernelContext, admission: Admission) -> Any:
    """Return what has happened so far."""
    return np.asarray(admission.counters(), np.int64)


def _as_arrays(done: Callable[[Any], None]) -> Callable[[Any], None]:
    def answer(result: Any) -> None:
        failed = isinstance(result, BaseException)
        done(result if failed else np.asarray(result, np.int64))

    return answer


def _number(value: Any, what: str) -> int:
    if np.ndim(value):
        raise InvalidArgumentError(f"{what} must be a scalar, got shape {list(np.shape(value))}")
    return int(value)


def _count(value: Any) -> int:
    count = _number(value, "num_tokens")
    if not 0 <= count <= 1 << 20:
        raise InvalidArgumentError(f"num_tokens must be from 0 to {1 << 20}, got {count}")
    return count
