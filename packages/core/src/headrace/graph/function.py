"""Functions: graphs with parameters and results, which operations hold as attributes.

Conditions hold their branches so, loops their conditions and bodies, and calls what they call. A
function uses tensors of the graph around it by *capturing* them: each becomes a parameter, and the
operation that holds the function takes the tensor as an input. Constants through which no gradient
flows are copied instead, so that their values are known inside, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import GraphError, shown
from headrace.graph.attributes import FunctionValue
from headrace.graph.creation_site import user_site
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, OpSchema
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class Function(Graph, FunctionValue):
    """A graph with parameters and results.

    Attributes:
        name: Unique in the program, as in ``"while/body"``.
        ordinal: Its number among the program's functions.
        outer: The graph in which it is used.
        parameters: What its arguments become, captured ones last.
        captures: The parameter that stands for each captured tensor of ``outer``, in order.
        results: What it returns.
        effects: Operations that run besides those on which the results depend, such as what
            sends to parts of it on other tasks.
        stands: What stands here for tensors of the function of which this is a copy.
        waits: For operations of it, those of graphs around that they asked to wait for.
        waits_for: Operations of graphs around that those of its operations asked to wait for on
            which the results depend.
        changes: Whether it changes state, or holds a function that does.
        traced: Whether it was traced of a function of the program, whose order it keeps.
        is_part: Whether it is one task's part of a function that several tasks run together.
        derived: What was made of it, such as its gradients, by a key of who made it.
    """

    def __init__(self, name: str, outer: Graph, instead_of: Function | None = None) -> None:
        """Start an empty function, which takes over the name of another one where given."""
        super().__init__()
        self.outer = outer
        if instead_of is None:
            self.name, self.ordinal = outer.outermost.function_name(name)
        else:
            self.name, self.ordinal = instead_of.name, instead_of.ordinal
        self.parameters: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        self._sources: dict[Tensor, Tensor] = {}
        self.results: tuple[Tensor, ...] = ()
        self.effects: tuple[Operation, ...] = ()
        self.waits_for: dict[Operation, None] = {}
        self.waits: dict[Operation, tuple[Operation, ...]] = {}
        self._copies: dict[Tensor, Tensor] = {}
        self.stands: dict[Tensor, Tensor] = {}
        self._complete = False
        self._stateful = False
        self.changes = False
        self.traced = False
        self.is_part = False
        self.derived: dict[Any, Any] = {}

    # -- its place in the program

    @property
    def outermost(self) -> Graph:
        """The program's graph."""
        return self.outer.outermost

    @property
    def seed(self) -> int | None:
        """The seed of the program's graph."""
        return self.outermost.seed

    @seed.setter
    def seed(self, value: int | None) -> None:
        self.outermost.seed = value

    @property
    def position(self) -> int:
        """A number that differs from node to node of a program, for seeds."""
        return (self.ordinal << 32) + len(self)

    @property
    def described(self) -> str:
        """What messages call it."""
        return f"the inside of {self.name!r}"

    # -- making

    def add_parameter(self, spec: TensorSpec, name: str = "argument") -> Tensor:
        """Add a parameter."""
        op = self.add_operation(
            OPS["Parameter"],
            name=self.unique_full_name(name),
            inputs=[],
            arity=(),
            attrs={
                "index": len(self.parameters),
                "spec": TensorSpec(spec.dtype, spec.shape, content=spec.content),
            },
            specs=[TensorSpec(spec.dtype, spec.shape, dims=spec.dims, content=spec.content)],
            site=user_site(),
        )
        self.parameters.append(op.outputs[0])
        return op.outputs[0]

    def add_operation(self, schema: OpSchema, **facts: Any) -> Operation:
        """Append a node; see ``Graph.add_operation``.

        Raises:
            GraphError: if it is a placeholder, which nothing could feed here.
        """
        if schema.type == "Placeholder":
            raise GraphError(
                f"a placeholder cannot be made in {self.described}, since nothing could feed it; "
                "make it outside and use it here"
            )
        op = super().add_operation(schema, **facts)
        # Noted here, since asking all operations again would take 2^n questions n functions deep.
        self._stateful = self._stateful or (schema.type != "Parameter" and op.stateful)
        self.changes = self.changes or changes_state(op)
        return op

    def capture(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor here: itself, a parameter, or the copy of a constant.

        Raises:
            GraphError: if it belongs to no graph around this one, or if the function is complete.
        """
        if tensor.op.graph is self:
            return tensor
        known = self._copies.get(tensor)
        if known is None:
            outer = self.of_outer(tensor)
            known = self.captures.get(outer)
            if known is None:
                known = self._take_in(outer)
            self._copies[tensor] = known
        return known

    def of_outer(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor in the graph around this one."""
        return self.outer.capture(tensor)

    def _take_in(self, tensor: Tensor) -> Tensor:
        op = tensor.op
        # Floats come in as arguments, so that gradients with respect to them can leave.
        if op.type == "Const" and not op.control_inputs and not tensor.dtype.is_differentiable:
            copy = self.add_operation(
                op.schema,
                name=self.unique_full_name(op.name),
                inputs=[],
                arity=(),
                attrs=op.attrs,
                specs=[tensor.spec],
                site=op.site,
                origin=f"copy of {tensor.name}",
                copy_of=tensor.name,
            )
            return copy.outputs[0]
        if self._complete:
            raise GraphError(
                f"{shown(tensor)} cannot be used in {self.name!r} any more: it is complete"
            )
        parameter = self.add_parameter(tensor.spec, op.name)
        self.captures[tensor] = parameter
        self._sources[parameter] = tensor
        return parameter

    def source(self, parameter: Tensor) -> Tensor | None:
        """Return the captured tensor for which a parameter was made; None for an argument."""
        return self._sources.get(parameter)

    def capture_control(self, op: Operation) -> Operation | None:
        """Return the operation of this graph to wait for in order to wait for ``op``.

        What holds the function waits for operations of graphs around it, so that here there is
        nothing to wait for; see ``note_waits``.
        """
        if op.graph is self:
            return op
        self.outer.capture_control(op)
        return None

    def own(self, tensor: Tensor) -> Tensor | None:
        """Return the tensor of this graph that another one is, or is since it was rebuilt."""
        return tensor if tensor.op.graph is self else self.stands.get(tensor)

    def stand_in(self, tensor: Tensor) -> Tensor | None:
        """Return what stands here for a tensor, None if nothing does yet."""
        return tensor if tensor.op.graph is self else self._copies.get(tensor)

    def finish(self, results: Iterable[Tensor]) -> None:
        """State the results; from now on nothing can be captured."""
        self.results = tuple(self.capture(t) for t in results)
        self._complete = True
        if self.waits:
            needed = ancestors([t.op for t in self.results])
            noted = (others for op, others in self.waits.items() if op in needed)
            self.waits_for = dict.fromkeys(o for others in noted for o in others)

    def move_out(self) -> None:
        """Belong to the outermost graph that has all it takes; for a function that is complete.

        All functions within that graph can share it then. Were it made anew in each, functions that
        call one another in both branches of conditions would take 2^n of them n deep.
        """
        while isinstance(outer := self.outer, Function):
            # The gradient of a function takes tensors of that function, too: they stay.
            taken = [t for t in self.captures if t.op.graph is outer]
            sources = {p: t for t, p in outer.captures.items() if t.op.graph is outer.outer}
            if any(t not in sources for t in taken):
                return
            if any(op.graph is outer for op in self.waits_for):
                return
            self.captures = {sources.get(t, t): p for t, p in self.captures.items()}
            self.outer = outer.outer

    def complete(self, parameters: Iterable[Tensor], results: Iterable[Tensor]) -> None:
        """State the parameters and results of a function whose operations were added one by one."""
        self.parameters = list(parameters)
        self.finish(results)

    # -- what it holds

    @property
    def inputs(self) -> list[Tensor]:
        """The captured tensors of the graph around, in the order of their parameters."""
        return list(self.captures)

    @property
    def stateful(self) -> bool:
        """Whether running it twice may differ from running it once."""
        return self._stateful

    def __repr__(self) -> str:
        return f"<Function {self.name!r} of {len(self)} operations>"


def note_waits(op: Operation, others: tuple[Operation, ...]) -> None:
    """Take note of operations of graphs around that an operation of a function waits for."""
    assert isinstance(op.graph, Function)
    op.graph.waits[op] = others


def ancestors(operations: Iterable[Operation]) -> set[Operation]:
    """Return operations and all on which they depend."""
    seen: set[Operation] = set()
    stack = list(operations)
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(t.op for t in op.inputs)
            stack.extend(op.control_inputs)
    return seen


def graphs_around(graph: Graph) -> list[Graph]:
    """Return the graphs around that of a function, the next one first."""
    found = []
    while isinstance(graph, Function):
        graph = graph.outer
        found.append(graph)
    return found


def functions_of(op: Operation) -> Iterator[Function]:
    """Return the functions that an operation holds."""
    return (value for value in op.attrs.values() if isinstance(value, Function))


def changes_state(op: Operation) -> bool:
    """Whether an operation changes state, or holds a function that does."""
    held = op.schema.holds and any(f.changes for f in functions_of(op))
    return held or (op.schema.changes and op.type != "Return")


def functions_in(graph: Graph) -> list[Function]:
    """Return all functions that operations of a graph hold, each after those that it holds."""
    return _held_by(graph.operations)


# Files hold no functions nested deeper: deeper than any step runs.
MAX_NESTED = 1000


def nested_deeper(functions: Iterable[Function], most: int = MAX_NESTED) -> Function | None:
    """Return a function that nests others too deep, None if none does.

    Args:
        functions: The functions, each after those that it holds.
        most: How many may stand within each other.
    """
    depths: dict[Function, int] = {}
    for function in functions:
        depths[function] = 1 + max((depths[f] for f in _directly(function.operations)), default=0)
        if depths[function] > most:
            return function
    return None


def functions_within(op: Operation) -> list[Function]:
    """Return all functions that an operation holds, and that they hold, each once."""
    return _held_by((op,))


def _held_by(operations: Iterable[Operation]) -> list[Function]:
    # With a stack of its own: programs nest deeper than Python calls.
    found: dict[Function, None] = {}
    entered: set[Function] = set()
    path: list[tuple[Function | None, Iterator[Function]]] = [(None, _directly(operations))]
    while path:
        holder, rest = path[-1]
        inner = next((f for f in rest if f not in entered), None)
        if inner is not None:
            entered.add(inner)
            path.append((inner, _directly(inner.operations)))
            continue
        path.pop()
        if holder is not None:
            found[holder] = None
    return list(found)


def _directly(operations: Iterable[Operation]) -> Iterator[Function]:
    return (function for op in operations if op.schema.holds for function in functions_of(op))


def rebuilt(
    function: Function,
    replaced: Mapping[Tensor, Callable[[Function], Tensor]],
    dropped: Sequence[Tensor],
) -> Function:
    """Return a copy of a function in which other tensors stand for some of its own.

    Args:
        function: The function.
        replaced: For tensors of it, what makes their stand-ins in the copy.
        dropped: Captured tensors of the graph around that the copy does not take in.
    """
    made = Function(function.name, function.outer, instead_of=function)
    stands: dict[Tensor, Tensor] = {}
    captured = {parameter: tensor for tensor, parameter in function.captures.items()}
    operations: dict[Operation, Operation] = {}
    for op in function.operations:
        if op.type == "Parameter":
            parameter = op.outputs[0]
            source = captured.get(parameter)
            if source is None:
                stands[parameter] = made.add_parameter(parameter.spec, op.name)
            elif source not in dropped:
                stands[parameter] = made.capture(source)
            continue
        if any(t in replaced for t in op.outputs):
            (output,) = op.outputs
            stands[output] = replaced[output](made)
            operations[op] = stands[output].op
            continue
        new = made.add_operation(
            op.schema,
            name=op.name,
            inputs=[stands[t] for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=tuple(operations[c] for c in op.control_inputs if c in operations),
            device=op.device_name,
            colocated_with=tuple(operations[c] for c in op.colocated_with if c in operations),
            site=op.site,
            origin=op.origin,
            gradient_rule=op.gradient_rule,
            copy_of=op.copy_of,
        )
        operations[op] = new
        stands.update(zip(op.outputs, new.outputs, strict=True))
    made.gradient_rules.update(function.gradient_rules)
    made.stands = stands
    made.waits_for = dict(function.waits_for)
    made.effects = tuple(operations[op] for op in function.effects)
    made.finish(stands[t] for t in function.results)
    return made
