"""Graphs: append-only sequences of operations."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headrace.arguments import items, members
from headrace.device_name import DeviceName
from headrace.errors import AttributeValueError, GraphError, GraphFinalizedError, shown
from headrace.graph.creation_site import UNKNOWN_SITE, Site
from headrace.graph.elements import GraphElements
from headrace.graph.fixed_list import NOTHING, FixedList
from headrace.graph.graph_scopes import GraphScopes
from headrace.graph.operation import Operation
from headrace.graph.rendering import renderer
from headrace.graph.schema import OpSchema
from headrace.graph.scope import use_graph
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor

if TYPE_CHECKING:
    from headrace.ops.variable import Variable


_set_outputs = Operation.__dict__["outputs"].__set__


class Graph(GraphScopes, GraphElements):
    """An append-only sequence of operations, to which any thread may add.

    ``with graph:`` (or ``with graph.as_default():``) makes it the default graph.

    Attributes:
        gradient_rules: Rules of this graph alone, by the name that operations' ``gradient_rule``
            gives. They are Python functions: a graph document holds their names only.
        variable_store: The variables that ``hr.get_variable`` made, by name.
        piecewise_constant: The operations, by index, that gradients of rectifiers and pools of
            maxima are made of: functions of what these take that are constant piece by piece, so
            that second derivatives are 0 rather than missing. Of no meaning beyond the program
            that builds the graph.
    """

    def __init__(self) -> None:
        self._seed: int | None = None
        self.gradient_rules: dict[str, Callable[..., Any]] = {}
        self.entered = 0
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._name_uses: dict[str, int] = {}
        self._variables: list[Variable] = []
        self._collections: dict[Any, list[Any]] = {}
        self.variable_store: dict[str, Variable] = {}
        self._function_names: set[str] = set()
        self._finalized = False
        self.unfeedable: frozenset[Tensor] = frozenset()
        self.unfetchable: frozenset[Operation] = frozenset()
        self.piecewise_constant: set[int] = set()
        self._lock = threading.RLock()
        self._exits = threading.local()

    # -- what it holds

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, each after those that it depends on."""
        return tuple(self._operations)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables made in this graph, in order."""
        return tuple(self._variables)

    @property
    def seed(self) -> int | None:
        """The seed of the graph's random operations, None where it was not set."""
        return self._seed

    @seed.setter
    def seed(self, value: int | None) -> None:
        self._seed = value

    @property
    def version(self) -> int:
        """Number of operations; grows with each."""
        return len(self._operations)

    @property
    def building_function(self) -> bool:
        """Whether this is the graph of a function."""
        return self.outermost is not self

    def __len__(self) -> int:
        return len(self._operations)

    def __bool__(self) -> bool:
        # Programs write "graph or hr.get_default_graph()", also of graphs without operations.
        return True

    def get_operations(self) -> list[Operation]:
        """Return all operations as a list."""
        return list(self._operations)

    # -- scopes

    def as_default(self) -> AbstractContextManager[Graph]:
        """Return a context manager that makes this the default graph."""
        return use_graph(self)

    def switch_to_thread_local(self) -> None:
        """Do nothing: scopes belong to the thread that entered them, always."""

    def __enter__(self) -> Self:
        stack = ExitStack()
        stack.enter_context(self.as_default())
        self._exit_stacks().append(stack)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._exit_stacks().pop().close()

    def _exit_stacks(self) -> list[ExitStack]:
        stacks: list[ExitStack] | None = getattr(self._exits, "stacks", None)
        if stacks is None:
            stacks = self._exits.stacks = []
        return stacks

    # -- what is used here and stands elsewhere

    @property
    def outermost(self) -> Graph:
        """The program's graph: this one, where it is not the graph of a function."""
        return self

    @property
    def position(self) -> int:
        """A number that differs from node to node of a program, for seeds."""
        return len(self._operations)

    def capture(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor here: the tensor itself.

        Raises:
            GraphError: if it belongs to another graph; graphs of functions take it in.
        """
        if tensor.op.graph is not self:
            raise GraphError(
                f"{shown(tensor)} belongs to {tensor.op.graph.described}; build with it inside "
                "'with graph.as_default():'"
                if tensor.op.graph.outermost is tensor.op.graph
                else f"{shown(tensor)} belongs to {tensor.op.graph.described}: return it from "
                "there to use it outside"
            )
        return tensor

    def stand_in(self, tensor: Tensor) -> Tensor | None:
        """Return what stands here for a tensor, None if nothing does yet."""
        return tensor if tensor.op.graph is self else None

    def capture_control(self, op: Operation) -> Operation | None:
        """Return the operation of this graph to wait for in order to wait for ``op``.

        Raises:
            GraphError: if it belongs to another graph.
        """
        if op.graph is not self:
            raise GraphError(f"{shown(op)} belongs to {op.graph.described}")
        return op

    @property
    def described(self) -> str:
        """What messages call it."""
        return "another graph than the default one"

    # -- growing

    @property
    def finalized(self) -> bool:
        """Whether the graph refuses further operations."""
        return self._finalized

    def finalize(self) -> None:
        """Refuse further operations."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        """Take operations again, as programs written for TensorFlow ask for it."""
        self._finalized = False

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Let sessions refuse feeds of a tensor."""
        self.unfeedable |= {tensor}

    def prevent_fetching(self, op: Operation) -> None:
        """Let sessions refuse fetches of an operation and its outputs."""
        self.unfetchable |= {op}

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return ``name`` in the name scope in force, with a number where it was used before.

        Args:
            name: A name.
            mark_as_used: Whether it then counts as used.
        """
        inside = self.get_name_scope()
        if inside:
            name = f"{inside}/{name}"
        return self.unique_full_name(name, mark_as_used)

    def unique_full_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return ``name``, which has those of all scopes in it, with a number where it was used.

        Args:
            name: A name.
            mark_as_used: Whether it then counts as used.
        """
        with self._lock:
            key = name.lower()
            uses = self._name_uses.get(key, 0)
            if not mark_as_used:
                return self._next_name(name, uses) if uses else name
            self._name_uses[key] = uses + 1
            if not uses:
                return name
            candidate = self._next_name(name, uses)
            self._name_uses[key] = int(candidate.rpartition("_")[2]) + 1
            self._name_uses[candidate.lower()] = 1
            return candidate

    def _next_name(self, name: str, uses: int) -> str:
        candidate = f"{name}_{uses}"
        while candidate.lower() in self._name_uses:
            uses += 1
            candidate = f"{name}_{uses}"
        return candidate

    def exact_name(self, name: str) -> str:
        """Return ``name``, which a scope may have, with a number where an operation has it."""
        with self._lock:
            if name in self._by_name:
                return self.unique_full_name(name)
            self._name_uses.setdefault(name.lower(), 1)
            return name

    def rename(self, op: Operation, name: str, first: int) -> None:
        """Give an operation that was just made another name, unless an operation has that one.

        Args:
            op: An operation of this graph, which nothing but its inputs knows by its name yet.
            name: The name that it gets.
            first: The ``version`` of the graph before; older operations keep their names.
        """
        with self._lock:
            if name in self._by_name or op not in self._operations[first:]:
                return
            del self._by_name[op.name]
            object.__setattr__(op, "name", name)
            self._by_name[name] = op

    def reserve_name(self, name: str) -> None:
        """Count a name, and the scopes in it, as used: for nodes that bring their names."""
        with self._lock:
            key = name.lower()
            while key and key not in self._name_uses:
                self._name_uses[key] = 1
                key = key.rpartition("/")[0]

    def add_operation(
        self,
        schema: OpSchema,
        *,
        name: str,
        inputs: Sequence[Tensor],
        arity: tuple[int, ...],
        attrs: Mapping[str, Any],
        specs: Iterable[TensorSpec],
        control_inputs: tuple[Operation, ...] = (),
        device: DeviceName | None = None,
        colocated_with: tuple[Operation, ...] = (),
        site: Site = UNKNOWN_SITE,
        origin: str = "",
        gradient_rule: str = "",
        copy_of: str = "",
    ) -> Operation:
        """Append a node whose output specs are known; the lowest level of building.

        Args:
            schema: The op's declaration.
            name: The node's name, unique in this graph already.
            inputs: Tensors of this graph, flat.
            arity: Number of inputs of each parameter.
            attrs: Canonical values of all attributes.
            specs: One spec per output.
            control_inputs: Operations of this graph to wait for.
            device: The device asked for.
            colocated_with: Operations of this graph whose device it shares.
            site: The user's line.
            origin: Why a rewrite made it.
            gradient_rule: The name of the rule that differentiates it, empty for its op's own.
            copy_of: The name of the tensor of the graph around of which it is a copy.

        Raises:
            GraphFinalizedError: if the graph is finalized.
            GraphError: if the name is taken, or an input is foreign.
        """
        inputs = members(inputs, "inputs")
        with self._lock:
            if self._finalized:
                raise GraphFinalizedError(
                    f"cannot add {schema.type} {name!r}: the graph was finalized; build the whole "
                    "graph before finalize()"
                )
            if name in self._by_name:
                raise GraphError(f"the graph has an operation {name!r} already")
            for tensor in inputs:
                if tensor.op.graph is not self:
                    raise GraphError(
                        f"{tensor!r} belongs to another graph than {schema.type} {name!r}; "
                        "build both inside one 'with graph' block"
                    )
            op = Operation(
                graph=self,
                schema=schema,
                name=name,
                inputs=tuple(inputs),
                arity=arity,
                control_inputs=FixedList(control_inputs) if control_inputs else NOTHING,
                attrs=attrs if type(attrs) is MappingProxyType else MappingProxyType(dict(attrs)),
                device_name=device if device is not None else DeviceName(),
                colocated_with=colocated_with,
                site=site,
                origin=origin,
                index=len(self._operations),
                gradient_rule=gradient_rule,
                copy_of=copy_of,
            )
            outputs = FixedList([Tensor(op, i, spec) for i, spec in enumerate(specs)])
            _set_outputs(op, outputs)
            self._operations.append(op)
            self._by_name[name] = op
            return op

    def _append(
        self,
        schema: OpSchema,
        name: str,
        inputs: tuple[Tensor, ...],
        arity: tuple[int, ...],
        control_inputs: tuple[Operation, ...],
        attrs: Mapping[str, Any],
        device: DeviceName,
        colocated_with: tuple[Operation, ...],
        site: Site,
        origin: str,
        specs: Sequence[TensorSpec],
        gradient_rule: str,
    ) -> Operation:
        """Append a node as ``Graph.add_operation`` does, in a fraction of the time.

        Rewrites make every node several times before its first step. Nothing is checked but the
        name: the graph is one that nobody else adds to, what the node takes and waits for is in
        it, and nobody changes ``attrs``.

        Raises:
            GraphError: if the name is taken.
        """
        if name in self._by_name:
            raise GraphError(f"the graph has an operation {name!r} already")
        op = self._by_name[name] = Operation(
            self,
            schema,
            name,
            inputs,
            arity,
            control_inputs,
            attrs if type(attrs) is MappingProxyType else MappingProxyType(dict(attrs)),
            device,
            colocated_with,
            site,
            origin,
            len(self._operations),
            (),
            gradient_rule,
        )
        if len(specs) == 1:
            outputs: tuple[Tensor, ...] = (Tensor(op, 0, specs[0]),)
        else:
            outputs = tuple([Tensor(op, i, spec) for i, spec in enumerate(specs)])
        _set_outputs(op, outputs)
        self._operations.append(op)
        return op

    def _discard(self) -> None:
        """Take the graph apart, so that its memory is free at once.

        Its operations and tensors refer to each other: the collector of cycles would have to find
        them among all that a large step is planned with. It is for graphs that a rewrite made and
        another one has replaced: nobody may use what was in it any more.
        """
        for op in self._operations:
            _set_outputs(op, ())
        self._by_name.clear()
        self._operations.clear()

    def add_variable(self, variable: Variable) -> None:
        """List a variable of this graph."""
        with self._lock:
            self._variables.append(variable)

    def function_name(self, name: str) -> tuple[str, int]:
        """Return a name for a function of this graph that no other has, and its ordinal."""
        with self._lock:
            unique, uses = name, 0
            while unique in self._function_names:
                uses += 1
                unique = f"{name}_{uses}"
            self._function_names.add(unique)
            return unique, len(self._function_names)

    # -- collections

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Append ``value`` to the collection ``name``, again where it is in there."""
        with self._lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Append ``value`` to the collections ``names``, or to that of a string, once to each."""
        for name in dict.fromkeys([names] if isinstance(names, str) else items(names, "names")):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Return what is in a collection, as a new list.

        Args:
            name: The collection; one that is not there is empty.
            scope: A regular expression at the beginning of names; what does not match, or has
                no name, is left out.
        """
        with self._lock:
            found = list(self._collections.get(name, ()))
        if not scope:
            return found
        try:
            pattern = re.compile(scope)
        except (re.error, RecursionError, OverflowError) as error:
            raise AttributeValueError(
                f"scope must be a regular expression, got {shown(scope)}: {error}"
            ) from None
        return [item for item in found if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """Return the collection ``name`` itself: changes of the list change it."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """Return the names of all collections that have one."""
        with self._lock:
            return [name for name in self._collections if isinstance(name, str)]

    @property
    def collections(self) -> list[str]:
        """The names of all collections."""
        return self.get_all_collection_keys()

    def clear_collection(self, name: Any) -> None:
        """Empty the collection ``name``."""
        with self._lock:
            self._collections.pop(name, None)

    # -- documents and pictures

    def to_document(self, *, sites: bool = False) -> str:
        """Return the graph as a versioned JSON document, equal for equal programs.

        Args:
            sites: Keep each operation's creation site, for error messages. It names files of this
                machine, so the document is no longer equal on all of them.

        Raises:
            DocumentError: if the graph holds something that documents do not.
        """
        return renderer().to_document(self, sites=sites)

    @staticmethod
    def from_document(text: str | bytes) -> Graph:
        """Read a graph from a document made by ``to_document``; nothing in it is executed.

        Raises:
            DocumentError: if it is damaged or of an unknown version.
        """
        return renderer().from_document(text)

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """Return the graph as a ``GraphDef``, TensorFlow's message, for tools that read it.

        Needs the package headrace-io.

        Args:
            from_version: Leaves out the operations that were there when ``version`` was this.
            add_shapes: Whether nodes have the shapes of their outputs, as the attribute
                ``_output_shapes``.

        Raises:
            PluginError: if headrace-io is not installed.
        """
        return renderer().as_graph_def(self, from_version, add_shapes)

    def to_text(self) -> str:
        """Return the graph as readable text, one line per operation."""
        return renderer().to_text(self)

    def to_svg(self, *, scope: str = "", max_boxes: int = 40) -> str:
        """Return the graph as an SVG drawing, its name scopes collapsed where it is large.

        Args:
            scope: Draw only what is in this name scope.
            max_boxes: How many boxes to draw at most.
        """
        return renderer().to_svg(self, scope=scope, max_boxes=max_boxes)

    def _repr_html_(self) -> str:
        return renderer().to_html(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __reduce__(self) -> NoReturn:
        raise GraphError(f"{shown(self)} cannot be pickled or copied; use its to_document()")

    def __repr__(self) -> str:
        return f"<Graph of {len(self._operations)} operations>"


def unfinalize(graph: Graph) -> None:
    """Let a graph that was finalized for a while take operations again.

    Args:
        graph: The graph.
    """
    graph._unsafe_unfinalize()  # noqa: SLF001 - the name that TensorFlow's programs use


# For rewrites, and nobody else.
append_operation = Graph._append  # noqa: SLF001
discard = Graph._discard  # noqa: SLF001
