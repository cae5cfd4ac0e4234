"""What may share memory: variables updated in place, and results that take an input's place."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Tensor
from headrace_cpu.fusion.build import Unfit
from headrace_cpu.fusion.emit import Kernel
from headrace_cpu.fusion.nodes import BYTES, shape_of
from headrace_cpu.fusion.schedule import Root, Schedule
from headrace_cpu.fusion.space import Value


def variable_of(tensor: Tensor) -> Tensor:
    """Return the handle whose buffer a tensor may be a view of, else the tensor itself."""
    return tensor.op.inputs[0] if tensor.op.type == "ReadVariable" else tensor


def check_updates(schedule: Schedule, kernel: Kernel) -> None:
    """Refuse kernels that read a variable's old value where the new one may be already.

    The value that was read may be the very buffer that is updated, or a copy. The kernel is right
    for both if it reads in an earlier nest, or each element once, where it is also updated, and the
    new one depends on it.

    Raises:
        Unfit: if the kernel is one of these.
    """
    for root in _stores(schedule):
        assert root.store is not None
        if not root.store.update:
            continue
        for nest, phase, load in kernel.loads:
            assert load.tensor is not None
            shared = variable_of(load.tensor) is root.store.tensor
            # A nest ends before the next one begins.
            late = shared and nest >= root.nest
            if late and not _in_step(root, _computed_from(root.value), nest, phase, load):
                raise Unfit("a variable is read and updated in different orders")


def reusable(
    schedule: Schedule, kernel: Kernel, writes: Sequence[Tensor]
) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return pairs (written, read) of tensors that may have the same buffer."""
    stores: dict[Tensor, list[Root]] = {}
    for root in _stores(schedule):
        assert root.store is not None
        if root.store.tensor is not None:
            stores.setdefault(root.store.tensor, []).append(root)
    loads: dict[Tensor, list[tuple[int, int, Value]]] = {}
    for place in kernel.loads:
        tensor = place[2].tensor
        assert tensor is not None
        loads.setdefault(tensor, []).append(place)
    found = []
    for written in writes:
        roots = stores.get(written, [])
        # Kept values that live in the result's buffer would be stored before it.
        if len(roots) != 1:
            continue
        sources = _computed_from(roots[0].value)
        for read, places in loads.items():
            if read.spec.content is not None or read.op.type == "ReadVariable":
                continue
            same = BYTES[places[0][2].code] == BYTES[roots[0].value.code]
            fits = same and shape_of(read) == shape_of(written)
            if fits and all(_done(schedule, roots[0], sources, *place) for place in places):
                found.append((written, read))
    return tuple(found)


def _stores(schedule: Schedule) -> list[Root]:
    return [r for nest in schedule.nests for r in nest.roots if r.store is not None]


def _done(
    schedule: Schedule, root: Root, sources: set[Value], nest: int, phase: int, load: Value
) -> bool:
    """Whether an element is loaded for the last time when a result is stored in its place."""
    if nest < root.nest and not schedule.ends_before(nest, root.nest):
        # Both run for one step of their band before either does for the next.
        return _same_place(root, load)
    # A nest ends before the next one begins, and of each row a phase before the next.
    if nest != root.nest or phase >= root.phase:
        return nest < root.nest or _in_step(root, sources, nest, phase, load)
    return _same_place(root, load)


def _in_step(root: Root, sources: set[Value], nest: int, phase: int, load: Value) -> bool:
    """Whether an element is loaded where it is stored, and what is stored depends on it."""
    here = nest == root.nest and phase == root.phase
    return here and _same_place(root, load) and load in sources


def _same_place(root: Root, load: Value) -> bool:
    """Whether a load and a store walk over memory in the same way."""
    store = root.store
    assert store is not None
    same = load.dims == store.dims and load.strides == store.strides
    return same and load.offset == store.offset


def _computed_from(value: Value) -> set[Value]:
    """Return a value and all that it is computed from in the same place."""
    stack, seen = [value], {value}
    while stack:
        here = stack.pop()
        # A reduction or a kept value may have been computed elsewhere.
        for arg in here.args if here.kind == "map" else ():
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    return seen
