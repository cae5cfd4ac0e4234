"""``TensorArray``: tensors by number, written and read one at a time, mostly along loops."""

from __future__ import annotations

from typing import Any, final

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    shown,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import shape as shape_of
from headrace.ops.constant import range as range_
from headrace.ops.control import no_op
from headrace.ops.identity import identity
from headrace.ops.tensor_list import (
    list_concat,
    list_gather,
    list_get,
    list_length,
    list_reserve,
    list_scatter,
    list_set,
    list_split,
    list_stack,
    list_unstack,
)
from headrace.shapes import Shape


@final
class TensorArray:
    """Tensors of one dtype by number.

    It is a value: what writes returns a new ``TensorArray``, and the old one stays as it was. As a
    loop variable of ``while_loop`` it is handed from iteration to iteration. Each number is written
    once at most; reading does not clear it. Gradients flow from what is read to what was written.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """Make one of which nothing is written.

        Args:
            dtype: The dtype of the tensors.
            size: [], how many there are.
            dynamic_size: Whether writing beyond the end makes it longer.
            clear_after_read: Ignored: what was read can be read again.
            tensor_array_name: Ignored: it has no name that steps would share.
            handle: The ``handle`` of another one, in place of ``size``.
            flow: The ``flow`` of another one, in place of ``size``.
            infer_shape: Whether all tensors must have one shape.
            element_shape: What is known of their shape.
            colocate_with_first_write_call: Ignored: it is where what writes and reads it is.
            name: The name of the operations.

        Raises:
            AttributeValueError: if neither or both of ``size`` and ``handle`` are given.
        """
        del clear_after_read, tensor_array_name, colocate_with_first_write_call
        given = flow if flow is not None else handle
        if (given is None) == (size is None):
            raise AttributeValueError("a TensorArray needs one of size and handle")
        self._dtype = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._infer = infer_shape
        # Shared by all that come from this one: what is learned of one holds for all.
        self._known = [Shape(element_shape)]
        if given is None:
            with name_scope(name, "TensorArray"):
                given = list_reserve(
                    convert_to_tensor(size), spec=TensorSpec(self._dtype, self._known[0])
                )
        elif not isinstance(given, Tensor) or given.dtype != dtypes.tensor_list:
            raise DTypeError(
                f"a TensorArray's handle is the handle of another one, got {shown(given)}"
            )
        self._flow = given

    # -- what it is

    @property
    def dtype(self) -> DType:
        """The dtype of the tensors."""
        return self._dtype

    @property
    def flow(self) -> Tensor:
        """The tensor that stands for all that was written."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        """The same as ``flow``."""
        return self._flow

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the tensors."""
        return TensorShape(self._known[0])

    @property
    def infers_shape(self) -> bool:
        """Whether all tensors must have one shape."""
        return self._infer

    @property
    def dynamic_size(self) -> bool:
        """Whether writing beyond the end makes it longer."""
        return self._dynamic

    @property
    def graph(self) -> Graph:
        """The graph of its tensor."""
        return self._flow.graph

    def size(self, name: str | None = None) -> Tensor:
        """Return how many there are, [] int32."""
        return list_length(self._flow, name=name)

    # -- writing

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Return the array with a tensor written.

        Args:
            index: [], its number; raises when it runs if out of range or written already.
            value: [...], the tensor.
            name: The name of the operation.

        Raises:
            ShapeError: if the shape differs from what was written before.
            DTypeError: if the dtype is another.
        """
        item = convert_to_tensor(value, preferred_dtype=self._dtype)
        self._learn(item.dtype, item.spec.shape)
        flow = list_set(self._flow, index, item, grows=self._dynamic, once=True, name=name)
        return self._with(flow)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Return the array with its first tensors written: parts of ``value`` on its first axis.

        Args:
            value: [n, ...], the tensors; raises when it runs if there are more than fit.
            name: The name of the operation.
        """
        whole = convert_to_tensor(value, preferred_dtype=self._dtype)
        self._learn(whole.dtype, _rest(whole.spec.shape))
        if self._is_filled_by(whole):
            return self._with(list_unstack(whole, name=name))
        return self.scatter(range_(shape_of(whole)[0]), whole, name=name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Return the array with tensors written.

        Args:
            indices: [n], their numbers.
            value: [n, ...], the tensors.
            name: The name of the operation.
        """
        whole = convert_to_tensor(value, preferred_dtype=self._dtype)
        self._learn(whole.dtype, _rest(whole.spec.shape))
        flow = list_scatter(self._flow, indices, whole, grows=self._dynamic, once=True, name=name)
        return self._with(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Return the array with all tensors written: parts of ``value`` of the given lengths."""
        whole = convert_to_tensor(value, preferred_dtype=self._dtype)
        sizes = convert_to_tensor(lengths)
        if self._infer:
            known = sizes.spec.value
            alike = known is not None and known.size > 0 and bool((known == known.flat[0]).all())
            first = int(known.flat[0]) if known is not None and alike else None
            self._learn(whole.dtype, Shape([first]).concatenate(_rest(whole.spec.shape)))
        return self._with(list_split(whole, sizes, name=name))

    # -- reading

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return a tensor.

        Args:
            index: [], its number; raises when it runs if out of range or never written.
            name: The name of the operation.
        """
        return self._shaped(list_get(self._flow, index, self._zeros(), name=name), [])

    def stack(self, name: str | None = None) -> Tensor:
        """Return all tensors as one, [size, ...]; they must have one shape."""
        return self._shaped(list_stack(self._flow, self._zeros(), name=name), [None])

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the tensors ``indices`` as one, [n, ...]; they must have one shape."""
        found = list_gather(self._flow, indices, self._zeros(), name=name)
        return self._shaped(found, [found.spec.shape[0]])

    def concat(self, name: str | None = None) -> Tensor:
        """Return all tensors joined along their first axis."""
        return list_concat(self._flow, self._zeros(), name=name)[0]

    # -- the rest

    def identity(self) -> TensorArray:
        """Return the same array, there once the control dependencies in force have finished."""
        return self._with(identity(self._flow))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """Refuse: gradients of arrays are made by ``hr.gradients``."""
        raise GraphError("a TensorArray has no gradient array; differentiate what is read of it")

    def close(self, name: str | None = None) -> Operation:
        """Return an operation that does nothing: an array that nobody reads is gone anyway."""
        return no_op(name=name)

    def _learn(self, dtype: DType, shape: Shape) -> None:
        if dtype != self._dtype:
            raise DTypeError(
                f"the TensorArray holds {self._dtype}, got {dtype}; use hr.cast, "
                "or make it of that dtype: dtype= of hr.TensorArray, hr.map_fn and hr.scan"
            )
        if not shape.is_compatible_with(self._known[0]):
            raise ShapeError(
                f"the TensorArray holds tensors of shape {self._known[0]}, got {shape}; make it "
                "with infer_shape=False for different shapes"
            )
        if self._infer:
            self._known[0] = self._known[0].merge_with(shape)

    def _is_filled_by(self, whole: Tensor) -> bool:
        """Whether nothing is written yet, and ``whole`` is known to have as many parts as fit."""
        reserve = self._flow.op
        if reserve.type != "TensorListReserve":
            return False
        (size,) = reserve.inputs
        count = whole.spec.shape[0] if whole.shape.rank else None
        known = size.spec.value
        if known is not None and count is not None:
            return int(known) == count or (self._dynamic and int(known) < count)
        return self._dynamic and known is not None and int(known) == 0

    def _zeros(self) -> list[int] | None:
        known = self._known[0]
        return list(known.known) if known.is_fully_defined() else None

    def _shaped(self, tensor: Tensor, lead: list[int | None]) -> Tensor:
        tensor.set_shape(Shape(lead).concatenate(self._known[0]))
        return tensor

    def _with(self, flow: Tensor) -> TensorArray:
        made = object.__new__(TensorArray)
        made._dtype, made._dynamic, made._infer = self._dtype, self._dynamic, self._infer
        made._known = self._known
        made._flow = flow
        return made

    # -- as a part of nested structures

    def flatten(self) -> list[Tensor]:
        """Return the tensors that it is made of."""
        return [self._flow]

    def unflatten(self, tensors: list[Tensor]) -> TensorArray:
        """Return one like this, made of other tensors."""
        (flow,) = items(tensors, "the tensors of a TensorArray", 1) or [None]
        return self._with(convert_to_tensor(flow))

    def __repr__(self) -> str:
        return f"<TensorArray {self._dtype}{self._known[0]} of {self._flow!r}>"


def _rest(shape: Shape) -> Shape:
    if shape.rank == 0:
        raise ShapeError("a scalar has no axis along which to take it apart")
    return shape[1:] if shape.rank else Shape(None)
