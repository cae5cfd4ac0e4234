"""Races: operations of a step that use one variable in no order, and at least one changes it.

What happens before what follows from data and control edges alone, so it is known before the step
runs, on whatever devices and tasks. What an operation holds, such as the branches of a condition,
it does as a whole: after all that it depends on, and before all that depends on it. Of the branches
of a condition one runs, and the iterations of a loop come one after the other.

Which of two operations comes first is asked for all of them at once: each change is a bit, and each
operation has the set of those before it and of those after it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from headrace.graph.function import Function, functions_in
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.inline_calls import join_views
from headrace.passes.prune import extract
from headrace.passes.step_graph import StepGraph
from headrace.records import dataclass

# What tells one state from another: the place of a parameter, or how a handle finds what it is.
_Key: TypeAlias = Hashable

# How many changes are looked at together: each operation then has two numbers of so many bits.
_TOGETHER = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """What an operation does with a state, or what it holds does.

    Attributes:
        op: The operation, of the graph that is looked at.
        reads: Itself, or an operation in what it holds, if one reads the state.
        changes: Likewise, if one changes it.
    """

    op: Operation
    reads: Operation | None
    changes: Operation | None


@dataclass(frozen=True, slots=True, eq=False)
class Race:
    """Two operations that use a state in no order.

    Attributes:
        state: The name of the variable, table or other state.
        change: The one that changes it.
        other: The other one.
        both: Whether the other one changes it, too.
    """

    state: str
    change: Operation
    other: Operation
    both: bool


def unordered(
    operations: Sequence[Operation],
    uses: Mapping[_Key, Sequence[Use]],
    more_needs: Callable[[Operation], Iterable[Operation]] = lambda op: (),
) -> Iterator[tuple[_Key, Use, Use]]:
    """Yield pairs of uses of one state in no order, the first of which is a change.

    Of several changes that race with one use, one is told.

    Args:
        operations: All operations, each after those that it depends on.
        uses: The uses of each state, each by an operation of its own.
        more_needs: What operations come after besides those that their edges tell.
    """
    needs = {
        op: [*dict.fromkeys((*(t.op for t in op.inputs), *op.control_inputs, *more_needs(op)))]
        for op in operations
    }
    for group in _groups(uses):
        changes = [use for key in group for use in uses[key] if use.changes is not None]
        bit = dict.fromkeys(operations, 0)
        for i, use in enumerate(changes):
            bit[use.op] |= 1 << i
        before = dict.fromkeys(operations, 0)
        after = dict.fromkeys(operations, 0)
        for op in operations:
            for other in needs[op]:
                before[op] |= before[other] | bit[other]
        for op in reversed(operations):
            later = after[op] | bit[op]
            for other in needs[op]:
                after[other] |= later
        for key in group:
            own = 0
            for use in uses[key]:
                own |= bit[use.op] if use.changes is not None else 0
            told: set[tuple[Operation, Operation]] = set()
            for use in uses[key]:
                free = own & ~(before[use.op] | after[use.op] | bit[use.op])
                while free:
                    lowest = free & -free
                    change = changes[lowest.bit_length() - 1]
                    free ^= lowest
                    # The bit of an operation that changes several states may be of another one.
                    if change.op is use.op or (change.op, use.op) in told:
                        continue
                    mine = next(u for u in uses[key] if u.op is change.op)
                    told.add((use.op, change.op))
                    yield key, mine, use
                    break


def _groups(uses: Mapping[_Key, Sequence[Use]]) -> Iterator[list[_Key]]:
    """Yield the states that might see a race, so many together as there are bits for."""
    group: list[_Key] = []
    count = 0
    for key, all_uses in uses.items():
        changes = sum(use.changes is not None for use in all_uses)
        if not changes or len(all_uses) < 2:
            continue
        if group and count + changes > _TOGETHER:
            yield group
            group, count = [], 0
        group.append(key)
        count += changes
    if group:
        yield group


def races(step: StepGraph) -> list[Race]:
    """Return the races of a step, in it and in the functions that its operations hold.

    Args:
        step: The step, as it was cut out of its program, with all views of one run joined.
    """
    functions = functions_in(step.graph)
    wanted: dict[Function, dict[Tensor, None]] = {}
    graphs = {}
    _note_wanted(step.graph.operations, wanted)
    for function in reversed(functions):
        # What holds it comes before it here, so all that is wanted of it is known.
        if function in wanted:
            inside = join_views(extract((), list(wanted[function]), function.effects))
            graphs[function] = inside.graph.operations
            _note_wanted(graphs[function], wanted)
    known: dict[Function, dict[_Key, Use]] = {}
    found: list[Race] = []
    for function in functions:
        if function in graphs:
            uses = _uses(graphs[function], known, function)
            known[function] = {key: _joined(several) for key, several in uses.items()}
            found += _told(graphs[function], uses, function)
    return found + _told(step.graph.operations, _uses(step.graph.operations, known), None)


def _note_wanted(
    operations: Iterable[Operation], wanted: dict[Function, dict[Tensor, None]]
) -> None:
    for op in operations:
        for function, saves, _ in _held(op):
            own = wanted.setdefault(function, {})
            own.update(dict.fromkeys(function.results))
            own.update(dict.fromkeys(function.get_tensor_by_name(name) for name in saves))


def _held(op: Operation) -> list[tuple[Function, tuple[str, ...], tuple[Tensor, ...]]]:
    """Return the functions that an operation runs, what is saved of each, and its arguments."""
    attrs, inputs = op.attrs, op.inputs
    if op.type == "Call":
        return [(attrs["function"], attrs["saves"], inputs)]
    if op.type == "If":
        end = 1 + op.arity[1]
        return [
            (attrs["then_branch"], attrs["then_saves"], inputs[1:end]),
            (attrs["else_branch"], attrs["else_saves"], inputs[end:]),
        ]
    if op.type == "While":
        count, of_cond, _ = op.arity
        varying, rest = inputs[:count], inputs[count:]
        return [
            (attrs["cond"], (), (*varying, *rest[:of_cond])),
            (attrs["body"], attrs["saves"], (*varying, *rest[of_cond:])),
        ]
    return []


def _uses(
    operations: Iterable[Operation],
    known: Mapping[Function, Mapping[_Key, Use]],
    function: Function | None = None,
) -> dict[_Key, list[Use]]:
    """Return what the operations of a graph do with each state."""
    found: dict[_Key, list[Use]] = {}
    for op in operations:
        own: dict[_Key, list[Use]] = {}
        asked = _asked(op, function)
        for tensor in op.inputs:
            if tensor.dtype.kind == "resource" and op.type != "VariableInitialized":
                change = op if op.schema.changes else None
                read = op if "reads" in op.schema.effects else None
                if change or read:
                    own.setdefault(_key(tensor, function), []).append(Use(op, read, change))
        for inner, _, arguments in _held(op):
            for key, use in known.get(inner, {}).items():
                outside = _key(arguments[key], function) if isinstance(key, int) else key
                if outside is None or outside != asked:
                    own.setdefault(outside, []).append(use)
        for key, several in own.items():
            if key is not None:
                use = _joined(several)
                found.setdefault(key, []).append(Use(op, use.reads, use.changes))
    return found


def _asked(op: Operation, function: Function | None) -> _Key:
    """Return the variable of which a condition asks whether it has a value, None for others.

    Who asks is ready for either answer, as ``Variable.initialized_value`` is.
    """
    if op.type == "If" and op.inputs[0].op.type == "VariableInitialized":
        return _key(op.inputs[0].op.inputs[0], function)
    return None


def _joined(uses: Sequence[Use]) -> Use:
    reads = next((use.reads for use in uses if use.reads), None)
    return Use(uses[0].op, reads, next((use.changes for use in uses if use.changes), None))


def _key(handle: Tensor, function: Function | None) -> _Key:
    """Return what tells a state from others of its graph, None where no race is looked for."""
    op = _source(handle)
    if op.type == "Parameter":
        index: int = op.attrs["index"]
        origin = None if function is None else _origin(function, index)
        # Of what is unknown, a variable tells what it holds.
        checked = handle.spec.content is not None if origin is None else _is_checked(origin)
        return index if checked else None
    if not _is_checked(op):
        return None
    name = op.attrs.get("shared_name") or op
    return (op.type, op.attrs.get("container"), name, str(op.device_name))


def origin_of(handle: Tensor, graph: Graph) -> Operation | None:
    """Return the operation of the program that yields a handle, None if it is not known.

    Args:
        handle: The handle, in the step or in a function of it.
        graph: Where it is.
    """
    op = _source(handle)
    if op.type == "Parameter":
        return _origin(graph, op.attrs["index"]) if isinstance(graph, Function) else None
    return op


def _is_checked(handle: Operation) -> bool:
    found = not handle.inputs and handle.type != "Feed"
    return found and not handle.schema.concurrent


def _source(handle: Tensor) -> Operation:
    """Return what a handle comes from that was handed on."""
    op = handle.op
    while op.inputs and not op.schema.effects and op.inputs[0].dtype.kind == "resource":
        op = op.inputs[0].op
    return op


def _origin(function: Function, index: int) -> Operation | None:
    """Return the handle that a function captured as a parameter, None if it is not known."""
    op = function.parameters[index].op
    while op.type == "Parameter" and isinstance(op.graph, Function):
        captures = op.graph.captures.items()
        outer = next((t for t, parameter in captures if parameter.op is op), None)
        if outer is None:
            return None
        op = _source(outer)
    return op


def _told(
    operations: Sequence[Operation], uses: Mapping[_Key, Sequence[Use]], function: Function | None
) -> list[Race]:
    found: list[Race] = []
    sections: list[tuple[_Key, set[Operation]]] | None = None
    for key, change, other in unordered(operations, uses):
        if sections is None:
            sections = _sections(operations)
        if _excluded(change.op, other.op, sections):
            continue
        assert change.changes is not None
        use = other.changes or other.reads
        assert use is not None
        found.append(
            Race(_name(key, function), change.changes, use, both=other.changes is not None)
        )
    return found


def _name(key: _Key, function: Function | None) -> str:
    if isinstance(key, int):
        assert function is not None
        op = _origin(function, key) or function.parameters[key].op
        return str(op.attrs.get("shared_name") or op.name)
    assert isinstance(key, tuple)
    name = key[2]
    return name.name if isinstance(name, Operation) else str(name)


def _sections(
    operations: Sequence[Operation],
) -> list[tuple[_Key, set[Operation]]]:
    """Return what runs while the lock of a mutex is held, with the mutex."""
    found: list[tuple[_Key, set[Operation]]] = []
    for lock in operations:
        if lock.type != "MutexAcquire":
            continue
        after, before = {lock}, set()
        for op in operations:
            if any(t.op in after for t in op.inputs) or not after.isdisjoint(op.control_inputs):
                after.add(op)
        for op in reversed(operations):
            gives_back = op.type == "MutexRelease" and _source(op.inputs[0]) is lock
            if gives_back or op in before:
                before.add(op)
                before.update(t.op for t in op.inputs)
                before.update(op.control_inputs)
        mutex = _source(lock.inputs[0])
        found.append((mutex.attrs.get("index", mutex.attrs.get("shared_name")), after & before))
    return found


def _excluded(
    one: Operation, other: Operation, sections: Sequence[tuple[_Key, set[Operation]]]
) -> bool:
    """Whether a lock keeps operations from running at once: the program wants them in any order."""
    locks = [{mutex for mutex, inside in sections if op in inside} for op in (one, other)]
    return not locks[0].isdisjoint(locks[1])
