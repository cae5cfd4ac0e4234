"""The ops of a saver: added once, when it is built, and found again by their names.

They have the names of TensorFlow's: ``save/Const`` takes the prefix, ``save/control_dependency``
saves and yields it, ``save/restore_all`` restores. A saver knows its graph only by these names, so
that one can be made of a graph that came from elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final
from uuid import uuid4

import headrace as hr
from headrace import Graph, Operation, Shape, Tensor, Variable
from headrace.errors import CheckpointMismatchError, GraphError
from headrace.extend import DeviceName
from headrace.extend.state import Saveable
from headrace_train.checkpoint.slices import Slice
from headrace_train.saver import checkpoints
from headrace_train.saver.matching import Wanted
from headrace_train.saver.variables import Item, Saved

_NOTES = "notes"


@final
@dataclass(frozen=True, slots=True)
class Names:
    """The nodes of a saver.

    Attributes:
        filename: The tensor that the prefix is fed to.
        save: The tensor that is fetched to save.
        restore: The operation that is run to restore.
    """

    filename: str
    save: str
    restore: str


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """How one tensor of a checkpoint gets into the state of a session.

    Attributes:
        wanted: What must be in the checkpoint.
        part: Which part of it is taken.
        value: The tensor that takes what was read.
        write: The operation that puts it into the state.
    """

    wanted: Wanted
    part: Slice
    value: Tensor
    write: Operation


def build(
    items: Sequence[Item], name: str | None, filename: str | None, sharded: bool, reshape: bool
) -> Names:
    """Add the ops that save and restore to the graph of what is saved.

    Args:
        items: What to save; not empty.
        name: The name scope; ``save`` if None.
        filename: The prefix that is taken where none is fed; ``model`` if None.
        sharded: Whether each task writes and reads a file of its own.
        reshape: Whether what is restored gets the shape of its variable.
    """
    graph = items[0].target.graph
    groups = _by_task(items) if sharded else [("/cpu:0", list(items))]
    with (
        graph.as_default(),
        hr.control_dependencies(None),
        hr.device(None),
        hr.name_scope(name, "save"),
    ):
        given = hr.placeholder_with_default(
            hr.constant(filename or "model", name="filename/input"), [], name="filename"
        )
        prefix = hr.placeholder_with_default(given, [], name="Const")
        notes = hr.placeholder_with_default(hr.constant("", name="notes/input"), [], name=_NOTES)
        if sharded:
            done = _save_sharded(prefix, notes, groups)
        else:
            with hr.device("/cpu:0"):
                done = _save(prefix, items, notes)
        with hr.control_dependencies([done]):
            save = hr.identity(prefix, name="control_dependency")
        restore = _restore(prefix, groups, reshape)
    return Names(prefix.name, save.name, restore.name)


def notes_of(graph: Graph, names: Names) -> Tensor | None:
    """Return the tensor that notes are fed to, None in a graph whose saver has none."""
    scope = names.filename.rpartition("/")[0]
    try:
        return graph.get_tensor_by_name(f"{scope}/{_NOTES}:0" if scope else f"{_NOTES}:0")
    except (GraphError, KeyError, ValueError):
        return None


def check_has(graph: Graph, names: Names | None) -> None:
    """Refuse the graph of a session that does not have the nodes of a saver under their names.

    Raises:
        GraphError: if it has not.
    """
    try:
        if names is not None:
            for tensor in (names.filename, names.save):
                graph.get_tensor_by_name(tensor)
            graph.get_operation_by_name(names.restore)
            return
    except (KeyError, ValueError):
        pass
    raise GraphError(
        "the session runs another graph than that of the variables of this Saver, and that has no "
        "ops of the names of this Saver's; make a Saver in the session's graph"
    )


def slots_of(restore: Operation) -> list[Slot]:
    """Return what an operation restores, in the order in which it is read.

    Args:
        restore: What ``build`` made, or an operation like it.
    """
    found = []
    for write in _needed(restore):
        for given in write.inputs:
            value = given.op.inputs[0] if given.op.type == "Reshape" else given
            source = value.op.inputs[0] if value.op.type == "Identity" else value
            if source.op.type != "RestoreV2":
                continue
            _, names, parts = source.op.inputs
            part = Slice.parse(_constants(parts)[source.index])
            shape = _shape_of(write) if part.whole is None else Shape(part.whole)
            wanted = Wanted(
                _constants(names)[source.index], source.dtype, shape, value is not given
            )
            found.append(Slot(wanted, part, value, write))
    return found


def _save(prefix: Tensor, items: Sequence[Item], notes: Tensor | None) -> Operation:
    return checkpoints.save_v2(
        prefix,
        hr.constant([item.name for item in items], name="SaveV2/tensor_names"),
        hr.constant([item.part for item in items], name="SaveV2/shape_and_slices"),
        [item.target.snapshot for item in items],
        notes,
        name="SaveV2",
    )


def _save_sharded(
    prefix: Tensor, notes: Tensor, groups: Sequence[tuple[str, Sequence[Item]]]
) -> Operation:
    """Let each task write a file of its own, and then the client's one make a checkpoint of them.

    The files are written into a folder of their own, beside the checkpoint.
    """
    folder = hr.constant(f"_temp_{uuid4().hex}/part", name="StringJoin/folder")
    base = hr.string_join([prefix, folder], name="StringJoin")
    count = hr.constant(len(groups), name="num_shards")
    parts = []
    for number, (device, items) in enumerate(groups):
        with hr.device(device):
            part = checkpoints.sharded_filename(base, number, count, name="ShardedFilename")
            with hr.control_dependencies([_save(part, items, None)]):
                parts.append(hr.identity(part, name="part"))
    with hr.device("/cpu:0"):
        return checkpoints.merge_v2_checkpoints(
            hr.stack(parts, name="MergeV2Checkpoints/checkpoint_prefixes"),
            prefix,
            notes,
            name="MergeV2Checkpoints",
        )


def _restore(
    prefix: Tensor, groups: Sequence[tuple[str, Sequence[Item]]], reshape: bool
) -> Operation:
    shards = []
    for device, items in groups:
        with hr.device(device):
            values = checkpoints.restore_v2(
                prefix,
                hr.constant([item.name for item in items], name="RestoreV2/tensor_names"),
                hr.constant([item.part for item in items], name="RestoreV2/shape_and_slices"),
                tuple(item.target.dtype for item in items),
                name="RestoreV2",
            )
        shards.append((device, items, values))
    if len(shards) > 1:
        # Nothing is written before all of it was read: a damaged file must not leave half of it.
        with hr.control_dependencies([values[0].op for _, _, values in shards]):
            for device, _, values in shards:
                with hr.device(device):
                    values[:] = [hr.identity(value, name="read") for value in values]
    writes = [
        [_write(item.target, value, reshape) for item, value in zip(items, values, strict=True)]
        for _, items, values in shards
    ]
    if len(writes) == 1:
        return hr.group(*writes[0], name="restore_all")
    done = [hr.group(*some, name="restore_shard") for some in writes]
    return hr.group(*done, name="restore_all")


def _write(target: Saved, value: Tensor, reshape: bool) -> Operation:
    if isinstance(target, Saveable):
        return target.restore(value)
    if reshape:
        known = target.shape.is_fully_defined()
        value = hr.reshape(value, target.shape.as_list() if known else hr.shape(target))
    found: Operation = target.assign(value, name="Assign", read_value=False)
    return found


def _by_task(items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
    """Return the tasks that hold variables, each with the device that saves them, and them.

    What is on no task that is known goes with the client's; the parts of one tensor go together,
    with the first of them.
    """
    groups: dict[str, list[Item]] = {}
    devices: dict[str, str] = {}
    for item in items:
        target = item.target
        op = target.handle.op if isinstance(target, Variable) else target.snapshot.op
        task = DeviceName.parse(op.device).task_name
        groups.setdefault(devices.setdefault(item.name, f"{task}/cpu:0"), []).append(item)
    return sorted(groups.items())


def _needed(restore: Operation) -> list[Operation]:
    """Return the operations that a group stands for, and those of groups within it."""
    found = {restore: None}
    waiting = deque([restore])
    while waiting:
        op = waiting.popleft()
        inside = op.control_inputs if op.type == "NoOp" else ()
        waiting.extend(other for other in inside if other not in found)
        found.update(dict.fromkeys(inside))
    return list(found)


def _shape_of(write: Operation) -> Shape:
    """Return the shape of the variable that an operation assigns to, as far as it is known."""
    for handle in write.inputs:
        content = handle.spec.content
        if content is not None and write.type == "AssignVariable":
            return content.shape
    return Shape(None)


def _constants(tensor: Tensor) -> list[str]:
    value: Any = tensor.op.attrs.get("value")
    if value is None:
        raise CheckpointMismatchError(f"{tensor.name} is no constant: a saver names its tensors so")
    return [item.decode() for item in value.tolist()]
