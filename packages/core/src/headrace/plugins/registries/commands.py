"""The registry of commands of ``python -m headrace``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from headrace.errors import PluginError, shown
from headrace.plugins.ownership import check_reason
from headrace.plugins.registries.registry import Registry
from headrace.records import dataclass

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_TARGET = re.compile(r"[\w.]+:\w+")


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a plugin adds.

    Attributes:
        target: The function that runs it, as ``"module:function"``.
        help: One line on what it does.
        where: Module and line that registered it.
        override: Why it replaces the command of another package; empty where it does not.
    """

    target: str
    help: str
    where: str
    override: str = ""


class CommandRegistry(Registry[Command]):
    """Commands of ``python -m headrace``, by the word that calls them."""

    hook = "headrace_register_commands"

    def add(self, name: str, target: str, help: str, *, override: str = "") -> None:
        """Add a command.

        Args:
            name: The word that calls it.
            target: ``"module:function"``; imported when the command is called. The function takes
                the words that follow, a list, and returns the exit code. What it raises as a
                ``HeadraceError`` is printed, and the exit code is 2.
            help: One line on what it does, as it stands in the list of commands.
            override: Why it replaces the command of another package.

        Raises:
            PluginError: if it was added already, or is no such word or target.
        """
        if not _NAME.fullmatch(name) or not _TARGET.fullmatch(target):
            raise PluginError(
                "a command is a word in small letters and its function is 'module:function', got "
                f"{shown(name)} and {target!r}"
            )
        frame = sys._getframe(1)
        where = f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"
        known = self.offers.get(name)
        if known:
            raise PluginError(
                f"the command {name} is added twice: at {known[0].where} and at {where}; remove one"
            )
        self._put(name, Command(target, help, where, check_reason(override)))

    def _thing(self, key: str) -> str:
        return f"the command {key}"

    def get(self, name: str) -> Command | None:
        """Return the command that a word calls, or None."""
        found = self.offers.get(name)
        return found[0] if found else None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.offers))
