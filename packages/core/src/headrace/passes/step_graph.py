"""What one step computes: a graph with its feeds, fetches and targets; and how to rewrite it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import GraphError
from headrace.graph.graph import Graph, append_operation, discard
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StepGraph:
    """A graph of which one step runs everything.

    Attributes:
        graph: Holds ``Feed`` nodes in place of what is fed.
        feeds: The output of each ``Feed``, in the order in which values are handed in.
        fetches: The tensors to hand back, in order.
        targets: Operations to run for their effect.
    """

    graph: Graph
    feeds: tuple[Tensor, ...]
    fetches: tuple[Tensor, ...]
    targets: tuple[Operation, ...]

    @property
    def roots(self) -> list[Operation]:
        """The operations for whose sake all others run."""
        return [t.op for t in self.fetches] + list(self.targets)

    def replaced_by(self, new: StepGraph | None = None) -> None:
        """Free the memory of this step's graph, which nobody uses any more.

        Args:
            new: What stands for the step now; nothing is done where it uses the same graph.
        """
        if new is None or new.graph is not self.graph:
            discard(self.graph)


class Rewriter:
    """Builds a new graph from an old one, node by node, keeping track of what replaced what."""

    def __init__(self, name: str) -> None:
        """Start with an empty graph; ``name`` is recorded as the origin of changed nodes."""
        self.name = name
        self.graph = Graph()
        self._tensors: dict[Tensor, Tensor] = {}
        self._operations: dict[Operation, Operation] = {}

    def tensor(self, old: Tensor) -> Tensor:
        """Return what stands for a tensor of the old graph."""
        return self._tensors[old]

    def operation(self, old: Operation) -> Operation:
        """Return what stands for an operation of the old graph."""
        return self._operations[old]

    def has(self, old: Operation) -> bool:
        """Whether an operation of the old graph is represented in the new one."""
        return old in self._operations

    def copy(
        self,
        old: Operation,
        device: DeviceName | None = None,
        specs: Sequence[TensorSpec] | None = None,
        *,
        controls: Collection[Operation] | None = None,
        gradient_rule: str | None = None,
    ) -> Operation:
        """Add an operation as it is, or for another device, or knowing more of its outputs.

        Args:
            old: The operation.
            device: The device asked for; None for its own.
            specs: What is known of its outputs; None for what was.
            controls: What it waits for, in the old graph; None for all that it waited for.
            gradient_rule: The name of the rule that differentiates it; None for its own.
        """
        tensors = self._tensors
        waits_for = old.control_inputs if controls is None else controls
        outputs = old.outputs
        # Not by ``append_copy``: every pass comes here with every node.
        new = append_operation(
            self.graph,
            old.schema,
            old.name,
            tuple([tensors[t] for t in old.inputs]),
            old.arity,
            self.controls(waits_for) if waits_for else (),
            old.attrs,
            old.device_name if device is None else device,
            self.controls(old.colocated_with) if old.colocated_with else (),
            old.site,
            old.origin,
            [t.spec for t in outputs] if specs is None else specs,
            old.gradient_rule if gradient_rule is None else gradient_rule,
        )
        self._operations[old] = new
        if len(outputs) == 1:
            tensors[outputs[0]] = new.outputs[0]
        else:
            tensors.update(zip(outputs, new.outputs, strict=True))
        return new

    def copy_with(
        self,
        old: Operation,
        *,
        inputs: Sequence[Tensor] | None = None,
        arity: tuple[int, ...] | None = None,
        attrs: Mapping[str, Any] | None = None,
        specs: Sequence[TensorSpec] | None = None,
    ) -> Operation:
        """Add an operation that differs from an old one, for which it stands in control edges.

        What stands for its outputs is for the caller to say, as there may be others.

        Args:
            old: The operation.
            inputs: What it takes, in the new graph; None for what stands for what it took.
            arity: How many of them belong to each parameter; None for as many as before.
            attrs: Its attributes; None for those that it has.
            specs: Its outputs; None for those that it has.
        """
        new = self.graph.add_operation(
            old.schema,
            name=old.name,
            inputs=[self.tensor(t) for t in old.inputs] if inputs is None else inputs,
            arity=old.arity if arity is None else arity,
            attrs=old.attrs if attrs is None else attrs,
            specs=[t.spec for t in old.outputs] if specs is None else specs,
            control_inputs=self.controls(old.control_inputs),
            device=old.device_name,
            colocated_with=self.controls(old.colocated_with),
            site=old.site,
            origin=old.origin,
            gradient_rule=old.gradient_rule,
        )
        self._operations[old] = new
        return new

    def add(
        self,
        type_name: str,
        attrs: dict[str, object],
        specs: Sequence[TensorSpec],
        like: Operation,
        name: str | None = None,
    ) -> Operation:
        """Add a node without inputs that does the work of ``like``, with its place and site."""
        schema = OPS[type_name]
        return self.graph.add_operation(
            schema,
            name=name if name is not None else like.name,
            inputs=[],
            arity=(),
            attrs=attrs,
            specs=specs,
            control_inputs=self.controls(like.control_inputs),
            device=like.device_name,
            colocated_with=self.controls(like.colocated_with),
            site=like.site,
            origin=f"{self.name} of {like.type}",
        )

    def controls(self, old: Collection[Operation]) -> tuple[Operation, ...]:
        """Return what stands for operations, leaving out those that are not there."""
        found = dict.fromkeys(map(self._operations.get, old))
        found.pop(None, None)
        return tuple(found)  # type: ignore[arg-type]

    def stand_for(self, old: Operation, new: Operation) -> None:
        """Let a new operation, with all its outputs, stand for an old one."""
        self._operations[old] = new
        for before, after in zip(old.outputs, new.outputs, strict=True):
            self._tensors[before] = after

    def stand_for_operation(self, old: Operation, new: Operation) -> None:
        """Let a new operation stand for an old one in control edges, whatever its outputs."""
        self._operations[old] = new

    def stand_for_tensor(self, old: Tensor, new: Tensor) -> None:
        """Let a new tensor stand for an old one."""
        self._tensors[old] = new

    def finish(self, step: StepGraph) -> StepGraph:
        """Return the step on the new graph."""
        return StepGraph(
            self.graph,
            tuple(self._tensors[t] for t in step.feeds),
            tuple(self._tensors[t] for t in step.fetches),
            tuple(self._operations[op] for op in step.targets),
        )


def append_copy(
    graph: Graph,
    old: Operation,
    inputs: tuple[Tensor, ...],
    control_inputs: tuple[Operation, ...],
    colocated_with: tuple[Operation, ...],
    *,
    device: DeviceName | None = None,
    specs: Sequence[TensorSpec] | None = None,
    gradient_rule: str = "",
) -> Operation:
    """Append what stands for a node of another graph; unchecked, as in ``append_operation``.

    Args:
        graph: The graph.
        old: The node.
        inputs: What stands for its inputs.
        control_inputs: What stands for what it waits for.
        colocated_with: What stands for what it shares a device with.
        device: The device asked for; None for the node's own.
        specs: One spec per output; None for the node's own.
        gradient_rule: The name of the rule that differentiates it, empty for its op's own.

    Raises:
        GraphError: if the name is taken.
    """
    return append_operation(
        graph,
        old.schema,
        old.name,
        inputs,
        old.arity,
        control_inputs,
        old.attrs,
        old.device_name if device is None else device,
        colocated_with,
        old.site,
        old.origin,
        [t.spec for t in old.outputs] if specs is None else specs,
        gradient_rule,
    )


def with_fetches(
    step: StepGraph, device: DeviceName, result: str = "Fetch"
) -> tuple[Graph, dict[Operation, Operation]]:
    """Return the graph of a step with nodes that hand its results out.

    Args:
        step: The step, whose operations are placed but for what comes in.
        device: The device where values come in and go out.
        result: The type of these nodes.

    Returns:
        The graph, and what stands in it for each operation of the step's.
    """
    rewriter = Rewriter("plan")
    stands_for = {
        op: rewriter.copy(op, device if op.device_name.kind is None else None)
        for op in step.graph.operations
    }
    for i, tensor in enumerate(step.fetches):
        rewriter.graph.add_operation(
            OPS[result],
            name=f"_fetch/{i}",
            inputs=[rewriter.tensor(tensor)],
            arity=(1,),
            attrs={"index": i},
            specs=[],
            device=device,
            site=tensor.op.site,
            origin=f"fetch of {tensor.name}",
        )
    return rewriter.graph, stands_for


def verify(step: StepGraph) -> None:
    """Check that a step is well formed; passes keep this.

    Raises:
        GraphError: if a node comes before one that it depends on, belongs to another graph, or
            has no creation site.
    """
    seen: set[Operation] = set()
    for op in step.graph.operations:
        needed = [t.op for t in op.inputs] + list(op.control_inputs)
        for other in needed:
            if other not in seen:
                raise GraphError(f"{op!r} comes before {other!r}, on which it depends")
        if op.site is None:
            raise GraphError(f"{op!r} has no creation site")
        seen.add(op)
    for tensor in (*step.feeds, *step.fetches):
        if tensor.op not in seen:
            raise GraphError(f"{tensor!r} is not in the step's graph")
    for root in step.targets:
        if root not in seen:
            raise GraphError(f"{root!r} is not in the step's graph")
