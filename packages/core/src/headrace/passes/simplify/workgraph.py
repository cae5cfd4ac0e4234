"""A step's graph in a form that changes: nodes whose inputs are replaced while rules run.

Graphs are append-only. A simplifier that copied one for each rewrite would take quadratic time,
so it works on this form in between, which knows the users of each node, merges nodes that have
become equal, and drops those that nobody uses any more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.device_name import DeviceName
from headrace.dtypes import DType
from headrace.graph.attributes import attribute_key
from headrace.graph.creation_site import Site
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, OpSchema
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
from headrace.passes.step_graph import StepGraph

# Constants beyond this many bytes are never compared with each other.
_COMPARED_BYTES = 1 << 12


class Node:
    """An operation whose inputs may be replaced.

    Attributes:
        inputs: The values that it takes, flat.
        controls: The nodes that must have finished before it starts.
        users: The nodes that take its outputs.
        waiting: The nodes that have it among their controls.
        fixed: Whether it must stay: a feed, a target, or something with an effect.
        fetched: Whether one of its outputs is fetched.
        effects: One bit for each operation with an effect that it depends on, or is.
        names: The names of the operations of the step that it stands for.
    """

    __slots__ = (
        *("schema", "type", "name", "inputs", "arity", "attrs", "specs", "controls", "device"),
        *("colocated", "site", "origin", "gradient_rule", "users", "waiting", "fixed", "fetched"),
        *("effects", "alive", "order", "pure", "key", "attrs_key", "queued", "uniform"),
    )

    def __init__(
        self,
        schema: OpSchema,
        name: str,
        inputs: tuple[Value, ...],
        arity: tuple[int, ...],
        attrs: Mapping[str, Any],
        specs: tuple[TensorSpec, ...],
        order: tuple[int, int],
        site: Site,
        device: DeviceName,
    ) -> None:
        self.schema = schema
        self.type = schema.type
        self.name = name
        self.inputs = inputs
        self.arity = arity
        self.attrs = attrs
        self.specs = specs
        self.order = order
        self.site = site
        self.device = device
        self.controls: tuple[Node, ...] = ()
        self.colocated: tuple[Node, ...] = ()
        self.origin = ""
        self.gradient_rule = ""
        self.users: dict[Node, None] = {}
        self.waiting: dict[Node, None] = {}
        self.fixed = False
        self.fetched = False
        self.effects = 0
        self.alive = True
        self.pure = not schema.stateful
        self.key: Hashable = None
        self.attrs_key: Hashable = None
        self.queued = False
        # What the matching rules found of a constant: one scalar array, or False.
        self.uniform: Any = None

    def __repr__(self) -> str:
        return f"<Node {self.name!r} type={self.type}>"


class Value(NamedTuple):
    """Output ``slot`` of a node."""

    node: Node
    slot: int

    @property
    def spec(self) -> TensorSpec:
        """What is known of it."""
        return self.node.specs[self.slot]

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.node.specs[self.slot].dtype

    @property
    def dims(self) -> tuple[int, ...] | None:
        """Its shape where every dimension is known, else None."""
        dims = self.node.specs[self.slot].shape.dims
        return None if dims is None or None in dims else dims  # type: ignore[return-value]

    @property
    def rank(self) -> int | None:
        """Its number of dimensions, None where unknown."""
        dims = self.node.specs[self.slot].shape.dims
        return None if dims is None else len(dims)


class WorkGraph:
    """The nodes of one step while it is simplified."""

    def __init__(self, step: StepGraph, fixed: Iterable[Operation] = ()) -> None:
        """Take in a step.

        Args:
            step: The step.
            fixed: Operations that must stay as they are, besides targets and effects.
        """
        self.step = step
        self.of: dict[Operation, Node] = {}
        self._keys: dict[Hashable, Node] = {}
        self._forward: dict[Node, tuple[Value, ...]] = {}
        # Nodes that have lost a user, until the engine takes notice.
        self.freed: dict[Node, None] = {}
        self._serial = 0
        self._added: list[Node] = []
        self._effects = 0
        self._values: dict[Tensor, Value] = {}
        for op in step.graph.operations:
            self._take(op)
        self.feeds = [Value(self.of[t.op], t.index) for t in step.feeds]
        self.fetches = [Value(self.of[t.op], t.index) for t in step.fetches]
        self.targets = [self.of[op] for op in step.targets]
        for value in self.fetches:
            value.node.fetched = True
        for node in (
            *self.targets,
            *(v.node for v in self.feeds),
            *map(self.of.__getitem__, fixed),
        ):
            node.fixed = True

    def nodes(self) -> list[Node]:
        """Return the nodes that came from the step and are still there, in its order."""
        return [node for node in self.of.values() if node.alive]

    def _take(self, op: Operation) -> None:
        values = self._values
        node = Node(
            op.schema,
            op.name,
            tuple([values[t] for t in op.inputs]),
            op.arity,
            op.attrs,
            tuple([t.spec for t in op.outputs]),
            (op.index, 0),
            op.site,
            op.device_name,
        )
        if op.control_inputs:
            node.controls = tuple([self.of[c] for c in op.control_inputs])
        if op.colocated_with:
            node.colocated = tuple([self.of[c] for c in op.colocated_with])
        node.origin = op.origin
        node.gradient_rule = op.gradient_rule
        node.pure = not op.stateful
        self.of[op] = node
        for tensor in op.outputs:
            values[tensor] = Value(node, tensor.index)
        self._link(node)
        if has_effect(op):
            node.effects |= 1 << self._effects
            node.fixed = True
            self._effects += 1
        node.key = self._key(node)
        if node.key is not None:
            self._keys.setdefault(node.key, node)

    def _link(self, node: Node) -> None:
        effects = 0
        for value in node.inputs:
            value.node.users[node] = None
            effects |= value.node.effects
        for control in node.controls:
            control.waiting[node] = None
            effects |= control.effects
        node.effects = effects

    def _key(self, node: Node) -> Hashable:
        """Return what two equal nodes have in common, None for one that is never merged."""
        if not node.pure or node.controls or node.type == "Merge":
            return None
        if node.attrs_key is None:
            if node.type == "Const" and node.attrs["value"].nbytes > _COMPARED_BYTES:
                return None
            node.attrs_key = tuple(attribute_key(value) for value in node.attrs.values())
        inputs = node.inputs
        if node.schema.commutative and inputs[0].dtype.kind != "string":
            x, y = inputs
            if _by_order(y) < _by_order(x):
                inputs = (y, x)
        return (node.type, node.arity, inputs, node.attrs_key, node.device, node.colocated)

    def release(self) -> None:
        """Take the form apart, so that the memory of its nodes is free at once."""
        for node in (*self.of.values(), *self._added):
            node.users.clear()
            node.waiting.clear()
        self._keys.clear()
        self._forward.clear()

    # -- growing

    def add(
        self,
        type_name: str,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        like: Node,
        origin: str,
    ) -> tuple[Node, bool]:
        """Return a node that computes an op, and whether it is new.

        Args:
            type_name: The op.
            inputs: One entry for each parameter: a value, or a list where it takes several.
            attrs: All attributes.
            like: The node whose place, device and user's line it takes.
            origin: Why it is there.

        Raises:
            HeadraceError: if the op's rule refuses the inputs.
        """
        schema = OPS[type_name]
        flat, arity = _flattened(inputs)
        specs, _ = schema.output_specs([v.spec for v in flat], arity, attrs)
        self._serial += 1
        order = (like.order[0], self._serial)
        node = Node(schema, like.name, flat, arity, attrs, specs, order, like.site, like.device)
        node.colocated = like.colocated
        node.origin = origin
        node.key = self._key(node)
        twin = None if node.key is None else self._keys.get(node.key)
        if twin is not None and twin.alive:
            return twin, False
        self._link(node)
        self._added.append(node)
        if node.key is not None:
            self._keys[node.key] = node
        return node, True

    # -- changing

    def merge_equal(self) -> None:
        """Keep one of each set of equal nodes."""
        for node in self.nodes():
            twin = None if node.key is None else self._keys.get(node.key)
            if node.alive and twin is not None and twin is not node and not node.fixed:
                self.replace(node, [Value(twin, i) for i in range(len(node.specs))])

    def replace(self, node: Node, values: Sequence[Value]) -> tuple[list[Node], list[Node]]:
        """Let others take ``values`` for the outputs of a node, and drop it.

        What waited for the node waits for whatever the node waited for. Nodes that become equal
        to others are merged with them.

        Returns:
            The nodes that take other inputs now, and remain; and what was dropped with the node.
        """
        changed: list[Node] = []
        dropped: list[Node] = []
        waiting = [(node, tuple(values))]
        while waiting:
            old, new = waiting.pop()
            if not old.alive:
                continue
            # The twin of a node may have been merged with another one in the meantime.
            new = tuple(self._latest(value) for value in new)
            self._forward[old] = new
            for user in list(old.users):
                twin = self._rewire(user, old, new)
                changed.append(user)
                if twin is not None:
                    waiting.append((user, tuple(Value(twin, i) for i in range(len(user.specs)))))
            old.users.clear()
            self._move_waiting(old)
            if old.fetched:
                self._move_fetches(old, new)
            gone = self.drop(old)
            dropped += gone if old is node else ()
        return [node for node in changed if node.alive], dropped

    def _latest(self, value: Value) -> Value:
        while value.node in self._forward:
            value = self._forward[value.node][value.slot]
        return value

    def wait(self, node: Node, controls: tuple[Node, ...]) -> None:
        """Let a node start after others, which none of its users precede."""
        if node.key is not None and self._keys.get(node.key) is node:
            del self._keys[node.key]
        node.key = None
        node.controls = tuple(dict.fromkeys((*node.controls, *controls)))
        for control in controls:
            control.waiting[node] = None
            node.effects |= control.effects

    def _rewire(self, user: Node, old: Node, new: Sequence[Value]) -> Node | None:
        """Change the inputs of a node; return the equal node that there is already."""
        if user.key is not None and self._keys.get(user.key) is user:
            del self._keys[user.key]
        user.inputs = tuple(new[v.slot] if v.node is old else v for v in user.inputs)
        for value in new:
            if value in user.inputs:
                value.node.users[user] = None
        user.key = self._key(user)
        if user.key is None:
            return None
        twin = self._keys.setdefault(user.key, user)
        if twin is user or not twin.alive:
            self._keys[user.key] = user
            return None
        return None if user.fixed else twin

    def _move_waiting(self, old: Node) -> None:
        if not old.waiting:
            return
        before = tuple(dict.fromkeys((*(v.node for v in old.inputs), *old.controls)))
        for other in old.waiting:
            kept = tuple(c for c in other.controls if c is not old)
            other.controls = tuple(dict.fromkeys((*kept, *before)))
            for node in other.controls:
                node.waiting[other] = None
        old.waiting.clear()

    def _move_fetches(self, old: Node, new: Sequence[Value]) -> None:
        for i, value in enumerate(self.fetches):
            if value.node is old:
                self.fetches[i] = new[value.slot]
                new[value.slot].node.fetched = True
        old.fetched = False

    def drop(self, node: Node) -> list[Node]:
        """Drop a node that nobody uses, and what only it used; return what was dropped."""
        dropped: list[Node] = []
        waiting = [node]
        while waiting:
            found = waiting.pop()
            if not found.alive or found.users or found.waiting or found.fixed or found.fetched:
                continue
            found.alive = False
            dropped.append(found)
            if found.key is not None and self._keys.get(found.key) is found:
                del self._keys[found.key]
            for source in dict.fromkeys(v.node for v in found.inputs):
                source.users.pop(found, None)
                self.freed[source] = None
                waiting.append(source)
            for control in found.controls:
                control.waiting.pop(found, None)
                waiting.append(control)
        return dropped


def _by_order(value: Value) -> tuple[tuple[int, int], int]:
    return value.node.order, value.slot


def _flattened(inputs: Sequence[Any]) -> tuple[tuple[Value, ...], tuple[int, ...]]:
    flat: list[Value] = []
    arity: list[int] = []
    for entry in inputs:
        if entry is None:
            arity.append(0)
        elif isinstance(entry, Value):
            flat.append(entry)
            arity.append(1)
        else:
            flat.extend(entry)
            arity.append(len(entry))
    return tuple(flat), tuple(arity)
