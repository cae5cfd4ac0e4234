"""A Sphinx extension: directives for the tables that are made of the packages themselves."""

from __future__ import annotations

import inspect
from typing import Any

import headrace_tables as tables
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    """``{headrace} environment``, ``hooks``, ``functions <module>``, ``ops``, ``ops <family>``."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of a table."""
        what, *names = self.arguments
        if what == "environment":
            text = tables.environment()
        elif what == "hooks":
            text = tables.hook_reference()
        elif what == "functions":
            text = tables.functions(names[0])
        elif what == "ops":
            text = tables.family(names[0]) if names else tables.overview()
        else:
            raise self.error(f"there is no table {what!r}")
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def state_result(app: Sphinx, function: Any, bound_method: bool) -> None:
    """Let the function of an op say what it returns; its rule says that of specs."""
    del app, bound_method
    schema = getattr(function, "schema", None)
    if schema is None:
        return
    stated = inspect.unwrap(schema.infer).__annotations__.get("return")
    if isinstance(stated, str):
        result = "Operation" if stated == "None" else stated.replace("Spec", "Tensor")
        function.__annotations__ = {"return": result}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive and the listener."""
    app.add_directive("headrace", Generated)
    app.connect("autodoc-before-process-signature", state_result)
    return {"version": "1", "parallel_read_safe": True}
