"""Runs the Python blocks of a page of the documentation, in order, in one namespace.

A block ``python`` is executed. A block ``text`` that directly follows one is what it prints, in
which ``...`` stands for anything. ``python tests/docs/markdown_blocks.py PAGE`` runs one by hand.
"""

from __future__ import annotations

import contextlib
import difflib
import doctest
import io
import linecache
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\S*)\s*$")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: What stands behind the fence.
        line: Number of the first line inside.
        end: Number of the closing fence's line.
        text: What is inside.
    """

    language: str
    line: int
    end: int
    text: str


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page; those inside of others belong to their text."""
    found = []
    opened: tuple[str, str, int] | None = None
    inside: list[str] = []
    for number, line in enumerate(page.splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None:
                opened = fence["ticks"], fence["language"], number + 1
                inside = []
        elif line.rstrip() == opened[0]:
            found.append(Block(opened[1], opened[2], number, "\n".join(inside) + "\n"))
            opened = None
        else:
            inside.append(line)
    return found


def expected_output(blocks: list[Block], index: int, lines: list[str]) -> str | None:
    """Return what the block ``index`` must print, None where the page does not say."""
    if index + 1 == len(blocks) or blocks[index + 1].language != "text":
        return None
    following = blocks[index + 1]
    between = lines[blocks[index].end : following.line - 2]
    return following.text if not any(line.strip() for line in between) else None


def run_page(path: Path) -> dict[str, Any]:
    """Run a page's blocks; return the names that they define.

    Raises:
        AssertionError: if a block prints something else than the page says.
        Exception: whatever a block raises.
    """
    page = path.read_text(encoding="utf-8")
    lines = page.splitlines()
    blocks = blocks_of(page)
    # Errors name the page's own lines, as they would those of a program.
    linecache.cache[path.name] = (len(page), None, page.splitlines(keepends=True), path.name)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    for index, block in enumerate(blocks):
        if block.language != "python":
            continue
        code = compile("\n" * (block.line - 1) + block.text, path.name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        expected = expected_output(blocks, index, lines)
        got = printed.getvalue()
        if expected is not None and not doctest.OutputChecker().check_output(expected, got, _FLAGS):
            difference = "\n".join(
                difflib.unified_diff(expected.splitlines(), got.splitlines(), "page", "printed")
            )
            raise AssertionError(f"{path.name}:{block.line} prints something else:\n{difference}")
    return namespace


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_page(Path(argument).resolve())
