"""Printing: aligned columns, and facts below each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def print_json(data: Any) -> None:
    """Print data; what JSON has no form for is printed as its text."""
    print(json.dumps(data, indent=2, default=str))


def table(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def facts(content: Mapping[str, Any], indent: str = "  ") -> list[str]:
    """Return names and values as lines with aligned values; nested ones are indented."""
    width = max((len(name) for name in content), default=0)
    lines: list[str] = []
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{name}", *facts(value, indent + "  ")]
            continue
        first, *more = _text(value).splitlines() or [""]
        lines.append(f"{indent}{name.ljust(width)}  {first}".rstrip())
        lines += [f"{indent}{' ' * width}  {line}" for line in more]
    return lines


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "-"
    if isinstance(value, Mapping):
        return "-"
    return str(value)
