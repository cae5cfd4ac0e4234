"""All translations of this package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from headrace.extend.translations import Translation
from headrace_io.translation.rows import (
    arrays,
    control,
    elementwise,
    images,
    linear_algebra,
    lists,
    networks,
    optimizers,
    reductions,
    sparse,
    tables,
    texts,
    variables,
)

_FAMILIES = (
    *(arrays, control, elementwise, images, linear_algebra, lists, networks, optimizers),
    *(reductions, sparse, tables, texts, variables),
)


def translations() -> Iterator[Translation]:
    """Return the rows of all families."""
    return chain.from_iterable(family.ROWS for family in _FAMILIES)
