"""What plugins fill: tables of kernels, gradient rules, devices and public names.

A table belongs to the package that makes it; a registry collects tables, refuses duplicates, and
remembers who provided what.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.dtypes import DType, as_dtype
from headrace.errors import PluginError
from headrace.graph.schema import OPS
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.runtime.device import Device

F = TypeVar("F", bound=Callable[..., Any])


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
        where: File and line of the function.
    """

    op: str
    function: Callable[..., Any]
    style: str = "plain"
    dtypes: frozenset[str] | None = None
    priority: int = 0
    where: str = ""

    def accepts(self, dtype: DType | None) -> bool:
        """Whether it takes inputs of ``dtype``."""
        return self.dtypes is None or dtype is None or dtype.name in self.dtypes


class KernelTable:
    """Kernels that one package contributes for one set of devices."""

    def __init__(self) -> None:
        self._kernels: list[Kernel] = []

    def plain(
        self, op: str, *, dtypes: Iterable[Any] | None = None, priority: int = 0
    ) -> Callable[[F], F]:
        """Add ``f(xp, *arrays, **attrs)``, a function of the device's array module."""
        return self._adder(op, "plain", dtypes, priority, skip=1)

    def stateful(
        self, op: str, *, dtypes: Iterable[Any] | None = None, priority: int = 0
    ) -> Callable[[F], F]:
        """Add ``f(ctx, *arrays, **attrs)``, which may use the state in its context."""
        return self._adder(op, "stateful", dtypes, priority, skip=1)

    def blocking(
        self, op: str, *, dtypes: Iterable[Any] | None = None, priority: int = 0
    ) -> Callable[[F], F]:
        """Add ``f(ctx, step, done, *arrays, **attrs)``, which answers by calling ``done``."""
        return self._adder(op, "blocking", dtypes, priority, skip=3)

    def specialized(
        self, op: str, *, dtypes: Iterable[Any] | None = None, priority: int = 10
    ) -> Callable[[F], F]:
        """Add ``f(node)``, which returns the callable for one plan node, or None to refuse."""
        return self._adder(op, "specialized", dtypes, priority, skip=None)

    def _adder(
        self,
        op: str,
        style: str,
        dtypes: Iterable[Any] | None,
        priority: int,
        skip: int | None,
    ) -> Callable[[F], F]:
        names = None if dtypes is None else frozenset(as_dtype(d).name for d in dtypes)

        def add(function: F) -> F:
            where = f"{function.__module__}:{function.__code__.co_firstlineno}"
            if skip is not None:
                _check_signature(op, function, skip, where)
            self._kernels.append(Kernel(op, function, style, names, priority, where))
            return function

        return add

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)


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


class KernelRegistry:
    """All kernels, by op and device kind."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, str], list[Kernel]] = {}

    def add(self, device_kind: str, table: Iterable[Kernel]) -> None:
        """Add a table for one kind of devices.

        Raises:
            PluginError: if two kernels of one priority take the same op, device and dtypes.
        """
        added = list(table)
        merged = {
            kernel.op: list(self._kernels.get((kernel.op, device_kind), ())) for kernel in added
        }
        for kernel in added:
            known = merged[kernel.op]
            for other in known:
                if other.priority == kernel.priority and _overlap(other, kernel):
                    raise PluginError(
                        f"two kernels for {kernel.op} on {device_kind} with priority "
                        f"{kernel.priority}: at {other.where} and at {kernel.where}; give one a "
                        "higher priority"
                    )
            known.append(kernel)
        # Only a table without a clash is added, and then the whole of it.
        for op, kernels in merged.items():
            self._kernels[op, device_kind] = sorted(kernels, key=lambda k: -k.priority)

    def candidates(self, op: str, device_kind: str, dtype: DType | None) -> list[Kernel]:
        """Return the kernels that take ``dtype``, best first."""
        return [k for k in self._kernels.get((op, device_kind), ()) if k.accepts(dtype)]

    def covers(self, op: str, device_kind: str, dtype: DType | None) -> bool:
        """Whether some kernel takes ``dtype``."""
        return any(k.accepts(dtype) for k in self._kernels.get((op, device_kind), ()))

    def devices_of(self, op: str) -> list[str]:
        """Return the device kinds that have a kernel for an op."""
        return sorted(kind for name, kind in self._kernels if name == op)

    def dtypes_of(self, op: str, device_kind: str) -> list[str]:
        """Return the dtypes that an op's kernels on a device take, ``["any"]`` for all."""
        kernels = self._kernels.get((op, device_kind), [])
        if any(k.dtypes is None for k in kernels):
            return ["any"]
        return sorted({name for k in kernels for name in k.dtypes or ()})


def _overlap(left: Kernel, right: Kernel) -> bool:
    return left.dtypes is None or right.dtypes is None or bool(left.dtypes & right.dtypes)


class GradientTable:
    """Gradient rules that one package contributes."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, Callable[..., Any], str]] = []

    def add(self, op: str) -> Callable[[F], F]:
        """Add ``f(op, *grads)``: gradients of the outputs to gradients of the flat inputs.

        ``op`` is the operation; an output through which no gradient comes has None. The rule
        returns one tensor, ``IndexedSlices`` or None for each input.
        """

        def add(function: F) -> F:
            where = f"{function.__module__}:{function.__code__.co_firstlineno}"
            self._rules.append((op, function, where))
            return function

        return add

    def __iter__(self) -> Iterator[tuple[str, Callable[..., Any], str]]:
        return iter(self._rules)


class GradientRegistry:
    """All gradient rules, by op."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[Callable[..., Any], str]] = {}

    def add(self, table: Iterable[tuple[str, Callable[..., Any], str]]) -> None:
        """Add a table of rules.

        Raises:
            PluginError: if an op has a rule already; names both places.
        """
        merged = dict(self._rules)
        for op, function, where in table:
            known = merged.get(op)
            if known is not None and known[1] != where:
                raise PluginError(
                    f"two gradient rules for {op}: at {known[1]} and at {where}; remove one"
                )
            merged[op] = (function, where)
        self._rules = merged

    def get(self, op: str) -> Callable[..., Any] | None:
        """Return the rule of an op, or None."""
        rule = self._rules.get(op)
        return None if rule is None else rule[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of devices that a plugin provides.

    Attributes:
        name: As in ``"cpu"``.
        count: Returns how many there are; 0 where the hardware or a library is missing.
        factory: Opens device number ``index`` under a full name.
        priority: Where nothing else decides, operations go to the kind with the highest.
        why_none: Returns why ``count`` is 0, for messages.
        where: Who provides it.
        dtypes: Names of the dtypes that its arrays can have, None for all. Nothing that takes or
            yields another one is placed there.
    """

    name: str
    count: Callable[[], int]
    factory: Callable[..., Device]
    priority: int = 0
    why_none: Callable[[], str] = field(default=lambda: "")
    where: str = ""
    dtypes: frozenset[str] | None = None


class DeviceRegistry:
    """The kinds of devices."""

    def __init__(self) -> None:
        self._kinds: dict[str, DeviceKind] = {}

    def add(
        self,
        name: str,
        *,
        count: Callable[[], int],
        factory: Callable[..., Device],
        priority: int = 0,
        why_none: Callable[[], str] = lambda: "",
        dtypes: Iterable[Any] | None = None,
    ) -> None:
        """Add a kind of devices; see ``DeviceKind`` for the arguments.

        Raises:
            PluginError: if the kind is provided already; names both places.
        """
        where = getattr(factory, "__module__", "?")
        known = self._kinds.get(name)
        if known is not None:
            raise PluginError(
                f"device kind {name!r} is provided twice: by {known.where} and by {where}; "
                "disable one with HEADRACE_DISABLE_PLUGINS"
            )
        held = None if dtypes is None else frozenset(as_dtype(d).name for d in dtypes)
        self._kinds[name] = DeviceKind(name, count, factory, priority, why_none, where, held)

    def get(self, name: str) -> DeviceKind | None:
        """Return a kind, or None."""
        return self._kinds.get(name)

    def __iter__(self) -> Iterator[DeviceKind]:
        return iter(sorted(self._kinds.values(), key=lambda k: (-k.priority, k.name)))


class NameRegistry:
    """Public names that plugins add under ``headrace``."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}

    def add(self, name: str, target: str) -> None:
        """Add a name that stands for ``"module"`` or ``"module:attribute"``.

        Raises:
            PluginError: if another plugin added it; names both.
        """
        known = self._targets.get(name)
        if known is not None and known != target:
            raise PluginError(
                f"the name headrace.{name} is provided twice: by {known} and by {target}; disable "
                "one with HEADRACE_DISABLE_PLUGINS"
            )
        self._targets[name] = target

    def get(self, name: str) -> str | None:
        """Return what a name stands for, or None."""
        return self._targets.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)


__all__: Sequence[str] = [
    "DeviceKind",
    "DeviceRegistry",
    "GradientRegistry",
    "GradientTable",
    "Kernel",
    "KernelRegistry",
    "KernelTable",
    "NameRegistry",
]
