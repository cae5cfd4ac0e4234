"""Finds ``tensorflow`` and the modules inside of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import final

from headrace_tensorflow import contrib, private, root

ROOT = "tensorflow"
_ALIAS = "compat.v1"


@final
class Finder(MetaPathFinder):
    """Finds a module by the name that TensorFlow has for it.

    There are three kinds: the root, which has the names of ``headrace``; modules that are public,
    which are Headrace's own, under a second name; and those below ``tensorflow.python``, which have
    public names by their private modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to make or find a module; None where it is none of TensorFlow's.

        Raises:
            ModuleNotFoundError: if TensorFlow has it, or could have it, and Headrace does not.
        """
        del path, target
        name, _, inside = fullname.partition(".")
        if name != ROOT:
            return None
        module = self._module(inside)
        if module is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: Headrace stands in for TensorFlow and has no such "
                "module; see 'Coming from TensorFlow' in its documentation",
                name=fullname,
            )
        return ModuleSpec(fullname, _Known(module), is_package=True)

    def _module(self, inside: str) -> ModuleType | None:
        if not inside:
            return root.Root(ROOT)
        if inside == _ALIAS:
            return sys.modules[ROOT]
        first, _, rest = inside.removeprefix(f"{_ALIAS}.").partition(".")
        if first == "contrib":
            return contrib.module(rest)
        if first in private.PACKAGES:
            return private.module(f"{ROOT}.{inside}")
        return _public([first, *rest.split(".")] if rest else [first])


def _public(parts: list[str]) -> ModuleType | None:
    found: object = sys.modules[ROOT]
    for part in parts:
        found = getattr(found, part, None)
    return found if isinstance(found, ModuleType) else None


@final
class _Known(Loader):
    """Enters a module that is there under another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the import make an empty module for now."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the known module in its place, with what is entered inside of it if no folder is."""
        name, own = module.__name__, self._module.__name__
        sys.modules[name] = self._module
        if not hasattr(self._module, "__path__"):
            for inside in [key for key in sys.modules if key.startswith(f"{own}.")]:
                sys.modules.setdefault(f"{name}{inside.removeprefix(own)}", sys.modules[inside])
