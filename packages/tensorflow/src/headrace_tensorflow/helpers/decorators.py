"""Decorators, and what ``util`` has for them: they change nothing here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager as contextmanager
from typing import Any


def _unchanged(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Take any arguments, and return a decorator that returns what it is given."""
    del args, kwargs
    return lambda decorated: decorated


deprecated = _unchanged
deprecated_alias = _unchanged
deprecated_arg_values = _unchanged
deprecated_args = _unchanged
deprecated_endpoints = _unchanged
estimator_export = _unchanged
keras_export = _unchanged
tf_export = _unchanged


@contextmanager
def silence() -> Iterator[None]:
    """Silence warnings of names that go away: there are none."""
    yield


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """Return the value of an argument that has two names.

    Raises:
        ValueError: if it is given under both.
    """
    if old_value is not None and new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return new_value if old_value is None else old_value


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """Return a function that stands for another one, with its name and its signature."""
    del decorator_name, decorator_doc, decorator_argspec
    return functools.update_wrapper(decorator_func, target)


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """Return the decorators of a function, which are not kept, and the function inside of them."""
    return [], inspect.unwrap(maybe_tf_decorator)


def remove_undocumented(module_name: str, *args: Any, **kwargs: Any) -> None:
    """Leave a module as it is."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """Return the names of a module that are documented: none are asked for."""
    return []
