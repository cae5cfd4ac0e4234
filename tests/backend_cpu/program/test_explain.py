"""Explanations of compiled steps: kernels, memory, rewrites, sources, for shapes that come."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.ops.queue import fifo_queue, queue_dequeue
from headrace.shapes import Shape


def network():
    x = hr.placeholder(hr.float32, [None, 4], name="x")
    w = hr.Variable(np.full((4, 3), 0.5, np.float32), name="w")
    h = hr.tanh(hr.matmul(x, w) * 2.0 + 1.0)
    return x, hr.reduce_sum(hr.square(h) * 1.0)


def test_kernels_are_told_with_what_they_compute_bytes_flops_and_lines():
    x, loss = network()
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        found = session.explain(loss, {x: np.ones((8, 4), np.float32)})
    (part,) = found.parts
    products = [work for work in found.kernels if "MatMul" in work.types]
    assert len(products) == 1
    assert products[0].flops >= 2 * 8 * 4 * 3
    assert products[0].bytes >= (8 * 4 + 4 * 3 + 8 * 3) * 4
    computed = {op.type for work in found.kernels for op in work.ops}
    assert {"MatMul", "Tanh", "Square", "ReduceSum"} <= computed
    assert all(work.line.startswith(__file__) for work in found.kernels)
    assert part.report.arena_bytes >= part.report.peak_bytes > 0
    assert part.report.result_bytes == 4
    assert found.flops > products[0].flops


def test_buffers_tell_where_and_when_values_lie_in_the_arena():
    x = hr.placeholder(hr.float32, [None, 8], name="x")
    layers = [x]
    for _ in range(5):
        layers.append(hr.reduce_max(hr.matmul(layers[-1], hr.transpose(x)), axis=1) + x[:, :1])
        layers[-1] = hr.matmul(layers[-1], x)
    with hr.Session() as session:
        (part,) = session.explain(layers[-1], {x: np.ones((8, 8), np.float32)}).parts
    report = part.report
    buffers = report.buffers
    assert len(buffers) > 3
    assert all(0 <= b.first <= b.last < len(report.works) for b in buffers)
    assert all(b.offset + b.size <= report.arena_bytes for b in buffers)
    for i, a in enumerate(buffers):
        for b in buffers[:i]:
            apart_in_time = a.last < b.first or b.last < a.first
            apart_in_space = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
            assert apart_in_time or apart_in_space, (a, b)
    # Sizes are rounded up to 64 bytes in the arena, and work can have its buffers in between.
    in_use = [
        sum(-(-b.size // 64) * 64 for b in buffers if b.first <= index <= b.last)
        for index in range(len(report.works))
    ]
    assert max(in_use) == report.peak_bytes
    assert any("MatMul" in b.name for b in buffers if not b.scratch)


def test_rewrites_are_told_with_their_reasons():
    x, loss = network()
    with hr.Session() as session:
        found = session.explain(loss, {x: np.ones((8, 4), np.float32)})
    assert found.rewrites
    assert all(rewrite.reason in str(found) for rewrite in found.rewrites[:1])


def test_sources_are_those_that_run():
    x, loss = network()
    with hr.Session() as session:
        source = session.explain(loss, {x: np.ones((8, 4), np.float32)}).source()
    assert "def make(" in source
    assert "def run(values):" in source
    assert "ReduceSum" in source


@pytest.mark.parametrize(
    ("make", "computes"),
    [
        (lambda x: hr.concat(hr.split(x, 2, 1)[::-1], 0), False),
        (lambda x: hr.signal.fft(hr.complex(x, x)), True),
    ],
    ids=["moves", "computes"],
)
def test_only_what_computes_numbers_sets_what_numpy_does_with_infinities(make, computes):
    x = hr.placeholder(hr.float32, [2, 2])
    with hr.Session() as session:
        source = session.explain(make(x), {x: np.eye(2)}).source()
    assert ("errstate" in source) == computes


def test_the_body_of_a_loop_does_not_compute_what_only_counts():
    x = hr.placeholder(hr.float32, [4, 4])
    start = [hr.constant(0), x]
    _, y = hr.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, hr.matmul(y, x)), start)
    with hr.Session() as session:
        found = session.explain(y, {x: np.eye(4)})
        assert np.array_equal(session.run(y, {x: 2 * np.eye(4)}), 16 * np.eye(4))
    works = [work for part in found.walk() if ".body" in part.number for work in part.works]
    assert [work.types for work in works] == ["MatMul"]


def test_without_shapes_it_says_so_and_after_a_run_it_shows_that_one():
    x, loss = network()
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        unknown = session.explain(loss)
        assert "pass feed_dict, or run it once" in str(unknown)
        assert not unknown.kernels
        session.run(loss, {x: np.ones((6, 4), np.float32)})
        known = session.explain(loss)
    assert known.kernels
    assert any(work.bytes == (6 * 4 + 4 * 3 + 6 * 3) * 4 for work in known.kernels)


def test_nothing_runs():
    v = hr.Variable(1.0, name="v")
    step = hr.assign_add(v, 1.0)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.explain(step)
        assert session.run(v) == 1.0


def test_insides_of_loops_and_conditions_are_shown_for_the_shapes_that_come_in():
    x = hr.placeholder(hr.float32, [None], name="x")
    _, t = hr.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, hr.exp(hr.tanh(t) * 2.0)), [hr.constant(0), x]
    )
    y = hr.cond(hr.reduce_sum(t) > 0, lambda: hr.exp(t) * 2.0, lambda: t - 1.0)
    with hr.Session() as session:
        found = session.explain(y, {x: np.ones(5, np.float32)})
    numbers = {part.number: part for part in found.walk()}
    assert [op.type for op in numbers["1.body.1"].kernels[0].ops] == ["Tanh", "Mul", "Exp"]
    assert any("then" in number for number in numbers)
    assert any("else" in number for number in numbers)
    assert not any(part.note for part in found.walk())


def test_a_step_that_is_cut_where_shapes_depend_on_data_shows_both_halves():
    x = hr.placeholder(hr.float32, [None], name="x")
    y = hr.reduce_sum(hr.exp(hr.boolean_mask(x, x > 0.0)) * 2.0)
    feed = {x: np.array([1.0, -1.0, 2.0], np.float32)}
    with hr.Session() as session:
        session.run(y, feed)
        found = session.explain(y, feed)
    (part,) = found.parts
    assert part.note == "cut where shapes depend on data"
    assert any("Exp" in work.types for work in found.kernels)


def test_a_queue_is_a_part_that_waits():
    queue = fifo_queue(2, (hr.float32,), (Shape([]),), "", "numbers")
    y = queue_dequeue(queue, (hr.float32,), (Shape([]),))[0] * 2.0
    with hr.Session() as session:
        found = session.explain(y)
    waiting = [part for part in found.parts if part.waits]
    assert [part.title.split()[0] for part in waiting] == ["QueueDequeue"]
    assert found.parts[-1].after == (waiting[0].number,)
    assert "waits for what is outside the step" in str(found)


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_text_names_every_part(executor):
    x, loss = network()
    config = hr.Config(executor=executor)
    with hr.Session(config=config) as session:
        found = session.explain(loss, {x: np.ones((2, 4), np.float32)})
    text = str(found)
    assert all(f"part {part.number}: {part.title}" in text for part in found.walk())
    assert "feeds x:0 [2, 4]" in text
