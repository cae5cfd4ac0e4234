"""Layered drawing: rows of boxes such that edges run down, cross seldom, and are short."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Point = tuple[float, float]
GAP_X = 26.0
GAP_Y = 40.0
# Width kept free where an edge passes between boxes.
_LANE = 10.0
_SWEEPS = 12
_TURNS = 40


@dataclass
class Arrangement:
    """Where boxes and edges go.

    Attributes:
        places: Left and top of each box.
        routes: For each edge, its points, to join by lines where one stands below the other, and by
            curves elsewhere.
        width: Width of the whole.
        height: Height of the whole.
    """

    places: list[Point]
    routes: dict[tuple[int, int], list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def arrange(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Arrangement:
    """Place boxes of the given widths and heights, and route the edges between them.

    Parts of the graph that are not connected are laid out on their own, and packed into rows.
    """
    parts = []
    for members in _components(len(sizes), edges):
        numbers = {node: i for i, node in enumerate(members)}
        inner = [(numbers[a], numbers[b]) for a, b in edges if a in numbers]
        part = _Layout([sizes[m] for m in members], inner).run()
        parts.append((members, part))
    return _pack(len(sizes), parts)


def _components(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    leader = list(range(count))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for a, b in edges:
        leader[max(find(a), find(b))] = min(find(a), find(b))
    groups: dict[int, list[int]] = {}
    for node in range(count):
        groups.setdefault(find(node), []).append(node)
    return list(groups.values())


def _pack(count: int, parts: list[tuple[list[int], Arrangement]]) -> Arrangement:
    """Put parts side by side in rows, large ones first."""
    area = sum((p.width + GAP_X) * (p.height + GAP_Y) for _, p in parts)
    limit = max([math.sqrt(area) * 1.5, *(p.width for _, p in parts)])
    whole = Arrangement([(0.0, 0.0)] * count)
    x = y = row = 0.0
    for members, part in sorted(parts, key=lambda item: (-len(item[0]), item[0][0])):
        if x and x + part.width > limit:
            x, y, row = 0.0, y + row + GAP_Y, 0.0
        for member, (px, py) in zip(members, part.places, strict=True):
            whole.places[member] = (px + x, py + y)
        for (a, b), points in part.routes.items():
            whole.routes[members[a], members[b]] = [(px + x, py + y) for px, py in points]
        whole.width = max(whole.width, x + part.width)
        whole.height = max(whole.height, y + part.height)
        x += part.width + GAP_X
        row = max(row, part.height)
    return whole


class _Layout:
    """The layout of one connected graph; nodes beyond the boxes are bends of long edges."""

    def __init__(self, sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> None:
        self.count = len(sizes)
        self.widths = [w for w, _ in sizes]
        self.heights = [h for _, h in sizes]
        self.edges = edges
        self.layer: list[int] = []
        self.rows: list[list[int]] = []
        self.chains: dict[tuple[int, int], list[int]] = {}
        self.above: list[list[int]] = []
        self.below: list[list[int]] = []

    def run(self) -> Arrangement:
        down = self._without_cycles()
        self._assign_layers(down)
        self._bend_long_edges(down)
        self._order_rows()
        x = self._assign_x()
        return self._measure(x)

    # -- which row

    def _without_cycles(self) -> list[tuple[int, int]]:
        """Return the edges, those that close a cycle turned around."""
        following: list[list[int]] = [[] for _ in range(self.count)]
        for a, b in self.edges:
            following[a].append(b)
        state = [0] * self.count  # 0 unseen, 1 on the path, 2 done
        reversed_: set[tuple[int, int]] = set()
        for root in range(self.count):
            stack = [(root, iter(following[root]))] if not state[root] else []
            state[root] = state[root] or 1
            while stack:
                node, rest = stack[-1]
                child = next(rest, None)
                if child is None:
                    state[node] = 2
                    stack.pop()
                elif state[child] == 1:
                    reversed_.add((node, child))
                elif not state[child]:
                    state[child] = 1
                    stack.append((child, iter(following[child])))
        flipped = ((b, a) if (a, b) in reversed_ else (a, b) for a, b in self.edges)
        return list(dict.fromkeys((a, b) for a, b in flipped if a != b))

    def _assign_layers(self, down: list[tuple[int, int]]) -> None:
        before: list[list[int]] = [[] for _ in range(self.count)]
        after: list[list[int]] = [[] for _ in range(self.count)]
        for a, b in down:
            before[b].append(a)
            after[a].append(b)
        waiting = [len(nodes) for nodes in before]
        order = [n for n in range(self.count) if not waiting[n]]
        self.layer = [0] * self.count
        for node in order:
            for child in after[node]:
                self.layer[child] = max(self.layer[child], self.layer[node] + 1)
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        for node in reversed(order):
            # Sources, such as variables, stand right above what uses them first.
            if after[node] and not before[node]:
                self.layer[node] = min(self.layer[c] for c in after[node]) - 1
        lowest = min(self.layer)
        self.layer = [n - lowest for n in self.layer]

    def _bend_long_edges(self, down: list[tuple[int, int]]) -> None:
        for a, b in down:
            chain = [a]
            for layer in range(self.layer[a] + 1, self.layer[b]):
                chain.append(len(self.layer))
                self.layer.append(layer)
                self.widths.append(_LANE)
                self.heights.append(0.0)
            self.chains[a, b] = [*chain, b]
        self.above = [[] for _ in self.layer]
        self.below = [[] for _ in self.layer]
        for chain in self.chains.values():
            for a, b in pairwise(chain):
                self.below[a].append(b)
                self.above[b].append(a)

    # -- where in the row

    def _order_rows(self) -> None:
        rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for node, layer in enumerate(self.layer):
            rows[layer].append(node)
        best, fewest = [list(row) for row in rows], self._crossings(rows)
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            downwards = sweep % 2 == 0
            sequence = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
            for i in sequence:
                fixed = rows[i - 1] if downwards else rows[i + 1]
                position = {node: p for p, node in enumerate(fixed)}
                linked = self.above if downwards else self.below
                own = {node: p for p, node in enumerate(rows[i])}
                centre = {
                    n: _mean([position[m] for m in linked[n]], float(own[n])) for n in rows[i]
                }
                rows[i].sort(key=centre.__getitem__)
            crossings = self._crossings(rows)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
        self.rows = best

    def _crossings(self, rows: list[list[int]]) -> int:
        total = 0
        for upper, lower in pairwise(rows):
            position = {node: p for p, node in enumerate(lower)}
            passed: list[int] = []
            for node in upper:
                ends = sorted(position[m] for m in self.below[node])
                total += sum(len(passed) - bisect_left(passed, end + 1) for end in ends)
                for end in ends:
                    insort(passed, end)
        return total

    def _assign_x(self) -> list[float]:
        x = [0.0] * len(self.layer)
        for row in self.rows:
            self._place(row, x, [0.0] * len(row))
        for turn in range(_TURNS):
            rows = self.rows if turn % 2 == 0 else self.rows[::-1]
            for row in rows:
                wanted = []
                for node in row:
                    near = self.above[node] if turn % 2 == 0 else self.below[node]
                    if turn >= _TURNS // 2:
                        near = self.above[node] + self.below[node]
                    pulls = [self._pull(node, m) for m in near]
                    total = sum(p * x[m] for p, m in zip(pulls, near, strict=True))
                    wanted.append(total / sum(pulls) if near else x[node])
                self._place(row, x, wanted)
        left = min(x[n] - self.widths[n] / 2 for n in range(len(x)))
        return [value - left for value in x]

    def _pull(self, a: int, b: int) -> float:
        """How much two neighbours want to stand below each other: bends most of all."""
        return (1.0, 3.0, 12.0)[(a >= self.count) + (b >= self.count)]

    def _place(self, row: list[int], x: list[float], wanted: list[float]) -> None:
        """Put a row's nodes as near as possible to where they want to be, without overlap.

        Least squares under an order is isotonic regression once the least distances are taken
        off: neighbours that want to pass each other are pooled at their mean.
        """
        offsets = [0.0]
        for a, b in pairwise(row):
            gap = GAP_X if a < self.count and b < self.count else GAP_X / 2
            offsets.append(offsets[-1] + (self.widths[a] + self.widths[b]) / 2 + gap)
        pools: list[tuple[float, float, int]] = []  # sum of weighted wishes, weight, members
        for node, wish, offset in zip(row, wanted, offsets, strict=True):
            # Bends weigh more, which keeps long edges straight.
            weight = 1.0 if node < self.count else 4.0
            total, mass, size = (wish - offset) * weight, weight, 1
            while pools and pools[-1][0] / pools[-1][1] > total / mass:
                other = pools.pop()
                total, mass, size = total + other[0], mass + other[1], size + other[2]
            pools.append((total, mass, size))
        values = [total / mass for total, mass, size in pools for _ in range(size)]
        for node, value, offset in zip(row, values, offsets, strict=True):
            x[node] = value + offset

    # -- coordinates

    def _measure(self, x: list[float]) -> Arrangement:
        tops: list[float] = []
        tall: list[float] = []
        y = 0.0
        for row in self.rows:
            height = max(self.heights[n] for n in row)
            tops.append(y)
            tall.append(height)
            y += height + GAP_Y
        found = Arrangement(
            [], {}, max(x[n] + self.widths[n] / 2 for n in range(len(x))), y - GAP_Y
        )
        for node in range(self.count):
            layer = self.layer[node]
            found.places.append((x[node] - self.widths[node] / 2, tops[layer]))
        ports = self._ports(x)
        for a, b in self.edges:
            if a == b:
                continue
            reversed_ = (a, b) not in self.chains
            first, last = (b, a) if reversed_ else (a, b)
            chain = self.chains[first, last]
            top, bottom = self.layer[first], self.layer[last]
            out, into = ports[first, chain[1], True], ports[last, chain[-2], False]
            points = [
                (out, found.places[first][1] + self.heights[first]),
                (out, tops[top] + tall[top]),
            ]
            for bend in chain[1:-1]:
                layer = self.layer[bend]
                points += [(x[bend], tops[layer]), (x[bend], tops[layer] + tall[layer])]
            points.append((into, tops[bottom]))
            found.routes[a, b] = points[::-1] if reversed_ else points
        return found

    def _ports(self, x: list[float]) -> dict[tuple[int, int, bool], float]:
        """Return where on a box's lower and upper side each edge is attached."""
        ports: dict[tuple[int, int, bool], float] = {}
        for node in range(self.count):
            for linked, lower in ((self.below[node], True), (self.above[node], False)):
                ends = sorted(linked, key=lambda n: (x[n], n))
                spread = min(14.0, self.widths[node] * 0.6 / max(1, len(ends) - 1))
                for i, end in enumerate(ends):
                    ports[node, end, lower] = x[node] + (i - (len(ends) - 1) / 2) * spread
        return ports


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
