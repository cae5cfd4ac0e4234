"""Which variables take which tensors of a checkpoint: what an assignment map means."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import headrace as hr
from headrace import PartitionedVariable, Variable
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    GraphError,
    listing,
    shown,
)

if TYPE_CHECKING:
    from headrace_train.checkpoint.opening import OpenCheckpoint, StoredTensor

# What TensorFlow calls the tensor in which ``tf.train.Checkpoint`` describes its objects.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_log = logging.getLogger("headrace.train")


@final
@dataclass(frozen=True, slots=True)
class Assignment:
    """Variables that take one tensor.

    Attributes:
        tensor: The name of the tensor in the checkpoint.
        variables: One that takes all of it, or parts of a larger one, each of which takes its own.
    """

    tensor: str
    variables: tuple[Variable, ...]


def assignments(assignment_map: Any, opened: OpenCheckpoint) -> list[Assignment]:
    """Return what an assignment map asks for.

    Args:
        assignment_map: As ``init_from_checkpoint`` takes it.
        opened: The checkpoint.

    Raises:
        ArgumentTypeError: if it is no dict, or holds something else than it should.
        AttributeValueError: if a value names no variable, and no scope either.
        CheckpointNotFoundError: if tensors are not in the checkpoint.
    """
    if not isinstance(assignment_map, Mapping):
        raise ArgumentTypeError(
            "assignment_map must be a dict from names in the checkpoint to variables, or to their "
            f"names, got {shown(assignment_map)}"
        )
    made = []
    for tensor, wanted in sorted(assignment_map.items(), key=lambda item: str(item[0])):
        if not isinstance(tensor, str):
            raise AttributeValueError(
                f"the keys of assignment_map are names in the checkpoint, got {shown(tensor)}"
            )
        found = as_variables(wanted)
        if found is None and isinstance(wanted, str):
            found = _by_name(wanted)
        if found is not None:
            made.append(Assignment(tensor, found))
        elif isinstance(wanted, str):
            made += _of_scope(tensor, wanted)
        else:
            raise ArgumentTypeError(
                "the values of assignment_map are variables, lists of the parts of one, names and "
                f"scopes, got {shown(wanted)} for {tensor!r}"
            )
    for assignment in made:
        check(assignment, opened)
    return made


def as_variables(value: Any) -> tuple[Variable, ...] | None:
    """Return a variable, or the parts of one, as a tuple; None if ``value`` is neither."""
    if isinstance(value, Variable):
        return (value,)
    if isinstance(value, PartitionedVariable):
        return tuple(value)
    if isinstance(value, list | tuple) and all(isinstance(part, Variable) for part in value):
        return tuple(value)
    return None


def _by_name(name: str) -> tuple[Variable, ...] | None:
    """Return what ``hr.get_variable`` made under a name, as a whole or in parts."""
    known = hr.get_default_graph().outermost.variable_store
    if name in known:
        return (known[name],)
    parts: list[Variable] = []
    while f"{name}/part_{len(parts)}" in known:
        parts.append(known[f"{name}/part_{len(parts)}"])
    return tuple(parts) or None


def _of_scope(tensors: str, scope: str) -> list[Assignment]:
    """Return what a pair of scopes means: all variables of one take what is in the other."""
    if not tensors.endswith("/") or not scope.endswith("/"):
        names = sorted(hr.get_default_graph().outermost.variable_store)
        close = difflib.get_close_matches(scope, names, n=1)
        raise AttributeValueError(
            f"{scope!r}, which {tensors!r} is mapped to, is no variable that hr.get_variable made"
            + (f" (did you mean {close[0]!r}?)" if close else "")
            + "; pass a Variable itself, or map a scope to a scope, as in 'old/': 'new/'"
        )
    prefix = "" if scope == "/" else scope
    names = []
    for name in hr.get_default_graph().outermost.variable_store:
        if name.startswith(prefix):
            names.append(name.partition("/part_")[0])
    if not names:
        _log.warning("no variable is in the scope %r: nothing is taken from %r", scope, tensors)
    made = []
    for name in sorted(set(names)):
        start = "" if tensors == "/" else tensors
        found = _by_name(name)
        if found is not None:
            made.append(Assignment(start + name.removeprefix(prefix), found))
    return made


def check(assignment: Assignment, opened: OpenCheckpoint) -> None:
    """Refuse an assignment that cannot be.

    Raises:
        CheckpointNotFoundError: if the checkpoint does not have the tensor.
        CheckpointMismatchError: if its dtype or shape are not those of the variables.
        AttributeValueError: if variables are no parts of one.
        GraphError: if they belong to another graph.
    """
    entry = entry_of(assignment.tensor, opened)
    graph = hr.get_default_graph().outermost
    whole = whole_of(assignment.variables)
    for variable in assignment.variables:
        if variable.graph is not graph:
            raise GraphError(
                f"{variable.op_name!r} is a variable of another graph: call this where its graph "
                "is the default graph"
            )
        _check_dtype(variable, entry, opened)
    if whole is not None and not whole.is_compatible_with(entry.shape):
        raise CheckpointMismatchError(
            f"{assignment.variables[0].op_name!r} has shape {whole}, but the tensor "
            f"{entry.name!r} in {opened.path} has {list(entry.shape)}"
        )


def entry_of(name: str, opened: OpenCheckpoint) -> StoredTensor:
    """Return what a checkpoint says of a tensor.

    Raises:
        CheckpointNotFoundError: if it is not there.
    """
    entry = opened.tensors.get(name)
    if entry is not None:
        return entry
    hint = opened.suggestion(name) or f"; it has {listing(opened.tensors, 8)}"
    if _OBJECTS in opened.tensors:
        hint += " (tf.train.Checkpoint wrote it, which names variables by objects)"
    raise CheckpointNotFoundError(f"the tensor {name!r} is not in {opened.path}{hint}")


def whole_of(variables: Sequence[Variable]) -> hr.Shape | None:
    """Return the shape of the whole of which variables are parts; None if there are none.

    Raises:
        AttributeValueError: if there are several that are no parts of one.
    """
    if not variables:
        return None
    infos = [variable.save_slice_info for variable in variables]
    if len(infos) == 1 and infos[0] is None:
        return hr.Shape(variables[0].shape)
    names = {None if info is None else info.full_name for info in infos}
    if None in names or len(names) > 1:
        raise AttributeValueError(
            "a list of variables must be the parts of one partitioned variable, got "
            f"{listing([variable.op_name for variable in variables], 8)}"
        )
    assert infos[0] is not None
    return hr.Shape(infos[0].full_shape)


def _check_dtype(variable: Variable, entry: StoredTensor, opened: OpenCheckpoint) -> None:
    if variable.dtype.name != entry.dtype:
        raise CheckpointMismatchError(
            f"{variable.op_name!r} is {variable.dtype}, but the tensor {entry.name!r} in "
            f"{opened.path} is {entry.dtype}"
        )
