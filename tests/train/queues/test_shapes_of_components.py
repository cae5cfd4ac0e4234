"""How the shapes of a queue's components are given: as TensorFlow takes and refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError

KINDS: dict[str, Callable[..., Any]] = {
    "fifo": lambda dtypes, shapes: hr.FIFOQueue(10, dtypes, shapes=shapes),
    "shuffle": lambda dtypes, shapes: hr.RandomShuffleQueue(10, 1, dtypes, shapes=shapes),
    "padding": lambda dtypes, shapes: hr.PaddingFIFOQueue(10, dtypes, shapes=shapes),
}
ONE, TWO = [hr.float32], [hr.float32, hr.int32]

TAKEN: dict[str, tuple[Any, Any, list[list[int]]]] = {
    "sizes": (ONE, [3], [[3]]),
    "tuple": (ONE, (3, 4), [[3, 4]]),
    "list of sizes": (ONE, [[3]], [[3]]),
    "scalar": (ONE, [], [[]]),
    "list of a scalar": (ONE, [[]], [[]]),
    "shape": (ONE, hr.TensorShape([3]), [[3]]),
    "list of a shape": (ONE, [hr.TensorShape([3])], [[3]]),
    "two": (TWO, [[3], []], [[3], []]),
    "two shapes": (TWO, [hr.TensorShape([3]), hr.TensorShape([4])], [[3], [4]]),
}
REFUSED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "number": (ONE, 3, ArgumentTypeError, "must be a list of shapes, or a TensorShape, got 3"),
    "number for two": (TWO, 3, ArgumentTypeError, "must be a list of shapes"),
    "text": (ONE, "3", ArgumentTypeError, "must be a list of shapes"),
    "float": (ONE, 3.0, ArgumentTypeError, "must be a list of shapes"),
    "sizes for two": (TWO, [3, 4], AttributeValueError, "needs as many shapes, got 1"),
    "one for two": (TWO, [[3, 4]], AttributeValueError, "needs as many shapes, got 1"),
}


@pytest.mark.parametrize("case", TAKEN)
@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
def test_shapes_are_taken(kind: str, case: str) -> None:
    dtypes, shapes, wanted = TAKEN[case]
    assert [shape.as_list() for shape in KINDS[kind](dtypes, shapes).shapes] == wanted


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_others_are_refused(kind: str, case: str) -> None:
    dtypes, shapes, error, message = REFUSED[case]
    if kind == "padding" and not isinstance(shapes[0] if isinstance(shapes, list) else 0, list):
        error, message = AttributeValueError, "needs a list with th"
    with pytest.raises(error, match=message):
        KINDS[kind](dtypes, shapes)
