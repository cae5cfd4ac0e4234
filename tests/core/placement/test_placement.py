"""Placement and partitioning on the mini backend's devices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.errors import MAX_LINES, NoDeviceError, NoKernelError, PlacementError
from headrace.partition.partition import partition
from headrace.passes.prune import extract
from headrace.placement.place import place
from headrace.runtime.engine import Engine
from headrace.runtime.transfers.rendezvous import LocalRendezvous

CPU0, CPU1 = (DeviceName("localhost", 0, "cpu", i) for i in range(2))
TOY = DeviceName("localhost", 0, "toy", 0)


@pytest.fixture
def machine(mini):
    return Engine().machine()


def placed(machine, *fetches):
    step = extract([], [f for f in fetches if isinstance(f, hr.Tensor)], [])
    return {op.name: device for op, device in place(step, machine).items()}, step


def test_the_first_device_of_the_best_kind_is_the_default(machine):
    devices, _ = placed(machine, hr.constant(1.0) + 2.0)
    assert set(devices.values()) == {CPU0}


def test_requests_are_followed(machine):
    with hr.device("/cpu:1"):
        x = hr.constant(1.0, name="x")
    with hr.device("toy"):
        y = hr.add(x, 1.0, name="y")
    devices, _ = placed(machine, y)
    assert (devices["x"], devices["y"]) == (CPU1, TOY)


def test_cheap_nodes_follow_their_input(machine):
    with hr.device("/cpu:1"):
        x = hr.constant(1.0, name="x")
    y = hr.identity(x, name="y")
    assert placed(machine, y)[0]["y"] == CPU1


def test_state_and_its_users_share_a_device(machine):
    with hr.device("/cpu:1"):
        v = hr.Variable(1.0, name="v")
    update = hr.assign_add(v, 1.0, name="update")
    devices, _ = placed(machine, update)
    assert devices["v"] == devices["update"] == CPU1


def test_colocated_operations_share_a_device(machine):
    with hr.device("/cpu:1"):
        x = hr.constant(1.0, name="x")
    with hr.colocate_with(x):
        y = hr.constant(2.0, name="y")
    assert placed(machine, hr.add(x, y))[0]["y"] == CPU1


def test_contradictory_requests_are_named(machine):
    with hr.device("/cpu:1"):
        v = hr.Variable(1.0, name="v")
    with hr.device("/cpu:0"):
        update = hr.add(v, 1.0)
        with hr.colocate_with(v), hr.colocate_with(update):
            clash = hr.identity(update, name="clash")
    with pytest.raises(PlacementError, match="must share a device") as caught:
        placed(machine, clash)
    assert "'/device:cpu:0'" in str(caught.value)
    assert "test_placement.py" in str(caught.value)


@pytest.mark.parametrize(
    ("device", "match"),
    [
        ("/cpu:7", "asks for device '/device:cpu:7', which is not there"),
        ("/job:ps", "asks for device '/job:ps'"),
        ("ghost", "no ghost device: it left"),
    ],
)
def test_unknown_devices(machine, device, match):
    with hr.device(device):
        x = hr.constant(1.0)
    with pytest.raises(NoDeviceError, match=match) as caught:
        placed(machine, x)
    assert "devices: /job:localhost/task:0/device:cpu:0" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= MAX_LINES


def test_missing_kernel_lists_what_was_tried(machine):
    with hr.device("toy"):
        y = hr.multiply(1.0, 2.0, name="y")
    with pytest.raises(NoKernelError, match=r"no device has a kernel for Mul\(float32\)") as caught:
        placed(machine, y)
    assert "tried: /job:localhost/task:0/device:toy:0 (asked for '/device:toy')" in str(
        caught.value
    )
    assert "kernels exist for: cpu (any)" in str(caught.value)


def test_state_goes_where_all_its_users_can_run(mini):
    """A step that only writes must not put a variable where a later step cannot read it."""
    v = hr.Variable(1.0)
    hr.multiply(v, 2.0)
    with hr.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(v * 2.0) == 2.0


def test_one_transfer_per_tensor_and_destination(machine):
    x = hr.identity(hr.constant([1.0, 2.0]), name="x")
    with hr.device("/cpu:1"):
        total = (x + 1.0) * (x * 3.0) + x
    devices, step = placed(machine, total)
    placement = {op: devices[op.name] for op in step.graph.operations}
    parts = partition(step, placement, CPU0)
    sends = [op for op in parts[CPU0].operations if op.type == "Send"]
    recvs = [op for op in parts[CPU1].operations if op.type == "Recv"]
    assert [op.attrs["edge"] for op in sends].count("x:0") == 1
    assert [op.attrs["edge"] for op in recvs].count("x:0") == 1
    assert [op.type for op in parts[CPU0].operations].count("Fetch") == 1


def test_constants_are_copied_not_sent(machine):
    x = hr.constant([1.0, 2.0], name="x")
    with hr.device("/cpu:1"), hr.control_dependencies([x]):
        there = x + 1.0
    here = x * 2.0
    devices, step = placed(machine, there, here)
    parts = partition(step, {op: devices[op.name] for op in step.graph.operations}, CPU0)
    for graph in parts.values():
        assert "x" in [op.name for op in graph.operations if op.type == "Const"]
    moved = [op.attrs["edge"] for op in parts[CPU1].operations if op.type == "Send"]
    assert moved == [there.name]
    assert not [op for op in parts[CPU1].operations if op.type == "Recv"]


def test_partitioned_equals_unpartitioned(mini):
    rng = np.random.default_rng(0)
    for _ in range(20):
        choices = rng.integers(0, 2, 12)
        results = []
        for split in (False, True):
            with hr.Graph().as_default():
                x = hr.placeholder(hr.float32, [4])
                v = hr.Variable(np.ones(4, "f"))
                pool = [x, hr.identity(v)]
                for i, choice in enumerate(choices):
                    with hr.device(f"/cpu:{choice}" if split else ""):
                        pool.append(pool[i % len(pool)] * 0.5 + pool[-1])
                with hr.control_dependencies([pool[-1]]):
                    last = hr.assign_add(v, pool[3])
                with hr.Session() as sess:
                    sess.run(v.initializer)
                    feed = {x: np.arange(4)}
                    results.append([*sess.run([*pool, last], feed), sess.run(v)])
        for whole, parts in itertools.zip_longest(*results):
            np.testing.assert_array_equal(whole, parts)


def test_control_edges_cross_devices(mini):
    v = hr.Variable(0.0)
    with hr.device("/cpu:1"):
        w = hr.Variable(0.0)
    write = hr.assign(v, 5.0)
    with hr.control_dependencies([write]), hr.device("/cpu:1"):
        second = hr.assign_add(w, 1.0)
    with hr.control_dependencies([second]):
        seen = v + 0.0
    with hr.Session() as sess:
        sess.run([v.initializer, w.initializer])
        for _ in range(50):
            assert sess.run(seen) == 5.0


def test_rendezvous_forgets_finished_steps(mini):
    with hr.device("/cpu:1"):
        x = hr.constant(1.0) + 1.0
    with hr.Session() as sess:
        for _ in range(3):
            sess.run(x)
        rendezvous = sess._runtime.rendezvous
        assert isinstance(rendezvous, LocalRendezvous)
        assert not rendezvous._values
        assert not rendezvous._waiting


def fed(machine, feeds, fetches):
    step = extract(feeds, fetches, [])
    return step, place(step, machine)


@pytest.mark.parametrize(
    ("takers", "fetched", "expected"),
    [
        (["toy"], False, TOY),
        (["toy", "toy"], False, TOY),
        (["toy", "cpu"], False, CPU0),
        (["cpu"], False, CPU0),
        # Of another device of the client's own kind, values are in the same memory.
        (["cpu:1"], False, CPU0),
        (["toy"], True, CPU0),
    ],
    ids=str,
)
def test_a_feed_stands_where_the_one_device_is_that_takes_it(machine, takers, fetched, expected):
    x = hr.placeholder(hr.float32, [2], name="x")
    results = []
    for taker in takers:
        with hr.device(taker):
            results.append(hr.add(x, 1.0))
    step, devices = fed(machine, [x], [*results, *([x] if fetched else [])])
    assert devices[step.feeds[0].op] == expected


def test_a_device_of_another_kind_hands_its_results_to_the_session_itself(machine):
    x = hr.placeholder(hr.float32, [2], name="x")
    with hr.device("toy"):
        y = hr.add(x, 1.0)
    with hr.device("cpu:1"):
        z = hr.add(x, 2.0)
    step, devices = fed(machine, [x], [y, z])
    parts = partition(step, devices, machine.client)
    found = {
        device: sorted(op.type for op in graph.operations if op.type in ("Fetch", "Send", "Recv"))
        for device, graph in parts.items()
    }
    # The feed has two takers, so that it comes in on the cpu.
    assert found[TOY] == ["Fetch", "Recv"]
    assert found[CPU0].count("Fetch") == 1
    with hr.Session() as session:
        got = session.run([y, z, y], {x: [1.0, 2.0]})
    assert [value.tolist() for value in got] == [[2.0, 3.0], [3.0, 4.0], [2.0, 3.0]]
