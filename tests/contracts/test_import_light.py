"""Importing Headrace, or any plugin's entry point, loads nothing heavy and touches no device."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from tests.children import run_program

ROOT = Path(__file__).parents[2]
HEAVY = [
    *("cupy", "mpi4py", "llvmlite", "h5py", "google.protobuf", "google_crc32c", "PIL"),
    *("uvicorn", "httptools"),
]
# Imported when a program names them.
FAMILIES = [
    "compat",
    "config",
    "logging",
    "manip",
    "nest",
    "bitwise",
    "debugging",
    "distributions",
    "image",
    "initializers",
    "linalg",
    "lookup",
    "losses",
    "math",
    "nn",
    "ragged",
    "random",
    "rnn_cell",
    "saved_model",
    "sets",
    "signal",
    "sparse",
    "spectral",
    "strings",
]
# Imported by the functions that need it: environment variables, documents, explanations, traces.
LATER = [
    *("base64", "importlib.metadata", "json", "pathlib", "pluggy", "pprint", "unicodedata"),
    *("headrace.placement.reasons", "headrace.runtime.profiling.trace", "headrace.session.explain"),
    *(f"headrace.{name}" for name in FAMILIES),
]


def plugin_modules() -> dict[str, Path]:
    """Modules named in the entry-point group ``headrace`` of the packages, with their files."""
    modules = {}
    for project in sorted(ROOT.glob("packages/*/pyproject.toml")):
        groups = tomllib.loads(project.read_text())["project"].get("entry-points", {})
        for module in groups.get("headrace", {}).values():
            modules[module] = project.parent / "src" / Path(*module.split(".")).with_suffix(".py")
    return modules


def printed_by(program: str) -> str:
    return run_program(program, flags=("-W", "error")).stdout


def test_importing_headrace_loads_nothing_heavy() -> None:
    program = f"import sys, headrace; print([name for name in {HEAVY} if name in sys.modules])"
    assert printed_by(program).strip() == "[]"


def test_importing_headrace_loads_no_plugin() -> None:
    program = "import sys, headrace; print([n for n in sys.modules if n.startswith('headrace_')])"
    assert printed_by(program).strip() == "[]"


def test_importing_headrace_loads_only_what_most_programs_need() -> None:
    program = (
        "import sys, numpy; before = set(sys.modules);"
        f"import headrace; print([n for n in {LATER} if n in sys.modules and n not in before])"
    )
    assert printed_by(program).strip() == "[]"


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_there_once_it_is_named(name: str) -> None:
    program = (
        f"import sys, headrace; assert 'headrace.{name}' not in sys.modules;"
        f"assert {name!r} in dir(headrace);"
        f"assert headrace.{name} is sys.modules['headrace.{name}'];"
        f"assert headrace.{name} is vars(headrace)[{name!r}];"
        f"from headrace import {name}; import headrace.{name}"
    )
    printed_by(program)


def test_every_public_name_is_imported_by_a_star() -> None:
    program = (
        "import headrace; found = {}; exec('from headrace import *', found);"
        "print(set(headrace.__all__) - {*found})"
    )
    assert printed_by(program).strip() == "set()"


def test_annotations_of_the_session_can_be_evaluated() -> None:
    program = (
        "import headrace, typing;"
        "print(typing.get_type_hints(headrace.Session.explain)['return'].__name__,"
        "typing.get_type_hints(headrace.Session.profile)['return'].__name__,"
        "*typing.get_type_hints(headrace.Config))"
    )
    assert printed_by(program).startswith("Explanation Profile optimize ")


def test_every_package_but_core_has_a_plugin() -> None:
    assert len(plugin_modules()) == len(list(ROOT.glob("packages/*/pyproject.toml"))) - 1


@pytest.mark.parametrize("module", plugin_modules())
def test_a_plugin_imports_with_the_heavy_libraries_missing(module: str) -> None:
    # None in sys.modules makes an import fail as it does when the library is not installed.
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({HEAVY}));"
        f"import importlib; importlib.import_module({module!r})"
    )
    printed_by(program)


@pytest.mark.parametrize(("module", "path"), plugin_modules().items(), ids=list(plugin_modules()))
def test_a_plugin_imports_the_standard_library_and_extend_only(module: str, path: Path) -> None:
    wrong = []
    # What a package reads from the environment is declared in a module that imports as little.
    allowed = ("headrace.extend", f"{module.partition('.')[0]}.settings")
    for node in ast.parse(path.read_text(), filename=str(path)).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "." * node.level]
            if node.module == "headrace":
                names = [f"headrace.{alias.name}" for alias in node.names]
        wrong += [
            f"{module}:{node.lineno} imports {name}"
            for name in names
            if name not in allowed and name.split(".")[0] not in sys.stdlib_module_names
        ]
    assert not wrong, f"import these where they are used: {wrong}"
