"""Messages show values of the program through ``headrace.errors.shown``, which never raises.

``repr`` runs code of the value's class. It may raise, recurse, or fill pages, and then the message
about a mistake would be lost to another one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"
SOURCES = sorted(
    path
    for path in PACKAGES.glob("*/src/**/*.py")
    # The kit shows what its own samples and authors of plugins made.
    if "headrace_testing" not in path.parts and "plugin_template" not in path.parts
)
_GIVEN = re.compile(r"\bgot (an? )?$")


def unsafe(source: str) -> Iterator[int]:
    """Yield the lines at which a message shows a value of the program by ``!r``."""
    raised = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]
    for text in (node for part in raised for node in ast.walk(part)):
        if not isinstance(text, ast.JoinedStr):
            continue
        before = ""
        for value in text.values:
            if isinstance(value, ast.Constant):
                before = str(value.value)
                continue
            if isinstance(value, ast.FormattedValue) and value.conversion == ord("r"):
                # Whoever cuts it does not know what it is; attributes are the library's own.
                cut = value.format_spec is not None
                given = _GIVEN.search(before) and not isinstance(value.value, ast.Attribute)
                if cut or given:
                    yield value.lineno
            before = ""


def test_messages_show_values_of_the_program_safely() -> None:
    assert len(SOURCES) > 400
    found = [
        f"{path.relative_to(PACKAGES)}:{line}"
        for path in SOURCES
        for line in unsafe(path.read_text(encoding="utf-8"))
    ]
    assert not found, "use headrace.errors.shown(value) instead of {value!r}: " + ", ".join(found)


@pytest.mark.parametrize(
    ("line", "is_unsafe"),
    [
        ('raise E(f"must be 1, got {x!r}")', True),
        ('raise E(f"must be 1, got a {x[0]!r}")', True),
        ('raise E(f"{x!r:.80} is no number")', True),
        ('raise E(f"must be 1, got {shown(x)}")', False),
        ('raise E(f"the op {op.name!r} is gone")', False),
        ('raise E(f"must be 1, got {op.name!r}")', False),
        ('y = f"must be 1, got {x!r}"', False),
    ],
)
def test_what_is_unsafe(line: str, is_unsafe: bool) -> None:
    assert bool(list(unsafe(line))) is is_unsafe
