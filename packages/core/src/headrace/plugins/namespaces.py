"""Namespaces: modules under ``headrace`` to which plugins add names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def added_names(
    namespace: str, module: str, found_in: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__``, which know what plugins add to it.

    As in::

        __getattr__, __dir__ = added_names("image", __name__)

    What the module has itself comes first, and is found as fast as ever.

    Args:
        namespace: The module's name under ``headrace``.
        module: The module's full name.
        found_in: Modules inside of it, each with those of its names that stand there, separated by
            blanks; under "" those that are public themselves. They are imported when a program
            first names one of these, for every process that looks for plugins imports the
            packages of all.
    """
    inside = {name: part for part, names in (found_in or {}).items() for name in names.split()}

    def find(name: str) -> Any:
        # lazy: plugins are looked for when a program names something that the module does not have
        from headrace.plugins.host import host

        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in inside:
            part = inside[name]
            if part:
                value = getattr(import_module(f"{module}.{part}"), name)
            else:
                value = import_module(f"{module}.{name}")
            setattr(sys.modules[module], name, value)
            return value
        return host().resolve_name(f"{namespace}.{name}")

    def names() -> list[str]:
        # lazy: as above, for what asks for all names
        from headrace.plugins.host import host

        return sorted({*vars(sys.modules[module]), *inside, *host().names.within(namespace)})

    return find, names
