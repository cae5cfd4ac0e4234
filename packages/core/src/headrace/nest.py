"""Nested lists, tuples, dicts and their like, as ``hr.nest``."""

from collections import defaultdict as _defaultdict
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from collections.abc import MappingView as _MappingView
from collections.abc import Sequence as _Sequence
from itertools import zip_longest as _zip_longest
from typing import Any as _Any

from headrace.arguments import members as _members
from headrace.errors import ArgumentTypeError as _ArgumentTypeError
from headrace.errors import AttributeValueError as _AttributeValueError
from headrace.errors import GraphError as _GraphError
from headrace.errors import shown as _shown

# No program nests its structures so deep, and Python calls only some times as deep.
_MAX_DEPTH = 100


def is_nested(seq: _Any) -> bool:
    """Return whether a value is a structure, and not a leaf.

    Structures are lists, tuples and other sequences, but no strings; dicts and other mappings, and
    what their ``keys()``, ``values()`` and ``items()`` return; and objects of classes that the
    package attrs made.
    """
    if isinstance(seq, list | tuple | dict):
        return True
    if isinstance(seq, str | bytes):
        return False
    return isinstance(seq, _Sequence | _Mapping | _MappingView) or _has_attrs(seq)


def flatten(structure: _Any, expand_composites: bool = False) -> list[_Any]:
    """Return the leaves of a structure, those of dicts in the order of their sorted keys.

    Args:
        structure: Lists, tuples, dicts and what else ``is_nested``; or one leaf.
        expand_composites: Whether sparse tensors and ``IndexedSlices`` count as their parts.

    Raises:
        ArgumentTypeError: if the keys of a dict cannot be sorted.
        GraphError: if it is nested too deep.
    """
    return list(_leaves(structure, _flag(expand_composites, "expand_composites")))


def pack_sequence_as(
    structure: _Any, flat_sequence: _Sequence[_Any], expand_composites: bool = False
) -> _Any:
    """Return a structure like another, of other leaves.

    Args:
        structure: The structure.
        flat_sequence: The leaves, in the order of ``flatten``.
        expand_composites: As for ``flatten``.

    Raises:
        ArgumentTypeError: if the leaves are no sequence, or the keys of a dict cannot be sorted.
        AttributeValueError: if there are more or fewer of them than in the structure.
    """
    if not is_nested(flat_sequence) or isinstance(flat_sequence, _Mapping | _MappingView):
        raise _ArgumentTypeError(f"flat_sequence must be a list, got {_shown(flat_sequence)}")
    given = list(
        _members(flat_sequence) if isinstance(flat_sequence, list | tuple) else flat_sequence
    )
    count = len(flatten(structure, expand_composites))
    if count != len(given):
        raise _AttributeValueError(f"the structure has {count} leaves, flat_sequence {len(given)}")
    return _packed(structure, iter(given), expand_composites)


def assert_same_structure(
    nest1: _Any, nest2: _Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Do nothing where two structures differ in their leaves only.

    Args:
        nest1: A structure.
        nest2: A structure.
        check_types: Whether types of structures and keys of dicts must be the same, too. All lists
            are of one type, all mappings are, and so are named tuples of one name with the same
            fields.
        expand_composites: As for ``flatten``.

    Raises:
        AttributeValueError: if one has leaves where the other has not, or a dict has other keys.
        ArgumentTypeError: if they are of other types.
    """
    _flag(check_types, "check_types")
    _compare(nest1, nest2, check_types, _flag(expand_composites, "expand_composites"))


def map_structure(func: _Callable[..., _Any], *structure: _Any, **kwargs: _Any) -> _Any:
    """Return the structure of what a function returns for the leaves of structures.

    Args:
        func: A function of one leaf of each structure.
        structure: Structures that are the same except for their leaves.
        kwargs: ``check_types`` and ``expand_composites``, as for ``assert_same_structure``.

    Raises:
        ArgumentTypeError: if ``func`` is none, or structures are of other types.
        AttributeValueError: if no structure is given, or they differ.
    """
    if not callable(func):
        raise _ArgumentTypeError(f"func must be a function, got {_shown(func)}")
    if not structure:
        raise _AttributeValueError("map_structure needs a structure at least")
    composites = kwargs.pop("expand_composites", False)
    check_types = kwargs.pop("check_types", True)
    if kwargs:
        raise _AttributeValueError(
            f"map_structure takes check_types and expand_composites, got {list(kwargs)}"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, composites)
    leaves = [flatten(one, composites) for one in structure]
    results = iter([func(*each) for each in zip(*leaves, strict=True)])
    return _packed(structure[0], results, composites)


# -- how structures are made


def _flag(value: _Any, name: str) -> bool:
    if not isinstance(value, bool | int):
        raise _ArgumentTypeError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def _has_attrs(value: _Any) -> bool:
    return hasattr(type(value), "__attrs_attrs__")


def _keys(mapping: _Mapping[_Any, _Any]) -> list[_Any]:
    keys = list(_members(mapping, "a dict"))
    try:
        return sorted(keys)
    except TypeError:
        raise _ArgumentTypeError(
            f"the keys of a dict in a structure must be such that they can be sorted, got "
            f"{_shown(keys)}"
        ) from None


def _inside(structure: _Any) -> list[_Any]:
    """Return what a structure holds, in the order in which it is flattened."""
    if isinstance(structure, _Mapping):
        return [structure[key] for key in _keys(structure)]
    if _has_attrs(structure):
        return [getattr(structure, field.name) for field in type(structure).__attrs_attrs__]
    if isinstance(structure, list | tuple):
        return list(_members(structure))
    return list(structure)


def _leaves(structure: _Any, composites: bool, depth: int = 0) -> _Iterator[_Any]:
    if depth > _MAX_DEPTH:
        raise _GraphError(f"a structure of tensors is nested more than {_MAX_DEPTH} deep")
    if composites and hasattr(structure, "unflatten"):
        yield from structure.flatten()
    elif is_nested(structure):
        for item in _inside(structure):
            yield from _leaves(item, composites, depth + 1)
    else:
        yield structure


def _packed(structure: _Any, leaves: _Iterator[_Any], composites: bool) -> _Any:
    if composites and hasattr(structure, "unflatten"):
        return structure.unflatten([next(leaves) for _ in structure.flatten()])
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_packed(item, leaves, composites) for item in _inside(structure)])


def _like(structure: _Any, items: list[_Any]) -> _Any:
    """Return a structure of the kind of another, of what it is to hold."""
    kind = type(structure)
    if isinstance(structure, _Mapping):
        found = dict(zip(_keys(structure), items, strict=True))
        pairs = [(key, found[key]) for key in structure]
        if kind is _defaultdict:
            return _defaultdict(getattr(structure, "default_factory", None), pairs)
        make: _Any = kind
        return make(pairs)
    if isinstance(structure, _MappingView | range):
        return items
    if hasattr(structure, "_fields") or _has_attrs(structure):
        return kind(*items)
    return kind(items)


# -- how structures are compared


def _compare(one: _Any, other: _Any, types: bool, composites: bool) -> None:
    first, second = _parts(one, composites), _parts(other, composites)
    if first is None and second is None:
        return
    if first is None or second is None:
        raise _AttributeValueError(f"the structures differ: {_shown(one)} and {_shown(other)}")
    if types:
        _compare_kinds(one, other)
    missing = object()
    for left, right in _zip_longest(first, second, fillvalue=missing):
        if left is missing or right is missing:
            raise _AttributeValueError(f"the structures differ: {_shown(one)} and {_shown(other)}")
        _compare(left, right, types, composites)


def _parts(value: _Any, composites: bool) -> list[_Any] | None:
    if composites and hasattr(value, "unflatten"):
        return list(value.flatten())
    return _inside(value) if is_nested(value) else None


def _compare_kinds(one: _Any, other: _Any) -> None:
    kinds = type(one), type(other)
    names = [(kind.__name__, getattr(kind, "_fields", None)) for kind in kinds]
    if names[0][1] is not None and names[1][1] is not None:
        same = names[0] == names[1]
    else:
        same = kinds[0] is kinds[1] or any(
            isinstance(one, kind) and isinstance(other, kind) for kind in (list, _Mapping)
        )
    if not same:
        raise _ArgumentTypeError(f"the structures differ: {names[0][0]} and {names[1][0]}")
    if isinstance(one, _Mapping) and set(one) != set(other):
        raise _AttributeValueError(
            f"the keys differ: {_shown(list(one))} and {_shown(list(other))}"
        )
