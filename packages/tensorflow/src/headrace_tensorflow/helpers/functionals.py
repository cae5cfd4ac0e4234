"""``ops.functional_ops``: conditions and loops whose parts are functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import ShapeError

Function = Callable[..., Any]


def If(  # noqa: N802 - TensorFlow's name
    cond: Any,
    inputs: Any,
    then_branch: Function,
    else_branch: Function,
    name: str | None = None,
) -> list[Any]:
    """Return the outputs of one of two functions.

    Args:
        cond: Which; as a truth value: numbers but 0, strings but the empty one, and tensors with
            axes that have elements are true.
        inputs: What both functions take.
        then_branch: Used if ``cond`` is true.
        else_branch: Used if it is not; its outputs have the dtypes of those of the other.
        name: The name of the operations.
    """
    given = [hr.convert_to_tensor(value) for value in inputs]
    chosen = hr.cond(
        _truth(cond),
        lambda: _listed(then_branch(*given)),
        lambda: _listed(else_branch(*given)),
        name=name or "If",
    )
    return _listed(chosen)


def While(  # noqa: N802 - TensorFlow's name
    input_: Any, cond: Function, body: Function, name: str | None = None, hostmem: Any = None
) -> list[Any]:
    """Return loop variables after a loop; they may change their shapes.

    Args:
        input_: Their first values.
        cond: Takes them, and tells whether the loop goes on, as in ``If``.
        body: Takes them, and returns their next values.
        name: The name of the operations.
        hostmem: Where variables lie changes nothing here.
    """
    del hostmem
    variables = [hr.convert_to_tensor(value) for value in input_]
    return _listed(
        hr.while_loop(
            lambda *values: _truth(cond(*values)),
            lambda *values: _listed(body(*values)),
            variables,
            shape_invariants=[hr.TensorShape(None)] * len(variables),
            name=name or "While",
        )
    )


def For(  # noqa: N802 - TensorFlow's name
    start: Any,
    limit: Any,
    delta: Any,
    inputs: Any,
    body: Function,
    name: str | None = None,
    hostmem: Any = None,
    rewrite_with_while: bool | None = None,
) -> list[Any]:
    """Return loop variables after a loop over numbers.

    Args:
        start: [], int32: the first number.
        limit: [], int32: that which is not reached.
        delta: [], int32: the step, up or down.
        inputs: The first values of the loop variables.
        body: Takes a number and the variables, and returns their next values.
        name: The name of the operations.
        hostmem: Where variables lie changes nothing here.
        rewrite_with_while: There is one kind of loops here.

    A step fails if those of ``delta`` do not lead to the limit.

    Raises:
        ShapeError: if a number is known to be no scalar.
    """
    del hostmem, rewrite_with_while
    numbers = {"start": start, "limit": limit, "delta": delta}
    first, last, step = (_scalar(value, label) for label, value in numbers.items())
    leads = hr.where(step > 0, first <= last, (step < 0) & (first >= last))
    check = hr.debugging.assert_equal(
        leads, True, message="steps of delta do not lead from start to limit"
    )
    with hr.control_dependencies([check]):
        first = hr.identity(first)
    outputs = While(
        [first, *inputs],
        lambda i, *values: hr.where(step > 0, i < last, i > last),
        lambda i, *values: [i + step, *_listed(body(i, *values))],
        name or "For",
    )
    return outputs[1:]


def _scalar(value: Any, label: str) -> Any:
    tensor = hr.convert_to_tensor(value, hr.int32)
    if not tensor.shape.is_compatible_with([]):
        raise ShapeError(f"{label} must be a scalar, got shape {tensor.shape}")
    return tensor


def _listed(outputs: Any) -> list[Any]:
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def _truth(value: Any) -> Any:
    """Return whether a tensor counts as true, [], bool."""
    tensor = hr.convert_to_tensor(value)
    if tensor.dtype == hr.bool and tensor.shape.ndims == 0:
        return tensor
    if tensor.dtype == hr.string:
        nonzero = hr.not_equal(tensor, "")
    else:
        nonzero = hr.cast(tensor, hr.bool)
    # Of what has axes, only whether there are elements counts.
    scalar = hr.equal(hr.rank(tensor), 0)
    return hr.reduce_any(nonzero | ~scalar)
