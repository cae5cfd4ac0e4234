"""Scopes under the names and in the order of arguments that TensorFlow had before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.graph.scopes import name_scope
from headrace.ops.variable_scope import VariableScope, variable_scope


@contextmanager
def op_scope(
    values: Sequence[Any], name: str | None, default_name: str | None = None
) -> Iterator[str]:
    """Open ``name_scope(name, default_name, values)``.

    Args:
        values: Tensors of the graph to use.
        name: The name; ``default_name`` if None.
        default_name: The name where none is given.

    Yields:
        The scope.
    """
    with name_scope(name, default_name, values) as scope:
        yield scope


@contextmanager
def variable_op_scope(
    values: Sequence[Any],
    name_or_scope: Any,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:
    """Open ``variable_scope(name_or_scope, default_name, values, ...)``.

    Args:
        values: Tensors of the graph to use.
        name_or_scope: As for ``variable_scope``, and the others likewise.
        default_name: The name where none is given.
        initializer: Makes initial values.
        regularizer: A function of the variable.
        caching_device: Ignored.
        partitioner: Says into how many parts variables are divided.
        custom_getter: Called in place of ``get_variable``.
        reuse: Whether to find variables made before.
        dtype: The dtype of variables.
        use_resource: Ignored.
        constraint: What optimizers apply.

    Yields:
        The scope.
    """
    with variable_scope(
        name_or_scope,
        default_name,
        values,
        initializer,
        regularizer,
        caching_device,
        partitioner,
        custom_getter,
        reuse,
        dtype,
        use_resource,
        constraint,
    ) as scope:
        yield scope
