"""Names of files that match a pattern, as ``fnmatch(3)`` of POSIX does within parts of a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from headrace_io.streams import error_of_system

_MAGIC = frozenset("*?[\\")
# The names of sets of characters that POSIX has within brackets, for ASCII.
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": "!-/:-@\\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": r"\x00-\x1f\x7f",
    "xdigit": "0-9a-fA-F",
}


def matching_names(patterns: Iterable[str]) -> list[str]:
    """Return the names of the files and directories that patterns match, sorted.

    A name is listed once for each pattern that matches it. A pattern that begins with no
    directory is one of the current directory, and what it matches begins with ``./``.

    Raises:
        NotFoundError: if the directory that a pattern begins with, before the first part with a
            wildcard, is not there.
    """
    return sorted(name for pattern in patterns for name in _matching(pattern))


def _matching(pattern: str) -> list[str]:
    if not pattern:
        return []
    parts = pattern.split("/")
    if len(parts) == 1 or _MAGIC & {*parts[0]}:
        parts.insert(0, ".")
    fixed = next((i for i, part in enumerate(parts) if _MAGIC & {*part}), len(parts) - 1)
    # The first part of an absolute name is empty, and the folder is the root.
    folder = "/".join(parts[:fixed])
    found = [folder]
    for place in range(fixed, len(parts)):
        wanted = part_expression(parts[place])
        last = place == len(parts) - 1
        found = [
            f"{around}/{name}"
            for around in found
            for name in _names_in(around, folders=not last, must_exist=place == fixed)
            if wanted.fullmatch(name)
        ]
    return found


def _names_in(folder: str, *, folders: bool, must_exist: bool) -> Iterator[str]:
    try:
        with os.scandir(folder or "/") as entries:
            listed = [entry.name for entry in entries if not folders or entry.is_dir()]
    except OSError as error:
        # What vanishes, or may not be read, on the way down matches nothing.
        if must_exist:
            raise error_of_system(error, f"cannot list {folder or '/'!r}") from error
        listed = []
    return iter(listed)


def part_expression(part: str) -> re.Pattern[str]:
    """Return the regular expression that matches what one part of a pattern does."""
    made, at = [], 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            made.append(".*")
        elif letter == "?":
            made.append(".")
        elif letter == "\\" and at < len(part):
            made.append(re.escape(part[at]))
            at += 1
        elif letter == "[" and (end := _bracket_end(part, at)):
            made.append(_bracket(part[at : end - 1]))
            at = end
        else:
            made.append(re.escape(letter))
    return re.compile("".join(made), re.DOTALL)


def _bracket_end(part: str, at: int) -> int:
    """Return the place behind a bracket expression that begins at a place, 0 if it has no end."""
    at += part[at : at + 1] in ("!", "^")
    at += part[at : at + 1] == "]"
    while at < len(part):
        if part.startswith("[:", at) and (end := part.find(":]", at + 2)) > 0:
            at = end + 2
        elif part[at] == "]":
            return at + 1
        else:
            at += 2 if part[at] == "\\" else 1
    return 0


def _bracket(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    rest, made = inside[negated:], []
    while rest:
        known = re.match(r"\[:(\w+):\]", rest)
        if known and known[1] in _CLASSES:
            made.append(_CLASSES[known[1]])
            rest = rest[known.end() :]
            continue
        low, rest = _one_of(rest)
        if rest[:1] == "-" and len(rest) > 1:
            high, rest = _one_of(rest[1:])
            # A range that goes backwards has nothing in it.
            made.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
        else:
            made.append(re.escape(low))
    joined = "".join(made)
    if not joined:
        return "." if negated else r"[^\s\S]"
    return f"[{'^' if negated else ''}{joined}]"


def _one_of(rest: str) -> tuple[str, str]:
    """Return the first character, which a backslash may stand before, and what follows."""
    skip = len(rest) > 1 and rest[0] == "\\"
    return rest[skip], rest[skip + 1 :]
