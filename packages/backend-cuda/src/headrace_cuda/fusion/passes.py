"""Passes: what each kernel of a fused group does, from the schedule of its loop nests.

A nest of the CPU's schedule becomes one pass or several:

* *Rows*: rows over all dimensions but the last, with reductions along the last one that are known
  to later phases of the same row. A few threads share a row.
* *Reduce*: reductions along any other dimensions, each of which is known once the pass has ended.
* *Map*: what has nothing to reduce, an element for each thread.

What a variable is changed to in place is stored by a map after everything else of its nest, so that
no thread reads what another one has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from headrace_cpu.for_backends import Root, Schedule, Unfit, Value, variable_of


class Kind(Enum):
    """What a pass is."""

    MAP = "map"
    ROWS = "rows"
    REDUCE = "reduce"


@dataclass(slots=True, eq=False)
class Pass:
    """What one kernel does.

    Attributes:
        kind: What it is.
        dims: The dimensions that it goes over.
        roots: What it computes: reductions and stores.
        over: Of a reduction, the dimensions that are reduced.
        phases: Of rows, how many loops each has.
    """

    kind: Kind
    dims: tuple[int, ...]
    roots: list[Root] = field(default_factory=list)
    over: tuple[int, ...] = ()
    phases: int = 1

    @property
    def kept(self) -> tuple[int, ...]:
        """Of a reduction, the dimensions that are left."""
        return tuple(dim for dim in self.dims if dim not in self.over)


def passes_of(schedule: Schedule) -> list[Pass]:
    """Return the passes of a schedule, in order.

    Raises:
        Unfit: if a variable would be read after it was changed.
    """
    found: list[Pass] = []
    for nest in schedule.nests:
        rows = [r for r in nest.roots if r.reduces and not r.in_row and schedule.by_row(r.value)]
        others = [r for r in nest.roots if r.reduces and r not in rows]
        stores = [r for r in nest.roots if r.store is not None]
        late = [r for r in stores if not rows or _updates(r)]
        if rows:
            early = [r for r in stores if not _updates(r)]
            row = Pass(Kind.ROWS, nest.dims, [*rows, *early])
            row.phases = 1 + max(r.phase for r in row.roots if not r.in_row)
            found.append(row)
        reductions: dict[tuple[tuple[int, ...], tuple[int, ...]], Pass] = {}
        for root in others:
            key = root.value.iterates, root.value.over
            if key not in reductions:
                reductions[key] = Pass(Kind.REDUCE, *key[:1], over=key[1])
            reductions[key].roots.append(root)
        found += reductions.values()
        maps: dict[tuple[int, ...], Pass] = {}
        for root in late:
            maps.setdefault(root.dims, Pass(Kind.MAP, root.dims)).roots.append(root)
        found += maps.values()
    _check_updates(found)
    return found


def loads_of(step: Pass) -> list[Value]:
    """Return what a pass loads: what its roots are computed from, but for other reductions."""
    own = {root.value for root in step.roots if root.reduces}
    stack = [v for r in step.roots for v in (r.value.args if r.reduces else (r.value,))]
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.kind != "reduce" or value in own:
            stack.extend(value.args)
    return [value for value in seen if value.kind == "load"]


def reductions_read(step: Pass) -> list[Value]:
    """Return the reductions that a pass reads and does not make."""
    own = {root.value for root in step.roots if root.reduces}
    stack = [v for r in step.roots for v in (r.value.args if r.reduces else (r.value,))]
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.kind == "reduce" and value not in own:
            found[value] = None
        elif value.kind != "reduce":
            stack.extend(value.args)
    return list(found)


def _updates(root: Root) -> bool:
    return root.store is not None and root.store.update


def _check_updates(passes: list[Pass]) -> None:
    """Refuse passes that read a variable where the new value may be already."""
    for number, step in enumerate(passes):
        changed = {r.store.tensor: r.store for r in step.roots if r.store and r.store.update}
        if not changed:
            continue
        for later in passes[number:]:
            for load in loads_of(later):
                assert load.tensor is not None
                store = changed.get(variable_of(load.tensor))
                if store is None:
                    continue
                # Each thread reads its element before it changes it.
                same = load.dims == store.dims and load.strides == store.strides
                if later is not step or not same or load.offset != store.offset:
                    raise Unfit("a variable is read and updated in different orders")
