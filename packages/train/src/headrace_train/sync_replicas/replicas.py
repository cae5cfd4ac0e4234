"""The ops by which replicas are admitted to a step, and wait for the next one."""

from __future__ import annotations

import headrace as hr
from headrace.errors import AttributeValueError, told
from headrace.extend.ops import Index, Resource, Shape, Spec, TensorSpec, op

_COUNTS = "admission counts gradients, and computes none"
_NUMBER = TensorSpec(hr.int64, Shape(()))


@op("SyncReplicas", concurrent=True, effects="reads", public="", no_gradient=_COUNTS)
def sync_replicas(
    replicas_to_aggregate: int,
    total_num_replicas: int,
    gradients: tuple[str, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to what admits the replicas of a name in a container of the device.

    Args:
        replicas_to_aggregate: How many gradients make a step.
        total_num_replicas: How many replicas there are.
        gradients: What each replica brings, as text: all replicas must agree.
        container: The container; empty for the default one.
        shared_name: The name in the container.

    Returns:
        [], a resource handle.
    """
    if replicas_to_aggregate < 1 or total_num_replicas < 1:
        raise AttributeValueError(
            "replicas_to_aggregate and total_num_replicas must be at least 1, got "
            f"{told(replicas_to_aggregate)} and {told(total_num_replicas)}"
        )
    return TensorSpec(hr.resource, Shape(()))


@op("SyncReplicasTask", effects="reads", public="", no_gradient=_COUNTS)
def sync_replicas_task() -> Spec:
    """The index of the task on which the operation is placed.

    Returns:
        [], int64: that of a ``worker``, -2 for a ``chief`` or ``master``, and -1 for others.
    """
    return _NUMBER


@op("SyncReplicasOpen", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_open(handle: Resource, global_step: Index) -> None:
    """Begin with a step: what waits of earlier ones is dropped.

    Args:
        handle: [], what admits replicas.
        global_step: [], the step.
    """


@op("SyncReplicasTakeOver", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_take_over(handle: Resource, global_step: Index, num_tokens: Index) -> None:
    """Go on for a chief that is lost: what it was applying is to be brought again.

    Args:
        handle: [], what admits replicas.
        global_step: [], the step.
        num_tokens: [], how many tokens it was to give out at the beginning.
    """


@op("SyncReplicasJoin", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_join(handle: Resource, replica: Index, task: Index) -> None:
    """Take part, also after having left before.

    Args:
        handle: [], what admits replicas.
        replica: [], the index of the replica, -1 if unknown.
        task: [], the index of the worker that runs it, below 0 for others.
    """


@op("SyncReplicasLeave", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_leave(handle: Resource, replica: Index) -> None:
    """Take no part any more: steps need fewer gradients from now on.

    Args:
        handle: [], what admits replicas.
        replica: [], the index of the replica, -1 if unknown.
    """


@op("SyncReplicasClose", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_close(handle: Resource, everybody: bool) -> None:
    """End what waits until a step is full; with ``everybody`` training as a whole.

    Args:
        handle: [], what admits replicas.
        everybody: Whether replicas that wait, or come, find the end of training.
    """


@op("SyncReplicasAdmit", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_admit(handle: Resource, replica: Index, local_step: Index) -> Spec:
    """Ask whether a gradient is wanted.

    Args:
        handle: [], what admits replicas.
        replica: [], the index of the replica, -1 if unknown.
        local_step: [], the step for which the gradient was computed.

    Returns:
        [], int64: the number under which to bring it, -1 if it is refused.
    """
    return _NUMBER


@op(
    "SyncReplicasAdmitted",
    effects="changes",
    blocking=True,
    concerted=True,
    public="",
    no_gradient=_COUNTS,
)
def sync_replicas_admitted(handle: Resource) -> Spec:
    """Wait until a step has all of its gradients admitted.

    Args:
        handle: [], what admits replicas.

    Returns:
        [n], int64: their numbers, in the order of the replicas.
    """
    return TensorSpec(hr.int64, Shape([None]))


@op("SyncReplicasPause", effects="changes", blocking=True, public="", no_gradient=_COUNTS)
def sync_replicas_pause(handle: Resource) -> None:
    """Apply no gradients from now on, and wait until those that are being applied are.

    Args:
        handle: [], what admits replicas.
    """


@op("SyncReplicasResume", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_resume(handle: Resource) -> None:
    """Apply gradients again, when this was asked for as often as not to.

    Args:
        handle: [], what admits replicas.
    """


@op("SyncReplicasFinish", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_finish(handle: Resource, global_step: Index, num_tokens: Index) -> None:
    """Begin the next step, and give out its tokens.

    Args:
        handle: [], what admits replicas.
        global_step: [], the step that begins.
        num_tokens: [], how many tokens it has.
    """


@op("SyncReplicasAddTokens", effects="changes", public="", no_gradient=_COUNTS)
def sync_replicas_add_tokens(handle: Resource, global_step: Index, num_tokens: Index) -> None:
    """Give out tokens by which replicas may begin.

    Args:
        handle: [], what admits replicas.
        global_step: [], the step that is on them.
        num_tokens: [], how many.
    """


@op(
    "SyncReplicasToken",
    effects="changes",
    blocking=True,
    concerted=True,
    public="",
    no_gradient=_COUNTS,
)
def sync_replicas_token(
    handle: Resource, replica: Index, number: Index, timeout_secs: float
) -> Spec:
    """Take a token, and wait for it.

    Args:
        handle: [], what admits replicas.
        replica: [], the index of the replica, -1 if unknown.
        number: [], the number under which its gradients are there, -1 if they were refused.
        timeout_secs: After how many seconds it fails.

    Returns:
        [], int64: the step that is on it.
    """
    return _NUMBER


@op("SyncReplicasCounters", effects="reads", public="", no_gradient=_COUNTS)
def sync_replicas_counters(handle: Resource) -> Spec:
    """What has happened so far.

    Args:
        handle: [], what admits replicas.

    Returns:
        [7], int64: how many gradients were applied and dropped; how often replicas waited for a
        token, and for how many microseconds together; how many replicas take part; how many
        microseconds ago one came last, and the most microseconds that a step took.
    """
    return TensorSpec(hr.int64, Shape([7]))
