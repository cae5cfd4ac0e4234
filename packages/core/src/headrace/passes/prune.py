"""Dead code elimination: keeping only what fetches and targets need, cut off at the feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from headrace.device_name import DeviceName
from headrace.errors import FeedError
from headrace.graph.function import functions_in, functions_within
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import Rewriter, StepGraph

_NOTHING: Mapping[Operation, Sequence[Operation]] = MappingProxyType({})


def extract(
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    done: frozenset[Operation] = frozenset(),
) -> StepGraph:
    """Return the part of a program that one step computes, with ``Feed`` nodes for its feeds.

    What is upstream of a fed tensor alone is left out, even where it has side effects, and so is
    waiting for operations that are ``done``. A variable that is fetched and that the step changes
    is read after the changes.
    """
    fed = set(feeds)
    _check_no_copies(feeds)
    needed = _needed([*(t.op for t in fetches if t not in fed), *targets], fed, done)
    changes = {t: _changes(t.op.inputs[0], needed) for t in fetches if _is_variable(t, fed)}
    last = {tensor: ops for tensor, ops in changes.items() if ops}
    if last:
        roots = [t.op for t in fetches if t not in fed and t not in last]
        needed = _needed([*roots, *targets], fed, done)
    rewriter = Rewriter("feed")
    new_feeds = [_add_feed(rewriter, tensor, i) for i, tensor in enumerate(feeds)]
    for old, new in zip(feeds, new_feeds, strict=True):
        rewriter.stand_for_tensor(old, new)
    feeding = {t.op for t in feeds}
    # Operations behind what is fed, of which other things are known.
    changed: set[Operation] = set()
    for op in sorted(needed, key=attrgetter("index")):
        _copy_pinned(rewriter, op, feeding, changed, fed, done)
    read = {t: _add_last_read(rewriter, t, ops) for t, ops in last.items()}
    return StepGraph(
        rewriter.graph,
        tuple(new_feeds),
        tuple(read[t] if t in read else rewriter.tensor(t) for t in fetches),
        tuple(rewriter.operation(op) for op in targets),
    )


def prune(step: StepGraph) -> StepGraph:
    """Drop what no fetch or target needs any more; feeds stay, since their values are handed in."""
    needed = still_needed(step)
    if len(needed) == len(step.graph):
        return step
    rewriter = Rewriter("prune")
    for op in step.graph.operations:
        if op in needed:
            rewriter.copy(op)
    return rewriter.finish(step)


def still_needed(
    step: StepGraph, known: Mapping[Operation, Sequence[Operation]] = _NOTHING
) -> set[Operation]:
    """Return what the fetches and targets of a step need, and its feeds.

    Args:
        step: The step.
        known: Operations that need none of their inputs any more, and what they wait for instead.
    """
    return _needed([*step.roots, *(t.op for t in step.feeds)], set(), frozenset(), known)


def _check_no_copies(feeds: Sequence[Tensor]) -> None:
    """Refuse to feed constants of which functions hold copies, to which the value would not get."""
    names = {t.name for t in feeds if t.op.type == "Const"}
    if not names:
        return
    for function in functions_in(feeds[0].graph):
        for op in function.operations:
            if op.copy_of in names:
                raise FeedError(
                    f"cannot feed the constant {op.copy_of!r}: {function.name!r} "
                    "holds a copy of it; use a placeholder or placeholder_with_default"
                )


def _needed(
    roots: Iterable[Operation],
    fed: set[Tensor],
    done: frozenset[Operation],
    known: Mapping[Operation, Sequence[Operation]] = _NOTHING,
) -> set[Operation]:
    needed: set[Operation] = set()
    waiting = list(roots)
    while waiting:
        op = waiting.pop()
        if op in needed:
            continue
        needed.add(op)
        if op in known:
            waiting.extend(known[op])
        elif fed:
            waiting.extend([t.op for t in op.inputs if t not in fed])
        else:
            waiting.extend([t.op for t in op.inputs])
        if op.control_inputs:
            waiting.extend(_controls(op, fed, done))
    return needed


def _controls(op: Operation, fed: set[Tensor], done: frozenset[Operation]) -> list[Operation]:
    """Return what runs before an operation; a placeholder that is fed has its value already."""
    return [
        control
        for control in op.control_inputs
        if control not in done and (control.type != "Placeholder" or control.outputs[0] not in fed)
    ]


def _is_variable(tensor: Tensor, fed: set[Tensor]) -> bool:
    """Whether a fetched tensor is what stands for a variable."""
    if tensor.op.type != "ReadVariable" or tensor.op.control_inputs or tensor in fed:
        return False
    return any(variable.snapshot is tensor for variable in tensor.graph.variables)


def _changes(handle: Tensor, needed: set[Operation]) -> list[Operation]:
    """Return the operations of a step that may change a variable, themselves or by a function."""
    users = [op for op in needed if handle in op.inputs]
    held = [op for op in users if op.schema.changes or functions_within(op)]
    return sorted(held, key=lambda op: op.index)


def _add_last_read(rewriter: Rewriter, tensor: Tensor, changes: Sequence[Operation]) -> Tensor:
    """Add a read of a variable that waits for what changes it."""
    read = tensor.op
    new = rewriter.graph.add_operation(
        read.schema,
        name=f"_fetch/{read.name}",
        inputs=[rewriter.tensor(t) for t in read.inputs],
        arity=read.arity,
        attrs=read.attrs,
        specs=[t.spec for t in read.outputs],
        control_inputs=rewriter.controls(changes),
        device=read.device_name,
        colocated_with=rewriter.controls(read.colocated_with),
        site=read.site,
        origin=f"fetch of {tensor.name}",
    )
    return new.outputs[0]


def _add_feed(rewriter: Rewriter, tensor: Tensor, index: int) -> Tensor:
    feed = rewriter.graph.add_operation(
        OPS["Feed"],
        name=f"_feed/{tensor.op.name}/{tensor.index}",
        inputs=[],
        arity=(),
        attrs={"dtype": tensor.dtype, "shape": tensor.spec.shape, "index": index},
        specs=[type(tensor.spec)(tensor.dtype, tensor.spec.shape)],
        site=tensor.op.site,
        origin=f"feed of {tensor.name}",
    )
    return feed.outputs[0]


def _copy_pinned(
    rewriter: Rewriter,
    op: Operation,
    feeding: set[Operation],
    changed: set[Operation],
    fed: set[Tensor],
    done: frozenset[Operation],
) -> None:
    """Copy a node; outputs that are fed keep their feeds.

    The request of an operation that it was put beside, but is left out, goes before its own.

    Args:
        rewriter: What copies.
        op: The node.
        feeding: The operations of which outputs are fed.
        changed: Nodes of which other things are known now; the node is added where it is one.
        fed: The tensors that are fed.
        done: What no node waits for.
    """
    kept = {t: rewriter.tensor(t) for t in op.outputs if t in fed} if op in feeding else {}
    device = op.device_name
    for other in op.colocated_with:
        if not rewriter.has(other):
            device = _joined(device, other.device_name)
    specs = None
    for tensor in op.inputs:
        if tensor.op in feeding or tensor.op in changed:
            specs = _specs(op, [rewriter.tensor(t) for t in op.inputs])
            break
    rewriter.copy(
        op,
        device,
        specs,
        controls=_controls(op, fed, done) if op.control_inputs else (),
        gradient_rule="",
    )
    if specs is not None:
        changed.add(op)
    for old, feed in kept.items():
        rewriter.stand_for_tensor(old, feed)


def _specs(op: Operation, inputs: Sequence[Tensor]) -> Sequence[TensorSpec] | None:
    """Return the specs of an operation's outputs where some of what is upstream may be fed.

    What was concluded from a constant does not hold for another value that is fed in its place.

    Returns:
        None where they are what they were.
    """
    pairs = zip(inputs, op.inputs, strict=True)
    if all(_as_known(new.spec, old.spec) for new, old in pairs):
        return None
    return op.schema.output_specs([t.spec for t in inputs], op.arity, op.attrs)[0]


def _as_known(new: TensorSpec, old: TensorSpec) -> bool:
    return new is old or (
        new.value is old.value and new.dims == old.dims and new.shape == old.shape
    )


def _joined(device: DeviceName, other: DeviceName) -> DeviceName:
    joined = device.intersected(other)
    return other if joined is None else joined
