"""Matrix multiplications by oneDNN against the plain kernels."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.onednn.library import load

pytestmark = pytest.mark.skipif(load() is None, reason="oneDNN is not installed")

FLAGS = [(False, False), (False, True), (True, False), (True, True)]


def names(instruction):
    return [op.type for op in instruction.ops]


def holder(*shape):
    return hr.placeholder("float32", shape)


def fed(*tensors):
    rng = np.random.default_rng(0)
    return {t: rng.standard_normal(t.shape.known, np.float32) for t in tensors}


def matrices(rows, inner, columns, transpose_a, transpose_b, batch=()):
    a = holder(*batch, *((inner, rows) if transpose_a else (rows, inner)))
    b = holder(*batch, *((columns, inner) if transpose_b else (inner, columns)))
    return a, b, hr.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize(
    "sizes",
    [(100, 784, 10), (1, 600, 200), (33, 65, 127), (300, 20, 400), (2000, 50, 1), (70, 1, 900)],
)
def test_matmuls_equal_the_plain_kernels(harness, sizes, transpose_a, transpose_b):
    a, b, y = matrices(*sizes, transpose_a, transpose_b)
    found = harness.compare([y], fed(a, b), threads=2)
    assert len(found) <= 1
    harness.compare([y], fed(a, b), threads=1, late=True)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_batches(harness, transpose_a, transpose_b):
    a, b, y = matrices(17, 40, 33, transpose_a, transpose_b, (2, 3))
    (found,) = harness.compare([y], fed(a, b))
    assert found.name == "multiply"


def test_one_matrix_for_a_whole_batch(harness):
    a, b = holder(2, 5, 30, 64), holder(64, 48)
    y = hr.nn.relu(hr.matmul(a, b) + np.arange(48, dtype=np.float32))
    (found,) = harness.compare([y], fed(a, b))
    assert names(found) == ["MatMul", "Add", "Relu"]


def test_batches_broadcast(harness):
    a, b = holder(2, 5, 30, 64), holder(1, 64, 48)
    (found,) = harness.compare([hr.matmul(a, b)], fed(a, b))
    assert found.name == "multiply"


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_bias_addend_and_relu_are_part_of_the_matmul(harness, bias, addend, relu):
    a, b, y = matrices(64, 100, 50, False, True)
    c = holder(64, 50)
    if bias:
        y = y + np.linspace(-9, 9, 50, dtype=np.float32)
    if addend:
        y = c + y
    if relu:
        y = hr.nn.relu(y)
    (found,) = harness.compare([y], fed(a, b, *([c] if addend else [])))
    assert names(found) == ["MatMul", *(["Add"] * (bias + addend)), *(["Relu"] * relu)]


def test_small_matmuls_and_other_dtypes_are_left_to_others(harness):
    *_, y = matrices(4, 5, 6, False, False)
    x = hr.placeholder("float64", [100, 100])
    assert not harness.matched([y, hr.matmul(x, x)])


def test_matmuls_with_few_columns_are_left_to_others(harness):
    for transpose in (False, True):
        *_, y = matrices(3000, 784, 10, transpose, False)
        assert not harness.matched([y])


def test_threads_are_what_they_were_after_a_call(harness):
    library = load()
    a, b, y = matrices(64, 100, 50, False, True)
    with library.threads(2):
        harness.compare([y], fed(a, b), threads=1)
        assert library.get_threads() == 2
        harness.compare([y], fed(a, b), threads=2)
        assert library.get_threads() == 2


def test_nothing_is_matched_where_there_is_nothing_to_compute(harness):
    for sizes in [(0, 500, 500), (500, 0, 500), (500, 500, 0)]:
        *_, y = matrices(*sizes, False, False)
        assert not harness.matched([y])


def test_matmuls_that_are_added_up_are_one_instruction(harness):
    parts = [matrices(300, 20, 400, True, False) for _ in range(5)]
    y = (parts[0][2] + parts[1][2]) + hr.add_n([p[2] for p in parts[2:]])
    (found,) = harness.compare([y], fed(*(t for a, b, _ in parts for t in (a, b))))
    assert found.name == "add_matmuls"
    assert names(found).count("MatMul") == 5
    assert found.flops() == 5 * 2 * 300 * 20 * 400


def test_a_matmul_is_added_twice(harness):
    a, b, y = matrices(300, 20, 400, True, False)
    (found,) = harness.compare([y + y], fed(a, b))
    assert names(found) == ["MatMul"]


def test_a_sum_with_something_else_stays_apart(harness):
    a, b, y = matrices(300, 20, 400, True, False)
    c = holder(300, 400)
    (found,) = harness.compare([y + c], fed(a, b, c))
    assert names(found) == ["MatMul"]


def updated(change, weights):
    """Return the matmul whose step of descent ``change`` builds, and what is fed."""
    variable = hr.Variable(weights)
    a, b, y = matrices(300, 20, 400, True, False)
    return variable, a, b, change(variable, y)


RATE = np.float32(0.25)


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda v, y: v.assign_sub(y), -1.0),
        (lambda v, y: v.assign_add(y), 1.0),
        (lambda v, y: v.assign_sub(y * RATE), -0.25),
        (lambda v, y: v.assign_add(RATE * y), 0.25),
    ],
)
def test_a_step_of_descent_changes_the_variable_in_place(harness, change, scale):
    weights = np.random.default_rng(1).standard_normal((300, 400), np.float32)
    variable, a, b, step = updated(change, weights)
    operation = getattr(step, "op", step)
    (found,) = harness.matched([], operations=operation.graph.operations)
    assert found.writes == ()
    assert found.updates == (variable.handle,)
    feeds = fed(a, b)
    values = feeds | {t: np.asarray(RATE) for t in found.reads if t.shape.known == ()}
    places = harness.Places(found, late=[variable.handle])
    for tensor in found.reads:
        places.array(tensor)[...] = values[tensor]
    bound = found.bind(places)
    for _ in range(2):
        held = weights.copy()
        bound.point[variable.handle](held.ctypes.data)
        bound.call()
        wanted = weights + scale * (feeds[a].T @ feeds[b])
        np.testing.assert_allclose(held, wanted, rtol=1e-5, atol=1e-4)


def test_a_variable_whose_new_value_is_read_is_not_changed_in_place(harness):
    weights = np.zeros((300, 400), np.float32)
    *_, step = updated(lambda v, y: hr.assign_sub(v, y), weights)
    (found,) = harness.matched([hr.identity(step)])
    assert names(found) == ["MatMul"]


def test_relu_keeps_nan(harness):
    a, b, y = matrices(64, 100, 50, False, False)
    feeds = fed(a, b)
    feeds[a][3] = np.nan
    (found,) = harness.compare([hr.nn.relu(y)], feeds)
    (out,) = harness.run(found, feeds).values()
    assert np.isnan(out[3]).all()
    assert not np.isnan(out[4]).any()
