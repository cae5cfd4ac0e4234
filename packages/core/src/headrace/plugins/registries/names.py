"""The registry of public names under ``headrace``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.errors import PluginError
from headrace.plugins.ownership import (
    Claim,
    check_reason,
)
from headrace.plugins.registries.registry import Registry
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class PublicName:
    """A name under ``headrace``.

    Attributes:
        where: ``"module"`` or ``"module:attribute"``, which it stands for.
        override: Why it replaces the name of another package; empty where it does not.
    """

    where: str
    override: str = ""


class NameRegistry(Registry[PublicName]):
    """Public names that plugins add under ``headrace``, or in a namespace there.

    A name in a namespace has a dot: ``"image.decode_png"``. The namespace may be core's or
    another plugin's; what it has itself comes first.
    """

    hook = "headrace_register_names"

    def __init__(self, reserved: Callable[[str], Claim | None] = lambda name: None) -> None:
        """Start empty.

        Args:
            reserved: Returns the claim of who has a name that no plugin offers, if anybody has.
        """
        super().__init__()
        self._reserved = reserved

    def add(self, name: str, target: str, *, override: str = "") -> None:
        """Add a name that stands for ``"module"`` or ``"module:attribute"``.

        Args:
            name: A name under ``headrace``, or one in a namespace, as in ``"image.decode_png"``.
            target: Where it stands; imported when a program uses the name.
            override: Why it replaces the name of another package.

        Raises:
            PluginError: if it was added already; names both targets. If it is no name.
        """
        if not all(part.isidentifier() for part in name.split(".")) or name.count(".") > 1:
            raise PluginError(
                f"{name!r} is no public name: expected one, as in 'decode_raw', or a namespace and "
                "one, as in 'image.decode_png'"
            )
        known = self.offers.get(name)
        if known and known[0].where != target:
            raise PluginError(
                f"the name headrace.{name} is provided twice: by {known[0].where} and by {target}; "
                "remove one"
            )
        if not known:
            self._put(name, PublicName(target, check_reason(override)))

    def _thing(self, key: str) -> str:
        return f"the name headrace.{key}"

    def _declared(self, key: str) -> Claim | None:
        return self._reserved(key)

    def get(self, name: str) -> str | None:
        """Return what a name stands for, or None."""
        found = self.offers.get(name)
        return found[0].where if found else None

    def within(self, namespace: str) -> list[str]:
        """Return the names that are added in a namespace, without it; "" for ``headrace``."""
        parted = (name.rpartition(".") for name in self.offers)
        return [last for around, _, last in parted if around == namespace]

    def __iter__(self) -> Iterator[str]:
        return iter(self.offers)
