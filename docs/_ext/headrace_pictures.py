"""A Sphinx extension: pictures as parts of the page, in the colours that the reader chose.

An ``<img>`` cannot follow the page's switch between light and dark; an SVG inside the page can.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import headrace_path
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from headrace.drawing.canvas import dark_rules

_STYLE = "headrace-pictures.css"
_RULES = re.compile(r"<style>.*?</style>\n?", re.DOTALL)


class Picture(SphinxDirective):
    """``{picture} NAME``: the SVG of that name, and its narrow form for narrow pages.

    It is looked for among the documentation's own files and among those that the build made; what
    stands inside is its caption.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"scroll": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the figure."""
        name = self.arguments[0]
        places = [Path(self.env.srcdir), made_folder(self.env.app)]
        found = next((p / f"{name}.svg" for p in places if (p / f"{name}.svg").exists()), None)
        if found is None:
            raise self.error(f"there is no picture {name}.svg in {places}")
        self.env.note_dependency(str(found))
        narrow = found.with_name(f"{found.stem}-narrow.svg")
        parts = [self._svg(found, "wide" if narrow.exists() else "every")]
        if narrow.exists():
            parts.append(self._svg(narrow, "narrow"))
        kind = "headrace-picture scroll" if "scroll" in self.options else "headrace-picture"
        opened = nodes.raw("", f'<figure class="{kind}">{"".join(parts)}', format="html")
        caption = nodes.container(classes=["headrace-caption"])
        if self.content:
            caption += self.parse_content_to_nodes()
        closed = nodes.raw("", "</figure>", format="html")
        return [opened, *([caption] if self.content else []), closed]

    def _svg(self, path: Path, width: str) -> str:
        # The rules for dark pages come with the style sheet, which knows the page's switch.
        text = _RULES.sub("", path.read_text(encoding="utf-8"))
        # What one drawing of a page defines another, which may be hidden, must not lend.
        text = text.replace("headrace-arrow", f"arrow-{self.env.new_serialno('picture')}")
        return f'<div class="for-{width}">{text}</div>'


def made_folder(app: Sphinx) -> Path:
    """Return the folder of pictures that the build makes."""
    return Path(app.srcdir) / "_generated"


def make_pictures(app: Sphinx) -> None:
    """Draw what is drawn anew for each build: the path of a step, and one real step."""
    folder = made_folder(app)
    folder.mkdir(exist_ok=True)
    (folder / "path.svg").write_text(headrace_path.wide(), encoding="utf-8")
    (folder / "path-narrow.svg").write_text(headrace_path.narrow(), encoding="utf-8")
    program = str(Path(__file__).with_name("headrace_step.py"))
    subprocess.run(
        [sys.executable, program, str(folder)],
        env={**os.environ, "HEADRACE_QUIET": "1"},
        check=True,
        timeout=300,
    )


def write_style(app: Sphinx) -> None:
    """Write the colours of drawings on dark pages: chosen by the reader, or by the system."""
    auto = dark_rules('body:not([data-theme="light"]) ')
    text = f"{dark_rules('body[data-theme=dark] ')}\n"
    text += f"@media (prefers-color-scheme: dark) {{\n{auto}\n}}\n"
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STYLE).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive, and what is made before the pages are read."""
    app.add_directive("picture", Picture)
    app.connect("builder-inited", make_pictures)
    app.connect("builder-inited", write_style)
    app.add_css_file(_STYLE)
    return {"version": "1", "parallel_read_safe": True}
