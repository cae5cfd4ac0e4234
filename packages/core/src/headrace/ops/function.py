"""Functions: traced once, and called like an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import DTypeError, GraphError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, inside
from headrace.graph.spec import TensorSpec, list_spec
from headrace.graph.structure import flatten
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Value

_OF_FUNCTION = "it belongs to a function; what holds the function has the gradient"


@op("Parameter", effects="observes", builtin=True, public="", no_gradient=_OF_FUNCTION)
def parameter(index: int, spec: TensorSpec) -> Spec:
    """An argument of the function in which it stands.

    Args:
        index: Which of its arguments.
        spec: What is known of it.

    Returns:
        The shape and dtype that ``spec`` states.
    """
    return TensorSpec(spec.dtype, spec.shape, content=spec.content)


@op("Return", effects="changes", builtin=True, public="", no_gradient=_OF_FUNCTION)
def return_(value: Value, index: int) -> None:
    """A result of the function in which it stands.

    Args:
        value: Anything.
        index: Which of its results.
    """


@op("Call", builtin=True, public="")
def call_function(
    inputs: Sequence[Value] = (),
    *,
    function: Function,
    saves: tuple[str, ...] = (),
    run: str = "",
) -> list[Spec]:
    """The results of a function.

    Args:
        inputs: Its arguments.
        function: What to call.
        saves: Names of tensors of the function that are wanted besides, for its gradient.
        run: The operation of whose one run this is another view; empty where it stands for itself.

    Returns:
        What it returns, and what ``saves`` names.
    """
    check_arguments(inputs, function)
    wanted = [*function.results, *(function.get_tensor_by_name(name) for name in saves)]
    return [TensorSpec(t.dtype, t.spec.shape, content=t.spec.content) for t in wanted]


def check_arguments(inputs: Sequence[TensorSpec], function: Function) -> None:
    """Refuse arguments that do not fit the parameters of a function.

    Raises:
        GraphError: if there are more or fewer.
        DTypeError: if the dtype of one differs.
        ShapeError: if its shape does not fit.
    """
    if len(inputs) != len(function.parameters):
        raise GraphError(
            f"{function.name!r} takes {len(function.parameters)} arguments, got {len(inputs)}"
        )
    for i, (given, wanted) in enumerate(zip(inputs, function.parameters, strict=True)):
        if given.dtype != wanted.dtype:
            raise DTypeError(
                f"argument {i} of {function.name!r} is {wanted.dtype}, got {given.dtype}"
            )
        if not given.shape.is_compatible_with(wanted.spec.shape):
            raise ShapeError(
                f"argument {i} of {function.name!r} has shape {wanted.spec.shape}, got "
                f"{given.shape}"
            )


def saved_lists(function: Function, saves: Sequence[str]) -> list[TensorSpec]:
    """Return the specs of the lists that hold what runs of a function computed inside."""
    tensors = [function.get_tensor_by_name(name) for name in saves]
    return [list_spec(TensorSpec(t.dtype, t.spec.shape, content=t.spec.content)) for t in tensors]


def trace(
    function: Function, build: Callable[..., Any], arguments: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Build the inside of a function; return the structure of what it returns, and that flat."""
    with inside(function):
        structure = build(*arguments)
        return structure, flatten(structure)


def result_tensors(flat: Sequence[Any], what: str, done: bool = False) -> list[Tensor]:
    """Return what the inside of a function returns as tensors of its graph.

    Args:
        flat: What it returns.
        what: The function, for messages.
        done: The value of the tensor that stands for an operation, once that has finished.

    Raises:
        GraphError: if something is no tensor, operation, or data.
    """
    results = []
    for item in flat:
        if isinstance(item, Operation):
            with control_dependencies([item]):
                results.append(identity(convert_to_tensor(done), name="done"))
        elif item is None:
            raise GraphError(f"{what} returned None; return tensors")
        else:
            results.append(convert_to_tensor(item))
    return results
