"""How structures nest: tuples, named tuples and dicts; anything else is a component, lists too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import headrace as hr
from headrace.errors import GraphError, StructureError, shown
from headrace.extend.arguments import items, nesting


def is_nested(value: Any) -> bool:
    """Whether a value is a tuple or dict of others, rather than a component."""
    return isinstance(value, Mapping) or (
        isinstance(value, tuple) and not isinstance(value, hr.SparseTensorValue)
    )


def leaves(structure: Any) -> list[Any]:
    """Return the components of a structure in order; dicts by sorted keys.

    Raises:
        DepthError: if it is nested deeper than Python can follow.
    """
    with nesting("a structure of components"):
        return list(_leaves(structure))


def _leaves(structure: Any) -> Iterator[Any]:
    if not is_nested(structure):
        yield structure
    else:
        for part in _parts(structure):
            yield from _leaves(part)


def _parts(structure: Any) -> Iterable[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in keys_of(structure)]
    return structure  # type: ignore[no-any-return]


def keys_of(structure: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of a mapping in the order of its components."""
    # A dict has an end; another mapping may have none.
    return sorted(structure if isinstance(structure, dict) else items(structure, "a structure"))


def rebuild(structure: Any, components: Sequence[Any]) -> Any:
    """Return ``structure`` with other components."""
    given = iter(components)
    made = map_structure(lambda _: next(given), structure)
    assert next(given, given) is given
    return made


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Return ``structure`` with ``function`` applied to its components, and to those of others.

    Raises:
        DepthError: if it is nested deeper than Python can follow.
    """
    with nesting("a structure of components"):
        return _mapped(function, structure, others)


def _mapped(function: Callable[..., Any], structure: Any, others: Sequence[Any]) -> Any:
    if not is_nested(structure):
        return function(structure, *others)
    if isinstance(structure, Mapping):
        named = {
            key: _mapped(function, structure[key], [o[key] for o in others])
            for key in keys_of(structure)
        }
        return type(structure)((key, named[key]) for key in structure)  # type: ignore[call-arg]
    made = [_mapped(function, part, rest) for part, *rest in zip(structure, *others, strict=True)]
    return type(structure)(*made) if hasattr(structure, "_fields") else tuple(made)


def check_same(structure: Any, other: Any, what: str) -> None:
    """Refuse structures that nest in different ways.

    Raises:
        StructureError: if they do; a ``ValueError`` and a ``TypeError``.
    """
    with nesting(what):
        alike = same(structure, other)
    if not alike:
        raise StructureError(
            f"{what}: expected the structure {describe(structure)}, got {describe(other)}"
        )


def same(left: Any, right: Any) -> bool:
    """Return whether structures nest in the same way."""
    if is_nested(left) != is_nested(right):
        return False
    if not is_nested(left):
        return True
    if isinstance(left, Mapping) or isinstance(right, Mapping):
        return (
            isinstance(left, Mapping)
            and isinstance(right, Mapping)
            and keys_of(left) == keys_of(right)
            and all(same(left[key], right[key]) for key in left)
        )
    return len(left) == len(right) and all(map(same, left, right))


def leaves_up_to(structure: Any, other: Any) -> list[Any]:
    """Return what of ``other`` stands where a structure has its components, nested or not.

    Raises:
        GraphError: if ``other`` does not nest as the structure does.
    """
    with nesting("a structure of components"):
        return list(_leaves_up_to(structure, other))


def _leaves_up_to(structure: Any, other: Any) -> Iterator[Any]:
    if not is_nested(structure):
        yield other
        return
    named = isinstance(structure, Mapping)
    alike = is_nested(other) and isinstance(other, Mapping) == named
    if (
        not alike
        or len(other) != len(structure)
        or (named and keys_of(other) != keys_of(structure))
    ):
        raise GraphError(f"expected the structure {describe(structure)}, got {describe(other)}")
    for part, given in zip(_parts(structure), _parts(other), strict=True):
        yield from _leaves_up_to(part, given)


# Deeper than this, messages do not follow a structure.
_DESCRIBED = 8


def describe(structure: Any, depth: int = 0) -> str:
    """Return a structure for messages, an asterisk for each component.

    Args:
        structure: The structure.
        depth: In how many others it is.
    """
    if not is_nested(structure):
        return "*"
    if depth == _DESCRIBED:
        return "..."
    if isinstance(structure, Mapping):
        parts = [f"{shown(k, 40)}: {describe(structure[k], depth + 1)}" for k in keys_of(structure)]
        return "{" + ", ".join(parts) + "}"
    inside = ", ".join(describe(part, depth + 1) for part in structure)
    return f"({inside},)" if len(structure) == 1 else f"({inside})"
