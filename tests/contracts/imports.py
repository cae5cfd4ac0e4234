"""Which modules of the workspace import which, read from their sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Import:
    """An import of one module of the workspace by another.

    Attributes:
        module: The module that imports.
        target: The module that is imported.
        line: Where the import stands.
        deferred: Whether it stands inside a function.
        remark: Of one that is deferred, the comment on its line, or above it and its neighbours.
    """

    module: str
    target: str
    line: int
    deferred: bool
    remark: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules of all packages, by the modules' names."""
    found = {}
    for source in sorted(ROOT.glob("packages/*/src")):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def workspace_imports() -> tuple[Import, ...]:
    """Return all imports of modules of the workspace by others; those for type checkers are not."""
    return tuple(
        found
        for name, path in modules().items()
        for found in imports_in(name, path.read_text(), modules(), path.name == "__init__.py")
    )


def imports_in(
    module: str, source: str, known: Mapping[str, object], is_package: bool = False
) -> Iterator[Import]:
    """Yield the imports in a source; ``from a import b`` is one of ``a.b`` where that is a module.

    Args:
        module: The name of the module.
        source: Its text.
        known: The modules of which imports are wanted.
        is_package: Whether the module is the ``__init__`` of a package.
    """
    lines = source.splitlines()
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node, deferred in _statements(ast.parse(source), False):
        remark = _remark(node, lines) if deferred else ""
        for target in dict.fromkeys(_targets(node, package, known)):
            if target in known and target != module:
                yield Import(module, target, node.lineno, deferred, remark)


def _statements(node: ast.AST, deferred: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the import statements below a node that run, and whether a function holds them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, deferred
        elif isinstance(child, ast.If) and _is_for_type_checkers(child.test):
            for other in child.orelse:
                yield from _statements(ast.Module([other], []), deferred)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(child, deferred or inside)


def _is_for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _targets(node: ast.stmt, package: list[str], known: Mapping[str, object]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*parents, *([node.module] if node.module else [])])
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in known else base


def _remark(node: ast.stmt, lines: list[str]) -> str:
    _, sign, remark = lines[node.lineno - 1].partition("#")
    if sign:
        return remark.strip()
    above: list[str] = []
    line = node.lineno - 2
    # Several imports may share a remark.
    while lines[line].lstrip().startswith(("from ", "import ")):
        line -= 1
    while lines[line].lstrip().startswith("#"):
        above.append(lines[line].lstrip().removeprefix("#").strip())
        line -= 1
    return " ".join(reversed(above))


def cycles(edges: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the sets of nodes of a graph that reach each other, each sorted.

    References:
        R. Tarjan, Depth-first search and linear graph algorithms, 1972.
    """
    found: list[list[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in sorted(edges):
        if root in order:
            continue
        path = [(root, iter(sorted(edges[root])))]
        order[root] = low[root] = len(order)
        open_nodes.append(root)
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    open_nodes.append(target)
                    path.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in open_nodes:
                    low[node] = min(low[node], order[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    start = open_nodes.index(node)
                    group = open_nodes[start:]
                    del open_nodes[start:]
                    if len(group) > 1 or node in edges[node]:
                        found.append(sorted(group))
    return found


def loaded_with(module: str) -> set[str]:
    """Return the modules of the workspace that are imported when one is, itself among them."""
    eager: dict[str, set[str]] = {}
    for item in workspace_imports():
        if not item.deferred:
            eager.setdefault(item.module, set()).add(item.target)
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name not in modules():
            continue
        found.add(name)
        waiting += eager.get(name, ())
        # The packages around a module run before it.
        waiting += [name.rpartition(".")[0]] if "." in name else []
    return found
