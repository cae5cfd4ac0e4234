"""No import cycles; imports inside functions have a reason; the engine knows few ops.

Imports inside functions count: a cycle that is hidden in a function is one. What only type
checkers see does not. Running a module also runs the ``__init__`` of the packages around it, which
is Python's doing and counts as no edge.

One of our own modules is imported inside a function only so that programs start sooner, or run
without what they do not use. Such an import says why, in a comment ``# lazy: the reason`` on its
line or above, and what it puts off is not imported at once by another way.
"""

from __future__ import annotations

import pytest

from .imports import cycles, imports_in, loaded_with, modules, workspace_imports

# Declarations that the folders below may know of; whatever else they need, a schema says.
MAX_OPS_MODULES = 26


def edges() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for item in workspace_imports():
        found[item.module].add(item.target)
    return {name: frozenset(targets) for name, targets in found.items()}


def test_there_are_no_import_cycles() -> None:
    places = {(item.module, item.target): str(item) for item in workspace_imports()}
    told = []
    for group in cycles(edges()):
        inside = [place for (a, b), place in places.items() if a in group and b in group]
        told.append(f"{len(group)} modules import each other:\n  " + "\n  ".join(inside))
    assert not told, "\n".join(told)


def test_imports_inside_functions_say_what_they_are_put_off_for() -> None:
    silent = [
        str(item)
        for item in workspace_imports()
        if item.deferred and not (item.remark.startswith("lazy: ") and item.remark.count(" ") > 2)
    ]
    assert not silent, "put these at the top, or say why not, as in '# lazy: few need it':\n" + (
        "\n".join(silent)
    )


def test_imports_inside_functions_put_something_off() -> None:
    idle = [
        str(item)
        for item in workspace_imports()
        if item.deferred and item.target in loaded_with(item.module)
    ]
    assert not idle, "these are imported with their module anyway: put them at its top:\n" + (
        "\n".join(idle)
    )


def test_the_engine_knows_few_modules_of_ops() -> None:
    folders = {name.split(".")[1] for name in modules() if name.count(".") >= 2}
    core = {f for f in folders if f"headrace.{f}" in modules()}
    engine = core - {"ops", "extend", "testing"}
    assert {"graph", "passes", "placement", "partition", "runtime", "session"} <= engine
    known = {
        item.target: str(item)
        for item in workspace_imports()
        if item.module.startswith(tuple(f"headrace.{folder}." for folder in engine))
        and item.target.startswith("headrace.ops.")
    }
    assert len(known) <= MAX_OPS_MODULES, "\n".join(known.values())


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": "b", "b": "c", "c": ""}, []),
        ({"a": "b", "b": "a"}, [["a", "b"]]),
        ({"a": "bc", "b": "d", "c": "d", "d": ""}, []),
        ({"a": "b", "b": "c", "c": "ad", "d": "e", "e": "d"}, [["d", "e"], ["a", "b", "c"]]),
        ({"a": "a"}, [["a"]]),
    ],
)
def test_cycles_are_found(graph: dict[str, str], expected: list[list[str]]) -> None:
    assert cycles({node: frozenset(targets) for node, targets in graph.items()}) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import p.a", [("p.a", False)]),
        ("from p import a", [("p.a", False)]),
        ("from p.a import name", [("p.a", False)]),
        ("from . import a", [("p.a", False)]),
        ("def f():\n    from p.a import name", [("p.a", True)]),
        ("class C:\n    from p.a import name", [("p.a", False)]),
        ("if TYPE_CHECKING:\n    import p.a\nelse:\n    import p.b", [("p.b", False)]),
        ("if typing.TYPE_CHECKING:\n    import p.a", []),
        ("try:\n    import p.a\nexcept ImportError:\n    import p.b", [("p.a", 0), ("p.b", 0)]),
        ("import os", []),
    ],
)
def test_imports_are_found(source: str, expected: list[tuple[str, bool]]) -> None:
    known = {"p": 0, "p.a": 0, "p.b": 0, "p.m": 0}
    found = [(item.target, item.deferred) for item in imports_in("p.m", source, known)]
    assert found == expected


def test_remarks_are_found_beside_imports_and_above() -> None:
    source = """
def f():
    # lazy: few
    # need it
    from p.a import one
    import p.b
    import p.a  # lazy: for one

def g():

    import p.a
"""
    remarks = [item.remark for item in imports_in("p.m", source, {"p.a": 0, "p.b": 0, "p.m": 0})]
    assert remarks == ["lazy: few need it", "lazy: few need it", "lazy: for one", ""]


def test_what_is_loaded_with_a_module() -> None:
    assert {"headrace.graph.graph", "headrace"} <= loaded_with("headrace.session.session")
    assert "headrace.drawing.text" not in loaded_with("headrace")
    assert "headrace.drawing.text" in loaded_with("headrace.drawing.graph")
