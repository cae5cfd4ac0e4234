"""What TensorFlow's private modules call its public names.

The table beside it was written from TensorFlow 1.15.5 by ``tools/tensorflow_names.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib.resources import files
from typing import Any

import headrace as hr

_CONTRIB = "contrib."
# Where messages are public that their private modules have.
_MESSAGES = ("", "train", "summary", "saved_model")


@cache
def table() -> dict[str, dict[str, str]]:
    """Return ``{module: {name: what to give}}``, modules without ``tensorflow.python``.

    What to give is a public name, as ``public`` takes it.
    """
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

    Args:
        path: The name; in the table it may be followed by what a private function takes, as in
            ``nn.dropout(x,rate,name)``: the public one is then called with these by name.

    Raises:
        AttributeError: if it has nothing there.
    """
    name, _, taken = path.partition("(")
    found: Any = hr
    for part in name.split("."):
        found = getattr(found, part)
    return _ordered(found, name, taken.removesuffix(")")) if taken else found


@cache
def _ordered(function: Callable[..., Any], name: str, taken: str) -> Callable[..., Any]:
    """Return a function that takes its arguments in another order."""
    order = taken.split(",")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(order, args, strict=False))
        odd = [word for word in kwargs if word not in order or word in given]
        if len(args) > len(order) or odd:
            what = f"and {', '.join(odd)} by name" if odd else "by position"
            raise TypeError(f"{name} takes {taken} here, got {len(args)} arguments {what}")
        return function(**given, **kwargs)

    return call


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
