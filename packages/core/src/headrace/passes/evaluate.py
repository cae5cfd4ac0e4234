"""Computing an operation on the host before a step runs, with the plain kernels of the cpu."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.dtypes import DType
from headrace.graph.operation import Operation
from headrace.plugins.kernel_checks import Guard, is_foreign

if TYPE_CHECKING:
    from headrace.plugins.registries.kernels import KernelRegistry

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Computes an operation's outputs from its inputs on the host; None where it cannot.
Evaluate = Callable[[Operation, Sequence[_NDArray]], Sequence[_NDArray] | None]


def kernel_dtype(op: Operation) -> DType | None:
    """Return the dtype by which an operation's kernel is chosen."""
    for tensor in (*op.inputs, *op.outputs):
        if tensor.dtype.kind not in ("resource", "list"):
            return tensor.dtype
        if tensor.spec.content is not None:
            return tensor.spec.content.dtype
    return None


def evaluate(op: Operation, inputs: Sequence[Any], kernels: KernelRegistry) -> list[Any] | None:
    """Return an operation's outputs computed on the host, None where that is not possible.

    Args:
        op: The operation.
        inputs: The values of its inputs, flat.
        kernels: All kernels.
    """
    for kernel in kernels.candidates(op.type, "cpu", kernel_dtype(op)):
        if kernel.style != "plain":
            continue
        call: Callable[..., Any] = functools.partial(_called, op, kernel.function)
        if is_foreign(kernel):
            call = Guard(op, kernel, kernels.provider((op.type, "cpu"), kernel), call)
        try:
            with np.errstate(all="ignore"):
                result = call(*inputs)
        except Exception:
            # The step reports it, with the node and the user's line.
            return None
        return list(result) if isinstance(result, list | tuple) else [result]
    return None


def _called(op: Operation, function: Callable[..., Any], *inputs: Any) -> Any:
    return function(np, *op.schema.group(list(inputs), op.arity), **op.attrs)
