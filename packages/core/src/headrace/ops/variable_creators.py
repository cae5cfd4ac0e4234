"""Functions of the program that have a say whenever a variable is made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from headrace.errors import ArgumentTypeError, shown
from headrace.graph.context_blocks import read, within
from headrace.graph.graph import Graph
from headrace.graph.scopes import get_default_graph

# Gets the next creator, and what the variable is made with; returns a variable.
Creator: TypeAlias = Callable[..., Any]

_CREATORS: ContextVar[tuple[tuple[Graph, Creator], ...]] = ContextVar("creators", default=())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Let a function have a say in each variable that is made inside, in the default graph.

    It may change what the variable is made with, do something with it, or return another object
    in its place. The function of the innermost scope is called first, and what it calls as
    ``next_creator`` is that of the scope around it, or what makes the variable.

    Args:
        variable_creator: ``f(next_creator, **kwargs)``; ``kwargs`` are the arguments of
            ``Variable``, all of them.

    Raises:
        ArgumentTypeError: if it is no function.
    """
    if not callable(variable_creator):
        raise ArgumentTypeError(
            f"variable_creator must be a function, got {shown(variable_creator)}"
        )
    graph = get_default_graph().outermost
    with within(_CREATORS, (*read(_CREATORS), (graph, variable_creator))):
        yield


class Created(type):
    """The kind of classes whose instances are made by the creators in force."""

    @property
    def __signature__(cls) -> inspect.Signature:
        # Of the class, not of the method below.
        return _signature(cls)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an instance, or what the creators in force return."""
        found = read(_CREATORS)
        if found:
            graph = get_default_graph().outermost
            creators = [creator for of, creator in found if of is graph]
            if creators:
                return _created(super().__call__, cls, creators, args, kwargs)
        return super().__call__(*args, **kwargs)


def _created(
    make: Callable[..., Any],
    cls: type,
    creators: list[Creator],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    bound = _signature(cls).bind(*args, **kwargs)
    bound.apply_defaults()
    # What is for the library alone is not shown where it says nothing.
    shared_name = bound.arguments.pop("shared_name", None)
    if shared_name is not None:
        bound.arguments["shared_name"] = shared_name
    step = make
    for creator in creators:
        step = functools.partial(creator, step)
    return step(**bound.arguments)


@functools.cache
def _signature(cls: type) -> inspect.Signature:
    found = inspect.signature(vars(cls)["__init__"])
    return found.replace(parameters=list(found.parameters.values())[1:])
