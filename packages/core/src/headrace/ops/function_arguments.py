"""Arguments of traced functions: which are tensors, and how a signature states them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from headrace import dtypes
from headrace.errors import ArgumentTypeError, GraphError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.spec import TensorSpec
from headrace.graph.structure import flatten
from headrace.graph.tensor import Tensor
from headrace.records import dataclass
from headrace.specs.tensor_spec import TensorSpec as PublicSpec


@final
@dataclass(frozen=True, slots=True)
class Stated:
    """Stands for a tensor of which the spec alone is known.

    Attributes:
        spec: The spec.
    """

    spec: TensorSpec

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype."""
        return self.spec.dtype


def signed(item: Any) -> TensorSpec:
    """Return the spec that an item of a signature states.

    Raises:
        GraphError: if it states none.
    """
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        shape, dtype = item.shape, item.dtype
    elif isinstance(item, list | tuple) and len(item) == 2:
        shape, dtype = item
    else:
        raise GraphError(
            "input_signature: expected pairs of shape and dtype, or objects with these "
            f"attributes, got {shown(item)}"
        )
    return TensorSpec(dtypes.as_dtype(dtype), TensorSpec(dtypes.float32).with_shape(shape).shape)


def argument(item: Any) -> Tensor | None:
    """Return an argument as a tensor, None where it is a constant of the trace."""
    return convert_to_tensor(item) if is_tensor_like(item) else None


def is_tensor_like(item: Any) -> bool:
    """Whether an argument is passed on as a tensor, and is no constant of the trace."""
    if item is None or isinstance(item, bool | int | float | str | bytes):
        return False
    return isinstance(item, Tensor) or hasattr(item, "_as_tensor") or hasattr(item, "__array__")


def stands_for_tensor(item: Any) -> bool:
    """Whether something is passed on as a tensor, or is the spec of one."""
    return is_tensor_like(item) or (isinstance(item, PublicSpec))


def stated(item: Any) -> Tensor | Stated | None:
    """Return the same where specs stand for tensors."""
    if isinstance(item, PublicSpec):
        return Stated(signed(item))
    return argument(item)


def key(item: Any, tensor: Tensor | Stated | None, signature: bool) -> Any:
    """Return what a trace depends on; nothing of a tensor whose spec a signature states."""
    if tensor is None:
        return (type(item), item)
    return () if signature else (tensor.dtype, tensor.spec.shape)


def by_signature(
    function: Callable[..., Any],
    name: str,
    signature: Sequence[TensorSpec],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments in the order of the function, those that a signature states as tensors.

    Args:
        function: The Python function.
        name: What to call it in messages.
        signature: The specs of its first arguments.
        args: What is given by position, without the object of a method, which ``function`` has.
        kwargs: What is given by name.

    Returns:
        What is given by position, and the rest by name.

    Raises:
        ArgumentTypeError: if the function does not take them, or one makes no tensor of the dtype
            that is stated for it.
        GraphError: if there are fewer than the signature has.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentTypeError(f"{name!r}: {error}") from None
    given = list(bound.args)
    if len(given) < len(signature):
        raise GraphError(
            f"{name!r} takes {len(signature)} tensors by its input_signature, got {len(given)}"
        )
    for i, spec in enumerate(signature):
        if isinstance(given[i], Tensor | PublicSpec) or hasattr(given[i], "_as_tensor"):
            continue
        try:
            given[i] = convert_to_tensor(given[i], spec.dtype)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"argument {i} of {name!r} is {spec} by its input_signature: {error}"
            ) from error
    return tuple(given), dict(bound.kwargs)


def names_of_tensors(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    """Return the names of the arguments that are tensors, in order; empty inside of structures."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    names = {id(value): name for name, value in bound.items() if stands_for_tensor(value)}
    # What a spec is called goes before the name of the argument.
    return [
        (item.name if isinstance(item, PublicSpec) else None) or names.get(id(item), "")
        for item in flatten((tuple(args), dict(kwargs)))
        if stands_for_tensor(item)
    ]
