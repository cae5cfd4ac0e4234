"""Groups run by plain kernels: to the same bits where they go element by element, by blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.fusion import interpret as module
from headrace_cpu.fusion.interpret import interpret

SHAPE = (7, 11)
RNG = np.random.default_rng(1)
Given = dict[hr.Tensor, np.ndarray]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have blocks of 8 elements; holds how many elements each of them had."""
    monkeypatch.setattr(module, "_BLOCK", 8)
    monkeypatch.setattr(module, "_FEWEST_BLOCKS", 2)
    seen: list[int] = []
    inner = module._interpret

    def counted(ops: Any, read: Any, buffers: Any, writes: Any) -> None:
        seen.append(max(b.size for b in buffers.values()))
        inner(ops, read, buffers, writes)

    monkeypatch.setattr(module, "_interpret", counted)
    return seen


def values(shape: Sequence[int] = SHAPE) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def placeholder(given: Given, shape: Sequence[int] = SHAPE) -> hr.Tensor:
    tensor = hr.placeholder(hr.float32, shape)
    given[tensor] = values(shape)
    return tensor


def made_by(results: Sequence[hr.Tensor]) -> list[hr.Operation]:
    """Return the operations that make results, without placeholders and constants."""
    graph = results[0].graph
    return [op for op in graph.get_operations() if op.type not in ("Placeholder", "Const")]


def moments(given: Given) -> list[hr.Tensor]:
    g, m, v, rate = (*(placeholder(given) for _ in range(3)), placeholder(given, ()))
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return [m, rate * m / (hr.sqrt(hr.abs(v)) + 1e-7)]


def with_constant(given: Given) -> list[hr.Tensor]:
    return [hr.maximum(placeholder(given), hr.constant(values())) * 2.0]


def chosen(given: Given) -> list[hr.Tensor]:
    x, y = placeholder(given), placeholder(given)
    return [hr.where(x > y, hr.exp(x), y)]


def casts(given: Given) -> list[hr.Tensor]:
    return [hr.cast(placeholder(given), hr.float64)]


@pytest.mark.parametrize("case", [moments, with_constant, chosen, casts])
def test_blocks_give_the_bits_of_one_go(
    case: Callable[[Given], list[hr.Tensor]], blocks: list[int]
) -> None:
    given: Given = {}
    results = case(given)
    buffers = {t: np.empty(SHAPE, t.dtype.numpy) for t in results}
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = session.run(results, given)
    interpret(made_by(results), given.__getitem__, buffers, results)
    assert blocks == [8] * 9 + [5]
    for tensor, wanted in zip(results, expected, strict=True):
        assert buffers[tensor].tobytes() == wanted.tobytes()


def test_results_may_lie_where_inputs_do(blocks: list[int]) -> None:
    given: Given = {}
    x, y = placeholder(given), placeholder(given)
    result = hr.exp(x) * y + x
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = session.run(result, given)
    memory = given[x]
    interpret(made_by([result]), given.__getitem__, {result: memory}, [result])
    assert len(blocks) == 10
    assert memory.tobytes() == expected.tobytes()


def test_variables_are_updated_block_by_block(blocks: list[int]) -> None:
    given: Given = {}
    start, change = values(), placeholder(given)
    variable = hr.Variable(start)
    update = variable.assign_sub(0.5 * change)
    step = update.op
    assert step.type == "AssignSubVariable"
    handle, lessened = step.inputs
    ops = [lessened.op, step]
    memory = start.copy()
    interpret(ops, given.__getitem__, {handle: memory}, [])
    assert len(blocks) == 10
    np.testing.assert_array_equal(memory, start - np.float32(0.5) * given[change])


def rows(given: Given) -> hr.Tensor:
    return placeholder(given) + placeholder(given, SHAPE[-1:])


def sums(given: Given) -> hr.Tensor:
    return hr.exp(placeholder(given)) + hr.reduce_sum(placeholder(given, (3, *SHAPE)), 0)


def views(given: Given) -> hr.Tensor:
    return hr.exp(hr.reshape(placeholder(given, (77,)), SHAPE))


@pytest.mark.parametrize("case", [rows, sums, views])
def test_all_else_is_computed_at_one_go(
    case: Callable[[Given], hr.Tensor], blocks: list[int]
) -> None:
    given: Given = {}
    result = case(given)
    buffer = np.empty(SHAPE, np.float32)
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = session.run(result, given)
    interpret(made_by([result]), given.__getitem__, {result: buffer}, [result])
    assert blocks == [77]
    np.testing.assert_allclose(buffer, expected, rtol=1e-6)


def test_small_arrays_are_computed_at_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []
    monkeypatch.setattr(module, "_interpret", lambda *given: blocks.append(len(given)))
    given: Given = {}
    result = hr.exp(placeholder(given))
    interpret(made_by([result]), given.__getitem__, {result: np.empty(SHAPE)}, [result])
    assert blocks == [4]
