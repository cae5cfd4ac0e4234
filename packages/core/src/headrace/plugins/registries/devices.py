"""The registry of kinds of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from headrace.dtypes import as_dtype
from headrace.errors import PluginError
from headrace.plugins.ownership import (
    check_reason,
    line_of_function,
)
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.runtime.devices.device import Device
    from headrace.runtime.devices.options import DeviceOption
from headrace.plugins.registries.registry import Registry


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of devices that a plugin provides.

    Attributes:
        name: As in ``"cpu"``.
        count: Returns how many there are; 0 where the hardware or a library is missing.
        factory: Opens device number ``index`` under a full name.
        priority: Where nothing else decides, operations go to the kind with the highest.
        why_none: Returns why ``count`` is 0, for messages.
        where: Module and line of the factory.
        dtypes: Names of the dtypes that its arrays can have, None for all. Nothing that takes or
            yields another one is placed there.
        override: Why it replaces the kind of another package; empty where it does not.
        options: What sessions may ask of its devices, beside what goes for all.
        virtual: Whether its devices are names for one and the same thing, as the CPUs of a process
            are: a session gets as many as it asks for, values pass between them as they are, and
            each compiles what any of them does.
    """

    name: str
    count: Callable[[], int]
    factory: Callable[..., Device]
    priority: int = 0
    why_none: Callable[[], str] = field(default=lambda: "")
    where: str = ""
    dtypes: frozenset[str] | None = None
    override: str = ""
    options: tuple[DeviceOption, ...] = ()
    virtual: bool = False


class DeviceRegistry(Registry[DeviceKind]):
    """The kinds of devices."""

    hook = "headrace_register_devices"

    def add(
        self,
        name: str,
        *,
        count: Callable[[], int],
        factory: Callable[..., Device],
        priority: int = 0,
        why_none: Callable[[], str] = lambda: "",
        dtypes: Iterable[Any] | None = None,
        override: str = "",
        options: Iterable[DeviceOption] = (),
        virtual: bool = False,
    ) -> None:
        """Add a kind of devices; see ``DeviceKind`` for the arguments.

        Raises:
            PluginError: if the kind was added already; names both places.
        """
        where = line_of_function(factory)
        known = self.offers.get(name)
        if known:
            raise PluginError(
                f"device kind {name!r} is provided twice: by {known[0].where} and by {where}; "
                "remove one"
            )
        held = None if dtypes is None else frozenset(as_dtype(d).name for d in dtypes)
        reason = check_reason(override)
        taken = tuple(options)
        kind = DeviceKind(
            name, count, factory, priority, why_none, where, held, reason, taken, virtual
        )
        self._put(name, kind)

    def _thing(self, key: str) -> str:
        return f"the device kind {key!r}"

    def get(self, name: str) -> DeviceKind | None:
        """Return a kind, or None."""
        kinds = self.offers.get(name)
        return kinds[0] if kinds else None

    def owner(self, name: str) -> str:
        """Return the import package that provides a kind, empty where none does."""
        kind = self.get(name)
        return "" if kind is None else self.provider(name, kind).package

    def __iter__(self) -> Iterator[DeviceKind]:
        kinds = (kinds[0] for kinds in self.offers.values())
        return iter(sorted(kinds, key=lambda k: (-k.priority, k.name)))
