"""Imports point one way: core <- plugins; train -> autodiff, io; data, serve -> io; cuda -> cpu."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# Package folder -> (its import name, what it may import of its siblings).
PACKAGES = {
    "core": ("headrace", ()),
    "autodiff": ("headrace_autodiff", ("headrace",)),
    "backend-cpu": ("headrace_cpu", ("headrace",)),
    "backend-cuda": (
        "headrace_cuda",
        ("headrace", "headrace_cpu.kernels", "headrace_cpu.for_backends"),
    ),
    "data": ("headrace_data", ("headrace", "headrace_io")),
    "dist-mpi": ("headrace_mpi", ("headrace",)),
    "io": ("headrace_io", ("headrace",)),
    "serve": ("headrace_serve", ("headrace", "headrace_io")),
    "tensorflow": ("headrace_tensorflow", ("headrace",)),
    "testing": ("headrace_testing", ("headrace",)),
    "train": ("headrace_train", ("headrace", "headrace_autodiff", "headrace_io")),
}
# Distributions whose module has another name.
MODULES = {
    "absl_py": "absl",
    "cuda_pathfinder": "cuda.pathfinder",
    "cupy_cuda13x": "cupy",
    "google_re2": "re2",
    "nvidia_cudnn_frontend": "cudnn",
    "pillow": "PIL",
    "protobuf": "google.protobuf",
}


class Import(NamedTuple):
    """A module named by an import statement, and where."""

    module: str
    place: str


def imports_in(source: str, place: str, package: str = "") -> Iterator[Import]:
    """Modules that a source imports, at any depth; relative ones are resolved in ``package``."""
    for node in ast.walk(ast.parse(source)):
        where = f"{place}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (Import(f"{base}.{alias.name}", where) for alias in node.names)


def imports_of(folder: str) -> Iterator[Import]:
    """Every module that a workspace package imports."""
    source = ROOT / "packages" / folder / "src"
    for path in sorted(source.rglob("*.py")):
        package = ".".join(path.relative_to(source).parts[:-1])
        yield from imports_in(path.read_text(), str(path.relative_to(ROOT)), package)


def lies_in(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def declared_modules(folder: str) -> tuple[str, ...]:
    """Top-level modules of the requirements that a package declares, extras included."""
    project = tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {}).values()
    requirements = [*project["dependencies"], *(line for lines in extras for line in lines)]
    names = [line.split("[")[0].split(">")[0].split("~")[0].strip() for line in requirements]
    return tuple(MODULES.get(n, n) for n in (name.replace("-", "_") for name in names))


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_package_imports_only_the_siblings_below_it(folder: str) -> None:
    own, allowed = PACKAGES[folder]
    wrong = [
        f"{found.place} imports {found.module}"
        for found in imports_of(folder)
        if found.module.split(".")[0].startswith("headrace")
        and not lies_in(found.module, (own, *allowed))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_package_imports_only_what_it_declares(folder: str) -> None:
    declared = (*sys.stdlib_module_names, *declared_modules(folder))
    wrong = [
        f"{found.place} imports {found.module}"
        for found in imports_of(folder)
        if not found.module.split(".")[0].startswith("headrace")
        and not lies_in(found.module, declared)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("def f():\n    from a import b", ["a.b"]),
        ("from . import b", ["pkg.sub.b"]),
        ("from .m import b", ["pkg.sub.m.b"]),
        ("from ..m import b", ["pkg.m.b"]),
        ("if TYPE_CHECKING:\n    from a.b import c", ["a.b.c"]),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, expected: list[str]) -> None:
    found = [item.module for item in imports_in(source, "m.py", "pkg.sub")]
    assert found == expected
