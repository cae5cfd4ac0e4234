"""Assertions: operations that fail a step, or at once where the values are constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from headrace.arguments import items
from headrace.errors import MAX_LETTERS, DTypeError, InvalidArgumentError, told
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape
from headrace.ops.complex import abs_
from headrace.ops.control import no_op
from headrace.ops.conversion import cast
from headrace.ops.elementwise import equal, greater, greater_equal, less, less_equal, not_equal
from headrace.ops.reduce import reduce_all
from headrace.ops.report import assert_true
from headrace.summarize import both_ends

Data = Sequence[Any] | None


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return two values as tensors; what is plain data takes the other's dtype if it fits."""
    given = [as_tensor(v) if not contains_tensor(v) else convert_to_tensor(v) for v in (x, y)]
    if given[0] is None and given[1] is not None:
        return convert_to_tensor(x, preferred_dtype=given[1].dtype), given[1]
    first = given[0] if given[0] is not None else convert_to_tensor(x)
    second = given[1] if given[1] is not None else convert_to_tensor(y, preferred_dtype=first.dtype)
    return first, second


def static_ok() -> Operation:
    """Return what an assertion that holds already is."""
    return no_op(name="static_checks_determined_all_ok")


def _shown(label: str, tensor: Tensor) -> str:
    value = tensor.spec.value
    return f"{label} ({tensor.name}) = {'' if value is None else both_ends(value, 3)}"


def _compared(
    relation: str,
    compare: Callable[[Any, Any], Tensor],
    static: Callable[[Any, Any], Any],
    x: Any,
    y: Any,
    data: Data,
    summarize: int | None,
    message: str | None,
) -> Operation:
    """Assert a relation between the elements of two tensors."""
    left, right = _pair(x, y)
    holds = compare(left, right)
    values = left.spec.value, right.spec.value
    title = f"Condition x {relation} y did not hold element-wise:"
    if values[0] is not None and values[1] is not None:
        with np.errstate(all="ignore"):
            known = bool(np.all(static(*values)))
        if known:
            return static_ok()
        lines = [message or "", title, _shown("x", left), _shown("y", right)]
        raise InvalidArgumentError("\n".join(line for line in lines if line))
    shown = _data(data, message, title, x=left, y=right)
    return assert_true(reduce_all(holds), shown, summarize)


def _data(data: Data, message: str | None, title: str, **tensors: Tensor) -> list[Any]:
    shown: list[Any] = [message or "", title] if data is None else [*([message] if message else [])]
    if data is not None:
        return [*shown, *items(data, "data")]
    for label, tensor in tensors.items():
        shown += [f"{label} ({tensor.name}) = ", tensor]
    return shown if message else shown[1:]


def _comparison(
    relation: str,
    compare: Callable[[Any, Any], Tensor],
    static: Callable[[Any, Any], Any],
    what: str,
) -> Callable[..., Operation]:
    """Return the function that asserts a relation between two tensors."""

    def assertion(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, own):
            return _compared(relation, compare, static, x, y, data, summarize, message)

    own = f"assert_{what.replace(' ', '_')}"
    assertion.__name__ = assertion.__qualname__ = own
    assertion.__doc__ = f"""Return an operation that fails the step unless ``x {relation} y``.

    Args:
        x: [...], of a dtype that is compared so.
        y: The dtype of ``x``, a shape that broadcasts with its.
        data: What the error shows; both tensors if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs and one element does not.

    Raises:
        InvalidArgumentError: if both are constants for which it does not hold.
    """
    return assertion


assert_equal = _comparison("==", equal, operator.eq, "equal")
assert_none_equal = _comparison("!=", not_equal, operator.ne, "none equal")
assert_less = _comparison("<", less, operator.lt, "less")
assert_less_equal = _comparison("<=", less_equal, operator.le, "less equal")
assert_greater = _comparison(">", greater, operator.gt, "greater")
assert_greater_equal = _comparison(">=", greater_equal, operator.ge, "greater equal")


def _signed(
    relation: str, compared: Callable[..., Operation], swapped: bool, what: str
) -> Callable[..., Operation]:
    """Return the function that asserts the sign of a tensor."""

    def assertion(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, assertion.__name__):
            tensor = convert_to_tensor(x)
            title = f"Condition x {relation} 0 did not hold element-wise:"
            if data is None:
                said = message or ""
                shown: Sequence[Any] = [said, title, f"x ({tensor.name}) = ", tensor]
            else:
                shown = data
            if tensor.dtype.kind == "uint" and relation == ">=":
                return static_ok()
            zero = convert_to_tensor(np.zeros((), tensor.dtype.numpy))
            pair = (zero, tensor) if swapped else (tensor, zero)
            text = f"{told(message, MAX_LETTERS)}: {title}" if message else title
            return compared(*pair, data=shown, summarize=summarize, message=text)

    assertion.__name__ = assertion.__qualname__ = f"assert_{what}"
    assertion.__doc__ = f"""Return an operation that fails the step unless ``x {relation} 0``.

    Args:
        x: [...], real.
        data: What the error shows; the tensor if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs and one element does not.

    Raises:
        InvalidArgumentError: if it is a constant for which it does not hold.
    """
    return assertion


assert_positive = _signed(">", assert_less, True, "positive")
assert_negative = _signed("<", assert_less, False, "negative")
assert_non_negative = _signed(">=", assert_less_equal, True, "non_negative")
assert_non_positive = _signed("<=", assert_less_equal, False, "non_positive")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that fails the step unless ``|x - y| <= atol + rtol * |y|`` everywhere.

    Args:
        x: [...], floating or complex.
        y: The dtype of ``x``, a shape that broadcasts with its.
        rtol: The relative tolerance; ten times the precision of the dtype if None.
        atol: The absolute tolerance; ten times the precision of the dtype if None.
        data: What the error shows; both tensors if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs. NaN is near nothing.

    Raises:
        DTypeError: if they are neither floating nor complex.
    """
    with name_scope(name, "assert_near"):
        left, right = _pair(x, y)
        if not (left.dtype.is_floating or left.dtype.is_complex):
            raise DTypeError(f"x must be floating or complex, got {left.dtype}")
        real = left.dtype.real_dtype
        precision = 10 * float(ml_dtypes.finfo(real.numpy).eps)  # type: ignore[no-untyped-call]
        rtol, atol = (
            cast(convert_to_tensor(precision if t is None else t, preferred_dtype=real), real)
            for t in (rtol, atol)
        )
        holds = less_equal(abs_(left - right), atol + rtol * abs_(right))
        title = "x and y are not equal to the tolerances rtol and atol"
        shown = _data(data, message, title, x=left, y=right, rtol=rtol, atol=atol)
        return assert_true(reduce_all(holds), shown, summarize)


# -- order


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether no element is smaller than the one before it, in row-major order.

    Args:
        x: [...], real.
        name: The name of the scope.

    Returns:
        [], bool; true where there are fewer than two elements.

    Raises:
        DTypeError: if it is not real.
    """
    return _ordered(x, less_equal, name, "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether every element is larger than the one before it, in row-major order.

    Args:
        x: [...], real.
        name: The name of the scope.

    Returns:
        [], bool; true where there are fewer than two elements.

    Raises:
        DTypeError: if it is not real.
    """
    return _ordered(x, less, name, "is_strictly_increasing")


def _ordered(
    x: Any, compare: Callable[[Any, Any], Tensor], name: str | None, default_name: str
) -> Tensor:
    with name_scope(name, default_name):
        tensor = convert_to_tensor(x)
        if not tensor.dtype.is_numeric or tensor.dtype.is_complex:
            raise DTypeError(f"x must be real, got {tensor.dtype}")
        flat = reshape(tensor, [-1])
        return reduce_all(compare(flat[:-1], flat[1:]))
