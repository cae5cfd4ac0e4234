"""The registry of kernels, by op and kind of devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

from headrace.dtypes import DType
from headrace.errors import PluginError, shown
from headrace.graph.schema import OPS
from headrace.plugins.error_attribution import described, line_of_error
from headrace.plugins.expression_kernels import stated_factory
from headrace.plugins.ownership import (
    CORE,
    CORE_PACKAGE,
    PROGRAM,
    Claim,
    Contest,
    Provider,
    package_of,
)
from headrace.plugins.registries.registry import Given, Owners, Registry
from headrace.plugins.tables import Kernel
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class Later:
    """A table that is imported when an op that it may have kernels for is first used.

    Attributes:
        device_kind: The kind of devices.
        target: Its module and name.
        declared_in: The modules that declare the ops; empty for all that the package declares.
    """

    device_kind: str
    target: str
    declared_in: frozenset[str]

    def serves(self, op: str, provider: Provider) -> bool:
        """Whether the table may have a kernel for an op."""
        schema = OPS.get(op)
        if schema is None:
            return False
        if self.declared_in:
            return schema.where.partition(":")[0] in self.declared_in
        return package_of(schema.where) == provider.package


# Where kernels stand that any array module can run, among the kinds of devices.
ARRAY_MODULES = "array modules"


class KernelRegistry(Registry[Kernel]):
    """All kernels, by op and device kind.

    Attributes:
        borrowers: The kinds of devices that run the kernels for array modules.
        later: Tables that are not imported yet.
    """

    hook = "headrace_register_kernels"

    def __init__(self) -> None:
        super().__init__()
        self.borrowers: set[str] = set()
        self.later: list[Later] = []
        self._owners: Owners = lambda key: ()
        self._arriving = threading.RLock()
        # Kernels made of expressions, by op, device kind and dtype; None where there is none.
        self._stated: dict[tuple[str, str, DType | None], Kernel | None] = {}
        # All that were ever made, by identity: steps that threads compile have them for long.
        self._made: dict[int, Kernel] = {}
        # Whether the best kernel is of another package; asked for every node that is compiled.
        self._preferred: dict[tuple[str, str, DType | None, str], bool] = {}

    def add(self, device_kind: str, table: Iterable[Kernel]) -> None:
        """Add a table for one kind of devices.

        Raises:
            PluginError: if two kernels of one priority take the same op, device and dtypes.
        """
        self._check_open()
        self._add(device_kind, table)

    def _add(self, device_kind: str, table: Iterable[Kernel]) -> None:
        added = list(table)
        merged = {
            kernel.op: list(self.offers.get((kernel.op, device_kind), ())) for kernel in added
        }
        for kernel in added:
            known = merged[kernel.op]
            for other in known:
                if other.priority == kernel.priority and other.overlaps(kernel):
                    raise PluginError(
                        f"two kernels for {kernel.op} on {device_kind} with priority "
                        f"{kernel.priority}: at {other.where} and at {kernel.where}; give one a "
                        "higher priority"
                    )
            known.append(kernel)
        for op, kernels in merged.items():
            self.offers[op, device_kind] = sorted(kernels, key=_first_asked)

    def add_later(self, device_kind: str, target: str, declared_in: Collection[str] = ()) -> None:
        """Add a table that is imported when one of its ops is first used.

        Packages with kernels for ops that few programs use do so, as all processes look for the
        kernels of all packages.

        Args:
            device_kind: The kind of devices.
            target: Module and name of the table, as ``"headrace_io.kernels.files:KERNELS"``.
            declared_in: The modules that declare its ops; by default they are all those of the
                package itself.

        Raises:
            PluginError: if the target is none. What is wrong with the table shows when it is used.
        """
        self._check_open()
        module, _, name = target.partition(":")
        if not module or not name:
            raise PluginError(
                f"a table for later is named as 'module:name', as in "
                f"'headrace_io.kernels.files:KERNELS', got {shown(target)}"
            )
        self.later.append(Later(device_kind, target, frozenset(declared_in)))

    def add_for_array_modules(self, table: Iterable[Kernel]) -> None:
        """Add kernels that any array module like NumPy can run, for kinds of devices that ask.

        Raises:
            PluginError: as ``add``.
        """
        self.add(ARRAY_MODULES, table)

    def use_array_kernels(self, device_kind: str) -> None:
        """Let a kind of devices run the kernels that plugins add for array modules.

        Ops for which the kind has kernels of its own keep these first.
        """
        self._check_open()
        self.borrowers.add(device_kind)

    def join(self, given: Given, owners: Owners) -> dict[Provider, str]:
        """Become what all the given registries are together; see ``Registry``."""
        # New ones: a thread that fills the old ones fills them with what was joined before.
        self._stated, self._preferred = {}, {}
        self._owners = owners
        # Who offers kernels for the ops of others meets all that these have.
        sought = [
            (provider, op)
            for provider, registry in given
            if not provider.own
            for op, _ in registry.offers
            if provider.package not in owners((op, ""))
        ]
        for provider, registry in given if sought else ():
            if isinstance(registry, KernelRegistry):
                registry.import_tables(provider, {op for who, op in sought if who != provider})
        return super().join(given, owners)

    def _spread(self, joined: dict[Any, list[Kernel]], given: Given) -> None:
        borrowers = {
            kind
            for _, registry in given
            if isinstance(registry, KernelRegistry)
            for kind in registry.borrowers
        }
        for op in [op for op, kind in joined if kind == ARRAY_MODULES]:
            shared = joined.pop((op, ARRAY_MODULES))
            for kind in sorted(borrowers):
                joined[op, kind] = [*joined.get((op, kind), ()), *shared]

    def import_tables(self, provider: Provider, ops: Collection[str] | None = None) -> None:
        """Import what a provider, whose registry this is, added for later.

        Args:
            provider: The provider.
            ops: Only the tables that may have kernels for one of these; None for all.

        Raises:
            PluginError: if a table cannot be imported, or has kernels for other ops.
        """
        for table in list(self.later):
            if ops is None or any(table.serves(op, provider) for op in ops):
                self._add(table.device_kind, _imported(table, provider))
                # Only now: who asks again after a failure is told of it again.
                self.later.remove(table)

    def arrive(self, op: str = "") -> None:
        """Import the tables for later that may have kernels for an op, or all where it is empty."""
        with self._arriving:
            waiting = [
                (provider, registry)
                for provider, registry in self._given
                if isinstance(registry, KernelRegistry)
                and any(not op or table.serves(op, provider) for table in registry.later)
            ]
            for provider, registry in waiting:
                registry.import_tables(provider, [op] if op else None)
            if waiting:
                refused = self.join(self._given, self._owners)
                if refused:
                    raise PluginError("; ".join(refused.values()))

    def provider(self, key: tuple[str, str], offer: Kernel) -> Provider:
        """Return who offers a kernel in a joined registry; core, for one made of an expression."""
        if id(offer) in self._made:
            return CORE
        found = super().provider(key, offer)
        return found if found is not PROGRAM else super().provider((key[0], ARRAY_MODULES), offer)

    def _thing(self, key: tuple[str, str]) -> str:
        return f"the kernel for {key[0]} on {key[1]}"

    def _claim(self, provider: Provider, offer: Kernel) -> Claim:
        return Claim(provider, offer.where, offer.override, offer.priority, offer.dtypes)

    def _ranked(self, contest: Contest, offers: Sequence[tuple[Claim, Kernel]]) -> list[Kernel]:
        ranked = sorted(offers, key=lambda made: contest.standing(made[0].provider))
        return sorted((kernel for _, kernel in ranked), key=_first_asked)

    def candidates(self, op: str, device_kind: str, dtype: DType | None) -> list[Kernel]:
        """Return the kernels that take ``dtype``, best first.

        The last resort is the op's expression, computed with the kernels of its functions.
        """
        if (op, device_kind) not in self.offers:
            self.arrive(op)
        found = [k for k in self.offers.get((op, device_kind), ()) if k.accepts(dtype)]
        if all(kernel.style == "specialized" for kernel in found):
            stated = self._stated_kernel(op, device_kind, dtype)
            return found if stated is None else [*found, stated]
        return found

    def covers(self, op: str, device_kind: str, dtype: DType | None) -> bool:
        """Whether some kernel takes ``dtype``."""
        return bool(self.candidates(op, device_kind, dtype))

    def prefers(self, op: str, device_kind: str, dtype: DType | None, package: str) -> bool:
        """Whether the best kernel for an op is to be used instead of what its device compiles.

        It is where somebody installed it to be used: it is not of the device's package. Whoever
        declares an op with an expression leaves it to compilers, and its plain kernel is for where
        there is none.

        Args:
            op: The op.
            device_kind: The kind of the device.
            dtype: The dtype of the op's first input.
            package: The device's import package.
        """
        key = (op, device_kind, dtype, package)
        preferred = self._preferred
        found = preferred.get(key)
        if found is None:
            kernels = self.candidates(op, device_kind, dtype)
            found = bool(kernels) and self.is_preferred(kernels[0], device_kind, package)
            preferred[key] = found
        return found

    def is_preferred(self, kernel: Kernel, device_kind: str, package: str) -> bool:
        """Whether a kernel is to be used instead of what its device compiles; see ``prefers``."""
        theirs = self.provider((kernel.op, device_kind), kernel).package
        if theirs in ("", CORE_PACKAGE, package):
            return False
        schema = OPS[kernel.op]
        # Who declares an op with an expression, or as a view, leaves it to compilers, and its
        # plain kernel is for where there is none.
        stated = schema.expression is not None or schema.view
        own = package_of(schema.where) == theirs
        return not (stated and own and kernel.style == "plain")

    def _stated_kernel(self, op: str, device_kind: str, dtype: DType | None) -> Kernel | None:
        """Return the kernel that computes an op as its declaration states, if it states that."""
        key = (op, device_kind, dtype)
        stated = self._stated
        if key not in stated:

            def find(of: str, taken: DType) -> Callable[..., Any] | None:
                kernels = self.offers.get((of, device_kind), ())
                plain = (k.function for k in kernels if k.style == "plain" and k.accepts(taken))
                return next(plain, None)

            made = stated_factory(op, dtype, find)
            kernel = None if made is None else Kernel(op, made, "specialized", where=OPS[op].where)
            if kernel is not None:
                self._made[id(kernel)] = kernel
            # Threads that ask for it at once get the same one.
            stated.setdefault(key, kernel)
        return stated[key]

    def devices_of(self, op: str) -> list[str]:
        """Return the device kinds that have a kernel for an op."""
        self.arrive(op)
        kinds = {kind for name, kind in self.offers if name == op}
        others = {kind for _, kind in self.offers} - kinds
        return sorted(kinds | {k for k in others if self._stated_kernel(op, k, None) is not None})

    def dtypes_of(self, op: str, device_kind: str) -> list[str]:
        """Return the dtypes that an op's kernels on a device take, ``["any"]`` for all."""
        self.arrive(op)
        kernels = self.offers.get((op, device_kind), [])
        if not kernels:
            return ["as its expression"] if self.covers(op, device_kind, None) else []
        if any(k.dtypes is None for k in kernels):
            return ["any"]
        return sorted({name for k in kernels for name in k.dtypes or ()})


def _imported(later: Later, provider: Provider) -> list[Kernel]:
    module, _, name = later.target.partition(":")
    try:
        table = list(getattr(import_module(module), name))
    except Exception as error:
        raise PluginError(
            f"the kernels {later.target!r} of {provider} cannot be imported: {described(error)} "
            f"(at {line_of_error(error, import_module)})"
        ) from error
    foreign = sorted({kernel.op for kernel in table if not later.serves(kernel.op, provider)})
    if foreign:
        where = (
            "other modules than it named declare" if later.declared_in else "it does not declare"
        )
        raise PluginError(
            f"the kernels {later.target!r} of {provider} are for ops that {where}: "
            f"{', '.join(foreign)}; add these with add(), so that all see them"
        )
    return table


def _first_asked(kernel: Kernel) -> tuple[bool, int]:
    return not kernel.override, -kernel.priority
