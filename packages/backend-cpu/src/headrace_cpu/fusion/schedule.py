"""The schedule of a group: loop nests, one after the other, and the phases of their rows.

A *nest* runs over some dimensions: rows over all but the last, and within a row one or several
*phases*, each an inner loop over the last dimension. A reduction over the last dimension
alone is known to later phases of the same row. All others are known once their nest has ended.

What is computed is driven by *roots*: reductions, stores, and values that are kept because several
phases or nests need them and computing them again would cost more than memory. Everything else is
computed where a root needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from headrace_cpu.fusion.constants import ELEMENTARY
from headrace_cpu.fusion.space import Space, Store, Value

# What an element of a function costs, in additions; others cost 1.
_COSTS = {"divide": 6, "quotient": 20, "sqrt": 8}
_ELEMENTARY_COST = 30
# Values are computed again where that costs at most this much.
_CHEAP = 8
# Of what would be computed so often, along dimensions that it does not vary along, no more than
# this.
_CHEAP_EACH = 4
_OFTEN = 4
# Functions of what rows reduce to take as long as the steps of so short a row, one by one: they are
# computed together where there are so many rows.
_SHORT_ROW, _MANY_ROWS = 256, 16


@dataclass(slots=True, eq=False)
class Root:
    """Something that must be computed somewhere.

    Attributes:
        value: The value that is reduced to (the reduction itself), stored or kept.
        store: What a store stores.
        dims: The dimensions over which it is computed.
        nest: The number of its nest.
        phase: Its phase; for one of a row, the phase before which it is computed.
        in_row: Whether it is computed once for each row.
    """

    value: Value
    store: Store | None
    dims: tuple[int, ...]
    nest: int = -1
    phase: int = 0
    in_row: bool = False

    @property
    def reduces(self) -> bool:
        """Whether it is a reduction."""
        return self.store is None and self.value.kind == "reduce"


@dataclass(slots=True, eq=False)
class Nest:
    """A loop nest.

    Attributes:
        dims: The dimensions that it runs over, the last one in the inner loops.
        roots: What it computes.
    """

    dims: tuple[int, ...]
    roots: list[Root] = field(default_factory=list)

    @property
    def phases(self) -> int:
        """How many inner loops a row has."""
        return 1 + max((r.phase for r in self.roots if not r.in_row), default=-1)


@dataclass(slots=True, eq=False)
class Schedule:
    """What is computed where.

    Attributes:
        space: The group's space.
        nests: In order.
        roots: The root of each reduction and of each kept value.
        distant: Reductions and kept values that later nests read: they are in memory wholly.
        bands: For the number of each nest in a band that of the band's first nest; see
            ``bands.py``.
    """

    space: Space
    nests: list[Nest]
    roots: dict[Value, Root]
    distant: set[Value]
    bands: dict[int, int] = field(default_factory=dict)

    def ends_before(self, nest: int, other: int) -> bool:
        """Whether all of a nest has run when another one begins."""
        return nest < other and self.bands.get(nest, nest) != self.bands.get(other, other)

    def by_row(self, value: Value) -> bool:
        """Whether a reduction is known after a phase of its row."""
        root = self.roots[value]
        dims = self.nests[root.nest].dims
        return not root.in_row and len(dims) > 1 and value.over == dims[-1:]


def make_schedule(space: Space, *, keeps: bool = True, again: bool = False) -> Schedule:
    """Return the schedule of a group.

    Args:
        space: The group.
        keeps: Whether values are kept that would cost much to compute again.
        again: Whether they are computed again all the same where one nest needs them, for each of
            its steps along a dimension that they do not vary along.
    """
    first = _Scheduler(space, set(), apart=not again).run()
    kept = _worth_keeping(space, first, again=again) if keeps else None
    return _Scheduler(space, kept, apart=not again).run() if kept else first


class _Scheduler:
    def __init__(self, space: Space, kept: set[Value], *, apart: bool) -> None:
        self.space = space
        # Whether functions of rows may have nests of their own.
        self.apart = apart
        self.kept = kept
        self.nests: list[Nest] = []
        self.roots: dict[Value, Root] = {}

    def run(self) -> Schedule:
        for value in self.space.values:
            if value.kind == "reduce" or value in self.kept:
                root = Root(value, None, value.iterates)
                self.roots[value] = root
                self._place(root, value.args)
        for store in self.space.stores:
            self._place(Root(store.value, store, store.dims), (store.value,))
        schedule = Schedule(self.space, self.nests, self.roots, set())
        schedule.distant = self._distant()
        return schedule

    def needed(self, values: tuple[Value, ...]) -> list[Root]:
        """Return the roots that values are computed from."""
        found: dict[Root, None] = {}
        seen: set[Value] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            root = self.roots.get(value)
            if root is not None:
                found[root] = None
            else:
                stack.extend(value.args)
        return list(found)

    def _place(self, root: Root, values: tuple[Value, ...]) -> None:
        needed = self.needed(values)
        number = max((other.nest for other in needed), default=0)
        for nest_number in range(number, len(self.nests) + 1):
            if nest_number == len(self.nests):
                self.nests.append(Nest(root.dims))
            if self._fits(root, needed, nest_number):
                root.nest = nest_number
                self.nests[nest_number].roots.append(root)
                return

    def _fits(self, root: Root, needed: list[Root], number: int) -> bool:
        """Try a nest for a root, and set its phase."""
        nest = self.nests[number]
        here = [other for other in needed if other.nest == number]
        if root.dims == nest.dims:
            root.in_row = not nest.dims
        elif root.dims == nest.dims[:-1] and root.dims and here:
            if self.apart and self._is_worth_a_nest(root, nest):
                return False
            root.in_row = True
        else:
            return False
        phase = 0
        for other in here:
            known = self._known(other, nest)
            if known is None or (root.in_row and not other.in_row and not other.reduces):
                return False
            phase = max(phase, known)
        root.phase = phase
        return True

    def _is_worth_a_nest(self, root: Root, nest: Nest) -> bool:
        """Whether functions of what rows reduce to are worth a nest, in which they are vectors."""
        sizes = self.space.sizes
        if sizes[nest.dims[-1]] > _SHORT_ROW or prod(sizes[d] for d in root.dims) < _MANY_ROWS:
            return False
        seen: set[Value] = set()
        stack = [*root.value.args] if root.reduces else [root.value]
        while stack:
            value = stack.pop()
            other = self.roots.get(value)
            if value in seen or (other is not None and other is not root):
                continue
            seen.add(value)
            if value.name in ELEMENTARY and value.dims == root.dims:
                return True
            stack.extend(value.args)
        return False

    def _known(self, root: Root, nest: Nest) -> int | None:
        """Return from which phase on a root's value is known in its nest, None if never."""
        if not root.reduces:
            return root.phase
        if root.in_row or len(nest.dims) < 2 or root.value.over != nest.dims[-1:]:
            return None
        return root.phase + 1

    def _distant(self) -> set[Value]:
        found: set[Value] = set()
        for nest in self.nests:
            for root in nest.roots:
                values = (root.value,) if root.store is not None else root.value.args
                for other in self.needed(values):
                    if other.nest != root.nest:
                        found.add(other.value)
        return found


def _worth_keeping(space: Space, schedule: Schedule, *, again: bool) -> set[Value]:
    """Return values to compute once although several phases or nests need them."""
    places = _places(space, schedule)
    users: dict[Value, list[Value]] = {}
    for value in space.values:
        for arg in value.args:
            users.setdefault(arg, []).append(value)
    kept: set[Value] = set()
    # From results to arguments: once a value is kept, its arguments are needed in one place only.
    for value in reversed(space.values):
        if value.kind != "reduce":
            for user in users.get(value, ()):
                if user.kind == "reduce":
                    root = schedule.roots[user]
                    places[value].add((root.nest, root.phase, root.in_row))
                elif user in kept:
                    places[value].add(min(places[user]))
                else:
                    places[value] |= places[user]
        if value.kind == "map" and not again and _comes_again(value, places[value], schedule):
            if cost(value, kept) > _CHEAP_EACH:
                kept.add(value)
            continue
        if value.kind != "map" or len(places[value]) < 2:
            continue
        if not value.dims and len({nest for nest, _, _ in places[value]}) < 2:
            continue
        nests = {nest for nest, _, _ in places[value]}
        dims = schedule.nests[min(nests)].dims
        if len(nests) == 1 and value.dims != dims:
            # A value of a row is a variable of the row.
            continue
        if cost(value, kept) > _CHEAP:
            kept.add(value)
    return kept


def _comes_again(value: Value, places: set[tuple[int, int, bool]], schedule: Schedule) -> bool:
    """Whether inner loops compute a value for each step of a loop around that it does not vary in.

    What does not vary along the last dimension is a variable of the row instead.
    """
    for number, _, in_row in places:
        dims = schedule.nests[number].dims
        if in_row or not dims or dims[-1] not in value.dims:
            continue
        sizes = schedule.space.sizes
        if prod(sizes[dim] for dim in dims if dim not in value.dims) >= _OFTEN:
            return True
    return False


def _places(space: Space, schedule: Schedule) -> dict[Value, set[tuple[int, int, bool]]]:
    """Return where stores need values: nest, phase, and whether for a row."""
    places: dict[Value, set[tuple[int, int, bool]]] = {v: set() for v in space.values}
    for nest in schedule.nests:
        for root in nest.roots:
            if root.store is not None:
                places[root.value].add((root.nest, root.phase, root.in_row))
    return places


def own_cost(value: Value) -> int:
    """Return what an element of a value costs beyond its arguments, in additions."""
    if value.kind == "load":
        return 1
    if value.kind != "map":
        return 0
    return _ELEMENTARY_COST if value.name in ELEMENTARY else _COSTS.get(value.name, 1)


def cost(value: Value, kept: set[Value]) -> int:
    """Return what an element of a value costs, with all that it is computed from."""
    total, seen, stack = 0, {value}, [value]
    while stack:
        here = stack.pop()
        total += own_cost(here)
        if here.kind == "reduce" or (here in kept and here is not value):
            continue
        for arg in here.args:
            # What varies along fewer dimensions is computed less often.
            if arg not in seen and len(arg.dims) == len(value.dims):
                seen.add(arg)
                stack.append(arg)
    return total
