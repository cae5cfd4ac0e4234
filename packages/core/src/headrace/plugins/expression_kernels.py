"""Kernels of ops that have none, made of the expressions that their declarations state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.dtypes import DType
from headrace.graph.schema import OPS
from headrace.scalars.expression import expression_of, sample_expression
from headrace.scalars.interpret import Find, computable, interpreter


def stated_factory(
    op_type: str, dtype: DType | None, find: Find
) -> Callable[[Any], Callable[..., Any] | None] | None:
    """Return the factory of a specialized kernel that computes an op's expression step by step.

    Args:
        op_type: The op.
        dtype: The dtype of its first input, None for any.
        find: Returns a device's plain kernel of an op for a dtype.

    Returns:
        None where the op states no expression for the dtype, or one of functions for which the
        device has no kernels.
    """
    schema = OPS.get(op_type)
    if schema is None or schema.expression is None:
        return None
    sample = sample_expression(schema, dtype)
    if sample is None or not computable(sample, find):
        return None

    def made(node: Any) -> Callable[..., Any] | None:
        expression = expression_of(node.op)
        if expression is None or not computable(expression, find):
            return None
        return interpreter(expression, node.device.xp, find)

    return made
