"""Programs of conditions, loops and lists inside of one another, with their gradients.

Programs are made by chance, and are always the same for a seed. Each computes vectors of three
elements, by a placeholder, a constant and two variables, for ``generate_outcomes.outcome``.
"""

from __future__ import annotations

import random

# What stands in for {0}, {1} and {2} are expressions.
PLAIN = (
    "T.sin({0})",
    "({0} + {1})",
    "({0} * T.tanh({1}))",
    "T.stop_gradient({0})",
    "T.where({0} > 0.1, {1}, {2})",
    "T.reverse({0}, [0])",
    "T.maximum({0}, {1})",
    "T.concat([({0})[1:], ({1})[:1]], 0)",
    "T.tile(T.reduce_sum({0}, keepdims=True), [3])",
    "T.tile(T.reduce_max({0}, keepdims=True), [3])",
    "T.gather({0}, [2, 0, 0])",
    "T.gather(v, 1)",
    "T.gather(v, n % 4)",
    "T.foldl(lambda a, b: T.tanh(a + b) * 0.9, T.stack([{0}, {1}]))",
    "T.reduce_sum(T.TensorArray(T.float32, 2).write(0, {0}).write(1, {1}).stack(), 0)",
    "T.scan(lambda a, b: T.tanh(a * b) + b, {0})",
)
CONDITIONS = ("p", "T.reduce_sum({0}) > 0.0", "T.reduce_sum({0}) > 9.0", "n > 1")
LIMITS = ("{0} < 2", "{0} < 0", "{0} < n", "T.logical_and({0} < 3, T.reduce_sum({1}) < 1.0)")


class Nests:
    """Makes programs by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def number(self) -> float:
        return round(self.chance.random() * 2 - 1, 2)

    def one_of(self, *items: str) -> str:
        return items[int(self.chance.random() * len(items))]

    def vector(self, known: tuple[str, ...], depth: int) -> str:
        """Return an expression of a vector, by the names of others, so many deep at most."""
        if depth <= 0 or self.chance.random() < 0.1:
            return self.one_of(*known, "w", f"({self.one_of(*known)} * {self.one_of(*known)})")
        kinds = (self.plain, self.plain, self.condition, self.loop, self.written, self.mapped)
        return kinds[int(self.chance.random() * len(kinds))](known, depth - 1)

    def plain(self, known: tuple[str, ...], depth: int) -> str:
        parts = [self.vector(known, depth) for _ in range(3)]
        return self.one_of(*PLAIN).format(*parts)

    def condition(self, known: tuple[str, ...], depth: int) -> str:
        holds = self.one_of(*CONDITIONS).format(self.vector(known, depth - 1))
        then, other = (self.vector(known, depth) for _ in range(2))
        return f"T.cond({holds}, lambda: {then}, lambda: {other})"

    def loop(self, known: tuple[str, ...], depth: int) -> str:
        count, value = self.name(), self.name()
        limit = self.one_of(*LIMITS).format(count, value)
        body = self.vector((*known, value), depth)
        start = self.vector(known, depth)
        return (
            f"T.while_loop(lambda {count}, {value}: {limit}, "
            f"lambda {count}, {value}: ({count} + 1, T.tanh({body})), [T.constant(0), {start}])[1]"
        )

    def written(self, known: tuple[str, ...], depth: int) -> str:
        count, array = self.name(), self.name()
        element = f"({self.vector(known, depth - 1)})[{count}] * T.cast({count}, T.float32)"
        return (
            f"T.while_loop(lambda {count}, {array}: {count} < 3, lambda {count}, {array}: "
            f"({count} + 1, {array}.write({count}, {element})), "
            "[0, T.TensorArray(T.float32, 3)])[1].stack()"
        )

    def mapped(self, known: tuple[str, ...], depth: int) -> str:
        element = self.name()
        factor = self.vector(known, depth - 1)
        each = self.vector(known, depth)
        return f"T.map_fn(lambda {element}: {element} * T.reduce_sum({factor}), {each})"

    def program(self) -> str:
        self.names = 0
        y = self.vector(("x", "w"), 3 + int(self.chance.random() * 2))
        x, w = ([self.number() for _ in range(3)] for _ in range(2))
        v = "np.arange(12, dtype=np.float32).reshape(4, 3) / 10"
        return "\n".join(
            [
                f"p = T.placeholder_with_default({self.one_of('True', 'False')}, [])",
                f"n = T.placeholder_with_default({self.one_of('0', '1', '3')}, [])",
                f"x = T.constant({x})",
                f"v = T.get_variable('v', initializer={v})",
                f"w = T.get_variable('w', initializer={w})",
                f"y = {y}",
                "found = T.gradients(y * [1.0, 2.0, -0.5], [x, v, w])",
                "[y] + [g if g is None else T.convert_to_tensor(g) for g in found]",
            ]
        )


def nests(count: int, seed: int) -> list[str]:
    """Return programs, none twice."""
    made, found = Nests(seed), {}
    while len(found) < count:
        found[made.program()] = None
    return list(found)
