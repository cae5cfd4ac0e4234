"""What a fusion group computes, as nodes over a space of dimensions.

A node is a value at each point of the dimensions along which it varies: loaded from memory,
mapped elementwise from other nodes, or reduced along some of the dimensions of one. Tensors are
*operands*: a node, and for each axis the dimension that it runs along. Reshaping by axes of size
1, transposing and broadcasting change the operand only; they cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from headrace import DType, Tensor

# Codes of the dtypes that kernels compute with; operations on others stay outside.
CODES = {
    "bool": "b8",
    "uint8": "u8",
    "int32": "i32",
    "int64": "i64",
    "float32": "f32",
    "float64": "f64",
}
BYTES = {"b8": 1, "u8": 1, "i32": 4, "i64": 8, "f32": 4, "f64": 8}
FLOATS = frozenset({"f32", "f64"})
# Elements are counted for the choice between scalar constants and arrays up to this size.
_LARGEST_CONSTANT = 1 << 16


class Dim:
    """A dimension of a group's space; two found to be the same are united."""

    __slots__ = ("same", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        # The dimension that this one was united with.
        self.same: Dim | None = None

    def find(self) -> Dim:
        """Return the dimension that stands for all that this one was united with."""
        here = self
        while here.same is not None:
            here = here.same
        return here

    def unite(self, other: Dim) -> None:
        """Make both the same."""
        mine, its = self.find(), other.find()
        if mine is not its:
            its.same = mine


Axes: TypeAlias = tuple[Dim | None, ...]


@dataclass(slots=True, eq=False)
class Node:
    """A value.

    Attributes:
        kind: "load", "const", "index", "map" or "reduce".
        code: The dtype of its elements.
        dims: The dimensions along which it varies.
        name: The function of a map or a reduction.
        args: The values that it is computed from.
        tensor: What a load reads.
        strides: Of a load, in elements, one for each of ``dims``.
        offset: Of a load, in elements.
        value: Of a constant.
        over: The dimensions that a reduction reduces.
    """

    kind: str
    code: str
    dims: tuple[Dim, ...]
    name: str = ""
    args: tuple[Node, ...] = ()
    tensor: Tensor | None = None
    strides: tuple[int, ...] = ()
    offset: int = 0
    value: Any = None
    over: tuple[Dim, ...] = ()


@dataclass(slots=True, eq=False)
class Operand:
    """A tensor within a group.

    Attributes:
        node: Its elements.
        axes: For each axis the dimension that it runs along, None where its size is 1.
    """

    node: Node
    axes: Axes


@dataclass(slots=True, eq=False)
class View:
    """A tensor in memory that no node reads yet.

    Attributes:
        tensor: Whose buffer it is.
        shape: Its shape, which may differ from that of ``tensor``.
        strides: In elements, 0 along axes that repeat.
        offset: In elements.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


Value: TypeAlias = Operand | View


@dataclass(slots=True, eq=False)
class Write:
    """A tensor, or a part of one, that a group stores.

    Attributes:
        operand: What is stored.
        tensor: Whose buffer it goes to: a result, or a handle of a variable updated in place.
        strides: In elements, one for each axis of the operand.
        offset: In elements.
        update: Whether it changes a variable in place.
    """

    operand: Operand
    tensor: Tensor
    strides: tuple[int, ...]
    offset: int = 0
    update: bool = False


def code_of(dtype: DType) -> str | None:
    """Return the code of a dtype, None where kernels do not compute with it."""
    return CODES.get(dtype.name)


def element_code(tensor: Tensor) -> str | None:
    """Return the code of what a tensor's buffer holds: of a handle, what its variable does."""
    content = tensor.spec.content
    return code_of(tensor.dtype if content is None else content.dtype)


def code_at(value: Value) -> str:
    """Return the code of a value's dtype."""
    if isinstance(value, View):
        found = element_code(value.tensor)
        assert found is not None
        return found
    return value.node.code


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array of a shape in C order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor, which is known."""
    dims = tensor.spec.shape.dims
    assert dims is not None
    return dims  # type: ignore[return-value]  # all of them are known


def uniform_value(tensor: Tensor) -> Any:
    """Return the element that all of a constant's elements equal, None where there is none."""
    value = tensor.spec.value
    if value is None or not value.size or value.size > _LARGEST_CONSTANT:
        return None
    first = value.reshape(-1)[0]
    if value.size > 1 and value.tobytes() != first.tobytes() * value.size:
        return None
    return first


class Domain:
    """The dimensions of a group, and the orders in which values have them.

    Attributes:
        consistent: False once two values have dimensions in contrary orders, or one has a
            dimension twice: then no loop nest serves them all.
    """

    __slots__ = ("_noted", "_orders", "consistent")

    def __init__(self) -> None:
        self._orders: dict[tuple[Dim, ...], None] = {}
        self._noted: set[Dim] = set()
        self.consistent = True

    def unite(self, first: Dim, second: Dim) -> Dim:
        """Make two dimensions the same."""
        first, second = first.find(), second.find()
        if first is not second:
            first.unite(second)
            if first in self._noted and second in self._noted:
                self._check()
            self._noted.add(first)
        return first

    def note(self, axes: Axes) -> None:
        """Note in which order a value has its dimensions."""
        if len(axes) < 2:
            return
        order = tuple([d.find() for d in axes if d is not None])
        if len(order) > 1 and order not in self._orders:
            alone = not self._orders and len(set(order)) == len(order)
            self._orders[order] = None
            self._noted.update(order)
            if not alone:
                self._check()

    def _check(self) -> None:
        self.consistent = self.consistent and self.order() is not None

    def order(self, *more: Dim) -> list[Dim] | None:
        """Return all dimensions, outer before inner, None where there is no such order."""
        before: dict[Dim, set[Dim]] = {}
        # Few are left of those whose dimensions were united meanwhile.
        self._orders = dict.fromkeys(tuple([d.find() for d in o]) for o in self._orders)
        for found in self._orders:
            if len(set(found)) < len(found):
                return None
            for left, right in pairwise(found):
                before.setdefault(left, set())
                before.setdefault(right, set()).add(left)
        for dim in more:
            before.setdefault(dim.find(), set())
        result: list[Dim] = []
        left_over = list(before)
        while left_over:
            ready = next((d for d in left_over if before[d].issubset(result)), None)
            if ready is None:
                return None
            result.append(ready)
            left_over.remove(ready)
        return result


@dataclass(slots=True, eq=False)
class Refusal:
    """What a step raises where a kernel has found an element that it refuses.

    Attributes:
        message: What is wrong then.
        error: The exception.
        indices: What must be indices of ``size`` elements, if that is it and it is in memory.
        size: Of how many, where ``indices`` are given.
    """

    message: str
    error: type[Exception] = ValueError
    indices: Tensor | None = None
    size: int = 0


@dataclass(slots=True, eq=False)
class Check(Refusal):
    """A condition that no element may meet: the kernel reports it and the step raises.

    Attributes:
        operand: Boolean; no element may be true.
    """

    operand: Operand = field(kw_only=True)
