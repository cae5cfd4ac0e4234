"""The space of a group: its nodes with numbered dimensions, as few as there can be.

Two dimensions that follow each other become one where every value has both or neither, and every
buffer has the second one's elements side by side for each element of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import Tensor
from headrace_cpu.fusion.build import Builder
from headrace_cpu.fusion.constants import ODD
from headrace_cpu.fusion.nodes import Check, Dim, Node, Write


@dataclass(slots=True, eq=False)
class Value:
    """A node; see ``nodes.Node``. Dimensions are numbers, outer before inner.

    Attributes:
        number: Its place among the space's values; arguments come before.
        strides: Of a load: elements per step along each of ``dims``.
        period: Of a load along the last dimension whose elements repeat: after how many.
    """

    number: int
    kind: str
    code: str
    dims: tuple[int, ...]
    name: str = ""
    args: tuple[Value, ...] = ()
    tensor: Tensor | None = None
    strides: dict[int, int] = field(default_factory=dict)
    offset: int = 0
    constant: Any = None
    over: tuple[int, ...] = ()
    period: int = 0

    @property
    def iterates(self) -> tuple[int, ...]:
        """The dimensions along which it must be computed."""
        if self.kind != "reduce":
            return self.dims
        return tuple(sorted({*self.args[0].dims, *self.over}))


@dataclass(slots=True, eq=False)
class Store:
    """What is stored where.

    Attributes:
        value: What.
        tensor: The tensor, or the variable's handle; None for a check.
        dims: The dimensions along which it is stored.
        strides: Elements per step along each of them.
        offset: In elements.
        update: Whether a variable is changed in place.
        report: For a check, the number that says which one failed; else 0.
    """

    value: Value
    tensor: Tensor | None
    dims: tuple[int, ...]
    strides: dict[int, int]
    offset: int = 0
    update: bool = False
    report: int = 0


@dataclass(slots=True, eq=False)
class Space:
    """A group ready to be scheduled.

    Attributes:
        sizes: Of each dimension.
        values: All of them, arguments first.
        stores: What is stored.
    """

    sizes: list[int]
    values: list[Value]
    stores: list[Store]


def make_space(builder: Builder, writes: Sequence[Write], checks: Sequence[Check]) -> Space:
    """Return the space of what is to be written and checked.

    Raises:
        AssertionError: if the group's dimensions have no order.
    """
    return _Maker(builder, writes).make(writes, checks)


class _Maker:
    def __init__(self, builder: Builder, writes: Sequence[Write]) -> None:
        self.values: list[Value] = []
        self.made: dict[Node, Value] = {}
        self.same: dict[tuple[Any, ...], Value] = {}
        self.order: dict[Dim, int] = {}
        self.builder = builder

    def make(self, writes: Sequence[Write], checks: Sequence[Check]) -> Space:
        roots = [w.operand for w in writes] + [c.operand for c in checks]
        nodes = _reachable([operand.node for operand in roots])
        found = [d for node in nodes for d in (*node.dims, *node.over)]
        found += [d for operand in roots for d in operand.axes if d is not None]
        order = self.builder.domain.order(*dict.fromkeys(d.find() for d in found))
        assert order is not None
        used = {d.find() for d in found}
        dims = [dim for dim in order if dim in used]
        self.order = {dim: i for i, dim in enumerate(dims)}
        for node in nodes:
            self.made[node] = self._value(node)
        stores = [self._store(write) for write in writes]
        for number, check in enumerate(checks, 1):
            stores.append(self._check(check, number))
        space = Space([dim.size for dim in dims], _needed(self.values, stores), stores)
        _collapse(space)
        return space

    def _dims(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(sorted({self.order[dim.find()] for dim in dims}))

    def _value(self, node: Node) -> Value:
        strides: dict[int, int] = {}
        for dim, stride in zip(node.dims, node.strides, strict=False):
            place = self.order[dim.find()]
            strides[place] = strides.get(place, 0) + stride
        constant = None if node.value is None else node.value.tobytes()
        args = tuple(self.made[arg] for arg in node.args)
        if node.kind == "map" and node.name in ODD:
            opposite = self._opposite(args[0])
            if opposite is not None:
                return self._map("negative", self._map(node.name, opposite))
        return self._add(
            Value(
                0, node.kind, node.code, self._dims(node.dims), node.name, args, node.tensor,
                strides, node.offset, node.value, self._dims(node.over),
            ),
            constant,
        )  # fmt: skip

    def _map(self, name: str, *args: Value) -> Value:
        """Return a function of values that vary along the same dimensions, or not at all."""
        dims = max((arg.dims for arg in args), key=len)
        return self._add(Value(0, "map", args[-1].code, dims, name, args))

    def _opposite(self, value: Value) -> Value | None:
        """Return the value of the other sign where that costs no more.

        Programs compute ``erf(c * x)`` and ``erf(-c * x)``: an odd function is then needed once.
        """
        if value.kind != "map":
            return None
        if value.name == "negative":
            return value.args[0]
        if value.name != "multiply":
            return None
        for place, arg in enumerate(value.args):
            if arg.kind == "const" and arg.constant < 0:
                positive = -arg.constant
                const = self._add(
                    Value(0, "const", arg.code, (), constant=positive), positive.tobytes()
                )
                args = [*value.args]
                args[place] = const
                return self._map("multiply", *args)
        return None

    def _add(self, value: Value, constant: Any = None) -> Value:
        key = (
            value.kind, value.code, value.dims, value.name, tuple(a.number for a in value.args),
            value.tensor, tuple(sorted(value.strides.items())), value.offset, constant, value.over,
        )  # fmt: skip
        known = self.same.get(key)
        if known is not None:
            return known
        value.number = len(self.values)
        self.values.append(value)
        self.same[key] = value
        return value

    def _store(self, write: Write) -> Store:
        strides: dict[int, int] = {}
        for dim, stride in zip(write.operand.axes, write.strides, strict=True):
            if dim is not None:
                strides[self.order[dim.find()]] = stride
        value = self.made[write.operand.node]
        dims = tuple(sorted(strides))
        return Store(value, write.tensor, dims, strides, write.offset, write.update)

    def _check(self, check: Check, number: int) -> Store:
        value = self.made[check.operand.node]
        if value.dims:
            value = self._add(Value(0, "reduce", "b8", (), "either", (value,), over=value.dims))
        return Store(value, None, (), {}, report=number)


def _needed(values: Sequence[Value], stores: Sequence[Store]) -> list[Value]:
    """Return the values that stores need, numbered anew."""
    needed = {store.value for store in stores}
    for value in reversed(values):
        if value in needed:
            needed.update(value.args)
    found = [value for value in values if value in needed]
    for number, value in enumerate(found):
        value.number = number
    return found


def _reachable(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes that roots need, arguments first."""
    found: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(roots)]
    while stack:
        node, done = stack.pop()
        if done:
            found[node] = None
        elif node not in found:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args) if arg not in found)
    return list(found)


def _collapse(space: Space) -> None:
    """Make one dimension of neighbors wherever that changes nothing."""
    place = 0
    while place + 1 < len(space.sizes):
        if _mergeable(space, place):
            _merge(space, place)
        else:
            place += 1


def _mergeable(space: Space, outer: int) -> bool:
    inner, size = outer + 1, space.sizes[outer + 1]
    for value in space.values:
        for dims in (value.dims, value.over):
            if (outer in dims) != (inner in dims):
                return False
        if outer in value.dims:
            if value.kind == "index":
                return False
            if value.kind == "load" and value.strides[outer] != value.strides[inner] * size:
                return False
    for store in space.stores:
        if (outer in store.dims) != (inner in store.dims):
            return False
        if outer in store.dims and store.strides[outer] != store.strides[inner] * size:
            return False
    return True


def _merge(space: Space, outer: int) -> None:
    def moved(dims: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted({d if d <= outer else d - 1 for d in dims}))

    def restrided(strides: dict[int, int]) -> dict[int, int]:
        # The inner one's stride is that of both.
        return {(d if d <= outer else d - 1): stride for d, stride in strides.items() if d != outer}

    space.sizes[outer : outer + 2] = [space.sizes[outer] * space.sizes[outer + 1]]
    for value in space.values:
        value.dims, value.over = moved(value.dims), moved(value.over)
        value.strides = restrided(value.strides)
    for store in space.stores:
        store.dims, store.strides = moved(store.dims), restrided(store.strides)
