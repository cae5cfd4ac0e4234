"""The registry of schemes of session targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace.errors import PluginError, shown
from headrace.plugins.ownership import (
    check_reason,
    line_of_function,
)
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config
from headrace.plugins.registries.registry import Registry


@dataclass(frozen=True, slots=True)
class Target:
    """A scheme of session targets.

    Attributes:
        open: ``open(target, config)`` returns the runtime behind a target.
        where: Module and line of that function.
        override: Why it replaces the scheme of another package; empty where it does not.
    """

    open: Callable[[str, Config], Runtime]
    where: str
    override: str = ""


class TargetRegistry(Registry[Target]):
    """Schemes of session targets: what stands before the colon, as ``mpi`` in ``"mpi:1"``."""

    hook = "headrace_register_targets"

    def add(
        self, scheme: str, open: Callable[[str, Config], Runtime], *, override: str = ""
    ) -> None:
        """Add a scheme.

        Args:
            scheme: What stands before the colon of its targets.
            open: ``open(target, config)``, which returns the runtime of a session. Called once per
                session; it refuses a target with a ``HeadraceError``.
            override: Why it replaces the scheme of another package.

        Raises:
            PluginError: if it was added already, or is no scheme.
        """
        if not scheme or ":" in scheme:
            raise PluginError(
                "a scheme is what stands before the colon of a target, as in 'mpi', got "
                f"{shown(scheme)}"
            )
        where = line_of_function(open)
        known = self.offers.get(scheme)
        if known:
            raise PluginError(
                f"the session targets {scheme}:... are provided twice: at {known[0].where} and at "
                f"{where}; remove one"
            )
        self._put(scheme, Target(open, where, check_reason(override)))

    def _thing(self, key: str) -> str:
        return f"the opener of session targets {key}:..."

    def get(self, scheme: str) -> Target | None:
        """Return who opens targets of a scheme, or None."""
        found = self.offers.get(scheme)
        return found[0] if found else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.offers)
