"""``reduce`` and ``single_element``: one value of all elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import DTypeError, shown
from headrace_data import structure
from headrace_data.build import trace
from headrace_data.ops.pipelines import dataset_reduce, dataset_single
from headrace_data.structure import Described


def reduce(dataset: Described, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
    """Return what a function makes of a state and all elements."""
    with hr.name_scope("reduce"):
        element, tensors = structure.to_components(initial_state)
        while True:
            traced = trace(reduce_func, [element, dataset.spec], "reduce")
            wider = structure.common(element, traced.element, "the state of reduce")
            if wider == element:
                break
            # A state may change its shape from element to element.
            element = wider
        with hr.control_dependencies(list(traced.function.waits_for)):
            flat = dataset_reduce(
                dataset.variant, tensors, traced.function.inputs, function=traced.function
            )
        return structure.pack_tensors(element, list(flat))


def single_element(dataset: Described) -> Any:
    """Return the tensors of the only element of a data set.

    Args:
        dataset: A data set; when a step runs, it must have exactly one element.

    Raises:
        DTypeError: if it is something else.
    """
    if not isinstance(dataset, Described):
        raise DTypeError(f"get_single_element takes a data set, got {shown(dataset)}")
    spec = dataset.spec
    tensors = structure.flat_specs(spec)
    types, shapes = tuple(t.dtype for t in tensors), tuple(t.shape for t in tensors)
    contents = structure.contents_of(tensors)
    found = dataset_single(dataset.variant, types, shapes, contents)
    return structure.pack_tensors(spec, list(found))
