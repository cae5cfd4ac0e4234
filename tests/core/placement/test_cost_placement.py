"""Placement by cost, on the mini backend's devices: two of kind cpu, and one of kind toy."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.errors import ConfigError, PluginError
from headrace.extend import KernelTable, hookimpl
from headrace.ops import kinds
from headrace.ops.declare import op
from headrace.passes.prune import extract
from headrace.placement.cost_placement import Simulation
from headrace.placement.place import place
from headrace.placement.reasons import placement_reasons
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.runtime.engine import Engine
from headrace.session.prepare import machine_as_asked

CPU0, CPU1 = (DeviceName("localhost", 0, "cpu", i) for i in range(2))
TOY = DeviceName("localhost", 0, "toy", 0)
SPEEDS = {
    "cpu": hr.DeviceSpeed(10e9, 50e9, 1e-6),
    "toy": hr.DeviceSpeed(100e9, 1e12, 10e-6),
}
LINK = hr.LinkSpeed(10e9, 10e-6)


def costs(**settings):
    return hr.CostModel(**{"speeds": SPEEDS, "links": {("", ""): LINK}, **settings})


@pytest.fixture
def machine(monkeypatch, fake_entry, host_device, mini_kernels):
    """Return a function of a cost model that returns the machine as a session asks for it.

    Its two kinds of devices have the same kernels: only costs tell them apart.
    """

    class TwoKinds:
        @hookimpl
        def headrace_register_devices(self, registry):
            registry.add("cpu", count=lambda: 2, factory=host_device)
            registry.add("toy", count=lambda: 1, factory=host_device, priority=-5)

        @hookimpl
        def headrace_register_kernels(self, registry):
            kernels = KernelTable()
            kernels.plain("AddN")(lambda xp, values: sum(values))
            for kind in ("cpu", "toy"):
                registry.add(kind, [*mini_kernels, *kernels])

    plugins = PluginHost([fake_entry("two", TwoKinds())])
    monkeypatch.setattr(host_module, "_HOST", plugins)

    def with_costs(model):
        found = Engine().machine()
        config = hr.Config(placement_costs=model)
        return machine_as_asked(config, hr.get_default_graph())(found)

    return with_costs


def placed(machine, *fetches, **state):
    step = extract([], fetches, [])
    return {op.name: device for op, device in place(step, machine, **state).items()}, step


def test_heavy_work_goes_where_it_ends_first(machine):
    x = hr.ones([2000, 2000], name="x")
    devices, _ = placed(machine(costs()), hr.matmul(x, x, name="product"))
    assert devices["product"] == TOY


def test_work_that_is_less_than_the_transfer_stays(machine):
    with hr.device("/cpu:1"):
        x = hr.add(hr.ones([1000, 1000]), 1.0)
    devices, _ = placed(machine(costs()), hr.reduce_sum(x, name="z"))
    assert devices["z"] == CPU1


def test_independent_work_is_divided(machine):
    seconds = {name: {"cpu": 1.0, "toy": 9.0} for name in "ab"}
    a, b = hr.add(1.0, 2.0, name="a"), hr.add(1.0, 3.0, name="b")
    devices, _ = placed(machine(costs(seconds=seconds)), a, b)
    assert {devices["a"], devices["b"]} == {CPU0, CPU1}


def test_a_chain_stays_together(machine):
    x = hr.add(1.0, 2.0, name="a0")
    for i in range(1, 6):
        x = hr.add(x, 1.0, name=f"a{i}")
    seconds = {f"a{i}": 1e-6 for i in range(6)}
    devices, _ = placed(machine(costs(seconds=seconds)), x)
    assert {devices[name] for name in seconds} == {CPU0}


def test_requests_are_followed(machine):
    with hr.device("/cpu:1"):
        x = hr.ones([2000, 2000])
        y = hr.matmul(x, x, name="y")
    assert placed(machine(costs()), y)[0]["y"] == CPU1


def test_state_stays_with_its_users_and_where_it_was(machine):
    v = hr.Variable(np.ones([500, 500], "f"), name="v")
    update = hr.assign_add(v, hr.matmul(v, v, name="product"), name="update")
    model = costs(seconds={"update": {"toy": 0.0, "cpu": 1.0}})
    devices, _ = placed(machine(model), update)
    assert devices["v"] == devices["update"] == TOY
    devices, _ = placed(machine(model), update, pinned={"v": CPU1})
    assert devices["v"] == devices["update"] == CPU1


def test_a_tensor_passes_to_a_device_once(machine):
    """Ten users of one large tensor on the other device cost one transfer."""
    x = hr.add(hr.ones([1000, 1000]), 1.0, name="x")
    users = [hr.reduce_sum(hr.multiply(x, float(i), name=f"user{i}")) for i in range(10)]
    step = extract([], users, [])
    found, default = machine(costs()), place(step, machine(None))
    simulation = Simulation(step, default, found.costs.estimates(step), found)
    moved = {op: CPU0 if op.type in ("Fill", "Add") else CPU1 for op in step.graph.operations}
    # There with 4 MB at 10 GB/s, and back with ten numbers, nine of them while it computes.
    transfer = 10e-6 + 4e6 / 10e9 + 10e-6 + 4 / 10e9
    took = simulation.seconds(moved) - simulation.seconds(default)
    assert took == pytest.approx(transfer, rel=1e-3)


def programs(seed, count):
    """Return the fetch of a random program of ``count`` operations, and their times."""
    rng = random.Random(seed)
    tensors, seconds = [], {}
    for i in range(count):
        name = f"n{i}"
        inputs = rng.sample(tensors, min(len(tensors), rng.choice([0, 1, 1, 2])))
        tensors.append(hr.add_n([*inputs, hr.constant(1.0)], name=name))
        seconds[name] = {
            kind: rng.choice([1.0, 2.0, 3.0, 8.0]) for kind in ("cpu:0", "cpu:1", "toy:0")
        }
    return tensors, seconds


@pytest.mark.parametrize("seed", range(30))
def test_beside_the_best_of_all_placements(machine, seed):
    """The search ends within a quarter of the best for programs of up to eight operations.

    It is never worse than what the session would do without a model, or than one device for all.
    """
    rng = random.Random(1000 + seed)
    count = rng.randint(3, 6 if seed % 4 else 8)
    tensors, seconds = programs(seed, count)
    link = hr.LinkSpeed(1e9, rng.choice([0.0, 0.5, 2.0]))
    found = machine(costs(seconds=seconds, links={("", ""): link}))
    step = extract([], tensors, [])
    default = place(step, machine(None))
    simulation = Simulation(step, default, found.costs.estimates(step), found)
    ours = simulation.seconds(place(step, found))
    free = [op for op in step.graph.operations if op.name in seconds]
    all_placements = (
        {**default, **dict(zip(free, devices, strict=True))}
        for devices in itertools.product((CPU0, CPU1, TOY), repeat=len(free))
    )
    best = min(map(simulation.seconds, all_placements))
    assert ours <= 1.25 * best
    single = [{**default, **dict.fromkeys(free, d)} for d in (CPU0, CPU1, TOY)]
    assert ours <= min(map(simulation.seconds, [default, *single]))


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_any_placement(machine, seed, executor):
    tensors, seconds = programs(seed, 12)
    with hr.Session(config=hr.Config(executor=executor)) as session:
        expected = session.run(tensors)
    config = hr.Config(executor=executor, placement_costs=costs(seconds=seconds))
    with hr.Session(config=config) as session:
        assert session.run(tensors) == expected


def test_times_are_measured_by_traced_runs(machine):
    x = hr.add(hr.ones([64, 64]), 1.0, name="x")
    y = hr.square(hr.matmul(x, x, name="product"), name="y")
    traced = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
    several = [hr.RunMetadata() for _ in range(3)]
    with hr.Session() as session:
        for metadata in several:
            session.run(y, options=traced, run_metadata=metadata)
    kernels = [n for m in several for n in m.step_stats.dev_stats[0].node_stats]
    model = costs(measured=several)
    found = machine(model)
    step = extract([], [y], [])
    estimates = found.costs.estimates(step)
    measured = {name for kernel in kernels for name in kernel.computes}
    ops = {o.name: o for o in step.graph.operations if o.name in measured}
    assert {"product", "y"} <= ops.keys()
    # What computes none of them, as what hands over the result, is of no account.
    took = [k.op_end_rel_nanos for k in kernels if not ops.keys().isdisjoint(k.computes)]
    assert estimates.total(ops.values(), CPU0) == pytest.approx(sum(took) / 3e9)
    # Not measured there: slower or faster as the speeds say.
    plain = machine(costs()).costs.estimates(step)
    product = step.graph.get_operation_by_name("product")
    factor = plain.seconds(product, TOY) / plain.seconds(product, CPU0)
    expected = estimates.seconds(product, CPU0) * factor
    assert estimates.seconds(product, TOY) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("build", "flops"),
    [
        (lambda: hr.matmul(hr.ones([3, 4]), hr.ones([4, 5])), 2 * 3 * 4 * 5),
        (lambda: hr.matmul(hr.ones([4, 3]), hr.ones([5, 4]), True, True), 2 * 3 * 4 * 5),
        (lambda: hr.matmul(hr.ones([7, 3, 4]), hr.ones([7, 4, 5])), 7 * 2 * 3 * 4 * 5),
        (
            lambda: hr.nn.conv2d(hr.ones([2, 8, 8, 3]), hr.ones([5, 5, 3, 6]), [1, 1], "SAME"),
            2 * (2 * 8 * 8 * 6) * (5 * 5 * 3),
        ),
        (lambda: hr.linalg.cholesky(hr.ones([2, 10, 10])), 2 * 10**3),
        (lambda: hr.ones([6, 7]) + 1.0, 42),
        (lambda: hr.placeholder(hr.float32, [None, 2]) + 1.0, 64 * 2),
        (lambda: hr.identity(hr.ones([6, 7])), 0),
    ],
    ids=[
        "matmul",
        "transposed",
        "batches",
        "conv2d",
        "cholesky",
        "elements",
        "unknown",
        "identity",
    ],
)
def test_flops_by_shapes(machine, build, flops):
    y = build()
    found = machine(costs()).costs.estimates(extract([], [y], []))
    assert found.sizes.work(y.op).flops == pytest.approx(flops)


def test_lookups_read_what_they_yield(machine):
    y = hr.gather(hr.zeros([10**6, 32]), hr.constant([1, 2, 3]))
    sizes = machine(costs()).costs.estimates(extract([], [y], [])).sizes
    assert sizes.work(y.op).bytes == 2 * 3 * 32 * 4 + 3 * 4


def test_a_loop_counts_its_rounds(machine):
    x = hr.ones([100, 100])
    y = hr.while_loop(lambda i, _: i < 9, lambda i, y: (i + 1, hr.matmul(y, x)), [0, x])[1]
    sizes = machine(costs()).costs.estimates(extract([], [y], [])).sizes
    loop = next(o for o in hr.get_default_graph().operations if o.type == "While")
    assert 64 * 2e6 <= sizes.work(loop).flops <= 65 * 2e6
    twice = machine(costs(unknown_size=128)).costs.estimates(extract([], [y], [])).sizes
    assert twice.work(loop).flops == pytest.approx(2 * sizes.work(loop).flops)


def test_reasons_tell_the_times(machine):
    x = hr.ones([2000, 2000], name="x")
    y = hr.matmul(x, x, name="product")
    found = machine(costs())
    step = extract([], [y], [])
    reasons = placement_reasons(step, place(step, found), found, {})
    (told,) = [reasons[op] for op in step.graph.operations if op.name == "product"]
    assert told == "by cost: 16 ms there, 320 ms on /job:localhost/task:0/device:cpu:0"


def test_a_plugins_count_that_fails_is_named(machine):
    @op("Miscounted", flops=lambda inputs, outputs: inputs[5], public="")
    def miscounted(x: kinds.Numeric):
        """Yield what it takes."""
        return x

    y = miscounted(hr.ones([2]))
    sizes = machine(costs()).costs.estimates(extract([], [y], [])).sizes
    with pytest.raises(PluginError, match=r"flops of Miscounted failed: IndexError.*\n  in"):
        sizes.work(y.op)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: hr.CostModel(3), "measured must be an hr.RunMetadata, or a list of them, got 3"),
        (lambda: hr.CostModel(hr.RunMetadata()), "measured holds no times: run the step with"),
        (lambda: hr.CostModel(seconds={"x": -1}), r"seconds\['x'\] must be a number from 0 on"),
        (
            lambda: hr.CostModel(seconds={"x": {"cpu": "slow"}}),
            r"seconds\['x'\]\['cpu'\] must be a number, got 'slow'",
        ),
        (lambda: hr.CostModel(seconds={"x": {"!": 1}}), "'!' is not a device name"),
        (lambda: hr.CostModel(seconds=3), "seconds must be a dict, got 3"),
        (lambda: hr.CostModel(seconds={3: 1}), "expected the name of an operation or a tensor"),
        (lambda: hr.CostModel(sizes={"x:0": None}), r"sizes\['x:0'\] must be a number"),
        (lambda: hr.CostModel(speeds={"cpu": 3}), r"speeds\['cpu'\] must be an hr.DeviceSpeed"),
        (lambda: hr.CostModel(links={"cpu": LINK}), "links are between pairs of devices"),
        (lambda: hr.CostModel(links={("cpu", "toy"): 1}), "must be an hr.LinkSpeed, got 1"),
        (lambda: hr.CostModel(unknown_size=0), "unknown_size must be a whole number from 1 on"),
        (lambda: hr.CostModel(across_tasks=1), "across_tasks must be True or False, got 1"),
        (lambda: hr.DeviceSpeed(0, 1), "bytes_per_second of an hr.DeviceSpeed must be"),
        (
            lambda: hr.DeviceSpeed(1, 1, -1),
            "operation_s of an hr.DeviceSpeed must be",
        ),
        (
            lambda: hr.LinkSpeed(float("nan")),
            "bytes_per_second of an hr.LinkSpeed must",
        ),
        (lambda: hr.LinkSpeed(1, float("inf")), "transfer_s of an hr.LinkSpeed must"),
        (lambda: hr.Config(placement_costs=1), "placement_costs must be an hr.CostModel, got 1"),
    ],
)
def test_what_is_no_model_is_refused(make, match):
    with pytest.raises((ConfigError, TypeError), match=match):
        make()


def test_without_a_model_nothing_is_estimated(machine):
    assert machine(None).costs is None
