"""Random programs with conditions, loops and functions, as data.

A program is a list of statements over numbered values, all float64. It is run by an interpreter
that is given a library: Headrace's functions, which build a graph, or NumPy's, which compute.

Statements, each with the numbers of its operands and that of its result:

* ``("call", name, operands, result)``: a function of the library.
* ``("cond", threshold, pred, then, otherwise, result)``: blocks of statements, with results.
* ``("loop", bound, limit, carried, body, result)``: until a norm exceeds ``limit``, at most
  ``bound`` times.
* ``("scan", carried, source, body, result)``: over the rows of a value.
* ``("map", source, row, body, result)``: over the rows of a value, each by itself.
* ``("array", start, carried, body, chosen, result)``: an array of 3, each part computed of the one
  before it and read back; what is chosen of it, by number.
* ``("define", operands, body, result)``: a function, called twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Program = list[Any]
Shape = tuple[int, ...]

SHAPES: list[Shape] = [(), (3,), (2, 3)]
UNARY = ("tanh", "sin", "square", "halve", "softplus", "reverse", "normalise", "sigmoid")
BINARY = ("add", "sub", "mul", "mix", "pick")


class Generator:
    """Makes one program.

    Attributes:
        rng: Where all choices come from.
        shapes: The shape of every value so far.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shapes: dict[int, Shape] = {}
        self._next = 0

    def value(self, shape: Shape) -> int:
        number = self._next
        self._next += 1
        self.shapes[number] = shape
        return number

    def choose(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def of_shape(self, visible: list[int], shape: Shape) -> int | None:
        fitting = [v for v in visible if self.shapes[v] == shape]
        return self.choose(fitting) if fitting else None

    def program(self) -> tuple[list[int], Program, int]:
        """Return the numbers of the inputs, the statements, and the number of the result."""
        inputs = [self.value(shape) for shape in SHAPES]
        body, visible = self.block(list(inputs), 2 + int(self.rng.integers(5)), depth=0)
        return inputs, body, visible[-1]

    def block(self, visible: list[int], length: int, depth: int) -> tuple[Program, list[int]]:
        statements: Program = []
        visible = list(visible)
        for _ in range(length):
            statement = self.statement(visible, depth)
            statements.append(statement)
            visible.append(statement[-1])
        return statements, visible

    def ending_in(
        self, visible: list[int], shape: Shape, depth: int, carried: tuple[int, ...] = ()
    ) -> tuple[Program, int]:
        """Return a block and the number of a value of it that has a certain shape."""
        body, after = self.block(visible, 1 + int(self.rng.integers(3)), depth)
        recent = [v for v in after[len(visible) - len(carried) :] if self.shapes[v] == shape]
        found = recent[-1] if recent else self.of_shape(after, shape)
        assert found is not None
        result = self.value(shape)
        # Bounded, so that loops do not run away.
        body.append(("call", "tanh", (found,), result))
        return body, result

    def statement(self, visible: list[int], depth: int) -> Any:
        kind = float(self.rng.random())
        if depth < 3 and kind < 0.35:
            made = (self.cond, self.loop, self.scan, self.define, self.map, self.array)
            return self.choose(made)(visible, depth)
        if kind < 0.6:
            operand = self.choose(visible)
            return ("call", self.choose(UNARY), (operand,), self.value(self.shapes[operand]))
        if kind < 0.7:
            operand = self.choose(visible)
            return ("call", "total", (operand,), self.value(()))
        left = self.choose(visible)
        shape = self.shapes[left]
        right = self.of_shape(visible, shape) if self.rng.random() < 0.6 else self.choose(visible)
        assert right is not None
        shape = tuple(np.broadcast_shapes(shape, self.shapes[right]))
        name = self.choose(BINARY)
        if name == "pick" and self.shapes[left] != self.shapes[right]:
            name = "mul"
        return ("call", name, (left, right), self.value(shape))

    def cond(self, visible: list[int], depth: int) -> Any:
        shape = self.choose(SHAPES)
        pred = self.choose(visible)
        then = self.ending_in(visible, shape, depth + 1)
        otherwise = self.ending_in(visible, shape, depth + 1)
        threshold = round(float(self.rng.normal()), 3)
        return ("cond", threshold, pred, then, otherwise, self.value(shape))

    def loop(self, visible: list[int], depth: int) -> Any:
        start = self.choose(visible)
        carried = self.value(self.shapes[start])
        body = self.ending_in([*visible, carried], self.shapes[start], depth + 1, (carried,))
        bound = int(self.rng.integers(0, 5))
        limit = round(float(abs(self.rng.normal()) * 3), 3)
        return ("loop", bound, limit, start, carried, body, self.value(self.shapes[start]))

    def scan(self, visible: list[int], depth: int) -> Any:
        source = self.choose([v for v in visible if len(self.shapes[v]) == 2])
        rows, columns = self.shapes[source]
        start = self.of_shape(visible, (columns,))
        assert start is not None
        carried, row = self.value((columns,)), self.value((columns,))
        body = self.ending_in([*visible, carried, row], (columns,), depth + 1, (carried, row))
        return ("scan", source, start, carried, row, body, self.value((rows, columns)))

    def map(self, visible: list[int], depth: int) -> Any:
        source = self.choose([v for v in visible if len(self.shapes[v]) == 2])
        rows, columns = self.shapes[source]
        row = self.value((columns,))
        body = self.ending_in([*visible, row], (columns,), depth + 1, (row,))
        return ("map", source, row, body, self.value((rows, columns)))

    def array(self, visible: list[int], depth: int) -> Any:
        start = self.choose(visible)
        shape = self.shapes[start]
        carried = self.value(shape)
        body = self.ending_in([*visible, carried], shape, depth + 1, (carried,))
        chosen = [int(i) for i in self.rng.integers(0, 3, size=2)]
        return ("array", start, carried, body, chosen, self.value(shape))

    def define(self, visible: list[int], depth: int) -> Any:
        operand = self.choose(visible)
        shape = self.shapes[operand]
        argument = self.value(shape)
        body = self.ending_in([*visible, argument], shape, depth + 1, (argument,))
        return ("define", operand, argument, body, self.value(shape))


def run(library: Any, statements: Program, values: dict[int, Any]) -> None:
    """Run statements; ``values`` holds what is known and gets what they yield."""
    for statement in statements:
        kind, *rest = statement
        values[statement[-1]] = _RUN[kind](library, values, *rest[:-1])


def _block(library: Any, body: tuple[Program, int], values: dict[int, Any]) -> Any:
    inner = dict(values)
    run(library, body[0], inner)
    return inner[body[1]]


def _call(library: Any, values: Any, name: str, operands: tuple[int, ...]) -> Any:
    return getattr(library, name)(*(values[o] for o in operands))


def _cond(library: Any, values: Any, threshold: float, pred: int, then: Any, other: Any) -> Any:
    return library.cond(
        library.above(values[pred], threshold),
        lambda: _block(library, then, values),
        lambda: _block(library, other, values),
    )


def _loop(
    library: Any, values: Any, bound: int, limit: float, start: int, carried: int, body: Any
) -> Any:
    return library.loop(
        bound,
        lambda held: library.within(held, limit),
        lambda held: _block(library, body, {**values, carried: held}),
        values[start],
    )


def _scan(
    library: Any, values: Any, source: int, start: int, carried: int, row: int, body: Any
) -> Any:
    return library.scan(
        lambda held, part: _block(library, body, {**values, carried: held, row: part}),
        values[source],
        values[start],
    )


def _map(library: Any, values: Any, source: int, row: int, body: Any) -> Any:
    return library.map(lambda part: _block(library, body, {**values, row: part}), values[source])


def _array(library: Any, values: Any, start: int, carried: int, body: Any, chosen: Any) -> Any:
    parts = library.array(
        lambda held: _block(library, body, {**values, carried: held}), values[start]
    )
    return library.mix(parts(chosen[0]), parts(chosen[1]))


def _define(library: Any, values: Any, operand: int, argument: int, body: Any) -> Any:
    function = library.function(lambda x: _block(library, body, {**values, argument: x}))
    return function(library.halve(function(values[operand])))


_RUN = {
    "call": _call,
    "cond": _cond,
    "loop": _loop,
    "scan": _scan,
    "map": _map,
    "array": _array,
    "define": _define,
}
