"""``QueueRunnerDef``: runners of queues as collections of written graphs hold them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from headrace import Graph, Operation
from headrace.errors import DataLossError, GraphError, OpError
from headrace.errors import error_code_from_exception_type as code_of
from headrace.errors import exception_type_from_error_code as type_of
from headrace_io import protos
from headrace_io.protos.pool import parsed
from headrace_train.queues import QueueBase


def write_runner(runner: Any) -> Any:
    """Return a ``QueueRunner`` as a ``QueueRunnerDef``."""
    return protos.QueueRunnerDef(
        queue_name=runner.queue.queue_ref.op.name,
        enqueue_op_name=[op.name for op in runner.enqueue_ops],
        close_op_name=runner.close_op.name,
        cancel_op_name=runner.cancel_op.name,
        queue_closed_exception_types=[
            code_of(kind) for kind in runner.queue_closed_exception_types
        ],
    )


def check_runner(stored: bytes, names: Container[str]) -> None:
    """Refuse a message that names what a graph does not have.

    Args:
        stored: The bytes of a ``QueueRunnerDef``.
        names: The names of the graph's operations.

    Raises:
        DataLossError: if it is no such message, or names others.
    """
    message = parsed("QueueRunnerDef", stored, "a runner of a queue")
    wanted = [message.queue_name, message.close_op_name, message.cancel_op_name]
    for name in (*wanted, *message.enqueue_op_name):
        if name not in names:
            raise DataLossError(
                f"a runner of the queue {message.queue_name!r} names {name!r}, which is not there"
            )


def read_arguments(stored: bytes, graph: Graph, scope: str = "") -> dict[str, Any]:
    """Return the arguments of the ``QueueRunner`` that a message describes.

    Args:
        stored: The bytes of a ``QueueRunnerDef``.
        graph: The graph that has its operations.
        scope: The scope under which they stand.

    Raises:
        DataLossError: if it is none, or names what the graph does not have.
    """
    message = parsed("QueueRunnerDef", stored, "a runner of a queue")
    prefix = f"{scope}/" if scope else ""

    def found(name: str) -> Operation:
        return graph.get_operation_by_name(prefix + name)

    try:
        kinds: list[type[OpError]] = [type_of(c) for c in message.queue_closed_exception_types]
        handle = found(message.queue_name)
        queue = QueueBase(
            handle.attrs["component_types"], handle.attrs["shapes"], None, handle.outputs[0]
        )
        queue.pads = handle.type == "PaddingFIFOQueue"
        return {
            "queue": queue,
            "enqueue_ops": [found(name) for name in message.enqueue_op_name],
            "close_op": found(message.close_op_name),
            "cancel_op": found(message.cancel_op_name),
            "queue_closed_exception_types": tuple(kinds) or None,
        }
    except (GraphError, KeyError, IndexError) as error:
        raise DataLossError(f"a runner of the queue {message.queue_name!r}: {error}") from error
