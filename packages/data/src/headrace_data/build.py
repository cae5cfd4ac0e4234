"""Adding data sets to graphs: the op, and tracing the functions that it holds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import headrace as hr
from headrace import identity as result_tensor
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    GraphError,
    HeadraceError,
    shown,
)
from headrace.extend.graphs import (
    Function,
    control_dependencies,
    functions_in,
    get_default_graph,
    inside,
)
from headrace_data import structure
from headrace_data.ops.pipelines import dataset as dataset_op
from headrace_data.structure import Described

_PASSIVE = frozenset(("reads", "draws", "observes"))


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """A function of elements, as operations hold it.

    Attributes:
        function: The graph of it.
        element: The structure of what it returns.
    """

    function: Function
    element: Any

    @property
    def draws(self) -> bool:
        """Whether random ops are in it."""
        graphs = [self.function, *functions_in(self.function)]
        return any("draws" in op.schema.effects for graph in graphs for op in graph.operations)


def make(
    kind: str,
    element: Any,
    *,
    sources: Sequence[Described] = (),
    arguments: Sequence[Any] = (),
    settings: Mapping[str, Any] | None = None,
    functions: Mapping[str, Traced] | None = None,
) -> Described:
    """Add a data set to the default graph.

    Args:
        kind: Which transformation or source it is.
        element: The structure of its elements.
        sources: The data sets that it transforms.
        arguments: Tensors that it depends on.
        settings: What the kind takes besides, attribute values by name.
        functions: What it calls, by the attribute of the op.

    Returns:
        The ``hr.data.Dataset``.
    """
    for source in sources:
        _check_single(source, kind)
    traced = dict(functions or {})
    captured = [t for f in traced.values() for t in f.function.inputs]
    waits = [op for f in traced.values() for op in f.function.waits_for]
    with control_dependencies(waits):
        variant = dataset_op(
            [source.variant for source in sources],
            list(arguments),
            captured,
            kind=kind,
            settings=tuple(sorted((settings or {}).items())),
            name=kind,
            **{name: f.function for name, f in traced.items()},
        )
    return Described.face(variant, element, inputs=sources)


def _check_single(dataset: Described, what: str) -> None:
    if dataset.variant.shape.rank not in (0, None):
        raise DTypeError(
            f"{what}: expected a data set, got a batch of them, of shape {dataset.variant.shape}; "
            "unbatch() or from_tensor_slices() takes it apart"
        )


def trace(
    function: Callable[..., Any],
    parameters: Sequence[Any],
    what: str,
    *,
    returns: str = "element",
) -> Traced:
    """Trace a function of elements.

    Args:
        function: The function. An element that is a plain tuple comes as several arguments.
        parameters: The structures of what it is called with, each an element or a tuple of them.
        what: The transformation, for messages.
        returns: "element" for a structure of tensors; "dataset" for a data set.

    Raises:
        AttributeValueError: if ``function`` is no function.
        DTypeError: if it returns what it may not.
    """
    if not callable(function):
        raise AttributeValueError(f"{what} needs a function, got {shown(function)}")
    name = getattr(function, "__name__", type(function).__name__).strip("<>") or "function"
    graph = Function(f"{what}/{name}", get_default_graph())
    with inside(graph):
        given = []
        for parameter in parameters:
            tensors = [graph.add_parameter(spec) for spec in structure.flat_specs(parameter)]
            given.append(structure.pack_tensors(parameter, tensors))
        _check_count(function, given, what)
        returned = function(*given)
        if returns == "dataset" and not isinstance(returned, Described):
            raise DTypeError(
                f"the function of {what} must return a data set, got {shown(returned)}; "
                "hr.data.Dataset.from_tensors makes one"
            )
        if returns == "dataset":
            _check_single(returned, f"the function of {what}")
        element, results = _results(returned, what)
        changes = [op for op in graph.operations if _acts(op)]
        # What it changes is changed when it is called, wanted or not.
        if changes:
            with control_dependencies(changes):
                results = [result_tensor(t) for t in results]
        graph.finish(results)
    return Traced(graph, element)


def _check_count(function: Callable[..., Any], given: Sequence[Any], what: str) -> None:
    """Refuse a function that does not take as many arguments as an element has parts."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # one that does not tell
    try:
        signature.bind(*given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"the function of {what} does not take an element of {len(given)} parts: {error}; "
            f"expected a function of {len(given)} arguments, as in lambda "
            f"{', '.join('xyzuvw'[: len(given)]) if len(given) < 7 else '*parts'}: ..."
        ) from None


def arguments_of(element: Any) -> list[Any]:
    """Return the structures of the arguments with which a function of an element is called.

    The parts of a plain tuple are arguments of their own; a named tuple is one.
    """
    if type(element) is tuple:
        return list(element)
    return [element]


def _results(returned: Any, what: str) -> tuple[Any, list[Any]]:
    try:
        if isinstance(returned, list):
            # As TensorFlow, where a list that a function returns counts as a tuple.
            returned = tuple(returned)
        return structure.to_components(returned)
    except HeadraceError as error:
        raise type(error)(f"what the function of {what} returns: {error}") from None


def _acts(op: Any) -> bool:
    if op.type in ("Parameter", "Return"):
        return False
    return op.holds_state or not op.schema.effects <= _PASSIVE


def scalar(value: Any, dtype: Any, name: str) -> Any:
    """Return an argument of a transformation as a scalar tensor.

    Raises:
        GraphError: if it has dimensions; a ``ValueError``.
    """
    tensor = hr.convert_to_tensor(value, dtype, name=name)
    if not tensor.shape.is_compatible_with([]):
        raise GraphError(f"{name} must be a scalar, got shape {tensor.spec.shape}")
    return tensor


def static(value: Any) -> Any:
    """Return the value of a scalar tensor that is known when the graph is built, else None."""
    found = value.spec.value
    return None if found is None or found.size != 1 else found.item()
