"""Where ``replica_device_setter`` puts operations, as TensorFlow 1.15.5's does."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace_train.clusters import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    RoundRobinStrategy,
)

SPEC = {"ps": ["a", "b"], "worker": ["c"]}


def devices(setter):
    """Return the devices of four variables, and of others with devices of their own."""
    with hr.Graph().as_default(), hr.device(setter):
        made = [hr.Variable(hr.zeros([4])).op for _ in range(4)]
        made.append(hr.constant(1.0).op)
        with hr.device("/cpu:0"):
            made += [hr.constant(2.0).op, hr.Variable(1.0).op]
        with hr.device("/job:ps/task:5"):
            made += [hr.Variable(1.0).op, hr.constant(1.0).op]
        with hr.device("/job:other"):
            made.append(hr.Variable(1.0).op)
    return " ".join(op.device for op in made)


# Arguments beside a round robin over two tasks, and the devices; from a run of TensorFlow 1.15.5.
ROUND = "/job:ps/task:0 /job:ps/task:1 /job:ps/task:0 /job:ps/task:1 "
REST = (
    "/job:worker /job:worker/device:cpu:0 /job:ps/task:0/device:cpu:0 /job:ps/task:5 "
    "/job:ps/task:5 /job:other"
)
CASES = {
    "tasks": ({"ps_tasks": 2}, ROUND + REST),
    "cluster": ({"cluster": SPEC}, ROUND + REST),
    "devices": (
        {"ps_tasks": 2, "worker_device": "/job:worker/cpu:0", "ps_device": "/job:ps/cpu:0"},
        ROUND.replace(" ", "/device:cpu:0 ")
        + "/job:worker/device:cpu:0 /job:worker/device:cpu:0 /job:ps/task:0/device:cpu:0 "
        "/job:ps/task:5/device:cpu:0 /job:ps/task:5/device:cpu:0 /job:other/device:cpu:0",
    ),
    "kept": (
        {"ps_tasks": 2, "merge_devices": False},
        ROUND + "/job:worker /device:cpu:0 /device:cpu:0 /job:ps/task:5 /job:ps/task:5 /job:other",
    ),
    "stateless": (
        {"ps_tasks": 2, "ps_ops": []},
        "/job:worker "
        * 5
        + "/job:worker/device:cpu:0 /job:worker/device:cpu:0 /job:ps/task:5 /job:ps/task:5 "
        "/job:other",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_state_goes_to_parameter_servers(case):
    arguments, expected = CASES[case]
    setter = hr.train.replica_device_setter(**arguments, ps_strategy=RoundRobinStrategy(2))
    assert devices(setter) == expected


def test_the_usual_strategy_balances_bytes():
    setter = hr.train.replica_device_setter(cluster=SPEC)
    with hr.Graph().as_default(), hr.device(setter):
        sizes = [
            (100, hr.float32),
            (10, hr.float32),
            (30, hr.float64),
            (40, hr.float16),
            (1, hr.int8),
        ]
        tasks = [hr.Variable(hr.zeros([n], kind)).op.device[-1] for n, kind in sizes]
        unknown = hr.Variable(hr.placeholder(hr.float32), validate_shape=False)
    assert tasks == ["0", "1", "1", "1", "1"]
    assert unknown.op.device == "/job:ps/task:1"


def test_slots_are_where_their_variables_are():
    pytest.importorskip("headrace_autodiff")
    with hr.Graph().as_default(), hr.device(hr.train.replica_device_setter(cluster=SPEC)):
        w = hr.get_variable("w", [6, 2], partitioner=hr.fixed_size_partitioner(2))
        loss = hr.reduce_sum(hr.nn.embedding_lookup(w, [1, 5], partition_strategy="div"))
        optimizer = hr.train.AdagradOptimizer(0.1)
        optimizer.minimize(loss)
        slots = [optimizer.get_slot(part, "accumulator").op for part in w]
    assert [part.op.device for part in w] == ["/job:ps/task:0", "/job:ps/task:1"]
    assert [op.colocated_with for op in slots] == [(part.op,) for part in w]


def test_strategies_choose_as_tensorflows():
    with hr.Graph().as_default():
        ops = [hr.Variable(hr.zeros([n])).op for n in (10, 3, 3, 3, 3, 20, 1, 1)]
        greedy = GreedyLoadBalancingStrategy(3, hr.train.byte_size_load_fn)
        assert [greedy(op) for op in ops] == GREEDY
        assert [RandomStrategy(3)(op) for op in ops] == RANDOM
        assert [RandomStrategy(3, seed=7)(op) for op in ops] == RANDOM_7


GREEDY = [0, 1, 2, 1, 2, 1, 2, 2]
RANDOM = [1, 1, 2, 2, 1, 0, 1, 2]
RANDOM_7 = [0, 1, 1, 2, 2, 1, 1, 2]


def test_there_may_be_no_parameter_servers():
    assert hr.train.replica_device_setter() is None
    assert hr.train.replica_device_setter(cluster={"worker": ["a"]}) is None


def test_arguments_that_are_none_are_refused():
    with pytest.raises(DTypeError, match="ps_strategy must be a function, got 3"):
        hr.train.replica_device_setter(2, ps_strategy=3)
    with pytest.raises(DTypeError, match="is described by a dictionary"):
        hr.train.replica_device_setter(cluster=[1])
    with pytest.raises(AttributeValueError, match="ps_tasks must be at least 0, got -1"):
        hr.train.replica_device_setter(-1)
    with pytest.raises(AttributeValueError, match="at least one task, got 0"):
        RoundRobinStrategy(0)
    with hr.Graph().as_default():
        with pytest.raises(ShapeError, match=r"of which nobody knows the bytes"):
            hr.train.byte_size_load_fn(hr.placeholder(hr.float32).op)
        with pytest.raises(ShapeError, match="has 0 outputs, expected one"):
            hr.train.byte_size_load_fn(hr.no_op())
