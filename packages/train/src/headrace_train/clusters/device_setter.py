"""A device function that puts state on parameter servers and everything else on a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headrace import Operation
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, shown, told
from headrace.extend.devices import DeviceName
from headrace_train.clusters.spec import ClusterSpec
from headrace_train.clusters.strategies import GreedyLoadBalancingStrategy, byte_size_load_fn

# Ops that keep state: under our names and TensorFlow's.
_VARIABLES = frozenset(("VarHandle", "VarHandleOp", "Variable", "VariableV2"))
STANDARD_PS_OPS = (
    *sorted(_VARIABLES),
    *("MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors"),
    *("MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2"),
    *("ConditionalAccumulator", "ResourceConditionalAccumulator"),
)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """Return a device function for building one replica of a model.

    With ``hr.device(replica_device_setter(...))`` variables and other state are divided among the
    tasks of the parameter servers, and all else goes to the worker. Devices that the model asks for
    come first.

    Args:
        ps_tasks: The number of parameter servers; ignored where there is a cluster.
        ps_device: The device of parameter servers, to which the task is added.
        worker_device: The device for everything else.
        merge_devices: Complete devices that are asked for in part; leave them alone if false.
        cluster: What ``ClusterSpec`` takes, or one.
        ps_ops: Types of operations that belong on parameter servers; those of variables, mutable
            tables and accumulators if None.
        ps_strategy: Returns the task for each such operation. If None, each goes to the task that
            has the fewest bytes so far. TensorFlow's default is ``RoundRobinStrategy``.

    Returns:
        The function; None where there are no parameter servers.

    Raises:
        DTypeError: if the cluster is none, or the strategy is no function.
    """
    if cluster is not None:
        spec = ClusterSpec(cluster)
        job = DeviceName.parse(ps_device).job
        if job not in spec.jobs:
            return None
        ps_tasks = spec.num_tasks(job)
    count: Any = ps_tasks
    if not isinstance(count, int):
        raise ArgumentTypeError(f"ps_tasks must be a number of tasks, got {shown(ps_tasks)}")
    if not ps_tasks:
        return None
    if ps_tasks < 0:
        raise AttributeValueError(f"ps_tasks must be at least 0, got {told(ps_tasks)}")
    if ps_strategy is not None and not callable(ps_strategy):
        raise DTypeError(f"ps_strategy must be a function, got {shown(ps_strategy)}")
    strategy = ps_strategy or GreedyLoadBalancingStrategy(ps_tasks, _load)
    on_ps = set(STANDARD_PS_OPS if ps_ops is None else ps_ops)
    if on_ps & _VARIABLES:
        on_ps |= _VARIABLES
    servers, worker = DeviceName.parse(ps_device), DeviceName.parse(worker_device)

    def choose(op: Operation) -> str:
        asked = DeviceName.parse(op.device)
        if not merge_devices and op.device:
            return op.device
        if ps_device and op.type in on_ps:
            chosen = servers
            if servers.job and asked.job in (None, servers.job):
                chosen = replace(servers, task=int(strategy(op)))
            return str(chosen.merged(asked))
        return str(worker.merged(asked))

    return choose


def _load(op: Operation) -> int:
    """Return the bytes of an operation; of one whose size nobody knows, those of a scalar."""
    content = op.outputs[0].spec.content if len(op.outputs) == 1 else None
    known = content is not None and content.shape.is_fully_defined()
    return byte_size_load_fn(op) if known else 8
