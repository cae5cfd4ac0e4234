"""Transfer: the nodes through which values enter a step, leave it, and cross devices.

Programs do not make these; partitioning does.
"""

from __future__ import annotations

from headrace.dtypes import DType
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Value
from headrace.shapes import Shape

_MOVED = "it belongs to a step, not to a program"


@op("Feed", effects="observes", builtin=True, public="", no_gradient=_MOVED)
def feed(dtype: DType, shape: Shape, index: int) -> Spec:
    """A value that the caller of a step hands in.

    Args:
        dtype: Its dtype.
        shape: Its shape, as far as known.
        index: Which of the step's feeds it is.

    Returns:
        ``shape``, ``dtype``.
    """
    return TensorSpec(dtype, shape)


@op("Fetch", effects="changes", builtin=True, public="", no_gradient=_MOVED)
def fetch(value: Value, index: int) -> None:
    """A value that a step hands back to its caller.

    Args:
        value: [...], any dtype.
        index: Which of the step's fetches it is.
    """


@op("Send", effects="changes", builtin=True, public="", no_gradient=_MOVED)
def send(
    value: Value, edge: str, source: str, destination: str, round: int = 0, sources: int = 0
) -> None:
    """Send a value, or the news that it is dead, to another device.

    Args:
        value: [...], any dtype.
        edge: The name of the tensor that is moved.
        source: The device that sends.
        destination: The device that receives.
        round: How many values have crossed between tasks before this one and for it, itself
            included; 0 if the receiver waits for it alone.
        sources: The operations before it that may wait, each as a bit.
    """


@op(
    "Recv",
    may_be_dead=True,
    effects="changes",
    builtin=True,
    blocking=True,
    public="",
    no_gradient=_MOVED,
)
def recv(
    dtype: DType,
    shape: Shape,
    edge: str,
    source: str,
    destination: str,
    round: int = 0,
    sources: int = 0,
    may_be_dead: bool = True,
) -> Spec:
    """Wait for a value from another device.

    Args:
        dtype: Its dtype.
        shape: Its shape, as far as known.
        edge: The name of the tensor that is moved.
        source: The device that sends.
        destination: The device that receives.
        round: As of the Send: what has one round and the same sources is waited for together.
        sources: As of the Send.
        may_be_dead: Whether the news may come that the value is dead.

    Returns:
        ``shape``, ``dtype``.
    """
    return TensorSpec(dtype, shape)
