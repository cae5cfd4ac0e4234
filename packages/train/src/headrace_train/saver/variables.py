"""What a saver saves: variables and other state, each under a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import PartitionedVariable, Variable
from headrace.errors import (
    ArgumentTypeError,
    CheckpointMismatchError,
    GraphError,
    listing,
    shown,
)
from headrace.extend.state import Saveable

# Variables, and other state that a package offers as one tensor.
Saved: TypeAlias = Variable | Saveable


@final
@dataclass(frozen=True, slots=True)
class Item:
    """A tensor that is saved.

    Attributes:
        name: Its name in the file.
        part: Which part of the tensor of this name it is, in the notation of checkpoints; empty if
            it is all of it.
        target: The variable, or other state.
    """

    name: str
    part: str
    target: Saved

    def __str__(self) -> str:
        return f"{self.name} ({self.part})" if self.part else self.name


def all_saveables() -> list[Saved]:
    """Return all that the default graph has to save: its variables and what other packages add."""
    others = hr.get_collection(hr.GraphKeys.SAVEABLE_OBJECTS)
    return [*hr.global_variables(), *others]


def items_of(var_list: Any) -> list[Item]:
    """Return what to save, in the order of the names.

    Args:
        var_list: Variables, or a dict that gives each, or the parts of one, the name under which
            it is saved. The parts of a variable are saved under one name, that of the whole.

    Raises:
        ArgumentTypeError: if it is neither, or holds something else.
        CheckpointError: if two have one name, or one has two.
        GraphError: if they belong to several graphs.
    """
    if isinstance(var_list, Mapping):
        items = [item for name, value in var_list.items() for item in _named(name, value)]
    elif isinstance(var_list, Iterable) and not isinstance(
        var_list, Variable | PartitionedVariable | hr.Tensor | str
    ):
        items = [item for value in var_list for item in _by_own_name(value)]
    else:
        raise ArgumentTypeError(
            f"a Saver takes its variables in a dict or a list, got {shown(var_list)}"
        )
    for item in items:
        if item.target.graph is not items[0].target.graph:
            raise GraphError("the variables of a Saver must belong to one graph")
    _check_names(items)
    _check_once(items)
    return sorted(items, key=lambda item: item.name)


def _by_own_name(value: Any) -> list[Item]:
    if isinstance(value, PartitionedVariable):
        return [item for part in value for item in _by_own_name(part)]
    _check_kind(value)
    info = getattr(value, "save_slice_info", None)
    if info is not None:
        return [Item(info.full_name, info.spec, value)]
    return [Item(value.op_name, "", value)]


def _named(name: Any, value: Any) -> list[Item]:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"a variable is saved under a string, got {shown(name)}")
    if isinstance(value, PartitionedVariable | list | tuple):
        items = []
        for part in value:
            info = getattr(part, "save_slice_info", None)
            if info is None:
                raise ArgumentTypeError(
                    f"what is saved under {shown(name)} is a list of the parts of a variable, got "
                    f"{shown(part)}"
                )
            items.append(Item(name, info.spec, part))
        return items
    _check_kind(value)
    return [Item(name, "", value)]


def _check_kind(value: Any) -> None:
    if not isinstance(value, Variable | Saveable):
        raise ArgumentTypeError(
            f"a Saver saves variables, got {shown(value)}; pass the variables it is made of"
        )


def _check_names(items: list[Item]) -> None:
    parts: dict[str, set[str]] = {}
    twice = set()
    for item in items:
        known = parts.setdefault(item.name, set())
        if item.part in known or (known and "" in (item.part, *known)):
            twice.add(item.name)
        known.add(item.part)
        try:
            item.name.encode()
        except UnicodeEncodeError:
            raise CheckpointMismatchError(
                f"{shown(item.name)} holds a lone surrogate, which no name in a file may have"
            ) from None
    if twice:
        raise CheckpointMismatchError(
            f"variables are listed twice: {listing(sorted(twice))}; list each once"
        )


def _check_once(items: list[Item]) -> None:
    names: dict[int, str] = {}
    for item in items:
        target = item.target
        what = target.handle.op if isinstance(target, Variable) else target
        first = names.setdefault(id(what), item.name)
        if first != item.name:
            raise CheckpointMismatchError(
                f"one variable is saved under two names, {first!r} and {item.name!r}; leave one out"
            )
