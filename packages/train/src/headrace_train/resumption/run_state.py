"""What a run needs, besides its variables, to go on exactly: input positions, random streams.

It travels in the metadata of checkpoints, under a key of its own, so that the tensors of a
checkpoint are those of the model.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import headrace as hr
from headrace import Graph, Operation, Tensor
from headrace.errors import CheckpointError, GraphError, listing
from headrace.extend import primitives
from headrace.extend.arguments import mapping
from headrace.extend.graphs import functions_in
from headrace.extend.state import Saveable
from headrace_train.checkpoint import CheckpointReader
from headrace_train.checkpoint.paths import find_file

_log = logging.getLogger("headrace.train")
_KEY = "run_state"
# What a checkpoint keeps in its list of tensors has to fit into memory several times.
_MOST_BYTES = 256 << 20
_ITERATORS = "iterators"
# How the names of parts begin that are no iterators.
_QUEUE, _STREAMS = "contents of", "random streams"

# What can be kept of a run: positions of iterators, contents of queues, random streams.
Kind: TypeAlias = Literal["iterators", "queues", "streams"]
STREAMS: AbstractSet[Kind] = frozenset({"streams"})
MONITORED: AbstractSet[Kind] = frozenset({"iterators", "streams"})
EVERYTHING: AbstractSet[Kind] = frozenset({"iterators", "queues", "streams"})


_Take = Callable[[], Any]
_Put = Callable[[Any], None]


@final
class _RunState:
    """The operations by which the state of runs of one graph is taken and put back.

    Attributes:
        parts: By name, what is taken, whether there is something, and how it is put back.
        kept: What hooks keep, by name: how it is taken, and put back.
    """

    def __init__(self) -> None:
        self.parts: dict[str, tuple[Tensor, Tensor | None, Tensor, Operation]] = {}
        self.kept: dict[str, tuple[_Take, _Put]] = {}


# Where a graph keeps it: it refers to the graph, which a dictionary of graphs would keep alive.
_ATTRIBUTE = "_run_state_of_training"


def _known(graph: Graph) -> _RunState | None:
    found: _RunState | None = getattr(graph, _ATTRIBUTE, None)
    return found


def _made(graph: Graph) -> _RunState:
    found = _known(graph)
    if found is None:
        found = _RunState()
        setattr(graph, _ATTRIBUTE, found)
    return found


def keep(graph: Graph, name: str, take: _Take, put: _Put) -> None:
    """Let checkpoints of a graph's runs keep what a hook knows.

    Args:
        graph: The graph.
        name: What it is called; the second of a name gets a number.
        take: Returns it, as JSON can hold it.
        put: Gets it when a run goes on.
    """
    kept = _made(graph).kept
    number = sum(other.partition(":")[0] == name for other in kept)
    kept[f"{name}:{number}" if number else name] = take, put


def prepare(graph: Graph, kinds: AbstractSet[Kind] = MONITORED) -> None:
    """Add the operations that take the state of runs of a graph, before it is finalized.

    What was added before stays; nothing is added to a graph that has none of these.

    Args:
        graph: The graph.
        kinds: Which state.
    """
    known = _made(graph)
    if graph.finalized:
        return
    with (
        graph.as_default(),
        hr.control_dependencies(None),
        hr.device(None),
        hr.name_scope("run_state/"),
    ):
        for iterator in graph.get_collection(_ITERATORS) if "iterators" in kinds else ():
            name = iterator.resource.op.name
            if name not in known.parts:
                saveable = hr.data.experimental.make_saveable_from_iterator(iterator)
                known.parts[name] = _part(saveable)
        for queue in queues_of(graph) if "queues" in kinds else ():
            name = f"{_QUEUE} {queue.name}"
            if name not in known.parts:
                known.parts[name] = _queue(queue.outputs[0])
        for device in _drawing_tasks(graph) if "streams" in kinds else ():
            name = f"{_STREAMS} {device}".rstrip()
            if name not in known.parts:
                with hr.device(device or None):
                    known.parts[name] = _streams()


def saved_with_run_state(
    saver: Any, session: Any, save_path: str, step: Any, notes: Mapping[str, Any] | None = None
) -> str:
    """Save a checkpoint, and in it the state of the run, where the saver can.

    Args:
        saver: The saver.
        session: The session.
        save_path: As for ``Saver.save``.
        step: The global step.
        notes: More for its metadata.

    Returns:
        The path of the checkpoint.
    """
    if not isinstance(saver, hr.train.Saver):
        return str(saver.save(session, save_path, global_step=step))
    metadata = mapping(notes, "notes")
    if _known(session.graph) is not None:
        metadata.update(run_state(session, saver.run_state_kinds | MONITORED))
    if not metadata:
        return str(saver.save(session, save_path, global_step=step))
    return str(saver.save(session, save_path, global_step=step, metadata=metadata))


def run_state(session: Any, kinds: AbstractSet[Kind], *, all_of_it: bool = False) -> dict[str, Any]:
    """Return the state of a session's run as the metadata of a checkpoint, empty if it has none.

    Args:
        session: The session.
        kinds: Which state.
        all_of_it: Whether too much is refused; it is left out with a warning otherwise.

    Raises:
        CheckpointError: if it is too much.
    """
    known = _known(session.graph)
    state = {} if known is None else _taken(known, session, kinds, all_of_it=all_of_it)
    return {_KEY: state} if state else {}


def restore_run_state(session: Any, path: str) -> bool:
    """Let a session go on where it was when a checkpoint was saved.

    Args:
        session: The session, whose variables have been restored and initialized.
        path: The checkpoint; one without such state changes nothing.

    Returns:
        Whether the checkpoint has such state.

    Raises:
        CheckpointError: if it cannot be read.
        InvalidArgumentError: if positions are of other input pipelines.
    """
    known = _known(session.graph)
    if known is None:
        return False
    file = find_file(Path(path))
    if file is None:
        # A checkpoint of another kind, such as TensorFlow's.
        return False
    with CheckpointReader(file) as reader:
        state = reader.metadata.get(_KEY)
    if not isinstance(state, dict):
        return False
    saved, kept = state.get("parts", {}), state.get("kept", {})
    feeds, targets = {}, []
    for name, (_, _, value, restore) in known.parts.items():
        if name in saved:
            feeds[value] = base64.b64decode(saved[name])
            targets.append(restore)
    unknown = sorted(set(saved) - set(known.parts))
    if unknown:
        _log.warning("%s has positions of what this program does not have: %s", path, unknown)
    if targets:
        session.run(targets, feed_dict=feeds)
    for name, (_, put) in known.kept.items():
        if name in kept:
            put(kept[name])
    return True


def _taken(
    known: _RunState, session: Any, kinds: AbstractSet[Kind], *, all_of_it: bool
) -> dict[str, Any]:
    """Return the state as JSON can hold it."""
    parts = {name: part for name, part in known.parts.items() if _kind(name) in kinds}
    has = {name: known_has for name, (_, known_has, _, _) in parts.items() if known_has is not None}
    there = session.run(has) if has else {}
    values = {name: part[0] for name, part in parts.items() if there.get(name, True)}
    found = session.run(values) if values else {}
    state: dict[str, Any] = {}
    total = sum(len(value) for value in found.values())
    if total > _MOST_BYTES and all_of_it:
        raise CheckpointError(
            f"input positions, contents of queues and random streams take {total >> 20} MB; a "
            f"checkpoint keeps {_MOST_BYTES >> 20} MB of them: let queues and shuffle buffers hold "
            "less, or make the Saver without run_state"
        )
    if total > _MOST_BYTES:
        _log.warning(
            "input positions and random streams take more than %d MB and are not saved: a run that "
            "goes on begins its inputs anew; shuffle with smaller buffers",
            _MOST_BYTES >> 20,
        )
    elif found:
        state["parts"] = {n: base64.b64encode(v).decode("ascii") for n, v in found.items()}
    if known.kept and "iterators" in kinds:
        state["kept"] = {name: take() for name, (take, _) in known.kept.items()}
    return state


def _kind(name: str) -> Kind:
    if name.startswith(f"{_QUEUE} "):
        return "queues"
    return "streams" if name.split(" /")[0] == _STREAMS else "iterators"


def queues_of(graph: Graph) -> list[Operation]:
    """Return the operations that make the queues of a graph.

    Raises:
        GraphError: if a queue runner fills one: what it takes its elements from cannot be asked
            where it is.
    """
    run = {
        runner.queue.queue_ref.op.name
        for runner in graph.get_collection(hr.GraphKeys.QUEUE_RUNNERS)
    }
    # Of the family of queues, those that say how much fits in are the handles.
    found = [
        op
        for op in graph.operations
        if "capacity" in op.attrs and op.schema.where.startswith("headrace.ops.queue")
    ]
    filled = [op.name for op in found if op.name in run]
    if filled:
        raise GraphError(
            f"queue runners fill {listing(filled)}: where they are in their inputs cannot be "
            "saved; read the inputs with hr.data, or make the Saver without run_state"
        )
    return found


def _queue(handle: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Operation]:
    value = hr.placeholder(hr.string, [], name="contents")
    restore = primitives.restore_queue_contents(handle, value)
    return primitives.queue_contents(handle), None, value, restore


def _part(saveable: Saveable) -> tuple[Tensor, Tensor | None, Tensor, Operation]:
    value = hr.placeholder(saveable.dtype, saveable.shape, name="value")
    return saveable.snapshot, saveable.is_initialized(), value, saveable.restore(value)


def _streams() -> tuple[Tensor, Tensor | None, Tensor, Operation]:
    # lazy: a program without random numbers declares no such ops
    from headrace_train.resumption.random_streams import random_streams, restore_random_streams

    value = hr.placeholder(hr.string, [], name="streams")
    return random_streams(), None, value, restore_random_streams(value)


def _drawing_tasks(graph: Graph) -> list[str]:
    """Return the tasks on which random numbers are drawn, an empty name for that of the session."""
    found: dict[str, None] = {}
    for part in (graph, *functions_in(graph)):
        for op in part.operations:
            if "draws" in op.schema.effects:
                asked = op.device_name
                known = asked.job is not None and asked.task is not None
                found[f"/job:{asked.job}/task:{asked.task}" if known else ""] = None
    return list(found)
