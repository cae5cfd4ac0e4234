"""Values that follow from constants: what is computed ahead, and that it stays within limits."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

import headrace as hr
from headrace.documents.document import dump, load
from headrace.errors import PluginError, ShapeError
from headrace.extend import Index, Spec, TensorSpec, op
from headrace.graph.static_values import Limits, StaticValues
from headrace.passes.constant_folding import fold
from headrace.passes.prune import extract

MUCH = Limits(elements=100, total=10_000, operations=1_000)


def added(node, given):
    """Compute sums only."""
    return [np.add(*given)] if node.type == "Add" else None


def chain(length: int, start) -> hr.Tensor:
    """A number that is doubled again and again, by adding it to itself."""
    x = hr.convert_to_tensor(start)
    for _ in range(length):
        x = hr.add(x, x)
    return x


@pytest.mark.parametrize(
    ("limits", "known"),
    [
        (Limits(elements=4, total=10**9, operations=10**9), True),
        (Limits(elements=3, total=10**9, operations=10**9), False),
        (Limits(elements=4, total=10 * 12, operations=10**9), True),
        (Limits(elements=4, total=10 * 12 - 1, operations=10**9), False),
        (Limits(elements=4, total=10**9, operations=19), True),
        (Limits(elements=4, total=10**9, operations=18), False),
    ],
)
def test_beyond_a_limit_a_value_is_unknown(limits, known) -> None:
    # Ten sums, each of 8 elements read and 4 computed; nine of them are waited for.
    total = chain(10, np.ones(4, np.int32))
    found = StaticValues(added, limits).value(total, lambda node: True)
    if known:
        np.testing.assert_array_equal(found, [1024] * 4)
    else:
        assert found is None


def test_long_chains_need_no_recursion() -> None:
    total = chain(5_000, np.zeros((), np.int32))
    limits = Limits(elements=1, total=10**6, operations=10**6)
    assert StaticValues(added, limits).value(total, lambda node: True) == 0


def test_only_what_is_looked_at_is_computed() -> None:
    x = chain(2, np.ones((), np.int32))
    assert StaticValues(added, MUCH).value(x, lambda node: node is not x.op) is None
    assert StaticValues(added, MUCH).value(x * 2, lambda node: True) is None


def test_what_does_not_fit_the_declaration_is_not_believed() -> None:
    x = chain(1, np.ones(3, np.int32))

    def value(answer):
        return StaticValues(lambda node, given: [answer], MUCH).value(x, lambda node: True)

    assert value(np.full(3, 7, np.int32)) is not None
    assert value(np.full(4, 7, np.int32)) is None
    assert value(np.full(3, 7, np.int64)) is None


def test_values_cannot_be_changed() -> None:
    found = StaticValues(added, MUCH).value(chain(1, np.ones(3, np.int32)), lambda node: True)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 5


def test_sizes_that_were_computed_limit_what_is_computed_from_them(mini) -> None:
    def refuse(node, given):
        assert node.type != "Fill", "an array of 10**15 elements was asked for"
        return [np.multiply(*given)] if node.type == "Mul" else None

    many = hr.fill(hr.constant([10**8, 1]) * hr.constant([1, 10**7]), 1.0)
    step = fold(extract([], [many], []), refuse)
    assert step.fetches[0].op.type == "Fill"


# -- shapes that a program computes


def test_shapes_are_known_that_are_computed_from_constants() -> None:
    x = hr.placeholder(hr.float32, [6, 4])
    rows = hr.constant(6) // 2
    assert hr.reshape(x, hr.stack([rows, -1, hr.maximum(rows, 2) - 1])).shape == [3, 4, 2]


@pytest.mark.timeout(20)
def test_vectors_that_double_with_every_concat_cost_nothing() -> None:
    with hr.Graph().as_default() as graph:
        shape = hr.constant([1, 1], hr.int32, name="shape")
        for _ in range(60):
            shape = hr.concat([shape, shape], 0)
        x = hr.placeholder(hr.float32, [1])
        assert hr.reshape(x, shape).shape.rank is None
        text = dump(graph)
    started = time.perf_counter()
    assert len(load(text)) == len(graph)
    assert time.perf_counter() - started < 5


def grown(step, times: int):
    """A vector of integers, each time made anew of the one before."""
    vector = hr.constant([1, 1], hr.int32)
    for _ in range(times):
        vector = step(vector)
    return vector


# A vector of integers that cost much, if they were computed while it is built and read.
COSTLY = {
    "concat of four": lambda: grown(lambda s: hr.concat([s, s, s, s], 0), 30),
    "tile": lambda: grown(lambda s: hr.tile(s, [2]), 60),
    "stack": lambda: grown(lambda s: hr.reshape(hr.stack([s, s]), [-1]), 60),
    "gather of what is gathered": lambda: grown(lambda s: hr.gather(s, hr.concat([s, s], 0)), 60),
    "pad": lambda: hr.pad(hr.constant([1], hr.int32), [[0, 2**31 - 2]]),
    "one more each time": lambda: grown(lambda s: hr.concat([s, [1]], 0), 700),
    "range": lambda: hr.range(2**31 - 1),
    "fill": lambda: hr.fill([2**40], 1),
    "broadcast": lambda: hr.broadcast_to(hr.constant(1), [2**35]),
    "one_hot": lambda: hr.reshape(hr.one_hot([1] * 100, 2**24, dtype=hr.int32), [-1]),
    "where": lambda: hr.reshape(hr.cast(hr.where(hr.fill([2**28], True)), hr.int32), [-1]),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", COSTLY)
def test_vectors_that_would_cost_much_are_no_shapes(name: str) -> None:
    """Neither who builds a document nor who reads it computes them: the shape is unknown."""
    tracemalloc.start()
    try:
        with hr.Graph().as_default() as graph:
            y = hr.reshape(hr.placeholder(hr.float32, [1]), COSTLY[name]())
            assert y.shape.rank is None
            text = dump(graph)
        again = load(text)
        assert len(again) == len(graph)
        assert again.get_operation_by_name(y.op.name).outputs[0].shape.rank is None
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


# Numbers that stand for 2^n operations are computed once each, and where they are too many, never.
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("step", "times", "known"),
    [
        (lambda s: s * s, 100, True),
        (lambda s: s + s - s, 100, True),
        (lambda s: hr.maximum(s, s), 200, True),
        (lambda s: s * s, 2000, False),
        (lambda s: s + s - s, 1000, False),
    ],
    ids=["squares", "sums", "maxima", "many squares", "many sums"],
)
def test_sizes_are_known_that_few_operations_compute(step, times, known) -> None:
    with hr.Graph().as_default() as graph:
        y = hr.zeros(grown(step, times))
        sizes = [1, 1] if known else [None, None]
        assert y.shape.as_list() == sizes
        again = load(dump(graph))
    assert again.get_operation_by_name(y.op.name).outputs[0].shape.as_list() == sizes


def test_few_concatenated_sizes_are_known() -> None:
    x = hr.placeholder(hr.float32, [None, 3])
    shape = hr.concat([hr.shape(x), [1], hr.shape(x)], 0)
    assert hr.zeros(shape).shape.as_list() == [None, 3, 1, None, 3]


def test_more_axes_than_arrays_have_are_refused() -> None:
    x = hr.zeros([1] * 40, hr.int32)
    with pytest.raises(ShapeError, match=r"has 79 axes, arrays have 64 at most[^\0]*\n  at "):
        hr.gather(x, x)


# -- ops of others


def test_an_op_states_how_it_is_computed_early() -> None:
    @op("EarlyTriple", early=lambda x: 3 * x, public="")
    def triple(x: Index) -> Spec:
        """Three times a number."""
        return TensorSpec(x.dtype, x.shape)

    @op("EarlyFaulty", early=lambda x: 1 // 0, public="")
    def faulty(x: Index) -> Spec:
        """A number that nobody knows before the step."""
        return TensorSpec(x.dtype, x.shape)

    assert hr.zeros(hr.stack([triple(2), triple(triple(1))])).shape == [6, 9]
    assert hr.zeros(hr.stack([faulty(2), 2])).shape.as_list() == [None, 2]


def test_what_has_effects_is_not_computed_early() -> None:
    with pytest.raises(PluginError, match=r"'EarlyRoll': what has effects is not computed early"):

        @op("EarlyRoll", early=lambda x: x, effects="draws", public="")
        def roll(x: Index) -> Spec:
            """A number of chance."""
            return x
