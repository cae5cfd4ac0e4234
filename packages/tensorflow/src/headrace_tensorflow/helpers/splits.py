"""``ops.string_ops``: functions that split vectors of strings into sparse tensors."""

from __future__ import annotations

from typing import Any

import headrace as hr


def string_split(
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None
) -> Any:
    """Split strings at any of some bytes, blanks if none are given.

    Args:
        source: [n], string.
        sep: The bytes; each byte by itself is a piece where there are none in it.
        skip_empty: Whether empty pieces are left out.
        delimiter: Another name of ``sep``.

    Returns:
        [n, most pieces], string.
    """
    return hr.string_split(source, sep, skip_empty, delimiter)


def string_split_v2(source: Any, sep: Any = None, maxsplit: int = -1) -> Any:
    """Split strings at a separator, as Python's ``str.split`` does.

    Args:
        source: [n], string.
        sep: The separator; runs of white space if it is None or empty.
        maxsplit: How often to split at most; -1 for no limit.

    Returns:
        [n, most pieces], string.
    """
    split: Any = hr.strings.split  # type: ignore[attr-defined]
    return split(hr.convert_to_tensor(source, hr.string), sep, maxsplit)
