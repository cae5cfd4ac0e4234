"""State and what uses it, where they ask for several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PlacementError

pytestmark = pytest.mark.needs("backend-cpu")

TWO = {"cpu": 2}


def places(session: hr.Session, *fetches: Any) -> dict[str, tuple[str, str]]:
    """Return for each operation its device and what decided on it."""
    placed = session.explain(list(fetches)).placement
    return {name: (p.device[-5:], p.reason) for p in placed for name in p.operations}


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_what_uses_state_goes_where_the_state_is(executor: str) -> None:
    with hr.device("/cpu:1"):
        queue = hr.FIFOQueue(4, [hr.float32], [[2]], name="queue")
        v = hr.Variable([1.0, 2.0], name="v")
    with hr.device("/cpu:0"):
        put = queue.enqueue([v * 2.0], name="put")
        with hr.control_dependencies([put]):
            got = hr.identity(queue.dequeue(name="take"), name="got")
    with hr.Session(config=hr.Config(device_count=TWO, executor=executor)) as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(got), [2.0, 4.0])
        found = places(session, got)
    reason = "shares a device with 'queue', which asks for /device:cpu:1"
    assert found["put"] == found["take"] == ("cpu:1", reason)
    assert found["got"][0] == "cpu:0"


def test_what_is_put_beside_something_goes_where_that_is() -> None:
    with hr.device("/cpu:1"):
        x = hr.placeholder_with_default(1.0, [], name="x")
    with hr.colocate_with(x.op), hr.device("/cpu:0"):
        y = hr.exp(x, name="y")
    with hr.colocate_with(hr.placeholder(hr.float32, name="free").op), hr.device("/cpu:0"):
        z = hr.exp(x, name="z")
    assert (y.device, z.device) == ("/device:cpu:1", "/device:cpu:0")
    config = hr.Config(device_count=TWO, optimize=False)
    with hr.Session(config=config) as session:
        assert session.run(y) == pytest.approx(np.e)
        found = places(session, y, z)
        alone = places(session, hr.log(y, name="log"))
        with hr.colocate_with(x.op), hr.device("/cpu:0"):
            apart = hr.exp(2.0, name="apart")
        assert places(session, apart)["apart"][0] == "cpu:1"
    assert alone["y"] == found["y"]
    assert found["y"] == ("cpu:1", "shares a device with 'x', which asks for /device:cpu:1")
    assert found["z"][0] == "cpu:0"


def test_what_is_put_beside_things_on_two_devices_is_refused_unless_placement_is_soft() -> None:
    x, w = [hr.placeholder_with_default(1.0, [], name=name) for name in ("x", "w")]
    with hr.device("/cpu:0"):
        x = hr.exp(x, name="e")
    with hr.device("/cpu:1"):
        w = hr.exp(w, name="f")
    with hr.colocate_with(x.op), hr.colocate_with(w.op):
        y = hr.log(x, name="y")
    strict = hr.Session(config=hr.Config(device_count=TWO, optimize=False))
    with strict, pytest.raises(PlacementError, match="must share a device, but ask for"):
        strict.run([y, w])
    config = hr.Config(device_count=TWO, allow_soft_placement=True)
    with hr.Session(config=config) as session:
        assert session.run(y) == pytest.approx(1.0)


@pytest.mark.needs("data")
@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_data_set_takes_variables_of_several_devices(executor: str) -> None:
    with hr.device("/cpu:0"):
        v = hr.Variable(1.0, name="v")
    with hr.device("/cpu:1"):
        w = hr.Variable(10.0, name="w")
        data: Any = hr.data
        made = data.Dataset.from_tensors(100.0).map(lambda x: x + v + w).map(lambda x: x * w)
    iterator = made.make_initializable_iterator()
    element = iterator.get_next()
    with hr.Session(config=hr.Config(device_count=TWO, executor=executor)) as session:
        session.run([v.initializer, w.initializer])
        session.run(hr.assign(w, 20.0))
        session.run(iterator.initializer)
        assert session.run(element) == 121.0 * 20.0


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_state_of_one_name_on_two_devices_is_two(executor: str) -> None:
    def queue(device: str) -> Any:
        with hr.device(device):
            return hr.FIFOQueue(4, [hr.int32], [[]], shared_name="both")

    one, other = queue("/cpu:0"), queue("/cpu:1")
    put = [one.enqueue(1), other.enqueue(2), other.enqueue(3)]
    with hr.Session(config=hr.Config(device_count=TWO, executor=executor)) as session:
        for each in put:
            session.run(each)
        assert session.run([one.size(), other.size()]) == [1, 2]


def test_a_function_runs_where_its_call_is_unless_it_asks() -> None:
    @hr.function
    def both(x: Any) -> Any:
        with hr.device("/cpu:0"):
            asked = hr.exp(x, name="asked")
        return asked + hr.random_uniform([2], name="drawn")

    with hr.device("/cpu:1"):
        y = both(hr.placeholder_with_default([1.0, 2.0], [2]))
    config = hr.Config(device_count=TWO, executor="plain", optimize=False, profile=True)
    with hr.Session(config=config) as session:
        metadata = hr.RunMetadata()
        options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        session.run(y, options=options, run_metadata=metadata)
    ran = {
        node.node_name.rpartition("/")[2]: stats.device[-5:]
        for stats in metadata.step_stats.dev_stats
        for node in stats.node_stats
    }
    assert ran["asked"] == "cpu:0"
    assert {device for name, device in ran.items() if "drawn" in name} <= {"cpu:1"}
