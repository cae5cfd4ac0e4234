"""``util.tf_inspect``: the module ``inspect``, with the old form of signatures."""

from __future__ import annotations

import inspect
from inspect import *  # noqa: F403 - TensorFlow's module stands for all of it
from typing import Any, NamedTuple


class ArgSpec(NamedTuple):
    """Arguments of a function as Python 2 had them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getfullargspec(obj: Any) -> inspect.FullArgSpec:  # type: ignore[no-redef]
    """Return the arguments of what a function decorates.

    Without annotations: TensorFlow's functions have none, and libraries compare theirs with them.
    """
    return inspect.getfullargspec(inspect.unwrap(obj))._replace(annotations={})


def getargspec(obj: Any) -> ArgSpec:
    """Return the arguments of what a function decorates, those that are named only among them."""
    found = getfullargspec(obj)
    return ArgSpec([*found.args, *found.kwonlyargs], found.varargs, found.varkw, found.defaults)
