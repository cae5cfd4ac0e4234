"""``Module``: a named object that holds variables and other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.errors import AttributeValueError, shown
from headrace.graph.scopes import name_scope
from headrace.ops.variable import Variable

F = TypeVar("F", bound=Callable[..., Any])

_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Where a word begins in a name such as ``MyConv2D``.
_WORDS = re.compile(r"(?<=[a-z0-9])([A-Z])|(?<!^)([A-Z])(?=[a-z])")


class _ModuleScope(AbstractContextManager[str]):
    """A name scope that can be entered again and again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entered: list[AbstractContextManager[str]] = []

    def __enter__(self) -> str:
        scope = name_scope(self.name)
        self._entered.append(scope)
        return scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(kind, value, traceback)


class Module:
    """A named object that holds variables and other modules; its subclasses do something with them.

    Variables and modules are found among its attributes, and in lists, tuples and dicts of these.

    Example::

        class Dense(hr.Module):
            def __init__(self, rows, columns, name=None):
                super().__init__(name)
                with self.name_scope:
                    self.w = hr.Variable(hr.random_normal([rows, columns]), name="w")
                    self.b = hr.Variable(hr.zeros([columns]), name="b")

            def __call__(self, x):
                return hr.nn.relu(hr.matmul(x, self.w) + self.b)
    """

    # Attributes in which nothing is looked for: libraries extend the set by its name.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()

    def __init__(self, name: Any = None) -> None:
        """Name it.

        Args:
            name: An identifier of Python; made of the name of the class if None.

        Raises:
            AttributeValueError: if it is no identifier.
        """
        if name is None:
            name = _WORDS.sub(r"_\1\2", type(self).__name__).lower()
        elif not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise AttributeValueError(
                f"{shown(name)} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        self._name: str = name
        with name_scope(name) as scope:
            self._scope_name = scope

    def _no_dependency(self, value: Any) -> Any:
        """Return what an attribute is set to; that it is no part to be saved changes nothing."""
        return value

    @property
    def name(self) -> str:
        """Its name, without those of modules around it."""
        return self._name

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """Its name scope, to be entered as often as is needed."""
        return _ModuleScope(self._scope_name)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables by the names of the attributes, then those of modules in it."""
        return tuple(self._flatten(predicate=lambda v: isinstance(v, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Its trainable variables by the names of the attributes, then those of modules in it."""
        found = self._flatten(predicate=lambda v: isinstance(v, Variable) and v.trainable)
        return tuple(found)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules in it, and in those."""
        return tuple(self._flatten(predicate=lambda v: isinstance(v, Module)))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        """Yield what its attributes hold, by their names, and then what modules in it do.

        Args:
            recursive: Whether to go into modules.
            predicate: Says what to yield; everything if None.
            attribute_traversal_key: The key by which names of attributes are sorted.
            with_path: Whether to yield pairs of a path and what is there; else nothing comes twice.
        """
        seen = {id(self)}
        waiting: list[tuple[tuple[Any, ...], Module]] = [((), self)]
        while waiting:
            path, module = waiting.pop(0)
            inner: list[tuple[tuple[Any, ...], Module]] = []
            ignored = module._TF_MODULE_IGNORED_PROPERTIES  # noqa: SLF001 - of this class
            held = {key: value for key, value in vars(module).items() if key not in ignored}
            for key in sorted(held, key=attribute_traversal_key):
                for rest, leaf in _leaves(held[key]):
                    if not with_path:
                        if id(leaf) in seen:
                            continue
                        seen.add(id(leaf))
                    place = (*path, key, *rest)
                    if predicate is None or predicate(leaf):
                        yield (place, leaf) if with_path else leaf
                    if recursive and isinstance(leaf, Module):
                        inner.append((place, leaf))
            # Modules of a module come before those of its next neighbour.
            waiting = inner + waiting

    @classmethod
    def with_name_scope(cls, method: F) -> F:
        """Enter the module's name scope whenever a method is called, as a decorator.

        Args:
            method: The method.
        """

        @functools.wraps(method)
        def scoped(self: Self, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped  # type: ignore[return-value]


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield what lists, tuples and dicts hold, with the way there."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list | tuple):
        fields = getattr(value, "_fields", range(len(value)))
        for key, item in zip(fields, value, strict=True):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value
