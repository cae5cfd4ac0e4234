"""``util.nest``: leaves of structures with the indices, keys and fields that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import headrace as hr

Path = tuple[Any, ...]


def yield_flattened_paths(structure: Any) -> Iterator[Path]:
    """Yield the path of each leaf, in the order of ``flatten``."""
    if not hr.nest.is_nested(structure):
        yield ()
        return
    for key, inner in _items(structure):
        for rest in yield_flattened_paths(inner):
            yield (key, *rest)


def _items(structure: Any) -> list[tuple[Any, Any]]:
    if isinstance(structure, Mapping):
        return [(key, structure[key]) for key in sorted(structure)]
    attributes = getattr(type(structure), "__attrs_attrs__", None)
    names = [each.name for each in attributes] if attributes else None
    names = getattr(structure, "_fields", names)
    if names is not None:
        return [(name, getattr(structure, name)) for name in names]
    return list(enumerate(structure))


def flatten_with_tuple_paths(
    structure: Any, expand_composites: bool = False
) -> list[tuple[Path, Any]]:
    """Return pairs of a path and a leaf.

    Args:
        structure: Nested lists, tuples, dicts and others.
        expand_composites: Ignored: sparse tensors are leaves.
    """
    del expand_composites
    paths = yield_flattened_paths(structure)
    return list(zip(paths, hr.nest.flatten(structure), strict=True))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """Return pairs of a path, joined to one text, and a leaf; the arguments as above."""
    found = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in found]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Return a structure of what a function makes of paths and leaves.

    Args:
        func: Takes a path, the leaf of each structure there, and ``kwargs``.
        *structure: One or more structures that are alike.
        **kwargs: ``check_types`` says whether they must be of the same kinds of lists, tuples and
            others; the rest is for the function.

    Raises:
        TypeError: if ``func`` is no function, or kinds differ.
        ValueError: if there is no structure, or lengths or keys differ.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got {type(func).__name__}")
    if not structure:
        raise ValueError("there is no structure to map over")
    types = kwargs.pop("check_types", True)
    first = structure[0]
    for other in structure[1:]:
        hr.nest.assert_same_structure(first, other, check_types=types)
    leaves = zip(*map(hr.nest.flatten, structure), strict=True)
    made = [
        func(path, *found, **kwargs)
        for path, found in zip(yield_flattened_paths(first), leaves, strict=True)
    ]
    return hr.nest.pack_sequence_as(first, made)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Do the same with paths that are joined by ``/``; the arguments as above."""
    if not callable(func):
        raise TypeError(f"func must be callable, got {type(func).__name__}")
    return map_structure_with_tuple_paths(
        lambda path, *found, **rest: func("/".join(map(str, path)), *found, **rest),
        *structure,
        **kwargs,
    )
