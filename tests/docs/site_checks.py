"""Checks of the built documentation that need no browser: links, anchors, pictures, requests.

``python tests/docs/site_checks.py docs/_build/html`` prints what is wrong, and exits with 1 if
anything is. ``nox -s docs`` runs it after the build.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from headrace.drawing.canvas import text_width

_SVG = "{http://www.w3.org/2000/svg}"
# Attributes by which a page loads something without being asked.
_LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
_LOADING_RELATIONS = {"stylesheet", "preload", "icon", "shortcut icon"}
_DRAWING = re.compile(r'<svg [^>]*class="headrace-drawing".*?</svg>', re.DOTALL)


@dataclass
class Page:
    """What a page holds.

    Attributes:
        ids: What links can name in it.
        twice: Ids that stand there more than once.
        links: Where it links to, with the line.
        loads: What it loads, with the line.
    """

    ids: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    links: list[tuple[int, str]] = field(default_factory=list)
    loads: list[tuple[int, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    """Collects what a page holds."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, found = self.getpos()[0], {name: value or "" for name, value in attrs}
        for name in {found.get("id", ""), found.get("name", "") if tag == "a" else ""} - {""}:
            if name in self.page.ids:
                self.page.twice.add(name)
            self.page.ids.add(name)
        if tag == "a" and "href" in found:
            self.page.links.append((line, found["href"]))
        if tag == "link" and found.get("rel") in _LOADING_RELATIONS:
            self.page.loads.append((line, found.get("href", "")))
        for name in found:
            if (tag, name) in _LOADED:
                self.page.loads.append((line, found[name]))


def read_page(text: str) -> Page:
    """Return what a page holds."""
    reader = _Reader()
    reader.feed(text)
    return reader.page


def problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the pages in a folder, one line each."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))}
    pages = {path.resolve(): read_page(text) for path, text in texts.items()}
    if not pages:
        yield f"{folder}: there is no page"
    for path, text in texts.items():
        page, name = pages[path.resolve()], path.relative_to(folder)
        for twice in sorted(page.twice):
            yield f"{name}: the id {twice!r} stands there more than once"
        for line, target in page.links:
            reason = broken(target, path.resolve(), pages)
            if reason:
                yield f"{name}:{line}: {target}: {reason}"
        for line, target in page.loads:
            parts = urlsplit(target)
            if parts.netloc:
                yield f"{name}:{line}: loads {target} from another host"
            elif not parts.scheme and not (path.parent / unquote(parts.path)).exists():
                yield f"{name}:{line}: loads {target}, which is not there"
        for number, drawing in enumerate(_DRAWING.findall(text), start=1):
            for problem in drawing_problems(drawing):
                yield f"{name}: drawing {number}: {problem}"


def broken(target: str, path: Path, pages: dict[Path, Page]) -> str:
    """Say why a link leads nowhere, "" if it leads somewhere or off the site."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if place not in pages:
        return "" if place.is_file() else "there is no such file"
    anchor = unquote(parts.fragment)
    if anchor and anchor not in pages[place].ids:
        return "there is no such anchor"
    return ""


def drawing_problems(svg: str) -> Iterator[str]:
    """Yield what is wrong with a drawing: that it is no XML, or that texts leave it."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        yield f"is no XML: {error}"
        return
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for element in root.iter(f"{_SVG}text"):
        text = element.text or ""
        wide = text_width(text, float(element.attrib["font-size"]))
        x, base = float(element.attrib["x"]), float(element.attrib["y"])
        anchor = element.attrib.get("text-anchor", "start")
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
        if left < -1 or left + wide > width + 1 or not 5 <= base <= height:
            yield f"the text {text!r} leaves it"


def main(folders: list[str]) -> int:
    """Print the problems; return the exit code."""
    found = [problem for folder in folders for problem in problems(Path(folder))]
    for problem in found:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(
        f"{len(found)} problems\n" if found else "links, anchors, pictures: all well\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
