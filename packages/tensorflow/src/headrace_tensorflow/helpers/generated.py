"""``ops.gen_array_ops`` and its like: a function for each op, whose arguments have an order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import headrace as hr


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """Return the function of an op.

    Args:
        name: What TensorFlow calls it: ``batch_to_space_nd`` for ``BatchToSpaceND``.

    Raises:
        AttributeError: if Headrace builds no such op.
    """
    # With "_" where a public function, or Python, has the name.
    op = _ops().get(name.removeprefix("_"))
    if op is None:
        if name in dir(hr.raw_ops):
            # The modules have the functions that take arguments by name, too.
            by_name: Callable[..., Any] = getattr(hr.raw_ops, name)
            return by_name
        raise AttributeError(f"Headrace builds no op for TensorFlow's generated function {name!r}")
    raw = getattr(hr.raw_ops, op)
    order = list(inspect.signature(raw).parameters)

    @functools.wraps(raw)
    def build(*arguments: Any, **named: Any) -> Any:
        if len(arguments) > len(order):
            raise TypeError(f"{name} takes {len(order)} arguments, got {len(arguments)}")
        given = dict(zip(order, arguments, strict=False))
        twice = given.keys() & named.keys()
        if twice:
            raise TypeError(f"{name} got several values for {', '.join(sorted(twice))}")
        return raw(**given, **named)

    return build


def is_known(name: str) -> bool:
    """Whether Headrace builds the op of a function of that name."""
    return name in _ops()


@functools.cache
def _ops() -> dict[str, str]:
    # They come from headrace-io, which reads TensorFlow's graphs, and may not be installed.
    found = getattr(hr, "raw_ops", None)
    return {} if found is None else {_snake(op): op for op in dir(found)}


def _snake(op: str) -> str:
    """Return what TensorFlow's generator calls the function of an op."""
    made = ""
    for i, letter in enumerate(op):
        after_lower = i > 0 and op[i - 1].islower()
        before_lower = i > 0 and i + 1 < len(op) and op[i + 1].islower()
        if letter.isupper() and (after_lower or before_lower):
            made += "_"
        made += letter.lower()
    return made
