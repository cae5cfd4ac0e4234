"""``util.nest``: names that the public module has otherwise, and structures cut off at a depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import headrace as hr
from headrace_tensorflow.helpers.paths import (
    flatten_with_joined_string_paths as flatten_with_joined_string_paths,
)
from headrace_tensorflow.helpers.paths import flatten_with_tuple_paths as flatten_with_tuple_paths
from headrace_tensorflow.helpers.paths import map_structure_with_paths as map_structure_with_paths
from headrace_tensorflow.helpers.paths import (
    map_structure_with_tuple_paths as map_structure_with_tuple_paths,
)

is_sequence = hr.nest.is_nested
is_sequence_or_composite = hr.nest.is_nested


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Check that a structure goes at least as deep as another one, and alike so far.

    Args:
        shallow_tree: Says how deep to look.
        input_tree: The structure.
        check_types: Whether lists, tuples and others must be of the same kind.
        expand_composites: Ignored: sparse tensors are leaves.

    Raises:
        TypeError: if one is a leaf, or of another kind, where the other is none.
        ValueError: if lengths or keys differ.
    """
    for _ in _up_to(shallow_tree, input_tree, check_types):
        pass


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """Return what a structure has where another one has leaves; the arguments as above."""
    return list(_up_to(shallow_tree, input_tree, check_types))


def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Return a structure of what a function makes of what others have where one has leaves.

    Args:
        shallow_tree: The structure that is returned with other leaves.
        func: Takes what each of ``inputs`` has in one place.
        *inputs: The structures, one or more.
        **kwargs: ``check_types``, as above.

    Raises:
        ValueError: if there is no structure.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    types = kwargs.pop("check_types", True)
    columns = [list(_up_to(shallow_tree, tree, types)) for tree in inputs]
    return hr.nest.pack_sequence_as(
        shallow_tree, [func(*found) for found in zip(*columns, strict=True)]
    )


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a dict of which keys and values that are structures are replaced by their leaves.

    Args:
        dictionary: Where a key is a structure, so is its value, of as many leaves.

    Raises:
        ValueError: if they have not as many, or a key comes twice.
    """
    found: dict[Any, Any] = {}
    for key, value in dictionary.items():
        nested = hr.nest.is_nested(key)
        keys, values = (
            (hr.nest.flatten(key), hr.nest.flatten(value)) if nested else ([key], [value])
        )
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
                f"{len(values)} elements. Key: {keys}, value: {values}."
            )
        for one, leaf in zip(keys, values, strict=True):
            if one in found:
                raise ValueError(f"Could not flatten dictionary: key {one} is not unique.")
            found[one] = leaf
    return found


def _up_to(shallow: Any, deep: Any, types: bool) -> Iterator[Any]:
    if not hr.nest.is_nested(shallow):
        yield deep
        return
    if not hr.nest.is_nested(deep):
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(deep).__name__}"
        )
    if types and not _alike(shallow, deep):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(deep).__name__}, while shallow structure has type {type(shallow).__name__}."
        )
    if len(shallow) != len(deep):
        raise ValueError(
            f"The two structures don't have the same sequence length. Input structure has length "
            f"{len(deep)}, while shallow structure has length {len(shallow)}."
        )
    if isinstance(shallow, Mapping):
        if isinstance(deep, Mapping) and set(shallow) != set(deep):
            raise ValueError(
                f"The two structures don't have the same keys. Input structure has keys "
                f"{sorted(deep)}, while shallow structure has keys {sorted(shallow)}."
            )
        pairs = [(shallow[key], deep[key]) for key in sorted(shallow)]
    else:
        pairs = list(zip(shallow, deep, strict=True))
    for inner, within in pairs:
        yield from _up_to(inner, within, types)


def _alike(shallow: Any, deep: Any) -> bool:
    if hasattr(shallow, "_fields") and hasattr(deep, "_fields"):
        return bool(shallow._fields == deep._fields)
    return type(shallow) is type(deep) or (
        isinstance(shallow, Mapping) and isinstance(deep, Mapping)
    )
