"""Settings that come from the environment: what one is, and those of core.

A package declares its settings as module-level ``Setting``s, reads them where it needs them, and
registers them in the hook ``headrace_register_settings``, so that ``python -m headrace doctor``
and the documentation show them. Nobody else knows their names.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.errors import ConfigError, shown
from headrace.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

PREFIX = "HEADRACE_"


@dataclass(frozen=True, slots=True, eq=False)
class Setting(Generic[T]):
    """An environment variable that a package reads.

    Attributes:
        variable: Its name, as in ``"HEADRACE_CACHE"``.
        parse: Makes a value of its text; what it raises as ``ValueError`` says what is expected.
        default: The value where it is unset or empty.
        doc: What it is for, as one line of the documentation.
        fault: Returns what is wrong with a value that can be read but not be used, such as a file
            that does not exist; empty where nothing is.
    """

    variable: str
    parse: Callable[[str], T]
    default: T
    doc: str
    fault: Callable[[T], str] = lambda value: ""

    def read(self) -> T:
        """Return the value that the environment has now; warn, once, of one that is of no use.

        Raises:
            ConfigError: if the variable has a value that it does not take.
        """
        value = self._value()
        fault = self.fault(value)
        if fault and (self.variable, fault) not in _TOLD:
            _TOLD.add((self.variable, fault))
            warnings.warn(self._faulty(fault), RuntimeWarning, stacklevel=2)
        return value

    def problem(self) -> str:
        """Return what is wrong with the variable's value, for reports; empty where nothing is."""
        try:
            fault = self.fault(self._value())
        except ConfigError as error:
            return str(error)
        return self._faulty(fault) if fault else ""

    def is_wrong(self) -> bool:
        """Whether the variable has a value that it does not take."""
        try:
            self._value()
        except ConfigError:
            return True
        return False

    def _value(self) -> T:
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as expected:
            raise ConfigError(f"{self.variable} must be {expected}, got {shown(text)}") from None

    def _faulty(self, fault: str) -> str:
        given = shown(os.environ.get(self.variable, "").strip(), 200)
        return f"{self.variable} is {given}, which {fault}"


# Faults that were told; a program that reads a setting in each step is told of it once.
_TOLD: set[tuple[str, str]] = set()


# -- what texts mean


def text(value: str) -> str:
    """Return a text as it is."""
    return value


def switch(value: str) -> bool:
    """Return whether a text switches something on: anything but 0 does."""
    return value != "0"


def names(value: str) -> frozenset[str]:
    """Return the names in a comma-separated text."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def whole_number(least: int = 1) -> Callable[[str], int]:
    """Return what reads a whole number of at least ``least``."""

    def parse(value: str) -> int:
        found = int(value) if re.fullmatch(r"[+-]?\d{1,18}", value) else None
        if found is None or found < least:
            bound = "above 0" if least == 1 else f"of at least {least}"
            raise ValueError(f"a whole number {bound}")
        return found

    return parse


# A year: no clock is asked to wait for longer.
_MOST_SECONDS = 366.0 * 24 * 3600


def seconds(value: str) -> float:
    """Return a number above 0, of a year at most.

    Raises:
        ValueError: if the text is none.
    """
    try:
        found = float(value)
    except ValueError:
        found = 0.0
    if not found > 0:
        raise ValueError("a number above 0")
    return min(found, _MOST_SECONDS)


_MOST_BYTES = 2.0**63
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def size(value: str) -> int:
    """Return a number of bytes.

    Raises:
        ValueError: if the text is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|KiB|MiB|GiB)", value)
    number = float(match[1]) * _UNITS[match[2]] if match else 0.0
    found = int(number) if number < _MOST_BYTES else 0
    if found <= 0:
        raise ValueError("a number of bytes above 0, or one of KiB, MiB or GiB as in 8GiB")
    return found


def choice(*choices: str) -> Callable[[str], str]:
    """Return what reads one of some words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(" or ".join(choices))
        return value

    return parse


def missing_file(value: str | None) -> str:
    """Return what is wrong with the path of a file that is to exist; bare names are not looked at.

    Whoever loads a library looks for a bare name, as in ``"libdnnl.so"``, in places of its own.
    """
    if value is None or os.sep not in value:
        return ""
    # lazy: few settings are files, and it takes a twentieth of the time of `import headrace`
    from pathlib import Path

    if Path(value).expanduser().is_file():
        return ""
    return "is no file that exists: name another one, or unset it"


# -- the settings of core

DISABLE_PLUGINS = Setting[frozenset[str]](
    "HEADRACE_DISABLE_PLUGINS",
    names,
    frozenset(),
    "comma-separated names of plugins that are not loaded",
)
EXECUTOR = Setting(
    "HEADRACE_EXECUTOR",
    choice("plan", "plain"),
    "plan",
    "plan or plain: what runs steps unless hr.Config says (default plan)",
)
CHECK_RACES = Setting(
    "HEADRACE_CHECK_RACES",
    switch,
    False,
    "1 refuses steps that use a variable twice in no order, unless hr.Config says",
)
COMPILE_AFTER = Setting(
    "HEADRACE_COMPILE_AFTER",
    whole_number(least=0),
    2,
    "steps before kernels are made, unless hr.Config says (default 2)",
)
COMPILE_WAIT = Setting(
    "HEADRACE_COMPILE_WAIT",
    switch,
    False,
    "1 lets steps wait for their kernels rather than run plainly meanwhile, unless hr.Config says",
)
WAIT_REPORT = Setting(
    "HEADRACE_WAIT_REPORT",
    seconds,
    60.0,
    "seconds that a step waits for a queue before it says so, unless hr.Config says (default 60)",
)
CACHE = Setting[str | None](
    "HEADRACE_CACHE", text, None, "folder of compiled kernels (default ~/.cache/headrace)"
)
FAULTS = Setting(
    "HEADRACE_FAULTS",
    text,
    "",
    "for tests: faults that processes of a job inject into themselves, as in "
    '"worker:1 transfer kill 10"',
)
CACHE_SIZE = Setting(
    "HEADRACE_CACHE_SIZE",
    size,
    256 * 2**20,
    "size of the compiled kernels that are kept, as in 1GiB (default 256MiB)",
)
TRACEBACK = Setting(
    "HEADRACE_TRACEBACK",
    choice("short", "full"),
    "short",
    "short or full: whether tracebacks of mistakes show frames of Headrace (default short)",
)
QUIET = Setting(
    "HEADRACE_QUIET", switch, False, "1 keeps reports of compiling and notices off stderr"
)
CORE_SETTINGS: tuple[Setting[Any], ...] = (
    DISABLE_PLUGINS,
    EXECUTOR,
    CHECK_RACES,
    COMPILE_AFTER,
    COMPILE_WAIT,
    WAIT_REPORT,
    CACHE,
    CACHE_SIZE,
    FAULTS,
    TRACEBACK,
    QUIET,
)


def cache_folder() -> Path:
    """Return where compiled kernels are kept; each package has a folder of its own in it."""
    # lazy: a twentieth of the time of `import headrace`, which needs no path
    from pathlib import Path

    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(CACHE.read() or Path(base, "headrace")).expanduser()


# -- mistakes


def unknown_variables(known: Iterable[str]) -> dict[str, str]:
    """Return the variables of the environment that look like Headrace's, and that nobody reads.

    Args:
        known: The variables that are read.

    Returns:
        For each the nearest one that is read, empty where none is near: it may be that of a
        package that is not installed here.
    """
    known = set(known)
    unknown = [name for name in sorted(os.environ) if name.startswith(PREFIX)]
    return {name: nearest(name, known, PREFIX) for name in unknown if name not in known}


def nearest(name: str, known: Iterable[str], prefix: str = "", alike: float = 0.75) -> str:
    """Return the name that was probably meant, empty where none is near.

    Args:
        name: What was written.
        known: The names that there are.
        prefix: What all begin with, and what tells nothing.
        alike: How alike two names are that may be meant for each other, from 0 to 1.
    """
    # lazy: for those who make mistakes
    import difflib

    ends = {other.removeprefix(prefix): other for other in known}
    found = difflib.get_close_matches(name.removeprefix(prefix), ends, 1, alike)
    return ends[found[0]] if found else ""
