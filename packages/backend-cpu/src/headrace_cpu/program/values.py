"""Values: where each tensor of a program lives while a step runs.

* A *buffer* is a range of the arena.
* A *result* is an array made anew in each step, which an instruction fills and the caller keeps.
* An *object* is whatever a plain kernel, a variable or the caller hands in: it has another address
  in each step.
* A *preset* is a constant, or what a handle stands for.

A view (a reshape, an identity) is its root under another shape, and takes no time.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from enum import Enum
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace.errors import HeadraceError
from headrace.extend.devices import Region, is_handle
from headrace_cpu.program.schedule import Item


class Home(Enum):
    """Where a value lives."""

    BUFFER = "a range of the arena"
    RESULT = "an array of the caller's"
    OBJECT = "an object of this step's"
    PRESET = "known before the step"


def is_native(tensor: Tensor) -> bool:
    """Whether a tensor is numbers in memory, of a size that is known."""
    return (
        tensor.dtype.kind not in ("resource", "list", "string")
        and tensor.spec.shape.is_fully_defined()
        and tensor.dtype.numpy.itemsize > 0
    )


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor of known shape."""
    return math.prod(tensor.spec.shape.known) * tensor.dtype.numpy.itemsize


class Values:
    """Where the tensors of a program live.

    Attributes:
        home: Of every root.
        presets: The values known before the step.
        lends: For every root, the buffers and results of which its object may be a view.
        shown: The buffers of which an output of the program may be a view.
    """

    def __init__(self, region: Region, items: Sequence[Item]) -> None:
        self.home: dict[Tensor, Home] = {}
        self.presets: dict[Tensor, Any] = {}
        self.lends: dict[Tensor, frozenset[Tensor]] = {}
        self._root: dict[Tensor, Tensor] = {}
        self._reserved = region.reserved
        for op in region.graph.operations:
            if op.type == "Feed":
                self.home[op.outputs[0]] = Home.OBJECT
            elif op.type == "Const" and not op.control_inputs:
                self._preset(op.outputs[0], op.attrs["value"])
            elif is_handle(op):
                self._preset(op.outputs[0], region.handles[op.outputs[0]])
        for item in items:
            if item.instruction is not None:
                self.home.update(dict.fromkeys(item.instruction.writes, Home.BUFFER))
            elif self.is_view(item):
                self._root[item.op.outputs[0]] = self.root(item.op.inputs[0])
            else:
                self._object(item)
        for tensor in region.outputs:
            root = self.root(tensor)
            if self.home.get(root) is Home.BUFFER:
                self.home[root] = Home.RESULT
        for item in items:
            if item.instruction is None and item.op.type == "While":
                # What functions are given may come out of them again, and be kept.
                for root in map(self.root, item.op.inputs):
                    if self.home.get(root) is Home.BUFFER:
                        self.home[root] = Home.RESULT
        # These are copied when the step ends, and must last until then.
        self.shown = {lender for tensor in region.outputs for lender in self.lent(tensor)}

    def _preset(self, tensor: Tensor, value: Any) -> None:
        self.home[tensor] = Home.PRESET
        # A constant that was folded may have its axes in another order in memory.
        self.presets[tensor] = _contiguous(value) if isinstance(value, np.ndarray) else value

    def _object(self, item: Item) -> None:
        """Note that an operation's outputs are objects, and what they may be views of."""
        lent: set[Tensor] = set()
        op, schema = item.op, item.op.schema
        shared = [op.inputs[place] for place in schema.flat_places(op.arity, schema.may_share)]
        # What a kernel of another package returns may be what it got, whatever the op states.
        for tensor in op.inputs if op in self._reserved else shared:
            lent |= self.lent(tensor)
        for tensor in item.op.outputs:
            self.home[tensor] = Home.OBJECT
            self.lends[tensor] = frozenset(lent)

    def root(self, tensor: Tensor) -> Tensor:
        """Return the tensor whose memory a tensor has."""
        return self._root.get(tensor, tensor)

    def home_of(self, tensor: Tensor) -> Home:
        """Return where a tensor lives."""
        return self.home[self.root(tensor)]

    def lent(self, tensor: Tensor) -> frozenset[Tensor]:
        """Return the buffers of which a tensor's value may be a view."""
        root = self.root(tensor)
        if self.home[root] is Home.BUFFER:
            return frozenset((root,))
        return self.lends.get(root, frozenset())

    def is_view(self, item: Item) -> bool:
        """Whether an item is nothing but its first input under another shape."""
        op = item.op
        if item.instruction is not None or not op.schema.view or op in self._reserved:
            return False
        given, made = op.inputs[0], op.outputs[0]
        root = self.root(given)
        known = is_native(given) and is_native(made) and root in self.home
        if not known or is_unchecked(op):
            return False
        return given.dtype == made.dtype and size_of(given) == size_of(made)


def is_unchecked(op: Operation) -> bool:
    """Whether an operation is to find out, when it runs, if a shape that is computed fits."""
    if not op.schema.view:
        return False
    given, made = op.inputs[0], op.outputs[0]
    # What a step was found to be given may not fit what the program said of it.
    if given.shape.num_elements() != made.shape.num_elements():
        return True
    if len(op.inputs) > 1:
        return any(t.op.type != "Const" for t in op.inputs[1:])
    return given.spec.shape.dims != made.spec.shape.dims and not _is_allowed(op)


def _is_allowed(op: Operation) -> bool:
    """Whether an op's rule takes what came in, whatever was known when the graph was built."""
    try:
        op.schema.output_specs([t.spec for t in op.inputs], op.arity, op.attrs)
    except HeadraceError:
        return False
    return True


def _contiguous(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array whose elements are in C order, as instructions read them."""
    if array.flags.c_contiguous:
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def is_given(op: Operation) -> bool:
    """Whether an operation's value is there before the program runs."""
    return op.type == "Feed" or (op.type == "Const" and not op.control_inputs) or is_handle(op)


def is_open(op: Operation, read: Container[Tensor] | None = None) -> bool:
    """Whether instructions can compute an operation: it works on numbers of known shapes.

    Args:
        op: The operation.
        read: What is read, by others or outside: of other outputs the shape is no matter. None
            where all outputs count.
    """
    used = (*op.inputs, *(t for t in op.outputs if read is None or t in read))
    return not is_unchecked(op) and all(
        is_native(tensor) or (tensor.dtype.kind == "resource" and tensor in op.inputs)
        for tensor in used
    )
