"""What TensorFlow's private modules call its public names.

The table beside it was written from TensorFlow 1.15.5 by ``tools/tensorflow_names.py``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import headrace as hr

_CONTRIB = "contrib."
# Where messages are public that their private modules have.
_MESSAGES = ("", "train", "summary", "saved_model")


@cache
def table() -> dict[str, dict[str, str]]:
    """Return ``{module: {name: public name}}``, modules without ``tensorflow.python``."""
    return {name: found for name, found in _lines().items() if not name.startswith(_CONTRIB)}


@cache
def _lines() -> dict[str, dict[str, str]]:
    text = files(__package__).joinpath("names.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        module, _, words = line.partition(":")
        pairs = (word.partition("=") for word in words.split())
        found[module] = {name: public or name for name, _, public in pairs}
    return found


@cache
def contrib() -> dict[str, dict[str, str]]:
    """Return the same for the modules of contrib, without ``tensorflow.contrib``."""
    return {
        name.removeprefix(_CONTRIB): found
        for name, found in _lines().items()
        if name.startswith(_CONTRIB)
    }


@cache
def modules() -> frozenset[str]:
    """Return the names of the modules of the table, and of the packages that they are in."""
    names = set(table())
    for name in list(names):
        parts = name.split(".")
        names.update(".".join(parts[:i]) for i in range(1, len(parts)))
    return frozenset(names)


def public(path: str) -> Any:
    """Return what Headrace has under a public name.

    Raises:
        AttributeError: if it has nothing there.
    """
    found: Any = hr
    for part in path.split("."):
        found = getattr(found, part)
    return found


def message(name: str) -> Any:
    """Return the class of messages of a name.

    Raises:
        AttributeError: if Headrace has none.
    """
    for namespace in _MESSAGES:
        found = getattr(public(namespace) if namespace else hr, name, None)
        if found is not None:
            return found
    raise AttributeError(f"headrace has no message {name!r}")
