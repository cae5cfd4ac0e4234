"""Config(deterministic=True): equal runs give equal bits, or the operation that cannot is named."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.errors import ConfigError, DeterminismError
from headrace.ops.queue import fifo_queue, queue_dequeue
from headrace.runtime.planning.determinism import refuse_chance
from headrace.shapes import Shape
from tests.children import run_program

FIXED = hr.Config(deterministic=True)


def test_a_draw_without_a_seed_is_refused_with_how_to_seed_it():
    draw = hr.random_normal([3], name="draw")  # the line
    wanted = r"(?s)RandomStandardNormal 'draw/.*no seed; pass seed=.*set_random_seed.*# the line"
    with hr.Session(config=FIXED) as session, pytest.raises(DeterminismError, match=wanted):
        session.run(draw + 1.0)


@pytest.mark.parametrize("where", ["op", "graph"])
def test_seeds_of_op_or_graph_will_do(where):
    if where == "graph":
        hr.set_random_seed(7)
    draw = hr.random_normal([3], seed=5 if where == "op" else None)
    found = []
    for _ in range(2):
        with hr.Session(config=FIXED) as session:
            found.append([session.run(draw) for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_draw_inside_a_loop_is_refused():
    _, drawn = hr.while_loop(
        lambda i, t: i < 3,
        lambda i, t: (i + 1, t + hr.random_uniform([3])),
        [hr.constant(0), hr.zeros([3])],
    )
    with (
        hr.Session(config=FIXED) as session,
        pytest.raises(DeterminismError, match="refuses RandomUniform 'while/"),
    ):
        session.run(drawn)


def test_a_clock_is_refused():
    with (
        hr.Session(config=FIXED) as session,
        pytest.raises(
            DeterminismError,
            match=r"refuses Timestamp .* observes what lies outside .* clock; feed",
        ),
    ):
        session.run(hr.timestamp())


class Loose:
    """A device whose sums are in no order."""

    name = "/device:loose:0"
    unordered_sums = True


def test_operations_that_a_device_leaves_to_chance_are_refused():
    total = hr.unsorted_segment_sum(hr.constant([1.0, 2.0]), hr.constant([0, 0]), 1, name="total")
    counts = hr.unsorted_segment_sum(hr.constant([1, 2]), hr.constant([0, 0]), 1, name="counts")
    places = {DeviceName(): Loose()}
    refuse_chance([counts.op], places)
    with pytest.raises(
        DeterminismError, match=r"'total': it adds up in an order .* hr.device\('cpu"
    ):
        refuse_chance([total.op], places)


def test_changes_of_a_variable_that_race_with_a_queue_are_refused():
    queue = fifo_queue(2, (hr.float32,), (Shape([]),), "", "numbers")
    v = hr.Variable(1.0, name="v")
    taken = queue_dequeue(queue, (hr.float32,), (Shape([]),))[0]
    late, early = hr.assign_add(v, taken, name="late"), hr.assign(v, 2.0, name="early")
    with (
        hr.Session(config=FIXED) as session,
        pytest.raises(
            DeterminismError, match=r"changes a variable in no order with .*'(late|early)'"
        ),
    ):
        session.run([late, early])


def test_changes_in_order_are_fine_beside_a_queue():
    queue = fifo_queue(2, (hr.float32,), (Shape([]),), "", "numbers")
    v = hr.Variable(1.0, name="v")
    taken = queue_dequeue(queue, (hr.float32,), (Shape([]),))[0]
    early = hr.assign(v, 2.0)
    with hr.control_dependencies([early]):
        late = hr.assign_add(v, taken)
    with hr.Session(config=FIXED) as session:
        assert session.explain(late).parts


def test_deterministic_must_be_a_switch():
    with pytest.raises(ConfigError, match="deterministic must be True or False"):
        hr.Config(deterministic=2)


PROGRAM = """
import hashlib
import numpy as np
import headrace as hr

hr.set_random_seed(3)
x = hr.placeholder(hr.float32, [None, 64])
y = hr.placeholder(hr.int32, [None])
with hr.init_scope():
    w = hr.Variable(hr.random_normal([64, 256], stddev=0.1))
    u = hr.Variable(hr.random_normal([256, 10], stddev=0.1))
h = hr.nn.relu(hr.matmul(x, w) + hr.random_normal([256], stddev=0.01))
logits = hr.matmul(h, u)
loss = hr.reduce_mean(hr.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
loss += 1e-3 * (hr.reduce_sum(hr.square(w)) + hr.reduce_sum(hr.square(u)))
slopes = hr.gradients(loss, [w, u])
step = hr.group(*(hr.assign_sub(v, 0.1 * g) for v, g in zip([w, u], slopes)))
draw = np.random.default_rng(0)
data = draw.standard_normal((4, 512, 64)).astype(np.float32)
labels = draw.integers(0, 10, (4, 512)).astype(np.int32)
digest = hashlib.sha256()
with hr.Session(config=hr.Config(deterministic=True, threads=2)) as session:
    session.run(hr.global_variables_initializer())
    for i in range(12):
        _, value = session.run([step, loss], {x: data[i % 4], y: labels[i % 4]})
        digest.update(value.tobytes())
    explained = session.explain([step, loss])
    assert explained.kernels, "nothing was compiled"
    digest.update(session.run(w).tobytes() + session.run(u).tobytes())
print(value, digest.hexdigest())
"""


@pytest.mark.needs("autodiff")
def test_two_processes_that_train_with_two_threads_give_equal_bits():
    runs = [run_program(PROGRAM, env={"HEADRACE_QUIET": "1"}) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert np.isfinite(float(runs[0].stdout.split()[0]))


def sums():
    x = hr.placeholder(hr.float32, [2000, 300])
    return x, hr.reduce_sum(hr.exp(x) * 0.37 + hr.sin(x))


def product():
    x = hr.placeholder(hr.float32, [1000, 200])
    return x, hr.matmul(x, x, transpose_a=True)


def convolution():
    x = hr.placeholder(hr.float32, [8, 32, 32, 16])
    kernel = hr.constant(np.linspace(-1, 1, 3 * 3 * 16 * 32).reshape(3, 3, 16, 32), hr.float32)
    out = hr.nn.conv2d(x, kernel, strides=1, padding="SAME")
    return x, hr.gradients(hr.reduce_sum(hr.square(out)), kernel)[0]


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("onednn", [True, False], ids=["onednn", "own"])
@pytest.mark.parametrize("build", [sums, product, convolution])
def test_steps_beside_each_other_give_the_bits_of_steps_alone(build, onednn):
    x, y = build()
    values = np.random.default_rng(1).standard_normal(x.shape.known).astype(np.float32)
    found = []
    with hr.Session(config=hr.Config(deterministic=True, threads=2, onednn=onednn)) as session:
        alone = session.run(y, {x: values})

        def work():
            found.extend(session.run(y, {x: values}) for _ in range(5))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 20
    assert {value.tobytes() for value in found} == {alone.tobytes()}
