"""The parameters of a model, counted by scope and written as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import headrace as hr
from headrace.errors import AttributeValueError, shown, told
from headrace.extend.arguments import items

_HEADINGS = ("scope", "variable", "dtype", "shape", "parameters", "bytes")
# Columns of numbers stand to the right.
_RIGHT = frozenset({"parameters", "bytes"})


class ParameterRow(NamedTuple):
    """A variable of a model.

    Attributes:
        scope: The scopes of its name, "" at the top.
        name: Its name in the scope.
        dtype: The name of its dtype.
        shape: Its sizes, None where they are not known.
        size: Number of elements, None where it is not known.
        nbytes: The bytes that they take, None where they are not known.
        trainable: Whether optimizers change it.
    """

    scope: str
    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    size: int | None
    nbytes: int | None
    trainable: bool


class ModelSummary(NamedTuple):
    """The parameters of a model; ``print`` writes the table.

    Attributes:
        rows: The variables, by scope.
        total: Number of elements of all variables of which it is known.
        trainable: The same, of those that optimizers change.
        nbytes: The bytes that all of them take.
    """

    rows: tuple[ParameterRow, ...]
    total: int
    trainable: int
    nbytes: int

    def by_scope(self, depth: int = 1) -> dict[str, int]:
        """Return the number of elements in each scope.

        Args:
            depth: How many scopes of a name count; deeper ones belong to these.

        Raises:
            AttributeValueError: if it is less than 1.
        """
        if depth < 1:
            raise AttributeValueError(f"depth must be at least 1, got {told(depth)}")
        counts: dict[str, int] = {}
        for row in self.rows:
            scope = "/".join(row.scope.split("/")[:depth])
            counts[scope] = counts.get(scope, 0) + (row.size or 0)
        return counts

    def __str__(self) -> str:
        lines = [_HEADINGS, *map(_cells, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
        written = [_line(line, widths) for line in lines]
        rule = "-" * max(map(len, written))
        total = (
            f"{self.total:,} parameters, {self.trainable:,} of them trainable, "
            f"{self.nbytes:,} bytes"
        )
        return "\n".join([written[0], rule, *written[1:], rule, total])


def _cells(row: ParameterRow) -> tuple[str, ...]:
    shape = str(hr.Shape(row.shape))
    kept = "" if row.trainable else " (not trainable)"
    numbers = ("?" if n is None else f"{n:,}" for n in (row.size, row.nbytes))
    return (row.scope, f"{row.name}{kept}", row.dtype, shape, *numbers)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    aligned = (
        cell.rjust(width) if heading in _RIGHT else cell.ljust(width)
        for cell, width, heading in zip(cells, widths, _HEADINGS, strict=True)
    )
    return "  ".join(aligned).rstrip()


def model_summary(variables: Sequence[Any] | None = None) -> ModelSummary:
    """Return the parameters of a model, as a table to print.

    ``hr.train.summary`` is another name of it.

    Args:
        variables: The variables that count; all global ones of the default graph if None.

    Raises:
        AttributeValueError: if something in the list is no variable.

    Example:
        >>> graph = hr.Graph()
        >>> with graph.as_default():
        ...     w = hr.get_variable("dense/w", [3, 2])
        ...     hr.train.model_summary().total
        6
    """
    found = hr.global_variables() if variables is None else items(variables, "variables")
    for variable in found:
        if not isinstance(variable, hr.Variable):
            raise AttributeValueError(f"expected variables, got {shown(variable)}")
    changed = set(hr.trainable_variables())
    rows = [_row(variable, variable in changed) for variable in found]
    # Of one scope together, in the order in which the scopes begin.
    order = {scope: i for i, scope in reversed(list(enumerate(row.scope for row in rows)))}
    rows.sort(key=lambda row: order[row.scope])
    return ModelSummary(
        tuple(rows),
        sum(row.size or 0 for row in rows),
        sum(row.size or 0 for row in rows if row.trainable),
        sum(row.nbytes or 0 for row in rows),
    )


def _row(variable: hr.Variable, trainable: bool) -> ParameterRow:
    scope, _, name = variable.op_name.rpartition("/")
    plain = hr.Shape(variable.shape)
    shape = None if plain.dims is None else tuple(plain.dims)
    count = math.prod(plain.known) if plain.is_fully_defined() else None
    nbytes = None if count is None else count * variable.dtype.itemsize
    return ParameterRow(scope, name, variable.dtype.name, shape, count, nbytes, trainable)
