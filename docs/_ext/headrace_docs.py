"""A Sphinx extension: directives for the tables that are made of the packages themselves."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import headrace_tables as tables
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "mistakes"))

import mistake_files


class Generated(SphinxDirective):
    """``{headrace} <what>``: a part of the reference that is made from the code.

    That is ``environment``, ``device-options``, ``hooks``, ``scalars``, ``functions <module>``,
    ``ops``, ``ops <family>``, or ``mistakes``, the catalogue in ``tests/mistakes``.
    """

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of a table."""
        what, *names = self.arguments
        if what == "environment":
            text = tables.environment()
        elif what == "device-options":
            text = tables.device_options()
        elif what == "hooks":
            text = tables.hook_reference()
        elif what == "scalars":
            text = tables.scalar_functions()
        elif what == "functions":
            text = tables.functions(names[0])
        elif what == "ops":
            text = tables.family(names[0]) if names else tables.overview()
        elif what == "mistakes":
            text = mistake_files.page()
            for mistake in mistake_files.mistakes():
                self.env.note_dependency(str(mistake.path))
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


_BACK = re.compile(r'<a class="viewcode-back" href="([^"#]*)#([^"]*)">.*?</a>')


def drop_lost_links(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Take those links from sources to the documentation away that would lead nowhere.

    viewcode looks for all objects of a module under one name, that of the page which came first;
    ours are documented under the names that users call.
    """
    del templatename, doctree
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    found = app.env.domains.python_domain.objects

    def checked(link: re.Match[str]) -> str:
        documented = found.get(link[2])
        page = documented and f"/{documented.docname}.html"
        return link[0] if page and link[1].endswith(page) else ""

    context["body"] = _BACK.sub(checked, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive and the listener."""
    app.add_directive("headrace", Generated)
    app.connect("autodoc-before-process-signature", state_result)
    app.connect("html-page-context", drop_lost_links)
    return {"version": "1", "parallel_read_safe": True}
