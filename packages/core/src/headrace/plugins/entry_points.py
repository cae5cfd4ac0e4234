"""Entry points of plugins, read from the folders of installed distributions.

``importlib.metadata`` finds them, too, and takes longer to be imported than all of Headrace's
plugins together: it knows e-mail headers, archives and more. What is needed here is one file of
each distribution. Where something could be installed in another way, it is asked after all.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    from importlib.metadata import PathDistribution

_FILE = "entry_points.txt"
_ENDINGS = (".dist-info", ".egg-info")
# As the standard library reads what an entry point names: a module, an attribute, extras.
_VALUE = re.compile(r"(?P<module>[\w.]+)\s*(:\s*(?P<attr>[\w.]+)\s*)?((?P<extras>\[.*\])\s*)?$")


class Entry(Protocol):
    """An entry point, as ``importlib.metadata.EntryPoint``."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def value(self) -> str:
        """What it names."""

    def load(self) -> Any:
        """Import what it names."""


@final
class FoundEntry:
    """An entry point of an installed distribution.

    Attributes:
        name: Its name.
        value: The module, or module and attribute, that it names.
        group: Its group.
    """

    __slots__ = ("_folder", "group", "name", "value")

    def __init__(self, name: str, value: str, group: str, folder: str) -> None:
        """Take what a file says; ``folder`` is the distribution's."""
        self.name = name
        self.value = value
        self.group = group
        self._folder = folder

    def load(self) -> Any:
        """Import what it names.

        Raises:
            ValueError: if that is not written as a module, or a module and an attribute.
        """
        match = _VALUE.match(self.value)
        if match is None:
            raise ValueError(
                f"the entry point {self.name!r} of {self._folder} must name a module, as in "
                f"'package.plugin', got {self.value!r}"
            )
        found: Any = import_module(match["module"])
        for part in (match["attr"] or "").split("."):
            found = getattr(found, part) if part else found
        return found

    @property
    def dist(self) -> PathDistribution:
        """The distribution."""
        # lazy: few messages name it
        from importlib.metadata import PathDistribution
        from pathlib import Path

        return PathDistribution(Path(self._folder))

    def __repr__(self) -> str:
        return f"FoundEntry({self.name!r}, {self.value!r}, {self.group!r})"


def found_entries(group: str) -> Sequence[Entry]:
    """Return the entry points of a group, those that ``importlib.metadata`` would find."""
    places = [place or os.curdir for place in sys.path]
    if _has_others(places):
        from importlib.metadata import entry_points

        return list(entry_points(group=group))
    found: list[Entry] = []
    seen: set[str] = set()
    for folder, name in _distributions(places):
        # Of two distributions of one name the first one counts.
        if name not in seen:
            seen.add(name)
            found += _entries(folder, group)
    return found


def _has_others(places: Iterable[str]) -> bool:
    """Whether distributions may be elsewhere than in folders: in archives, or as a finder says."""
    finders = [f for f in sys.meta_path if f is not PathFinder]
    return any(hasattr(finder, "find_distributions") for finder in finders) or any(
        place.endswith(".egg") or os.path.isfile(place)  # noqa: PTH113 - pathlib takes long, too
        for place in places
    )


def _distributions(places: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the folder and the normalized name of each distribution."""
    for place in dict.fromkeys(places):
        try:
            with os.scandir(place) as inside:
                entries = [entry for entry in inside if entry.name.lower().endswith(_ENDINGS)]
        except OSError:
            continue
        for entry in entries:
            project = entry.name.lower().rpartition(".")[0].partition("-")[0]
            yield entry.path, re.sub(r"[-_.]+", "_", project)


def _entries(folder: str, group: str) -> Iterator[FoundEntry]:
    """Yield the entry points of a group that a distribution's file lists."""
    try:
        with open(f"{folder}{os.sep}{_FILE}", encoding="utf-8") as file:  # noqa: PTH123 - as above
            text = file.read()
    except OSError:
        return
    section = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            section = stripped.strip("[]")
        elif section == group:
            name, _, value = stripped.partition("=")
            yield FoundEntry(name.strip(), value.strip(), group, folder)
