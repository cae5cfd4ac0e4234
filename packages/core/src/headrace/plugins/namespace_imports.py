"""``import headrace.train``: namespaces of plugins are imported under the names they have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, final

_ROOT = "headrace"
# Its names are those of the root, so that its modules are, too.
_ALIAS = "headrace.compat.v1"


@final
class NamespaceFinder:
    """Finds modules that plugins add under ``headrace``, and that are files of another package.

    The module itself is entered under both of its names, so that there is one of it.
    """

    def __init__(self, find: Callable[[str], Any], *, nested: bool) -> None:
        """Choose where to look.

        Args:
            find: Returns what a plugin adds under a name, or raises ``AttributeError``.
            nested: Whether to find what is inside of such modules, or the modules.
        """
        self._find = find
        self._nested = nested

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module, None where it is none of a plugin's."""
        del path, target
        parent, _, name = fullname.rpartition(".")
        if not self._nested:
            if parent == _ALIAS:
                return self._spec(fullname, lambda part: getattr(sys.modules[_ROOT], part), name)
            return self._spec(fullname, self._find, name) if parent == _ROOT else None
        if not parent.startswith(f"{_ROOT}."):
            return None
        owner = sys.modules.get(parent)
        # A module of core is found in its folder; the folder of a plugin's has another name.
        if owner is None or owner.__name__ == parent:
            return None
        found = self._spec(fullname, lambda part: getattr(owner, part), name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return found

    def _spec(self, fullname: str, find: Callable[[str], Any], name: str) -> ModuleSpec | None:
        try:
            value = find(name)
        except AttributeError:
            return None
        loader: Any = _Known(value)
        return ModuleSpec(fullname, loader) if isinstance(value, ModuleType) else None


@final
class _Known:
    """Loads a module that has been imported under another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import make an empty module for now."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the known module in its place."""
        sys.modules[module.__name__] = self._module


def install(find: Callable[[str], Any]) -> None:
    """Let ``import`` find the namespaces of plugins, after all other modules.

    Args:
        find: Returns what a plugin adds under a name, or raises ``AttributeError``.
    """
    finders: list[Any] = sys.meta_path
    # First: else the folder of a plugin's module would be searched, and its files imported twice.
    finders.insert(0, NamespaceFinder(find, nested=True))
    finders.append(NamespaceFinder(find, nested=False))
