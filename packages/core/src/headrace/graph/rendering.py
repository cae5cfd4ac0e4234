"""The seam through which graphs are written as documents and drawn.

What writes and draws them stands above the ops, which stand above graphs: documents hold
variables, and drawings know ops by what they do. The package hands a ``Renderer`` in here when it
is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation
    from headrace.shapes import Shape


class Renderer(Protocol):
    """What the methods of ``Graph`` of the same names call; arguments and results are theirs."""

    def to_document(self, graph: Graph, *, sites: bool) -> str:
        """Return a graph as a JSON document."""

    def from_document(self, text: str | bytes) -> Graph:
        """Read a graph from a document."""

    def to_text(self, graph: Graph) -> str:
        """Return a graph as text, one line per operation."""

    def to_svg(self, graph: Graph, *, scope: str, max_boxes: int) -> str:
        """Return a graph as an SVG drawing."""

    def to_html(self, graph: Graph) -> str:
        """Return a graph as a part of a page, for notebooks."""

    def as_graph_def(self, graph: Graph, from_version: int | None, add_shapes: bool) -> Any:
        """Return a graph as a ``GraphDef``."""

    def node_def(self, op: Operation) -> Any:
        """Return an operation as a ``NodeDef``."""

    def attribute(self, op: Operation, name: str) -> Any:
        """Return an attribute of an operation that TensorFlow's op has by a name."""

    def op_def(self, op: Operation) -> Any:
        """Return what is declared of an operation's op as an ``OpDef``."""

    def shape_proto(self, shape: Shape) -> Any:
        """Return a shape as a ``TensorShapeProto``."""

    def variable_def(self, variable: Any, export_scope: str | None) -> Any:
        """Return a variable as a ``VariableDef``, None where it is not in the scope."""

    def variable_of(self, variable_def: Any, import_scope: str | None) -> Any:
        """Return the variable of the default graph that a ``VariableDef`` describes."""


_RENDERER: list[Renderer] = []


def set_renderer(renderer: Renderer) -> None:
    """Say what writes and draws graphs from now on."""
    _RENDERER[:] = [renderer]


def renderer() -> Renderer:
    """Return what writes and draws graphs."""
    return _RENDERER[0]
