"""Printing and checking tensors while a step runs, and the time. On the host only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import items, nesting
from headrace.errors import AttributeValueError, ShapeError
from headrace.errors import shown as _shown
from headrace.graph.convert import as_tensor
from headrace.graph.operation import Operation
from headrace.graph.schema import call_op
from headrace.graph.scopes import control_dependencies
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Bool, String
from headrace.shapes import SCALAR

_TEXT = "text has no gradient"

# Shown of a tensor where programs do not say how much.
_SUMMARIZE = 3


@op("Print", keeps_inputs=False, effects="changes", public="")
def _print(
    input: Anything, message: str, first_n: int, summarize: int, data: Sequence[Anything] = ()
) -> Spec:
    """A tensor, after others were printed to the standard error stream.

    Args:
        input: [...], any dtype.
        message: What is printed first.
        first_n: How often to print at most; always if negative.
        summarize: How many elements to print of each; all if negative.
        data: What is printed.

    Returns:
        ``input``.
    """
    return like(input)


def print_identity(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor; whenever a step computes it, others are printed to standard error.

    Args:
        input_: [...], any dtype; what is returned.
        data: The tensors to print.
        message: What is printed before them.
        first_n: How often to print at most in a session; always if None or negative.
        summarize: How many elements to print of each; 3 if None, all if negative.
        name: The name of the operation.

    Returns:
        ``input_``; gradients pass through.
    """
    return _print(
        input_,
        message or "",
        -1 if first_n is None else first_n,
        _SUMMARIZE if summarize is None else summarize,
        items(data, "data"),
        name=name or "Print",
    )


@op("StringFormat", public="", no_gradient=_TEXT)
def _format(
    template: str, placeholder: str, summarize: int, inputs: Sequence[Anything] = ()
) -> Spec:
    """A text with tensors in it.

    Args:
        template: The text, with a placeholder for each tensor.
        placeholder: What stands for a tensor.
        summarize: How many elements to show at each end of an axis; all if negative.
        inputs: The tensors.

    Returns:
        [], string.
    """
    if not placeholder:
        raise AttributeValueError("placeholder must not be empty")
    if template.count(placeholder) != len(inputs):
        raise AttributeValueError(
            f"the template has {template.count(placeholder)} placeholders "
            f"{_shown(placeholder, 40)} for "
            f"{len(inputs)} tensors"
        )
    return TensorSpec(dtypes.string, SCALAR)


def string_format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Return a text with tensors in it.

    Args:
        template: The text, with a placeholder for each tensor.
        inputs: A tensor, or a list of tensors.
        placeholder: What stands for a tensor.
        summarize: How many elements to show at each end of an axis; all if negative.
        name: The name of the operation.

    Returns:
        [], string.

    Raises:
        AttributeValueError: if there is not one placeholder per tensor.
    """
    listed = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    return _format(template, placeholder, summarize, listed, name=name or "StringFormat")


@op("PrintText", keeps_inputs=False, effects="changes", public="", no_gradient="it has no outputs")
def _print_text(text: String, output_stream: str, end: str) -> None:
    """Print a string.

    Args:
        text: [], string.
        output_stream: "stdout", "stderr", "log(level)" for Python's logging, or "file://path".
        end: What is printed after it.
    """
    if text.rank not in (None, 0):
        raise ShapeError(f"what is printed must be a scalar, got shape {text.shape}")


class _Slot:
    """Stands for a tensor in a structure that is formatted."""

    def __repr__(self) -> str:
        return "\0"


class _Bare:
    """A text that is formatted without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def print_op(
    *inputs: Any,
    output_stream: Any = None,
    end: str = "\n",
    summarize: int = 3,
    sep: str = " ",
    name: str | None = None,
) -> Operation:
    """Return an operation that prints tensors and other values, as Python's ``print`` does.

    It prints when a step runs it: as a target, or as a control input of others.

    Args:
        inputs: Tensors, sparse tensors, Python values, and lists, tuples and dicts of these. Values
            that are no tensors are shown as they are now.
        output_stream: ``sys.stderr`` (if None), ``sys.stdout``, a function of Python's ``logging``
            such as ``logging.info``, or "file://" and a path to append to.
        end: What is printed last.
        summarize: How many elements to print at each end of an axis; all if negative.
        sep: What is printed between inputs.
        name: The name of the operation.

    Returns:
        The operation.

    Raises:
        AttributeValueError: if the stream is another one, or the ``repr`` of what is to be printed
            raises.
        DepthError: if it is nested deeper than Python can follow.
    """
    stream = _stream(output_stream)
    if len(inputs) == 1 and not isinstance(inputs[0], SparseTensor):
        only = as_tensor(inputs[0])
        if only is not None and only.dtype == dtypes.string and only.shape.rank == 0:
            return _print_text(only, stream, end, name=name or "PrintV2")
    tensors: list[Tensor] = []
    parts = [given if isinstance(given, str) else _written(given, tensors) for given in inputs]
    # Zero bytes stand for tensors: nothing else that is printed may have one.
    texts = [
        part.replace("\0", "") if isinstance(given, str) else part
        for part, given in zip(parts, inputs, strict=True)
    ]
    template = sep.replace("\0", "").join(texts)
    formatted = f"{name}_format" if name else "StringFormat"
    text = _format(template, "\0", summarize, tensors, name=formatted)
    return _print_text(text, stream, end, name=name or "PrintV2")


def _written(value: Any, tensors: list[Tensor]) -> str:
    """Return a structure as text, with a zero byte for each tensor in it, which are listed."""
    import pprint

    with nesting("what is printed"):
        slotted = _slotted(value, tensors)
        try:
            # The tensors are listed in the order of the text.
            return pprint.pformat(slotted, sort_dicts=False)
        except RecursionError:
            raise
        except Exception as error:
            raise AttributeValueError(f"print: the repr of {_shown(value)} raises") from error


def _slotted(value: Any, tensors: list[Tensor]) -> Any:
    """Return a structure with a slot for each tensor in it, which are listed."""
    if isinstance(value, SparseTensor):
        tensors += [value.indices, value.values, value.dense_shape]
        # In quotes, as TensorFlow shows it.
        return _Bare("'SparseTensor(indices=\0, values=\0, shape=\0)'")
    tensor = as_tensor(value)
    if tensor is not None:
        tensors.append(tensor)
        return _Slot()
    if isinstance(value, dict):
        try:
            keys = sorted(value)
        except TypeError:
            keys = list(value)
        return {key: _slotted(value[key], tensors) for key in keys}
    if isinstance(value, list | tuple):
        items = [_slotted(item, tensors) for item in value]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


_LEVELS = ("debug", "info", "warning", "error", "critical")


def _stream(output_stream: Any) -> str:
    """Return how documents call an output stream."""
    import logging
    import sys

    if output_stream is None or output_stream is sys.stderr:
        return "stderr"
    if output_stream is sys.stdout:
        return "stdout"
    if isinstance(output_stream, str):
        if output_stream in ("stderr", "stdout") or output_stream.startswith("file://"):
            return output_stream
    elif callable(output_stream):
        functions: list[Callable[..., Any]] = [getattr(logging, level) for level in _LEVELS]
        if output_stream in functions:
            return f"log({_LEVELS[functions.index(output_stream)]})"
    raise AttributeValueError(
        "output_stream must be sys.stderr, sys.stdout, a function of logging such as "
        f"logging.info, or 'file://path', got {_shown(output_stream)}"
    )


@op("Assert", keeps_inputs=False, effects="changes", public="", no_gradient="it has no outputs")
def _assert(condition: Bool, summarize: int, data: Sequence[Anything] = ()) -> None:
    """Fail the step unless a condition holds.

    Args:
        condition: [], bool.
        summarize: How many elements of each tensor the error shows; all if negative.
        data: What the error shows.
    """
    if condition.rank not in (None, 0):
        raise ShapeError(f"condition must be a scalar, got shape {condition.shape}")


def assert_true(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """Return an operation that fails the step unless a condition holds.

    Steps run it only where it is a target, or a control input of what they compute.

    Args:
        condition: [], bool.
        data: What the error shows: tensors and strings.
        summarize: How many elements of each it shows; 3 if None, all if negative.
        name: The name of the operation.

    Returns:
        The operation. It raises ``InvalidArgumentError`` when it runs and the condition is false.

    Raises:
        DTypeError: if the condition is not bool.
        ShapeError: if it is no scalar.
    """
    shown = _SUMMARIZE if summarize is None else summarize
    return _assert(condition, shown, items(data, "data"), name=name or "Assert")


def holding(x: Tensor, condition: Any, data: Sequence[Any]) -> Tensor:
    """Return a tensor that a step computes only where a condition holds.

    Args:
        x: The tensor.
        condition: [], bool.
        data: What the error shows where it does not hold: tensors and strings.
    """
    with control_dependencies([assert_true(condition, data)]):
        same: Tensor = call_op("Identity", x)
    return same


@op("Timestamp", effects="observes", no_gradient="time does not depend on tensors")
def timestamp() -> Spec:
    """The time when it runs, in seconds since the beginning of 1970.

    Returns:
        [], float64.
    """
    return TensorSpec(dtypes.float64, SCALAR)
