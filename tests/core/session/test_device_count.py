"""How many devices a session has: counts, what they are given by, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, ConfigTypeError, NoDeviceError, PlacementError
from headrace.extend import hookimpl
from headrace.plugins.host import PluginHost, use_host

cpu = pytest.mark.needs("backend-cpu")


def devices(config: Any) -> list[str]:
    with hr.Session(config=config) as session:
        return [device.name.partition("device:")[2] for device in session.list_devices()]


@cpu
@pytest.mark.parametrize("name", ["cpu", "CPU"])
def test_a_session_has_as_many_cpus_as_it_asks_for(name: str) -> None:
    assert devices(hr.Config(device_count={name: 3})) == ["cpu:0", "cpu:1", "cpu:2"]
    assert devices(hr.ConfigProto(device_count={name: 2})) == ["cpu:0", "cpu:1"]
    assert devices(hr.Config(device_count={"cpu": 1})) == devices(hr.Config()) == ["cpu:0"]
    with hr.Session(config=hr.Config(device_count={"cpu": 2})) as session:
        first, second = session.list_devices()
    assert second.device_type == "CPU"
    assert second.memory_limit_bytes == first.memory_limit_bytes > 0


@cpu
def test_counts_are_those_of_a_session_whatever_others_and_the_environment_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hr.device("/cpu:1"):
        x = hr.placeholder_with_default([1.0, 2.0], [2]) * 2.0
    with hr.Session(config=hr.Config(device_count={"cpu": 2})) as two, hr.Session() as one:
        np.testing.assert_array_equal(two.run(x), [2.0, 4.0])
        with pytest.raises(NoDeviceError, match="cpu:1"):
            one.run(x)
    monkeypatch.setenv("HEADRACE_CPU_DEVICES", "3")
    assert devices(hr.Config()) == ["cpu:0", "cpu:1", "cpu:2"]
    assert devices(hr.Config(device_count={"cpu": 1})) == ["cpu:0"]
    assert len(devices(hr.Config(device_count={"cpu": 5}))) == 5


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ({"cpu": 0}, ConfigError, r"device_count\['cpu'\] must be a whole number from 1 to 4096: fee"),
    ({"CPU": -1}, ConfigError, r"device_count\['CPU'\] must be .* on the first one, got -1"),
    ({"cpu": 4097}, ConfigError, "got 4097"),
    ({"cpu": 1.5}, ConfigTypeError, r"must be a whole number from 1 to 4096.*got 1\.5"),
    ({"cpu": True}, ConfigTypeError, "got True"),
    ({"gpu": -1}, ConfigError, r"device_count\['gpu'\] must be a whole number from 0 to 4096, got"),
    ({"gpu": 0, "CUDA": 1}, ConfigError, "says twice how many cuda devices"),
    ({"cpus": 2}, ConfigError, r"there is no kind of devices 'cpus'; did you mean 'cpu'\?"),
    ({"quantum": 2}, ConfigError, "there is no kind of devices 'quantum'; there are cpu"),
    ({3: 2}, ConfigError, "there is no kind of devices 3"),
    (2, ConfigTypeError, 'must be a dictionary of numbers by kind, as in {"cpu": 2}, got 2'),
    ([("cpu", 2)], ConfigTypeError, "must be a dictionary"),
]


@cpu
@pytest.mark.parametrize(("counts", "error", "match"), REFUSED)
def test_counts_that_cannot_be_are_refused(counts: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        hr.Config(device_count=counts)


@cpu
def test_the_form_of_tensorflow_leaves_out_kinds_that_there_are_not() -> None:
    """Its counts are upper limits, so that none of a kind is within any of them."""
    proto = hr.ConfigProto(device_count={"TPU": 8, "CPU": 2})
    assert devices(proto) == ["cpu:0", "cpu:1"]
    proto.device_count["GPU"] = 4
    with hr.Session(config=proto) as session:
        assert session.config == hr.Config(device_count={"cpu": 2, "gpu": 4})
    for counts, match in [({"CPU": 0}, "from 1 to"), ({"CPU": 2.5}, "whole number"), ({1: 2}, "1")]:
        with pytest.raises(ConfigError, match=match):
            hr.Session(config=hr.ConfigProto(device_count=counts))
    with pytest.raises(ConfigError, match="must be of type dict"):
        hr.ConfigProto(device_count=2)


class Few:
    """A plugin with devices of which there are only so many."""

    headrace_api = 1

    def __init__(self, device: Any) -> None:
        self._device = device

    @hookimpl
    def headrace_register_devices(self, registry: Any) -> None:
        registry.add("cpu", count=lambda: 1, factory=self._device, virtual=True)
        registry.add("cube", count=lambda: 3, factory=self._device, priority=-1)


@pytest.fixture
def few(fake_entry: Any, host_device: Any) -> Any:
    with use_host(PluginHost([fake_entry("few", Few(host_device))])) as plugins:
        yield plugins


@pytest.mark.usefixtures("few")
def test_of_other_kinds_there_are_no_more_than_there_are() -> None:
    every = ["cpu:0", "cube:0", "cube:1", "cube:2"]
    assert devices(hr.Config()) == devices(hr.Config(device_count={"cube": 9})) == every
    assert devices(hr.Config(device_count={"cube": 1})) == every[:2]
    assert devices(hr.Config(device_count={"cube": 0})) == every[:1]
    assert devices(hr.Config(device_count={"cpu": 2, "cube": 2})) == [
        *("cpu:0", "cpu:1"),
        *every[1:3],
    ]


@pytest.mark.usefixtures("few")
def test_who_asks_for_a_device_that_is_left_out_is_told_what_leaves_it_out() -> None:
    def error(device: str, **counts: int) -> str:
        with hr.Graph().as_default(), hr.device(device):
            x = hr.constant(1.0)
            session = hr.Session(config=hr.Config(device_count=counts))
            with session, pytest.raises(NoDeviceError, match="which is not there") as caught:
                session.run(x)
        return str(caught.value)

    left_out = "device_count of the session's Config leaves 0 cube devices"
    assert left_out in error("/device:cube:1", cube=0)
    assert 'Config(device_count={"cpu": 4}) lets the session have it' in error("/cpu:3", cpu=2)
    assert "lets the session" not in error("/job:other/device:cpu:0")


@cpu
def test_soft_placement_holds_in_conditions_loops_and_functions() -> None:
    x = hr.placeholder(hr.float32, [2])

    def there() -> Any:
        with hr.device("/cpu:3"):
            return hr.sin(x)

    def body(i: Any, a: Any) -> Any:
        with hr.device("/cpu:4"):
            return i + 1, a * 2.0

    @hr.function
    def tripled(a: Any) -> Any:
        with hr.device("/cpu:5"):
            return a * 3.0

    y = hr.cond(hr.reduce_sum(x) > 0.0, there, lambda: x)
    _, z = hr.while_loop(lambda i, a: i < 3, body, [0, x])
    fetches = [y, z, tripled(x)]
    values = np.array([1.0, 2.0], np.float32)
    for executor in ("plan", "plain"):
        settings: Any = {"executor": executor, "device_count": {"cpu": 2}}
        with hr.Session(config=hr.Config(allow_soft_placement=True, **settings)) as session:
            found = session.run(fetches, {x: values})
        for one, other in zip(found, [np.sin(values), values * 8, values * 3], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        for fetch in fetches:
            session = hr.Session(config=hr.Config(**settings))
            with session, pytest.raises(PlacementError, match="which is not there"):
                session.run(fetch, {x: values})


@cpu
def test_what_a_session_tells_names_its_devices(capfd: pytest.CaptureFixture[str]) -> None:
    x = hr.placeholder(hr.float32, [2], name="x")
    with hr.device("/cpu:1"):
        y = hr.exp(x, name="y")
    with hr.device("/cpu:0"):
        z = hr.add(y, 1.0, name="z")
    config = hr.Config(device_count={"cpu": 2}, log_device_placement=True, compile_after=0)
    with hr.Session(config=config) as session:
        metadata = hr.RunMetadata()
        options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        session.run(z, {x: [1.0, 2.0]}, options=options, run_metadata=metadata)
        explained = session.explain(z, {x: [1.0, 2.0]})
    logged = capfd.readouterr().err
    assert "y: (Exp): /job:localhost/task:0/device:cpu:1\n" in logged
    assert "z: (Add): /job:localhost/task:0/device:cpu:0\n" in logged
    assert "_send" not in logged
    stats = metadata.step_stats.dev_stats
    ran = {d.device[-5:]: [n.node_name for n in d.node_stats] for d in stats}
    assert ran == {"cpu:1": ["y"], "cpu:0": ["z"]}
    placed = {name: p.device[-5:] for p in explained.placement for name in p.operations}
    assert (placed["y"], placed["z"]) == ("cpu:1", "cpu:0")
    assert explained.transfers == ()
    assert [work.device[-5:] for part in explained.parts for work in part.works] == [
        "cpu:1",
        "cpu:0",
    ]
    assert re.search(r"Exp on \S+cpu:1\n(.*\n)+.*Add on \S+cpu:0", str(explained))
