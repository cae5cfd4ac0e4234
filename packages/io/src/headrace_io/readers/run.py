"""Runs of records: some that stand one after the other, as readers hand them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from headrace.extend.kernels import StringRows

# The values of some records; rows where they are of one length and stand side by side.
Values: TypeAlias = list[bytes] | StringRows
# From the first record and the one behind the last to their keys.
Keys: TypeAlias = Callable[[int, int], list[bytes]]


class Run(NamedTuple):
    """Some records.

    Attributes:
        keys: Makes the keys of some of them: few programs look at keys.
        values: The value of each.
    """

    keys: Keys
    values: Values


def numbered(work: bytes, numbers: Sequence[int]) -> Keys:
    """Return what makes keys of the name of a piece of work and a number for each record."""
    # A name may hold what stands for a place in a form.
    form = (work.replace(b"%", b"%%") + b":%d").__mod__
    return lambda start, stop: list(map(form, numbers[start:stop]))


def listed(keys: list[bytes]) -> Keys:
    """Return what gives keys out that are there already."""
    return lambda start, stop: keys[start:stop]


def cut(values: Values, start: int, stop: int) -> Values:
    """Return some of the values."""
    return values[start:stop] if isinstance(values, list) else values.part(start, stop)


def joined(parts: Sequence[Values]) -> Values:
    """Return the values of several runs as those of one."""
    if len(parts) == 1:
        return parts[0]
    rows = [part.rows for part in parts if not isinstance(part, list)]
    if len(rows) == len(parts) and len({part.shape[1] for part in rows}) == 1:
        return StringRows(np.concatenate(rows))
    found: list[bytes] = []
    for part in parts:
        found += part if isinstance(part, list) else part.tolist()
    return found
