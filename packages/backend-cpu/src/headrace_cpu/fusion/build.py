"""Building the nodes of a group, operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace import Tensor
from headrace_cpu.fusion.constants import ELEMENTARY
from headrace_cpu.fusion.nodes import (
    Axes,
    Check,
    Dim,
    Domain,
    Node,
    Operand,
    Value,
    View,
    Write,
    code_of,
    contiguous,
    element_code,
    shape_of,
    uniform_value,
)

NUMPY = {
    "b8": np.bool_,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}


class Unfit(Exception):  # noqa: N818
    """An operation cannot be part of the group."""


class Builder:
    """Turns operations into nodes.

    Attributes:
        values: What stands for each tensor of the group's operations.
        domain: The dimensions.
        parts: Parts of tensors that are stored although no single operand is the whole of them.
        checks: What must not hold.
        updates: What is stored into each variable, by handle.
        loads: Nodes that read memory.
        literal: Whether numbers that are constants stand in the kernel, rather than in memory.
    """

    def __init__(self, *, literal: bool = True) -> None:
        self.literal = literal
        self.values: dict[Tensor, Value] = {}
        self.domain = Domain()
        self.parts: dict[Tensor, list[Write]] = {}
        self.checks: list[Check] = []
        self.updates: dict[Tensor, Write] = {}
        self.loads: list[Node] = []
        self._loaded: dict[object, Axes] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    # -- tensors

    def value(self, tensor: Tensor) -> Value:
        """Return what stands for a tensor, made of memory outside where the group has it not."""
        found = self.values.get(tensor)
        if found is not None:
            return found
        code = code_of(tensor.dtype)
        if code is None:
            raise Unfit(f"{tensor.dtype} is not computed with")
        if tensor in self.parts:
            raise Unfit("reads what is put together of parts")
        shape = shape_of(tensor)
        if 0 in shape:
            raise Unfit("nothing to compute")
        element = uniform_value(tensor) if self.literal else None
        if element is not None:
            node = Node("const", code, (), value=element)
            return Operand(node, tuple(None if d == 1 else Dim(d) for d in shape))
        return View(tensor, shape, contiguous(shape))

    def operand(self, tensor: Tensor) -> Operand:
        """Return a tensor as an operand, loaded along dimensions of its own if need be."""
        operand = self.load(self.value(tensor))
        self.domain.note(operand.axes)
        return operand

    def load(self, value: Value, axes: Axes | None = None) -> Operand:
        """Return a value as an operand; a view is loaded along ``axes``."""
        if isinstance(value, Operand):
            return value
        if axes is None:
            axes = self._axes(value)
        pairs = [
            (dim, stride)
            for dim, stride in zip(axes, value.strides, strict=True)
            if dim is not None and stride
        ]
        code = element_code(value.tensor)
        assert code is not None
        node = Node(
            "load",
            code,
            tuple(dim for dim, _ in pairs),
            tensor=value.tensor,
            strides=tuple(stride for _, stride in pairs),
            offset=value.offset,
        )
        self.loads.append(node)
        self._size += 1
        return Operand(node, axes)

    def _axes(self, view: View) -> Axes:
        """Return the dimensions along which a view was loaded first, or new ones."""
        key = (view.tensor, view.shape, view.strides, view.offset)
        axes = self._loaded.get(key)
        if axes is None:
            axes = tuple(None if size == 1 else Dim(size) for size in view.shape)
            self._loaded[key] = axes
        return axes

    # -- nodes

    def const(self, number: Any, code: str) -> Operand:
        """Return a number as an operand."""
        return Operand(Node("const", code, (), value=NUMPY[code](number)), ())

    def position(self, dim: Dim, code: str, trailing: int = 0) -> Operand:
        """Return the position along a dimension, which so many axes follow."""
        self._size += 1
        return Operand(Node("index", code, (dim,)), (dim, *(None,) * trailing))

    def map(self, name: str, *values: Value, code: str | None = None) -> Operand:
        """Return a function of broadcast values; of the dtype of the last one unless told."""
        ranks = [len(v.axes) if isinstance(v, Operand) else len(v.shape) for v in values]
        axes: list[Dim | None] = [None] * max(ranks)
        views = False
        for value in values:
            if isinstance(value, Operand):
                self._join(axes, value.axes)
            else:
                views = True
        operands: Sequence[Any] = values
        if views:
            for value in values:
                if isinstance(value, View):
                    self._join(axes, self._axes(value))
            operands = [self.load(v, _tail(axes, v)) if isinstance(v, View) else v for v in values]
        args = tuple([operand.node for operand in operands])
        joined = tuple(axes)
        node = Node("map", code or args[-1].code, _varying(joined, args), name, args)
        self._size += 1
        self.domain.note(joined)
        return Operand(node, joined)

    def _join(self, axes: list[Dim | None], more: Axes) -> None:
        place = len(axes) - len(more)
        for dim in more:
            if dim is not None:
                mine = axes[place]
                if mine is not dim:
                    axes[place] = dim if mine is None else self.domain.unite(mine, dim)
            place += 1

    def _stretch(self, axes: list[Dim | None], shape: Sequence[int]) -> None:
        for place, size in zip(range(len(axes) - len(shape), len(axes)), shape, strict=True):
            if size != 1 and axes[place] is None:
                axes[place] = Dim(size)

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Repeat a value along new axes and along those of size 1."""
        if isinstance(value, View):
            strides = [0] * (len(shape) - len(value.shape))
            lead = len(strides)
            for size, stride, wanted in zip(value.shape, value.strides, shape[lead:], strict=True):
                strides.append(stride if size == wanted else 0)
            return View(value.tensor, tuple(shape), tuple(strides), value.offset)
        lead = len(shape) - len(value.axes)
        axes: list[Dim | None] = [*(None,) * lead, *value.axes]
        self._stretch(axes, shape)
        self.domain.note(tuple(axes))
        return Operand(value.node, tuple(axes))

    def reduce(self, name: str, value: Value, places: Sequence[int], keep: bool) -> Operand:
        """Return a value reduced along some of its axes.

        Args:
            name: The function of two elements, as in ``"total"`` or ``"largest"``.
            value: What is reduced.
            places: The axes.
            keep: Whether they stay, with size 1.
        """
        operand = self.load(value)
        self.domain.note(operand.axes)
        chosen = set(places)
        over = tuple(dim for i, dim in enumerate(operand.axes) if i in chosen and dim is not None)
        axes = tuple(
            None if i in chosen else dim
            for i, dim in enumerate(operand.axes)
            if keep or i not in chosen
        )
        if not over:
            return Operand(operand.node, axes)
        out = {dim.find() for dim in over}
        dims = tuple(d for d in operand.node.dims if d.find() not in out)
        node = Node("reduce", operand.node.code, dims, name, (operand.node,), over=over)
        self._size += 1
        return Operand(node, axes)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Give a value another shape: any in memory, axes of size 1 come and go elsewhere."""
        if isinstance(value, View):
            if value.strides != contiguous(value.shape) and not same_but_ones(value.shape, shape):
                raise Unfit("reshapes what is not contiguous")
            if same_but_ones(value.shape, shape):
                kept = iter(s for d, s in zip(value.shape, value.strides, strict=True) if d != 1)
                strides = tuple(0 if d == 1 else next(kept) for d in shape)
            else:
                strides = contiguous(shape)
            return View(value.tensor, tuple(shape), strides, value.offset)
        if not value.axes or all(dim is None for dim in value.axes):
            return Operand(value.node, (None,) * len(shape))
        if not same_but_ones(_shape(value), shape):
            raise Unfit("reshapes a value that is not in memory")
        dims = iter(dim for dim in value.axes if dim is not None)
        return Operand(value.node, tuple(None if d == 1 else next(dims) for d in shape))

    def permute(self, value: Value, order: Sequence[int]) -> Value:
        """Put the axes of a value in another order."""
        if isinstance(value, View):
            return View(
                value.tensor,
                tuple(value.shape[i] for i in order),
                tuple(value.strides[i] for i in order),
                value.offset,
            )
        axes = tuple(value.axes[i] for i in order)
        self.domain.note(axes)
        return Operand(value.node, axes)

    def part(self, value: Value, axis: int, places: range) -> Value:
        """Return some elements of a value along an axis.

        Of what is computed, the part is computed in place of the whole.
        """
        start, size = places[0], len(places)
        if isinstance(value, View):
            shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
            step = value.strides[axis]
            strides = (*value.strides[:axis], step * places.step, *value.strides[axis + 1 :])
            return View(value.tensor, shape, strides, value.offset + start * step)
        whole = value.axes[axis]
        if whole is None or places == range(whole.size):
            return value
        mine = None if size == 1 else Dim(size)
        axes = (*value.axes[:axis], mine, *value.axes[axis + 1 :])
        self.domain.note(axes)
        return Operand(self._part(value.node, whole.find(), mine, places, {}), axes)

    def _part(
        self, node: Node, whole: Dim, mine: Dim | None, places: range, made: dict[Node, Node]
    ) -> Node:
        dims = [dim.find() for dim in node.dims]
        if whole not in dims:
            return node
        if node not in made:
            if node.kind not in ("load", "map") or node.name in ELEMENTARY:
                raise Unfit("takes apart what is better computed once")
            self._size += 1
            place = dims.index(whole)
            rest = () if mine is None else (mine,)
            made[node] = replace(
                node,
                dims=(*dims[:place], *rest, *dims[place + 1 :]),
                args=tuple(self._part(arg, whole, mine, places, made) for arg in node.args),
            )
            if node.kind == "load":
                step = node.strides[place]
                kept = (step * places.step,) if rest else ()
                made[node].strides = (*node.strides[:place], *kept, *node.strides[place + 1 :])
                made[node].offset = node.offset + places[0] * step
        return made[node]


def _shape(value: Value) -> tuple[int, ...]:
    if isinstance(value, View):
        return value.shape
    return tuple([1 if dim is None else dim.size for dim in value.axes])


def shape_of_value(value: Value) -> tuple[int, ...]:
    """Return the shape of a value."""
    return _shape(value)


def _tail(axes: Sequence[Dim | None], view: View) -> Axes:
    start = len(axes) - len(view.shape)
    return tuple(None if size == 1 else axes[start + i] for i, size in enumerate(view.shape))


def _varying(axes: Sequence[Dim | None], args: Sequence[Node]) -> tuple[Dim, ...]:
    """Return the dimensions along which some argument varies, in the order of the axes."""
    along = dict.fromkeys([dim.find() for dim in axes if dim is not None])
    for arg in args:
        if len(arg.dims) == len(along):
            # It varies along all of them: a node's dimensions differ.
            return tuple(along)
    found = {dim.find() for arg in args for dim in arg.dims}
    return tuple([dim for dim in along if dim in found])


def same_but_ones(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes differ in axes of size 1 at most."""
    return [d for d in left if d != 1] == [d for d in right if d != 1]
