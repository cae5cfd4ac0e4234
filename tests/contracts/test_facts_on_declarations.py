"""Facts about ops stand on their declarations: no module keeps a table of type names of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.extend import OPS
from headrace.plugins.host import host

PACKAGES = Path(__file__).parents[2] / "packages"
# A pair of names is a distinction that one place makes; more are a table.
MOST = 2
# Where tables say how an op is computed, differentiated or tried, not what holds of it.
IMPLEMENTATIONS = (
    "core/src/headrace/ops/",
    "testing/src/",
    "backend-cpu/src/headrace_cpu/kernels/",
    "backend-cpu/src/headrace_cpu/fusion/functions/",
    "backend-cpu/src/headrace_cpu/fusion/constants.py",  # lists what is in functions/
    "backend-cpu/src/headrace_cpu/winograd/",
)
MODULES = sorted(
    path
    for path in PACKAGES.glob("*/src/**/*.py")
    if not str(path.relative_to(PACKAGES)).startswith(IMPLEMENTATIONS)
)


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the strings in a display, also those of displays that are unpacked in it."""
    for item in getattr(node, "elts", ()):
        if isinstance(item, ast.Starred):
            yield from texts(item.value)
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value


def is_plain(value: ast.expr) -> bool:
    """Whether an expression is nothing but numbers, strings and the like."""
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def tables(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines and strings of sets, of tests for membership, and of tables of values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set):
            yield node.lineno, list(texts(node))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset"):
            yield node.lineno, [text for argument in node.args for text in texts(argument)]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield node.lineno, [text for right in node.comparators for text in texts(right)]
        elif isinstance(node, ast.Dict) and all(map(is_plain, node.values)):
            keys = [key for key in node.keys if isinstance(key, ast.Constant)]
            yield node.lineno, [key.value for key in keys if isinstance(key.value, str)]


def found(source: str, types: set[str]) -> list[str]:
    """Return the tables of op types in a module."""
    lines = []
    for line, names in tables(ast.parse(source)):
        named = [name for name in names if name in types]
        if len(named) > MOST:
            lines.append(f"line {line}: {', '.join(named)}")
    return lines


@pytest.fixture(scope="module")
def types() -> set[str]:
    host().declare_ops()
    return {schema.type for schema in OPS}


def test_no_module_keeps_a_table_of_op_types(types):
    wrong = {
        str(path.relative_to(PACKAGES)): lines
        for path in MODULES
        if (lines := found(path.read_text(), types))
    }
    assert not wrong, f"state these facts with @op, see headrace.graph.facts: {wrong}"


@pytest.mark.parametrize(
    "source",
    [
        'X = {"Exp", "Log", "Sin"}',
        'X = frozenset(("Exp", "Log", "Sin"))',
        'X = frozenset((*("Exp", "Log"), *("Sin", "Cos")))',
        'def f(op): return op.type in ("Exp", "Log", "Sin")',
        'X = {"Exp": (0,), "Log": (1,), "Sin": (0, 1)}',
    ],
)
def test_tables_are_found(source, types):
    assert len(found(source, types)) >= 1


@pytest.mark.parametrize(
    "source",
    [
        'def f(op): return op.type in ("Exp", "Log")',
        'X = {"Exp": exp, "Log": log, "Sin": sin}',
        'X = {"exp", "log", "sin"}',
    ],
)
def test_what_is_no_table_of_facts_is_not(source, types):
    assert not found(source, types)
