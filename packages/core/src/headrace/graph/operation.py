"""Operations: the nodes of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn, final

from headrace.device_name import DeviceName
from headrace.errors import GraphError, NoSuchElementError, PluginError, listing, shown
from headrace.graph.attributes import FunctionValue
from headrace.graph.creation_site import Site
from headrace.graph.default_session import default_session
from headrace.graph.fixed_list import FixedList
from headrace.graph.rendering import renderer
from headrace.graph.schema import OpSchema
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.tensor import Tensor


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Operation:
    """A node: what to compute from which tensors, after which other nodes, and where.

    Attributes:
        graph: The graph that owns the node.
        schema: The declaration of its op.
        name: Unique within the graph.
        inputs: Tensors that it takes, flat.
        arity: How many of ``inputs`` belong to each parameter of the schema.
        control_inputs: Operations that must have finished before it starts; they equal a list.
        attrs: Values of the op's attributes.
        device_name: The device asked for, possibly partial.
        colocated_with: Operations with which it must share a device.
        site: The line of the user's program that made it.
        origin: Why a rewrite made it, empty for nodes made by the program.
        outputs: Tensors that it yields; they equal a list.
        gradient_rule: The name of the rule that differentiates it in place of its op's own rule;
            empty for the op's own.
        copy_of: Of a constant in a function, the name of the tensor outside of which it is a copy.
        type: The op's name, as in ``"MatMul"``.
    """

    graph: Graph
    schema: OpSchema
    name: str
    inputs: tuple[Tensor, ...]
    arity: tuple[int, ...]
    control_inputs: tuple[Operation, ...]
    attrs: Mapping[str, Any]
    device_name: DeviceName
    colocated_with: tuple[Operation, ...]
    site: Site
    origin: str
    index: int
    outputs: tuple[Tensor, ...] = ()
    gradient_rule: str = ""
    copy_of: str = ""
    # Asked of every operation by every pass.
    type: str = field(init=False)

    def __post_init__(self) -> None:
        _set_type(self, self.schema.type)

    @property
    def device(self) -> str:
        """The device of what it was put beside, or that it asks for; empty where there is none."""
        if not self.colocated_with:
            return str(self.device_name)
        _, *others = _beside(self)
        return next((found for op in (*others, self) if (found := str(op.device_name))), "")

    @property
    def stateful(self) -> bool:
        """Whether it reads or changes state, or a function that it holds does."""
        schema = self.schema
        return schema.stateful or (schema.holds and self.holds_state)

    @property
    def holds_state(self) -> bool:
        """Whether a function that it holds reads or changes state."""
        if not self.schema.holds:
            return False
        for value in self.attrs.values():
            if isinstance(value, FunctionValue) and value.stateful:
                return True
        return False

    @property
    def grouped_inputs(self) -> list[Any]:
        """The inputs as one entry per parameter: a tensor, a list where variadic, or None."""
        return self.schema.group(self.inputs, self.arity)

    @property
    def node_def(self) -> Any:
        """The operation as a ``NodeDef``, TensorFlow's message; needs the package headrace-io."""
        return renderer().node_def(self)

    @property
    def op_def(self) -> Any:
        """What its op declares as an ``OpDef``, TensorFlow's message; needs headrace-io."""
        return renderer().op_def(self)

    def values(self) -> tuple[Tensor, ...]:
        """Return the outputs as a tuple."""
        return tuple(self.outputs)

    def colocation_groups(self) -> list[bytes]:
        """Return with what it shares a device, as ``b"loc:@name"``: itself, if with nothing."""
        names = {op.name for op in _beside(self) if not op.colocated_with}
        return [f"loc:@{name}".encode() for name in sorted(names)]

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """The line that made it, as Python's tracebacks have lines."""
        return [(self.site.filename, self.site.line, "<module>", self.site.source)]

    def get_attr(self, name: str) -> Any:
        """Return the value of an attribute.

        Args:
            name: What Headrace calls it, as ``attrs`` does, or what TensorFlow does, such as
                ``"T"``; the latter needs the package headrace-io.

        Raises:
            NoSuchElementError: if the operation has no such attribute.
        """
        try:
            return self.attrs[name]
        except KeyError:
            pass
        if isinstance(name, str):
            with contextlib.suppress(NoSuchElementError, PluginError):
                return renderer().attribute(self, name)
        raise NoSuchElementError(
            f"{self.type} has no attribute {shown(name)}, but {listing(self.attrs) or 'none'}"
        )

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run this operation in ``session``, or in the default session."""
        (session if session is not None else default_session()).run(self, feed_dict)

    def __reduce__(self) -> NoReturn:
        raise GraphError(
            f"{shown(self)} cannot be pickled or copied: it is part of a graph; use its name and "
            "graph.to_document()"
        )

    def __repr__(self) -> str:
        return f"<Operation {self.name!r} type={self.type}>"


_set_type = Operation.__dict__["type"].__set__


def add_waits(op: Operation, others: Iterable[Operation]) -> None:
    """Let an operation wait for older ones, while what it belongs to is still being built.

    Args:
        op: An operation of which no step has been made yet.
        others: Operations of its graph; those that it waits for anyway are passed over.
    """
    known = {op, *op.control_inputs, *(t.op for t in op.inputs)}
    added = [o for o in dict.fromkeys(others) if o not in known and o.index < op.index]
    object.__setattr__(op, "control_inputs", FixedList((*op.control_inputs, *added)))


def _beside(op: Operation) -> list[Operation]:
    """Return an operation and all with which it shares a device, in turn, itself first."""
    found = {op: None}
    waiting = [op]
    while waiting:
        fresh = [other for other in waiting.pop().colocated_with if other not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return list(found)
