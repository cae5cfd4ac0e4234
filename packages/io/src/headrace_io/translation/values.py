"""What stands for outputs of nodes that are no plain tensors here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import headrace as hr
from headrace import Shape, Tensor
from headrace.errors import DocumentError, shown
from headrace.extend.ops import call_op


@final
@dataclass(frozen=True, slots=True)
class Reference:
    """A variable as TensorFlow's ops of references take it: read where a tensor is expected.

    Attributes:
        handle: The handle of the variable.
        written: What was just assigned to it, where the output is that of an assignment.
    """

    handle: Tensor
    written: Tensor | None = None

    def read(self) -> Tensor:
        """Return its value."""
        if self.written is not None:
            return self.written
        found: Tensor = call_op("ReadVariable", self.handle)
        return found

    def ordered(self) -> Tensor:
        """Return its handle, there once what was assigned has been."""
        if self.written is None:
            return self.handle
        with hr.control_dependencies([self.written.op]):
            return hr.identity(self.handle)


@final
@dataclass(frozen=True, slots=True)
class ArrayHandle:
    """The handle of a ``TensorArray``, whose elements are in its flow.

    Attributes:
        dtype: The dtype of the elements.
        element_shape: What is known of their shape.
        dynamic: Whether writing beyond the end makes it longer.
    """

    dtype: Any
    element_shape: Shape
    dynamic: bool

    def at(self, flow: Any) -> hr.TensorArray:
        """Return the array that a flow stands for."""
        if not isinstance(flow, Tensor) or flow.dtype.name != "tensor_list":
            raise DocumentError("its flow is not that of a TensorArray")
        return hr.TensorArray(
            self.dtype,
            flow=flow,
            element_shape=self.element_shape,
            infer_shape=False,
            dynamic_size=self.dynamic,
        )


@final
@dataclass(frozen=True, slots=True)
class QueueHandle:
    """The handle of a queue, with what its elements are.

    Attributes:
        handle: The handle.
        shapes: The shapes of the components, empty where they differ.
    """

    handle: Tensor
    shapes: tuple[Shape, ...]


def as_handle(value: Any) -> Tensor:
    """Return the tensor that is the handle of a variable or another resource.

    Raises:
        DocumentError: if it is none.
    """
    if isinstance(value, Reference):
        return value.ordered()
    if isinstance(value, QueueHandle):
        return value.handle
    if isinstance(value, Tensor) and value.dtype.kind == "resource":
        return value
    raise DocumentError(f"an input must be the handle of a resource, got {shown(value)}")


def as_tensor(value: Any) -> Tensor:
    """Return the tensor that a value is; of a variable what it holds.

    Raises:
        DocumentError: if it is none.
    """
    if isinstance(value, Reference):
        return value.read()
    if isinstance(value, QueueHandle):
        return value.handle
    if isinstance(value, Tensor):
        return value
    raise DocumentError(f"an input must be a tensor, got {shown(value)}")
