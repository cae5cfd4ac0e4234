"""Tables: the kernels and gradient rules that one package contributes.

A table belongs to the package that makes it; its decorators check what they are put on against the
op's declaration.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from headrace.dtypes import DType, as_dtype
from headrace.errors import PluginError
from headrace.graph.schema import OPS
from headrace.plugins.ownership import check_reason, line_of_function
from headrace.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """An implementation of an op.

    Attributes:
        op: The op's type name.
        function: What computes it; how it is called depends on ``style``.
        style: "plain": ``f(xp, *arrays, **attrs)``; "stateful": ``f(ctx, *arrays, **attrs)``;
            "blocking": ``f(ctx, step, done, *arrays, **attrs)``, which calls ``done`` with its
            outputs or an exception when it has them; "specialized": ``f(node)``, which returns
            the callable to use for one plan node, or None to refuse.
        dtypes: Dtypes of the op's first input or, without inputs, first output that it takes;
            None for all.
        priority: The highest that accepts is used.
        where: Module and line of the function.
        override: Why it replaces kernels of other packages; empty where it does not.
        answers: Whether it may answer blocking kernels that wait.
    """

    op: str
    function: Callable[..., Any]
    style: str = "plain"
    dtypes: frozenset[str] | None = None
    priority: int = 0
    where: str = ""
    override: str = ""
    answers: bool = False

    def accepts(self, dtype: DType | None) -> bool:
        """Whether it takes inputs of ``dtype``."""
        return self.dtypes is None or dtype is None or dtype.name in self.dtypes

    def overlaps(self, other: Kernel) -> bool:
        """Whether some dtype is taken by both."""
        return self.dtypes is None or other.dtypes is None or bool(self.dtypes & other.dtypes)


class KernelTable:
    """Kernels that one package contributes for one set of devices.

    A kernel for an op of another package, on a kind of devices of another package, that this or a
    third one serves already is refused, unless it says ``override="the reason"``. It is then asked
    before all that it replaces, whatever their priorities.
    """

    def __init__(self) -> None:
        self._kernels: list[Kernel] = []

    def plain(
        self,
        op: str,
        *,
        dtypes: Iterable[Any] | None = None,
        priority: int = 0,
        override: str = "",
    ) -> Callable[[F], F]:
        """Add ``f(xp, *arrays, **attrs)``, a function of the device's array module."""
        return self._adder(op, "plain", dtypes, priority, override, skip=1)

    def stateful(
        self,
        op: str,
        *,
        dtypes: Iterable[Any] | None = None,
        priority: int = 0,
        override: str = "",
        answers: bool = False,
    ) -> Callable[[F], F]:
        """Add ``f(ctx, *arrays, **attrs)``, which may use the state in its context.

        Args:
            op: The op's type name.
            dtypes: Dtypes of the op's first input or, without inputs, first output that it takes.
            priority: The highest that accepts is used.
            override: Why it replaces kernels of other packages.
            answers: Whether it may answer blocking kernels that wait. Ctrl-C does not end it
                half-way then: those would wait for ever.
        """
        return self._adder(op, "stateful", dtypes, priority, override, skip=1, answers=answers)

    def blocking(
        self,
        op: str,
        *,
        dtypes: Iterable[Any] | None = None,
        priority: int = 0,
        override: str = "",
        answers: bool = True,
    ) -> Callable[[F], F]:
        """Add ``f(ctx, step, done, *arrays, **attrs)``, which answers by calling ``done``.

        Args:
            op: The op's type name.
            dtypes: Dtypes of the op's first input or, without inputs, first output that it takes.
            priority: The highest that accepts is used.
            override: Why it replaces kernels of other packages.
            answers: Whether it may answer others that wait, as for ``stateful``. One that answers
                none, and works for long before it returns, says False, so that Ctrl-C ends it.
        """
        return self._adder(op, "blocking", dtypes, priority, override, skip=3, answers=answers)

    def specialized(
        self,
        op: str,
        *,
        dtypes: Iterable[Any] | None = None,
        priority: int = 10,
        override: str = "",
    ) -> Callable[[F], F]:
        """Add ``f(node)``, which returns the callable for one plan node, or None to refuse."""
        return self._adder(op, "specialized", dtypes, priority, override, skip=None)

    def resource(
        self,
        op: str,
        *,
        dtypes: Iterable[Any] | None = None,
        priority: int = 0,
        override: str = "",
    ) -> Callable[[type[C]], type[C]]:
        """Add a class, of which the handles that an op yields stand for instances.

        The op has the attributes ``container`` and ``shared_name``, among others. Where a handle
        is first bound, an instance is made as ``cls(shared_name, **others)`` and kept in the
        container; handles of that name and container share it. One that was declared with other
        attributes is refused. ``reset()`` of the class brings an instance into the state in which
        it was made.

        Raises:
            PluginError: if the class has no ``reset``, or the op lacks one of the two attributes.
        """
        reason = check_reason(override)

        def add(cls: type[C]) -> type[C]:
            # Where the class is added: it may be defined elsewhere.
            caller = sys._getframe(1)
            where = f"{caller.f_globals['__name__']}:{caller.f_lineno}"
            _check_resource(op, cls, where)

            def find(ctx: Any, **attrs: Any) -> Any:
                name = attrs.pop("shared_name")
                attrs.pop("container")
                make: Callable[..., C] = cls
                return ctx.resource(cls, lambda: make(name, **attrs))

            # The code that runs there is the class's.
            find.__module__ = cls.__module__
            names = None if dtypes is None else frozenset(as_dtype(d).name for d in dtypes)
            self._kernels.append(Kernel(op, find, "stateful", names, priority, where, reason))
            return cls

        return add

    def _adder(
        self,
        op: str,
        style: str,
        dtypes: Iterable[Any] | None,
        priority: int,
        override: str,
        skip: int | None,
        answers: bool = False,
    ) -> Callable[[F], F]:
        names = None if dtypes is None else frozenset(as_dtype(d).name for d in dtypes)
        reason = check_reason(override)

        def add(function: F) -> F:
            where = line_of_function(function)
            if skip is not None:
                _check_signature(op, function, skip, where)
            self._kernels.append(
                Kernel(op, function, style, names, priority, where, reason, answers)
            )
            return function

        return add

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)


def _check_resource(op: str, cls: type, where: str) -> None:
    """Refuse a class that cannot be the resource behind an op's handles."""
    schema = OPS.get(op)
    if schema is None:
        raise PluginError(f"resource at {where}: no op {op!r} is declared")
    missing = {"container", "shared_name"} - {a.name for a in schema.attrs}
    if missing or schema.inputs:
        raise PluginError(
            f"resource for {op} at {where}: the op must have the attributes container and "
            "shared_name, and no inputs"
        )
    if not callable(getattr(cls, "reset", None)):
        raise PluginError(
            f"resource for {op} at {where}: {cls.__name__} has no method reset(), which brings an "
            "instance into the state in which it was made"
        )


def _check_signature(op: str, function: Callable[..., Any], skip: int, where: str) -> None:
    """Refuse a kernel whose keyword arguments are not the op's attributes."""
    schema = OPS.get(op)
    if schema is None:
        raise PluginError(f"kernel at {where}: no op {op!r} is declared")
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    attrs = {a.name for a in schema.attrs}
    if keywords != attrs:
        raise PluginError(
            f"kernel for {op} at {where}: keyword arguments {sorted(keywords)} must be the op's "
            f"attributes {sorted(attrs)}"
        )
    given = [p for p in parameters[skip:] if p.kind is not p.KEYWORD_ONLY]
    flexible = any(p.kind is p.VAR_POSITIONAL for p in given)
    if not flexible and len(given) != len(schema.inputs):
        raise PluginError(
            f"kernel for {op} at {where}: takes {len(given)} inputs, the op has "
            f"{len(schema.inputs)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class GradientRule:
    """How an op is differentiated.

    Attributes:
        op: The op's type name.
        function: ``f(op, *grads)``.
        where: Module and line of the function.
        override: Why it replaces the rule of another package; empty where it does not.
        rows: Whether it takes ``IndexedSlices`` as they are.
    """

    op: str
    function: Callable[..., Any]
    where: str
    override: str = ""
    rows: bool = False


class GradientTable:
    """Gradient rules that one package contributes."""

    def __init__(self) -> None:
        self._rules: list[GradientRule] = []

    def add(self, op: str, *, override: str = "", rows: bool = False) -> Callable[[F], F]:
        """Add ``f(op, *grads)``: gradients of the outputs to gradients of the flat inputs.

        ``op`` is the operation; an output through which no gradient comes has None. The rule
        returns one tensor, ``IndexedSlices`` or None for each input.

        Args:
            op: The op's type name.
            override: Why it replaces the rule of another package, or differentiates an op of
                another package that is declared to have no gradient.
            rows: Whether gradients that are ``IndexedSlices`` come as they are; otherwise they
                come as dense tensors.
        """
        reason = check_reason(override)

        def add(function: F) -> F:
            where = line_of_function(function)
            self._rules.append(GradientRule(op, function, where, reason, rows))
            return function

        return add

    def __iter__(self) -> Iterator[GradientRule]:
        return iter(self._rules)
