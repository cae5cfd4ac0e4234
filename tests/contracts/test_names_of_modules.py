"""A module whose package gives another thing under its name does not replace that thing.

Importing ``package.name`` sets ``name`` in the package to the module. Where the package gives a
function of that name when it is asked for, programs would find the module in its place from then
on.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"


def shadowed() -> Iterator[tuple[str, str, str]]:
    """Yield packages with a name that both they and a module of theirs have, and its origin."""
    for source in sorted(PACKAGES.glob("*/src/**/__init__.py")):
        inside = source.parent.parts
        package = ".".join(inside[inside.index("src") + 1 :])
        modules = {path.stem for path in source.parent.glob("*.py")}
        modules |= {path.parent.name for path in source.parent.glob("*/__init__.py")}
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                if importlib.util.find_spec(node.module) is None:
                    continue  # it is for type checkers only
                for alias in node.names:
                    name = alias.asname or alias.name
                    if name in modules and node.module != package:
                        yield package, name, f"{node.module}:{alias.name}"


@pytest.mark.parametrize(
    ("package", "name", "origin"), [pytest.param(*row, id=".".join(row[:2])) for row in shadowed()]
)
def test_a_module_does_not_replace_what_its_package_gives(
    package: str, name: str, origin: str
) -> None:
    module, _, attribute = origin.partition(":")
    expected = getattr(importlib.import_module(module), attribute)
    importlib.import_module(f"{package}.{name}")
    assert getattr(importlib.import_module(package), name) is expected, (
        f"{package}/{name}.py has the name of what {package} gives: give the module another one"
    )


def test_there_are_such_names() -> None:
    assert ("headrace_train.layers", "dense", "headrace_train.layers.dense:dense") in {*shadowed()}
