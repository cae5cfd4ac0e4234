"""Functions of tensors that also take values which are no tensors, such as ragged ones.

A kind of such values enters its class in ``KINDS``, with a handler. A function of tensors whose
arguments hold one of them leaves the call to the handler, which knows the function by its name and
by the operands that it treats element by element. Ops are asked by themselves; a composite takes
part by the decorator ``dispatched``. While no program has made such values, a call costs one look
at an empty table.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])

# Calls take no more values than that in a list.
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of tensors, as handlers see it.

    Attributes:
        name: The type of an op, or the name of a composite.
        operands: The parameters that it treats element by element; empty where the place of an
            element in the tensor matters.
        function: The function itself.
    """

    name: str
    operands: tuple[str, ...]
    function: Callable[..., Any]


# A handler returns NotImplemented for what it does not know; the function then refuses the value.
Handler = Callable[[Callee, tuple[Any, ...], dict[str, Any]], Any]
KINDS: dict[type, Handler] = {}


def dispatched(*operands: str) -> Callable[[F], F]:
    """Let a composite take values of the kinds in ``KINDS``.

    Args:
        operands: The parameters that it treats element by element, in their order; none where the
            place of an element matters. Kinds then need an implementation of their own.
    """

    def declare(function: F) -> F:
        callee = Callee(function.__name__, operands, function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if KINDS:
                made = handled(callee, args, kwargs)
                if made is not NotImplemented:
                    return made
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return declare


def handled(callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the handler of the first kind among the arguments makes of a call.

    Returns:
        NotImplemented where all arguments are tensors and plain data, or the handler does not know
        the function.
    """
    for value in (*args, *kwargs.values()):
        kind = _kind_in(value)
        if kind is not None:
            return KINDS[kind](callee, args, kwargs)
    return NotImplemented


def _kind_in(value: Any) -> type | None:
    if type(value) in KINDS:
        return type(value)
    if isinstance(value, list | tuple):
        # A list of a class of the program's own may have no end, which is refused where it is read.
        held = itertools.islice(value, _MOST)
        return next((type(item) for item in held if type(item) in KINDS), None)
    return None
