"""Nested lists, tuples and dicts, as ``hr.nest``."""

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from headrace.errors import ArgumentTypeError as _ArgumentTypeError
from headrace.errors import AttributeValueError as _AttributeValueError
from headrace.errors import shown as _shown
from headrace.graph import structure as _structure


def is_nested(seq: _Any) -> bool:
    """Return whether a value is a list, tuple or dict, and not a leaf."""
    return isinstance(seq, list | tuple | _Mapping)


def flatten(structure: _Any, expand_composites: bool = False) -> list[_Any]:
    """Return the leaves of a structure, those of dicts in the order of their sorted keys.

    Args:
        structure: Lists, tuples and dicts, nested; or one leaf.
        expand_composites: Whether sparse tensors and ``IndexedSlices`` count as their parts.
    """
    return _structure.flatten(structure, expand_composites)


def pack_sequence_as(
    structure: _Any, flat_sequence: _Sequence[_Any], expand_composites: bool = False
) -> _Any:
    """Return a structure like another, of other leaves.

    Args:
        structure: The structure.
        flat_sequence: The leaves, in the order of ``flatten``.
        expand_composites: As for ``flatten``.

    Raises:
        ArgumentTypeError: if the leaves are no sequence.
        AttributeValueError: if there are more or fewer of them than in the structure.
    """
    if not isinstance(flat_sequence, list | tuple):
        raise _ArgumentTypeError(f"flat_sequence must be a list, got {_shown(flat_sequence)}")
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise _AttributeValueError(
            f"the structure has {count} leaves, flat_sequence {len(flat_sequence)}"
        )
    return _structure.pack(structure, flat_sequence, expand_composites)


def assert_same_structure(
    nest1: _Any, nest2: _Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Do nothing where two structures differ in their leaves only.

    Args:
        nest1: A structure.
        nest2: A structure.
        check_types: Whether lists, tuples and dicts differ from one another, too.
        expand_composites: As for ``flatten``.

    Raises:
        AttributeValueError: if one has leaves where the other has not.
        ArgumentTypeError: if they are of other types, or dicts of other keys.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise _AttributeValueError(f"the structures differ: {_shown(nest1)} and {_shown(nest2)}")
    if not is_nested(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise _ArgumentTypeError(
            f"the structures differ: {type(nest1).__name__} and {type(nest2).__name__}"
        )
    if isinstance(nest1, _Mapping) and isinstance(nest2, _Mapping) and set(nest1) != set(nest2):
        raise _AttributeValueError(
            f"the keys differ: {_shown(list(nest1))} and {_shown(list(nest2))}"
        )
    if len(nest1) != len(nest2):
        raise _AttributeValueError(f"the structures differ: {_shown(nest1)} and {_shown(nest2)}")
    pairs = (
        [(nest1[key], nest2[key]) for key in nest1]
        if isinstance(nest1, _Mapping)
        else list(zip(nest1, nest2, strict=True))
    )
    for one, other in pairs:
        assert_same_structure(one, other, check_types, expand_composites)


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
    return _structure.pack(
        structure[0], [func(*each) for each in zip(*leaves, strict=True)], composites
    )
