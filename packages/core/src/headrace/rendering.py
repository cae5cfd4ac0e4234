"""How graphs are written and drawn: what ``Graph.to_document`` and its like call.

The modules are imported when a program first asks for a document or a drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from headrace.errors import PluginError

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation
    from headrace.shapes import Shape


@final
class Rendering:
    """The ``Renderer`` of this package."""

    def to_document(self, graph: Graph, *, sites: bool) -> str:
        """Return a graph as a JSON document."""
        # lazy: few programs write documents
        from headrace.documents.document import dump

        return dump(graph, sites=sites)

    def from_document(self, text: str | bytes) -> Graph:
        """Read a graph from a document."""
        # lazy: few programs read documents
        from headrace.documents.document import load

        return load(text)

    def to_text(self, graph: Graph) -> str:
        """Return a graph as text, one line per operation."""
        # lazy: graphs are shown while people look, not while they run
        from headrace.drawing.text import to_text

        return to_text(graph)

    def to_svg(self, graph: Graph, *, scope: str, max_boxes: int) -> str:
        """Return a graph as an SVG drawing."""
        # lazy: the layout of drawings is two modules that no step needs
        from headrace.drawing.graph import to_svg

        return to_svg(graph, scope=scope, max_boxes=max_boxes)

    def to_html(self, graph: Graph) -> str:
        """Return a graph as a part of a page, for notebooks."""
        # lazy: the layout of drawings is two modules that no step needs
        from headrace.drawing.graph import to_html

        return to_html(graph)

    def as_graph_def(self, graph: Graph, from_version: int | None, add_shapes: bool) -> Any:
        """Return a graph as a ``GraphDef``."""
        return _of_io("graph_def_of")(graph, shapes=add_shapes, from_version=from_version)

    def node_def(self, op: Operation) -> Any:
        """Return an operation as a ``NodeDef``."""
        return _of_io("node_def_of")(op)

    def attribute(self, op: Operation, name: str) -> Any:
        """Return an attribute of an operation that TensorFlow's op has by a name."""
        return _of_io("attribute_of")(op, name)

    def op_def(self, op: Operation) -> Any:
        """Return what is declared of an operation's op as an ``OpDef``."""
        return _of_io("op_def_of")(op)

    def shape_proto(self, shape: Shape) -> Any:
        """Return a shape as a ``TensorShapeProto``."""
        return _of_io("shape_proto")(shape)

    def variable_def(self, variable: Any, export_scope: str | None) -> Any:
        """Return a variable as a ``VariableDef``."""
        return _of_io("variable_def_of")(variable, export_scope)

    def variable_of(self, variable_def: Any, import_scope: str | None) -> Any:
        """Return the variable that a ``VariableDef`` describes."""
        return _of_io("variable_of")(variable_def, import_scope)


def _of_io(name: str) -> Any:
    """Return a function of the package that has protobuf's messages."""
    # lazy: plugins are looked for when a program first needs one
    from headrace.plugins.host import host

    try:
        return getattr(host().resolve_name("io"), name)
    except AttributeError as error:
        raise PluginError(
            "graphs as messages of Protocol Buffers need the package headrace-io: pip install "
            "headrace-io; graph.to_document() needs none"
        ) from error
