"""Servers as messages of Protocol Buffers, and settings of sessions in them."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import DTypeError
from headrace.extend.runtime import as_config

_PROTOCOL = "grpc"


def is_message(value: Any, name: str) -> bool:
    """Whether a value is a message of Protocol Buffers of a name."""
    return hasattr(value, "DESCRIPTOR") and value.DESCRIPTOR.name == name


def checked_config(config: Any) -> hr.Config:
    """Return the settings of sessions on a server in the form that sessions use.

    Args:
        config: An ``hr.Config``, an ``hr.ConfigProto``, or a ``ConfigProto`` message.

    Raises:
        ConfigError: if it is none of these, or asks for what there is not.
    """
    return as_config(_read(config) if is_message(config, "ConfigProto") else config)


def make_server_def(
    cluster: dict[str, Any], job: str, index: int, protocol: str | None, config: Any
) -> Any:
    """Return the ``ServerDef`` of a server; needs the packages headrace-io and headrace-train.

    Args:
        cluster: For each job its tasks, as ``hr.train.ClusterSpec`` takes them.
        job: The job of the server's task.
        index: The index of the task.
        protocol: What the program called the protocol.
        config: The settings of sessions on the server, None for the defaults.
    """
    train: Any = hr.train
    made = train.ServerDef(job_name=job, task_index=index, protocol=protocol or _PROTOCOL)
    made.cluster.CopyFrom(train.ClusterSpec(cluster).as_cluster_def())
    if config is not None:
        _write(_as_proto(config), made.default_session_config)
    return made


def _as_proto(config: Any) -> Any:
    """Return settings in TensorFlow's form, as far as that has them."""
    if not isinstance(config, hr.Config):
        return _read(config) if is_message(config, "ConfigProto") else config
    proto = hr.ConfigProto(
        allow_soft_placement=config.allow_soft_placement,
        log_device_placement=config.log_device_placement,
        intra_op_parallelism_threads=config.threads or 0,
        operation_timeout_in_ms=round(1000 * (config.timeout or 0)),
        device_count={
            "GPU" if kind == "cuda" else kind.upper(): count
            for kind, count in config.device_count.items()
        },
    )
    if not config.optimize:
        proto.graph_options.optimizer_options.opt_level = hr.OptimizerOptions.L0
    proto.graph_options.enable_bfloat16_sendrecv = config.compress_transfers is not None
    return proto


def _write(settings: Any, message: Any) -> None:
    """Set the fields of a message that settings do not leave at their defaults."""
    for name, value in settings.changed().items():
        if isinstance(value, dict):
            getattr(message, name).update(value)
        elif isinstance(value, list):
            getattr(message, name).extend(value)
        elif hasattr(value, "changed"):
            _write(value, getattr(message, name))
        else:
            setattr(message, name, value)


def _read(message: Any) -> hr.ConfigProto:
    """Return the settings in a ``ConfigProto`` message."""
    found = hr.ConfigProto()
    _read_into(message, found)
    return found


def _read_into(message: Any, settings: Any) -> None:
    for field, value in message.ListFields():
        if field.name not in settings.FIELDS:
            # What a server says of clusters and of calls has no meaning here.
            continue
        known = getattr(settings, field.name)
        if hasattr(known, "changed"):
            _read_into(value, known)
        elif isinstance(known, dict):
            known.update(value)
        elif isinstance(known, list):
            known.extend(value)
        else:
            setattr(settings, field.name, value)


def parts_of(server: Any) -> tuple[dict[str, Any], str, int, str, Any]:
    """Return what a ``ServerDef`` says: jobs, job, index, protocol, and settings or None.

    Raises:
        DTypeError: if the message has no cluster.
    """
    if not server.HasField("cluster"):
        raise DTypeError("a ServerDef must say of which cluster the server is a part")
    jobs = {job.name: dict(job.tasks) for job in server.cluster.job}
    has_config = server.HasField("default_session_config")
    config = server.default_session_config if has_config else None
    return jobs, server.job_name, server.task_index, server.protocol, config
