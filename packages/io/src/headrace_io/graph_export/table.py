"""All rows of this package."""

from __future__ import annotations

from headrace_io.graph_export.node import Rule
from headrace_io.graph_export.rows import (
    arrays,
    control,
    elementwise,
    linear_algebra,
    networks,
    reductions,
    texts,
)

_FAMILIES = (arrays, control, elementwise, linear_algebra, networks, reductions, texts)

# By the type of the operation.
RULES: dict[str, Rule] = {
    kind: rule for family in _FAMILIES for kind, rule in family.ROWS.rules.items()
}
