"""The text of messages: values on one line, cut to a length, whatever their ``repr`` does."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable

MAX_LINES = 12
MAX_LETTERS = 4000
# More lines and names than any message is made of; an iterable may have no end.
_MOST = 1 << 20


def shown(value: object, length: int = 120) -> str:
    """Return a value as messages show it: in one line, cut, and whatever its ``repr`` does.

    Args:
        value: Any object of the program.
        length: How many letters are shown at most; what is longer ends in dots.
    """
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} nested deeper than Python can show"
    except Exception:
        # Whatever is wrong with a value, the message about it comes.
        if isinstance(value, int):
            return f"an integer of {int.bit_length(value)} bits"
        return f"a {type(value).__name__} that cannot be shown"
    if "\n" in text:
        # Arrays are written in lines, and a message has few of them.
        text = " ".join(text.split())
    return _cut(text, length)


def _cut(text: str, length: int) -> str:
    length = operator.index(length)
    return text if len(text) <= length else f"{text[: length - 3]}..."


def told(value: object, length: int = 200) -> str:
    """Return a value as messages quote it: texts as they are, others as ``str`` has them.

    Like ``shown``, it is one line, cut, and comes whatever the value does.

    Args:
        value: Any object of the program.
        length: How many letters are shown at most; what is longer ends in dots.
    """
    try:
        text = str(value)
    except Exception:
        return shown(value, length)
    if "\n" in text:
        text = " ".join(text.split())
    return _cut(text, length)


def bounded(text: str) -> str:
    """Return a message of at most ``MAX_LINES`` lines and ``MAX_LETTERS`` letters.

    The beginning and the end stay: what is wrong, and the line of the user's program.
    """
    if len(text) > MAX_LETTERS:
        # Texts of the program are what is long: each is told by its beginning.
        text = re.sub(r"\S{201,}", lambda word: f"{word[0][:197]}...", text)
    if text.count("\n") >= MAX_LINES:
        lines = text.splitlines()
        if len(lines) > MAX_LINES:
            left = len(lines) - MAX_LINES + 1
            text = "\n".join([*lines[:8], f"  ... {left} more lines ...", *lines[-3:]])
    if len(text) > MAX_LETTERS:
        left = len(text) - MAX_LETTERS + 100
        head = (MAX_LETTERS - 100) * 2 // 3
        text = f"{text[:head]} ... {left} more letters ... {text[head + left :]}"
    return text


def shorten(lines: Iterable[str], limit: int = MAX_LINES) -> str:
    """Join ``lines``, keeping at most ``limit`` and saying how many were left out."""
    kept = [line for text in itertools.islice(lines, _MOST) for line in text.splitlines()]
    limit = max(operator.index(limit), 1)
    if len(kept) <= limit:
        return "\n".join(kept)
    return "\n".join([*kept[: limit - 1], f"  ... and {len(kept) - limit + 1} more lines"])


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Return ``names`` comma-separated, the rest beyond ``limit`` counted."""
    items = list(itertools.islice(names, _MOST))
    limit = max(operator.index(limit), 0)
    text = ", ".join(items[:limit])
    return text if len(items) <= limit else f"{text} and {len(items) - limit} more"
