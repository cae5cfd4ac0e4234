"""Tensors that a session keeps between steps, found by strings."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.operation import Operation
from headrace.graph.scopes import colocate_with, device
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.constant import placeholder
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, String
from headrace.shapes import SCALAR, UNKNOWN

_KEPT = "what a session keeps belongs to other steps"
# The op whose fetched result is a ``TensorHandle``.
KEEP = "GetSessionHandle"


@op(KEEP, effects="changes", public="", no_gradient=_KEPT)
def _get_session_handle(value: Anything) -> Spec:
    """Keep a tensor in the session, on the device that has it.

    Args:
        value: [...], any dtype.

    Returns:
        [], the string by which it is found: the node's name, a number and the device.
    """
    return TensorSpec(dtypes.string, SCALAR)


@op("GetSessionTensor", effects="reads", public="", no_gradient=_KEPT)
def _get_session_tensor(handle: String, dtype: DType) -> Spec:
    """A tensor that the session keeps.

    Args:
        handle: [], the string by which it is found.
        dtype: Its dtype.

    Returns:
        The tensor.
    """
    _check_scalar(handle)
    return TensorSpec(dtype, UNKNOWN)


@op("DeleteSessionTensor", effects="changes", public="", no_gradient=_KEPT)
def _delete_session_tensor(handle: String) -> None:
    """Keep a tensor no longer.

    Args:
        handle: [], the string by which it is found.
    """
    _check_scalar(handle)


def _check_scalar(handle: TensorSpec) -> None:
    if not handle.shape.is_compatible_with(SCALAR):
        raise ShapeError(f"a handle is one string, got shape {handle.shape}")


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """Keep a tensor in the session for later steps.

    Args:
        data: [...], the tensor.
        name: The name of the operation.

    Returns:
        [], a string by which it is found. A session that fetches it returns a ``TensorHandle``;
        the tensor is kept until that is deleted.

    Raises:
        DTypeError: if ``data`` is no tensor.
    """
    if not isinstance(data, Tensor):
        raise DTypeError(f"get_session_handle keeps a tensor of the graph, got {shown(data)}")
    with colocate_with(data):
        return _get_session_handle(data, name=name)


def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return a tensor that a session keeps.

    Args:
        handle: The string of a ``TensorHandle``, which says on which device the tensor is.
        dtype: The dtype of the tensor.
        name: The name of the operation.

    Returns:
        A placeholder for the string, and the tensor.

    Raises:
        AttributeValueError: if the handle is none.
    """
    with device(_device_of(handle)):
        holder = placeholder(dtypes.string, [])
        return holder, _get_session_tensor(holder, as_dtype(dtype), name=name)


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """Return what lets go of a tensor that a session keeps.

    Args:
        handle: The string of a ``TensorHandle``, which says on which device the tensor is.
        name: The name of the operation.

    Returns:
        A placeholder for the string, and the operation.

    Raises:
        AttributeValueError: if the handle is none.
    """
    with device(_device_of(handle)):
        holder = placeholder(dtypes.string, [])
        return holder, _delete_session_tensor(holder, name=name)


def _device_of(handle: Any) -> str:
    try:
        text = handle.decode() if isinstance(handle, bytes) else str(handle)
    except Exception:
        # Whatever has no text is no handle.
        text = shown(handle)
    parts = text.split(";")
    if len(parts) != 3:
        raise AttributeValueError(
            f"a handle is the string of what a session returned for get_session_handle, got "
            f"{shown(text)}"
        )
    return parts[2]
