"""Declaring ops that compute each element on its own, with short docstrings.

Such ops differ in what they compute and on which dtypes, and in nothing else: ``pointwise``
writes what their docstrings would all repeat, and ``joined``, ``compared`` and ``like`` are their
rules.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

from headrace import dtypes
from headrace.dtypes import DType
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.spec import like as like
from headrace.ops.declare import Spec, _Declare, op
from headrace.ops.signature import evaluated
from headrace.shapes import broadcast

DISCRETE = "the result is piecewise constant"


def pointwise(type_name: str, *, gives: str = "", sparse: bool = False, **facts: Any) -> _Declare:
    """Declare an elementwise op, as ``@op`` does.

    Its docstring needs to say only what the op computes: the arguments and the result are added
    where it has no ``Args:``.

    Args:
        type_name: The op's name in graphs.
        gives: What the docstring says of the result's dtype; that of the first input if empty.
        sparse: Whether the op's function takes a ``SparseTensor``, too, and returns one. It must
            be 0 at 0.
        **facts: As for ``@op``.
    """
    declare = op(type_name, elementwise=True, **facts)

    def completed(rule: Callable[..., Any]) -> Any:
        doc = rule.__doc__
        if doc and "\n    Args:" not in doc:
            rule.__doc__ = doc.rstrip() + "\n\n" + _usual_sections(rule, gives)
        function = declare(rule)
        return _taking_sparse(function) if sparse else function

    return typing.cast("_Declare", completed)


def on_values(function: Callable[..., Any], x: SparseTensor, name: str | None) -> SparseTensor:
    """Apply a function to the elements of a sparse tensor that are there."""
    return SparseTensor(x.indices, function(x.values, name=name), x.dense_shape)


def _taking_sparse(function: Any) -> Any:
    """Return a function of ``x`` that takes a sparse tensor, too."""

    @functools.wraps(function)
    def taking_sparse(x: Any, name: str | None = None) -> Any:
        if isinstance(x, SparseTensor):
            return on_values(function, x, name)
        return function(x, name=name)

    taking_sparse.__signature__ = function.__signature__  # type: ignore[attr-defined]
    return taking_sparse


def _usual_sections(rule: Callable[..., Any], gives: str) -> str:
    """Return the sections Args and Returns of a docstring."""
    lines = ["    Args:"]
    first = ""
    for name, annotation in rule.__annotations__.items():
        metadata = getattr(evaluated(annotation, rule), "__metadata__", ())
        if name == "return" or not metadata:
            continue
        kind = f"the dtype of ``{first}``" if first else metadata[0].name
        lines.append(f"        {name}: [...], {kind}.")
        first = first or name
    several = len(lines) > 2
    shape = "The broadcast shape" if several else "[...]"
    dtype = gives or f"the dtype of ``{first}``"
    return "\n".join([*lines, "", "    Returns:", f"        {shape}, {dtype}.", "    "])


def joined(x: TensorSpec, *others: TensorSpec, dtype: DType | None = None) -> Spec:
    """Return the spec of what inputs broadcast to, in the dtype of the first or in ``dtype``."""
    shape = x.shape
    for other in others:
        shape = broadcast(shape, other.shape)
    return TensorSpec(x.dtype if dtype is None else dtype, shape)


def compared(x: TensorSpec, *others: TensorSpec) -> Spec:
    """Return the spec of truth values of what inputs broadcast to."""
    return joined(x, *others, dtype=dtypes.bool_)
