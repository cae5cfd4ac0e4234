"""Our packages use the door that strangers use, and every module of it says what it offers."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import headrace as hr
import headrace.extend
from tests.contracts.test_import_direction import PACKAGES, imports_of

PLUGINS = [folder for folder in PACKAGES if folder != "core"]
MODULES = [
    "headrace.extend",
    *(f"headrace.extend.{found.name}" for found in pkgutil.iter_modules(headrace.extend.__path__)),
]


def is_allowed(module: str) -> bool:
    """Whether what is imported is the door, an error, a name of programs, or another project's."""
    if module.split(".")[0] != "headrace":
        return True
    if module == "headrace" or module.startswith(("headrace.errors", "headrace.extend.")):
        return True
    _, name, *rest = module.split(".")
    return not rest and name in hr.__all__


@pytest.mark.parametrize("folder", PLUGINS)
def test_a_package_reaches_core_through_the_door_alone(folder: str) -> None:
    wrong = [
        f"{found.place} imports {found.module}"
        for found in imports_of(folder)
        if not is_allowed(found.module)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("numpy.linalg", True),
        ("headrace", True),
        ("headrace.matmul", True),
        ("headrace.errors.ShapeError", True),
        ("headrace.extend.kernels.KernelTable", True),
        ("headrace.runtime.engine.Engine", False),
        ("headrace.ops", False),
        ("headrace.regex", False),
    ],
)
def test_the_check_tells_the_door_from_what_is_behind_it(module: str, allowed: bool) -> None:
    assert is_allowed(module) is allowed


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_door_lists_what_it_offers(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(module.__all__) == len(set(module.__all__))
    missing = [listed for listed in module.__all__ if not hasattr(module, listed)]
    assert not missing
    hidden = [
        found
        for found, value in vars(module).items()
        if not found.startswith("_")
        and found not in module.__all__
        and not (isinstance(value, type(pkgutil)) and value.__name__.startswith("headrace.extend"))
    ]
    assert not hidden
