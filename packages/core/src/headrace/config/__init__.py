"""``hr.config``: how sessions run that are opened without a configuration, as ``tf.config``.

What is set here holds for sessions without a target that are opened afterwards, in the whole
process. A session that is given an ``hr.Config`` or an ``hr.ConfigProto`` has that alone.
"""

from typing import Any as _Any

from headrace.config import experimental as experimental
from headrace.config import optimizer as optimizer
from headrace.config import threading as threading
from headrace.config.experimental import list_logical_devices as _list_logical_devices
from headrace.config.state import STATE as _STATE
from headrace.errors import UnimplementedError as _UnimplementedError

__all__ = [
    "experimental",
    "experimental_connect_to_cluster",
    "experimental_connect_to_host",
    "experimental_list_devices",
    "experimental_run_functions_eagerly",
    "get_soft_device_placement",
    "optimizer",
    "set_soft_device_placement",
    "threading",
]


def get_soft_device_placement() -> bool:
    """Return whether an operation runs elsewhere that cannot run where it asks to be."""
    return _STATE.soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    """Say whether an operation runs elsewhere that cannot run where it asks to be.

    Args:
        enabled: As ``hr.Config(allow_soft_placement=...)``.
    """
    _STATE.change(soft_placement=bool(enabled))


def experimental_list_devices() -> list[str]:
    """Return the names of the devices of sessions."""
    return [device.name for device in _list_logical_devices()]


def experimental_run_functions_eagerly(run_eagerly: bool) -> None:
    """Do nothing: functions of ``hr.function`` are parts of graphs in any case.

    Args:
        run_eagerly: Whether TensorFlow would run them line by line.
    """
    del run_eagerly


def experimental_connect_to_host(remote_host: _Any = None, job_name: str = "worker") -> None:
    """Refuse: there is no eager execution that could reach other processes.

    Args:
        remote_host: An address.
        job_name: The job of the process.

    Raises:
        UnimplementedError: always.
    """
    raise _UnimplementedError(_NO_EAGER)


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: _Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: str | None = None,
) -> None:
    """Refuse: there is no eager execution that could reach other processes.

    Args:
        cluster_spec_or_resolver: The tasks.
        job_name: The job of this process.
        task_index: Its number in the job.
        protocol: How to reach the others.

    Raises:
        UnimplementedError: always.
    """
    raise _UnimplementedError(_NO_EAGER)


_NO_EAGER = (
    "there is no eager execution, which this would connect to other processes: open sessions on "
    "the target of an hr.dist.Cluster, or of an hr.train.Server"
)
