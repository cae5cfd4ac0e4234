"""Sums of products over iterations: behind the loop, and what they were."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.passes.batch_sums import batch_sums
from headrace.passes.inline_calls import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import verify
from headrace.passes.trim_loops import trim_loops

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

UNITS, BATCH, TIME = 6, 3, 4


@pytest.fixture(autouse=True)
def graph():
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(1)
        yield graph


def numbers(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype) * 0.5


def variable(*shape, dtype="float32"):
    return hr.Variable(numbers(*shape, dtype=dtype))


def data(*shape, dtype="float32"):
    return hr.constant(numbers(*shape, dtype=dtype, seed=1))


def recurrent(product=hr.matmul, dtype="float32", rounds=TIME):
    w, b = variable(UNITS, UNITS, dtype=dtype), variable(UNITS, dtype=dtype)
    _, h = hr.while_loop(
        lambda i, h: i < rounds,
        lambda i, h: (i + 1, hr.tanh(product(h, w) + b)),
        [hr.constant(0), data(BATCH, UNITS, dtype=dtype)],
    )
    return h, [w, b]


def never():
    return recurrent(rounds=hr.identity(0))


def transposed():
    return recurrent(lambda h, w: hr.matmul(h, w, transpose_b=True))


def used_twice():
    return recurrent(lambda h, w: hr.matmul(hr.matmul(h, w), w))


def lstm_by_scan():
    w = variable(2 * UNITS, 4 * UNITS)

    def cell(state, x):
        h, c = state
        i, j, f, o = hr.split(hr.matmul(hr.concat([x, h], 1), w), 4, 1)
        c = c * hr.sigmoid(f) + hr.sigmoid(i) * hr.tanh(j)
        return hr.tanh(c) * hr.sigmoid(o), c

    zeros = hr.zeros([BATCH, UNITS])
    outputs, _ = hr.scan(cell, data(TIME, BATCH, UNITS), (zeros, zeros))
    return outputs, [w]


def dynamic():
    cell = hr.nn.rnn_cell.GRUCell(UNITS)
    outputs, _ = hr.nn.dynamic_rnn(
        cell, data(BATCH, TIME, UNITS), sequence_length=[4, 2, 3], dtype=hr.float32
    )
    return outputs, cell.trainable_variables


def within_conditions():
    w = variable(UNITS, UNITS)

    def body(i, h):
        more = hr.cond(i < 2, lambda: hr.matmul(h, w), lambda: h * 0.5)
        return i + 1, hr.tanh(more)

    start = [hr.constant(0), data(BATCH, UNITS)]
    return hr.while_loop(lambda i, h: i < TIME, body, start)[1], [w]


def within_loops():
    w, u = variable(UNITS, UNITS), variable(UNITS, UNITS)

    def inner(j, h):
        return j + 1, hr.tanh(hr.matmul(h, w))

    def outer(i, h):
        _, h = hr.while_loop(lambda j, h: j < i, inner, [hr.constant(0), h])
        return i + 1, hr.tanh(hr.matmul(h, u))

    start = [hr.constant(0), data(BATCH, UNITS)]
    return hr.while_loop(lambda i, h: i < TIME, outer, start)[1], [w, u]


def mapped():
    w = variable(UNITS, UNITS)
    return hr.map_fn(lambda x: hr.sigmoid(hr.matmul(x, w)), data(TIME, BATCH, UNITS)), [w]


def attention():
    query, join, memory = variable(UNITS, UNITS), variable(2 * UNITS, UNITS), data(BATCH, 5, UNITS)

    def body(i, h):
        scores = hr.reduce_sum(memory * hr.expand_dims(hr.matmul(h, query), 1), axis=2)
        shares = hr.expand_dims(hr.nn.softmax(scores), 2)
        context = hr.reduce_sum(memory * shares, axis=1)
        return i + 1, hr.tanh(hr.matmul(hr.concat([h, context], 1), join))

    start = [hr.constant(0), hr.ones([BATCH, UNITS])]
    return hr.while_loop(lambda i, h: i < TIME, body, start)[1], [query, join]


def swapped():
    w = variable(UNITS, UNITS)
    _, h = hr.while_loop(
        lambda i, h: i < TIME,
        lambda i, h: (i + 1, hr.tanh(hr.matmul(h, w))),
        [hr.constant(0), data(BATCH, UNITS)],
        swap_memory=True,
    )
    return h, [w]


def many_rows():
    w = variable(UNITS, UNITS)
    _, h = hr.while_loop(
        lambda i, h: i < TIME,
        lambda i, h: (i + 1, hr.tanh(hr.matmul(h, w))),
        [hr.constant(0), data(5 * UNITS, UNITS)],
    )
    return h, [w]


# What is computed, and how many products come out of its loops.
LOOPS = {
    "recurrent": (recurrent, 1),
    "recurrent in float64": (lambda: recurrent(dtype="float64"), 1),
    "no round": (never, 1),
    "transposed weights": (transposed, 1),
    "weights used twice": (used_twice, 2),
    "lstm by scan": (lstm_by_scan, 1),
    "dynamic_rnn": (dynamic, 2),
    "attention": (attention, 2),
    "map_fn": (mapped, 1),
    "a loop in a loop": (within_loops, 1),
    # The product is only there in some of the iterations.
    "conditions": (within_conditions, 0),
    # What is in the host's memory, and what takes more memory than it spares, stay as they are.
    "swapped": (swapped, 0),
    "many rows": (many_rows, 0),
}
CONFIGS = {
    "plain": {"executor": "plain"},
    "plan": {"verify": True},
    "deterministic": {"deterministic": True},
    "two threads": {"threads": 2},
}


def batched(fetches):
    step = inline_calls(extract([], fetches, []))
    found = batch_sums(trim_loops(step))
    verify(found)
    return prune(found)


@pytest.mark.parametrize("name", LOOPS)
def test_products_are_summed_behind_loops_where_that_takes_no_more_memory(name):
    build, count = LOOPS[name]
    result, weights = build()
    grads = hr.gradients(hr.reduce_sum(result * result), weights)
    made = batched(grads).graph.operations
    assert sum(op.type == "TensorListSumProducts" for op in made) == count


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", LOOPS)
def test_gradients_are_those_of_the_loop_as_it_was_built(name, config):
    build, _ = LOOPS[name]
    result, weights = build()
    fetches = [result, *hr.gradients(hr.reduce_sum(result * result), weights)]
    found = []
    for settings in ({"executor": "plain", "optimize": False}, CONFIGS[config]):
        with hr.Session(config=hr.Config(**settings)) as session:
            session.run(hr.global_variables_initializer())
            for variable, value in zip(weights, range(3), strict=False):
                shape = variable.shape.as_list()
                variable.load(numbers(*shape, dtype=variable.dtype.name, seed=value), session)
            found.append([session.run(fetches) for _ in range(4)])
    for left, right in zip(*map(hr.nest.flatten, found), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-4, atol=1e-5)


def test_second_gradients_go_through_both_loops():
    h, (w, _) = recurrent()
    (first,) = hr.gradients(hr.reduce_sum(h), [w])
    (second,) = hr.gradients(hr.reduce_sum(first * first), [w])
    found = []
    for settings in ({"optimize": False}, {"verify": True}):
        with hr.Session(config=hr.Config(**settings)) as session:
            session.run(hr.global_variables_initializer())
            found.append([session.run(second) for _ in range(4)][-1])
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-5)


def test_a_sum_that_the_loop_reads_stays_in_it():
    x = data(BATCH, UNITS)

    def body(i, total, h):
        total = total + hr.matmul(h, h, transpose_a=True)
        return i + 1, total, hr.tanh(hr.matmul(h, total) * 0.1)

    start = [hr.constant(0), hr.zeros([UNITS, UNITS]), x]
    _, total, _ = hr.while_loop(lambda i, *_: i < TIME, body, start)
    step = inline_calls(extract([], [total], []))
    assert batch_sums(step) is step


def test_a_sum_that_starts_with_more_than_zeros_keeps_it():
    start = [hr.constant(0), hr.ones([UNITS, UNITS]), data(BATCH, UNITS)]
    _, total, _ = hr.while_loop(
        lambda i, *_: i < TIME,
        lambda i, t, h: (i + 1, t + hr.matmul(h, h, transpose_a=True), h * 0.5),
        start,
    )
    assert sum(op.type == "TensorListSumProducts" for op in batched([total]).graph.operations) == 1
    x = numbers(BATCH, UNITS, seed=1)
    wanted = 1 + sum((x * 0.5**i).T @ (x * 0.5**i) for i in range(TIME))
    with hr.Session() as session:
        for _ in range(4):
            np.testing.assert_allclose(session.run(total), wanted, rtol=1e-5)


def test_a_failing_product_names_the_line_of_the_program():
    w = hr.Variable(hr.zeros([UNITS, UNITS]))
    at = hr.placeholder("int32", [])

    def body(i, h):
        return i + 1, hr.tanh(hr.matmul(h, w) + hr.gather(data(3, UNITS), at + i))

    _, h = hr.while_loop(lambda i, h: i < TIME, body, [hr.constant(0), data(BATCH, UNITS)])
    (grad,) = hr.gradients(hr.reduce_sum(h), [w])
    with hr.Session() as session:
        session.run(w.initializer)
        located = r"(?s)out of range.*test_batch_sums\.py"
        with pytest.raises(hr.errors.InvalidInputError, match=located):
            session.run(grad, {at: 1})
