"""State and what uses it, where they ask for several devices."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

TWO = {"cpu": 2}


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
