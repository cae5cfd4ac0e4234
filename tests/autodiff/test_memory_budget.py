"""Gradients with a memory budget: the same values, in less memory, with no effect repeated."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, GraphError, NoDeviceError
from headrace.extend.passes import Pipeline, extract
from headrace.extend.plugins import host, use_host
from tests.autodiff.relieved_networks import BATCH, NETWORKS, at_random, weights

pytestmark = pytest.mark.needs("backend-cpu")

BUDGETS = ["memory", "speed", 0.5]
DATA = np.random.default_rng(0).normal(size=[BATCH, 8])


def gradients_of(network, executor="plan", checkpoints=None, **options):
    """Return the loss and gradients of two steps of a network."""
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(7)
        x = hr.placeholder(hr.float64, [BATCH, 8])
        loss = network(x)
        before = len(graph)
        trainable = [x, *(v for v in graph.variables if v.trainable)]
        if checkpoints is not None:
            options["memory_budget"] = checkpoints(graph)
        found = [hr.convert_to_tensor(g) for g in hr.gradients(loss, trainable, **options)]
        state = [v for v in graph.variables if not v.trainable]
        added = [op for op in graph.operations[before:] if "again" in op.origin]
        config = hr.Config(executor=executor, verify=True)
        with hr.Session(config=config) as session:
            session.run(hr.global_variables_initializer())
            values = [session.run([loss, *found], {x: DATA}) for _ in range(2)]
            values.append(session.run(state))
    return values, added


@pytest.fixture(scope="module")
def kept():
    """Values without a budget, by network."""
    return {name: gradients_of(network)[0] for name, network in NETWORKS.items()}


# All that one loop leaves behind is needed at once: half of it is too little.
CASES = [
    (name, budget)
    for name in NETWORKS
    for budget in BUDGETS
    if budget != 0.5 or name not in ("loops", "lstm", "random_loops")
]


@pytest.mark.parametrize(("name", "budget"), CASES)
def test_gradients_are_the_same(name, budget, kept):
    found, _ = gradients_of(NETWORKS[name], memory_budget=budget)
    for step, expected in zip(found, kept[name], strict=True):
        for a, b in zip(step, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_the_same_node_by_node(name, kept):
    found, _ = gradients_of(NETWORKS[name], "plain", memory_budget="memory")
    for step, expected in zip(found, kept[name], strict=True):
        for a, b in zip(step, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_gradients_of_networks_made_at_random(seed):
    both = [
        gradients_of(at_random(seed), "plain", memory_budget=b, unconnected_gradients="zero")[0]
        for b in (None, "memory")
    ]
    for found, expected in zip(*both, strict=True):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_gradients_inside_a_loop():
    def inner(budget):
        w = weights(8, 8)

        def body(k, x):
            h = x
            for _ in range(5):
                h = hr.tanh(hr.matmul(h, w))
            (g,) = hr.gradients(hr.reduce_sum(h * h), [x], memory_budget=budget)
            return k + 1, x - 0.1 * g

        return hr.while_loop(lambda k, x: k < 3, body, [0, hr.constant(DATA)])[1]

    with hr.Graph().as_default(), hr.Session() as session:
        both = [inner(None), inner("memory")]
        session.run(hr.global_variables_initializer())
        np.testing.assert_allclose(*session.run(both), rtol=1e-12)


@pytest.mark.parametrize("every", [1, 3, 50])
@pytest.mark.parametrize("name", ["mlp", "skips", "batch_norm", "loops"])
def test_checkpoints_may_be_any_tensors(name, every, kept):
    def checkpoints(graph):
        plain = [t for op in graph.operations for t in op.outputs if t.dtype == hr.float64]
        return plain[::every]

    found, _ = gradients_of(NETWORKS[name], checkpoints=checkpoints)
    for step, expected in zip(found, kept[name], strict=True):
        for a, b in zip(step, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_with_an_effect_is_copied(name):
    _, added = gradients_of(NETWORKS[name], memory_budget="memory")
    assert [op.type for op in added if op.stateful] == []
    if name not in ("lstm", "random_loops"):
        assert added


@pytest.mark.parametrize(("name", "type_name"), [("loops", "While"), ("branches", "If")])
def test_loops_and_conditions_run_again(name, type_name, kept):
    def tanhs(graph):
        return [op.outputs[0] for op in graph.operations if op.type == "Tanh"]

    found, added = gradients_of(NETWORKS[name], checkpoints=tanhs)
    assert type_name in {op.type for op in added}
    for a, b in zip(found[0], kept[name][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_of_dropout_the_smaller_mask_is_kept():
    _, added = gradients_of(NETWORKS["dropout"], memory_budget="memory")
    casts = [op for op in added if op.type == "Cast"]
    assert casts
    assert {op.inputs[0].op.inputs[0].dtype for op in casts} == {hr.bool}


def test_second_derivatives_pass_through_copies():
    def second(budget):
        with hr.Graph().as_default():
            x = hr.placeholder(hr.float64, [BATCH, 8])
            y = NETWORKS["mlp"](x)
            (g,) = hr.gradients(y, [x], memory_budget=budget)
            (gg,) = hr.gradients(hr.reduce_sum(g * g), [x], memory_budget=budget)
            with hr.Session() as session:
                session.run(hr.global_variables_initializer())
                return session.run(gg, {x: DATA})

    np.testing.assert_allclose(second("memory"), second(None), rtol=1e-10)


# -- memory


def deep(layers=50, batch=64, width=16, dtype=hr.float64):
    """Return a deep net's loss, what to feed, and its variables."""
    x = hr.placeholder(dtype, [batch, width])
    h = x
    for i in range(layers):
        h = hr.tanh(hr.matmul(h, weights(width, width, seed=i, dtype=dtype)))
    feeds = {x: np.ones([batch, width], dtype.numpy)}
    return hr.reduce_sum(h * h), feeds, list(hr.get_default_graph().variables)


def live_bytes(budget):
    """Return the most bytes of hidden values alive at once, in the order of the step's graph."""
    with hr.Graph().as_default():
        loss, feeds, variables = deep()
        found = hr.gradients(loss, variables, memory_budget=budget)
        step = extract(list(feeds), [hr.convert_to_tensor(g) for g in found], [])
        step = Pipeline(host().kernels).prepared(step, checked=True)
    size = 64 * 16 * 8
    alive = {}
    peak = 0
    operations = step.graph.operations
    last = {}
    for op in reversed(operations):
        for t in op.inputs:
            last.setdefault(t, op.index)
        if op.schema.view:
            # Another name of what it takes, which lives as long.
            t = op.inputs[0]
            last[t] = max(last[t], last.get(op.outputs[0], 0))
    for op in operations:
        if not op.schema.view and op.type != "Feed":
            for t in op.outputs:
                if t.shape.is_fully_defined() and t.shape.as_list() == [64, 16]:
                    alive[t] = size
        peak = max(peak, sum(alive.values()))
        alive = {t: size for t in alive if last.get(t, 0) > op.index}
    return peak, operations


def arena_bytes(budget):
    """Return the memory of the compiled program of a training step."""
    with hr.Graph().as_default():
        loss, feeds, variables = deep(batch=512, width=64, dtype=hr.float32)
        found = hr.gradients(loss, variables, memory_budget=budget)
        step = hr.group(*(v.assign_sub(g * 0.1) for g, v in zip(found, variables, strict=True)))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(step, feeds)
            parts = session.explain(step, feeds).parts
    return sum(part.report.arena_bytes for part in parts if part.report is not None)


def plain_bytes(budget):
    """Return the most memory that arrays of a step take when node after node runs."""
    with hr.Graph().as_default():
        loss, feeds, variables = deep()
        found = hr.gradients(loss, variables, memory_budget=budget)
        step = hr.group(*(v.assign_sub(g * 0.1) for g, v in zip(found, variables, strict=True)))
        with hr.Session(config=hr.Config(executor="plain")) as session:
            session.run(hr.global_variables_initializer())
            session.run(step, feeds)
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                session.run(step, feeds)
                return tracemalloc.get_traced_memory()[1] - before
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize(("budget", "most"), [("memory", 0.3), (0.5, 0.6), (0.15, 0.25)])
def test_fewer_values_of_the_forward_pass_are_alive(budget, most):
    whole, _ = live_bytes(None)
    found, operations = live_bytes(budget)
    assert found <= most * whole
    # No pass has merged what is computed again with what it copies.
    assert len([op for op in operations if op.type == "Tanh"]) > 70


def test_steps_take_less_memory():
    assert arena_bytes("memory") <= 0.3 * arena_bytes(None)
    assert plain_bytes("memory") <= 0.35 * plain_bytes(None)


def test_a_budget_in_bytes_is_kept():
    size = 64 * 16 * 8
    found, _ = live_bytes(12 * size)
    # A few gradients are alive besides.
    assert found <= 16 * size


@pytest.fixture
def far():
    """A device that is not the host, and faster than it, in place of a GPU."""
    with use_host(host().with_plugin("far", "tests.autodiff.far_device")):
        yield


@pytest.mark.parametrize("name", ["mlp", "batch_norm", "dropout", "loops"])
def test_values_are_kept_on_the_host(name, kept, far):
    found, added = gradients_of(NETWORKS[name], memory_budget="host")
    for step, expected in zip(found, kept[name], strict=True):
        for a, b in zip(step, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert not added


def test_the_host_waits_before_it_sends_values_back(far):
    with hr.Graph().as_default() as graph:
        loss, _, variables = deep(layers=5)
        hr.gradients(loss, variables, memory_budget="host")
        back = [op for op in graph.operations if op.origin == "back from the host"]
        waiting = [op for op in back if op.control_inputs]
        assert {op.device for op in waiting} == {"/device:cpu:0"}
        assert {op.inputs[0].op for op in back if op not in waiting} == set(waiting)
        assert {op.inputs[0].op.name.rpartition("/")[2][:7] for op in waiting} == {"to_host"}
        # Each value goes there and back once.
        assert len(waiting) == 5


def test_what_fits_is_not_computed_again():
    with hr.Graph().as_default() as graph:
        loss, _, variables = deep(layers=3)
        hr.gradients(loss, variables, memory_budget=1 << 30)
        assert not [op for op in graph.operations if "again" in op.origin]


# -- what is refused


@pytest.mark.parametrize("budget", [0, -1, 0.0, 1.5, "little", True, {"a": 1}, [1.0]])
def test_what_is_no_budget_is_refused(budget):
    with hr.Graph().as_default():
        loss, _, variables = deep(layers=1)
        with pytest.raises(AttributeValueError, match="memory_budget is a number of bytes"):
            hr.gradients(loss, variables, memory_budget=budget)


def test_a_budget_that_is_too_small_tells_the_least():
    with hr.Graph().as_default():
        loss, _, variables = deep(layers=8)
        with pytest.raises(
            AttributeValueError, match=r"need (\d+) at least, and 65536 to"
        ) as caught:
            hr.gradients(loss, variables, memory_budget=9000)
        least = int(re.search(r"need (\d+)", str(caught.value))[1])
        assert 2 * 8192 <= least <= 4 * 8192
        hr.gradients(loss, variables, memory_budget=least)


def test_bytes_need_known_sizes():
    with hr.Graph().as_default():
        h = x = hr.placeholder(hr.float64, [None, 8])
        w = hr.Variable(hr.ones([8, 8], hr.float64))
        for _ in range(8):
            h = hr.tanh(hr.matmul(h, w))
        loss = hr.reduce_sum(h)
        with pytest.raises(AttributeValueError, match="not known before the step; give a fraction"):
            hr.gradients(loss, [w], memory_budget=100)
        (found,) = hr.gradients(loss, [w], memory_budget=0.6)
        (kept,) = hr.gradients(loss, [w])
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            np.testing.assert_allclose(*session.run([found, kept], {x: np.ones([5, 8]) / 9}))


def test_a_foreign_checkpoint_is_refused():
    with hr.Graph().as_default():
        foreign = hr.constant(1.0)
    with hr.Graph().as_default():
        loss, _, variables = deep(layers=1)
        with pytest.raises(GraphError, match=r"the checkpoint .* belongs to another graph"):
            hr.gradients(loss, variables, memory_budget=[foreign])


def test_the_host_is_no_other_device(monkeypatch):
    cpu = [kind for kind in host().devices if kind.name == "cpu"]
    monkeypatch.setattr("headrace_autodiff.checkpointing.replay.kinds_of_devices", lambda: cpu)
    with hr.Graph().as_default():
        loss, _, variables = deep(layers=1)
        with pytest.raises(NoDeviceError, match="the host's cpu is the only one"):
            hr.gradients(loss, variables, memory_budget="host")
