"""Nested structures of tensors: lists, tuples, named tuples, dicts, and composite values.

A composite value, such as a ``TensorArray``, is made of tensors: its ``flatten()`` returns them,
and its ``unflatten(tensors)`` a value of its kind made of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.arguments import members
from headrace.errors import GraphError, shown


def flatten(structure: Any, composites: bool = True) -> list[Any]:
    """Return the leaves of a structure in order; dicts by sorted keys.

    Args:
        structure: The structure.
        composites: Whether a composite value counts as the tensors it is made of.
    """
    return list(_leaves(structure, composites))


# No program nests its structures so deep, and Python calls only some times as deep.
_MAX_DEPTH = 100


def _leaves(structure: Any, composites: bool, depth: int = 0) -> Iterator[Any]:
    if depth > _MAX_DEPTH:
        raise GraphError(f"a structure of tensors is nested more than {_MAX_DEPTH} deep")
    if isinstance(structure, list | tuple):
        for item in members(structure):
            yield from _leaves(item, composites, depth + 1)
    elif isinstance(structure, Mapping):
        for key in _keys(structure):
            yield from _leaves(structure[key], composites, depth + 1)
    elif composites and hasattr(structure, "unflatten"):
        yield from structure.flatten()
    else:
        yield structure


def pack(structure: Any, flat: Sequence[Any], composites: bool = True) -> Any:
    """Return a structure of the same form with the leaves ``flat``.

    Args:
        structure: The structure.
        flat: As many values as it has leaves, in their order.
        composites: Whether a composite value counts as the tensors it is made of.

    Raises:
        GraphError: if their number differs.
    """
    leaves = iter(flat)
    try:
        made = _packed(structure, leaves, composites)
    except StopIteration:
        raise GraphError(f"{len(flat)} values are too few for {_brief(structure)}") from None
    if next(leaves, leaves) is not leaves:
        raise GraphError(f"{len(flat)} values are too many for {_brief(structure)}")
    return made


def _packed(structure: Any, leaves: Iterator[Any], composites: bool) -> Any:
    if isinstance(structure, list | tuple):
        items = [_packed(item, leaves, composites) for item in members(structure)]
        if isinstance(structure, list):
            return items
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], leaves, composites) for key in _keys(structure)}
        return type(structure)((key, found[key]) for key in structure)  # type: ignore[call-arg]
    if composites and hasattr(structure, "unflatten"):
        return structure.unflatten([next(leaves) for _ in structure.flatten()])
    return next(leaves)


def same_structure(left: Any, right: Any) -> bool:
    """Whether two structures have the same form, lists and tuples counting as different."""
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return (
            isinstance(left, list) == isinstance(right, list)
            and isinstance(left, tuple) == isinstance(right, tuple)
            and len(left) == len(right)
            and all(map(same_structure, left, right))
        )
    if isinstance(left, Mapping) or isinstance(right, Mapping):
        return (
            isinstance(left, Mapping)
            and isinstance(right, Mapping)
            and set(left) == set(right)
            and all(same_structure(left[key], right[key]) for key in left)
        )
    return hasattr(left, "unflatten") == hasattr(right, "unflatten")


def _keys(mapping: Mapping[Any, Any]) -> list[Any]:
    keys = list(members(mapping, "a dict of tensors"))
    try:
        return sorted(keys)
    except TypeError:
        return keys


def _brief(structure: Any) -> str:
    return shown(structure)
