"""``hr.config``: what it says, and the sessions that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.config.state import STATE
from headrace.errors import AttributeValueError, ConfigError, NoDeviceError, UnimplementedError

pytestmark = pytest.mark.needs("backend-cpu")
devices = hr.config.experimental


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    with hr.Graph().as_default():
        yield
    STATE.reset()


def test_nothing_is_set_at_first() -> None:
    assert hr.config.threading.get_intra_op_parallelism_threads() == 0
    assert hr.config.threading.get_inter_op_parallelism_threads() == 0
    assert hr.config.get_soft_device_placement() is False
    assert hr.config.optimizer.get_jit() is False
    switches = {"disable_model_pruning": False, "disable_meta_optimizer": False}
    assert hr.config.optimizer.get_experimental_options() == switches
    with hr.Session() as session:
        assert session.config == hr.Config()


def test_sessions_that_follow_go_by_it() -> None:
    with hr.Session() as before:
        hr.config.threading.set_intra_op_parallelism_threads(2)
        hr.config.threading.set_inter_op_parallelism_threads(3)
        hr.config.set_soft_device_placement(True)
        hr.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        assert before.config == hr.Config()
    with hr.Session() as session:
        found = session.config
    assert (found.threads, found.inter_op_threads) == (2, 3)
    assert (found.allow_soft_placement, found.optimize) == (True, False)
    assert hr.config.threading.get_intra_op_parallelism_threads() == 2
    assert hr.config.threading.get_inter_op_parallelism_threads() == 3
    with hr.Session(config=hr.Config(threads=1)) as own:
        assert (own.config.threads, own.config.allow_soft_placement) == (1, False)


def test_soft_placement_runs_what_asks_for_what_is_not_there() -> None:
    with hr.device("/cpu:7"):
        x = hr.constant(1.0) + 2.0
    with hr.Session() as session, pytest.raises(NoDeviceError, match="which is not there"):
        session.run(x)
    hr.config.set_soft_device_placement(True)
    with hr.Session() as session:
        assert session.run(x) == 3


def test_switches_of_tensorflows_passes() -> None:
    hr.config.optimizer.set_jit(True)
    hr.config.optimizer.set_experimental_options({"constant_folding": False, "nonsense": 1})
    hr.config.optimizer.set_experimental_options({"remapping": True, "constant_folding": None})
    assert hr.config.optimizer.get_jit() is True
    assert hr.config.optimizer.get_experimental_options() == {
        "constant_folding": False,
        "remapping": True,
        "disable_model_pruning": False,
        "disable_meta_optimizer": False,
    }


def test_several_cpus() -> None:
    (cpu,) = devices.list_physical_devices("CPU")
    assert cpu == ("/physical_device:CPU:0", "CPU")
    assert devices.get_virtual_device_configuration(cpu) is None
    two = [devices.VirtualDeviceConfiguration()] * 2
    devices.set_virtual_device_configuration(cpu, two)
    assert devices.get_virtual_device_configuration(cpu) == two
    assert devices.list_physical_devices("CPU") == [cpu]
    names = [device.name for device in devices.list_logical_devices("CPU")]
    assert names == [f"/job:localhost/task:0/device:cpu:{i}" for i in range(2)]
    assert hr.config.experimental_list_devices()[:2] == names
    with hr.device("/cpu:1"):
        x = hr.constant(1.0) + 2.0
    with hr.Session() as session:
        assert session.run(x) == 3


def test_devices_are_hidden() -> None:
    everything = devices.list_physical_devices()
    assert devices.get_visible_devices() == everything
    devices.set_visible_devices([], "GPU")
    assert devices.get_visible_devices("GPU") == []
    assert devices.list_logical_devices("GPU") == []
    devices.set_visible_devices(everything)
    assert devices.get_visible_devices() == everything


def test_what_changes_nothing_is_taken() -> None:
    devices.set_device_policy("warn")
    devices.set_synchronous_execution(False)
    hr.config.experimental_run_functions_eagerly(True)
    assert devices.get_device_policy() == "silent"
    assert devices.get_synchronous_execution() is True


CPU = devices.PhysicalDevice("/physical_device:CPU:0", "CPU")
LIMITED = devices.VirtualDeviceConfiguration(memory_limit=100)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: hr.config.threading.set_intra_op_parallelism_threads(-1),
            AttributeValueError,
            "num_threads must be",
        ),
        (
            lambda: hr.config.threading.set_inter_op_parallelism_threads("two"),
            TypeError,
            "num_threads must be",
        ),
        (lambda: hr.config.optimizer.set_experimental_options(3), TypeError, "must be a dict"),
        (lambda: devices.set_visible_devices("CPU"), ValueError, "is no device of|must be a list"),
        (lambda: devices.set_visible_devices([CPU], "GPU"), ValueError, "is no device of type GPU"),
        (lambda: devices.set_visible_devices([], "CPU"), ConfigError, "feeds and fetches live on"),
        (lambda: devices.set_memory_growth(CPU, True), ValueError, "is no GPU, whose memory"),
        (lambda: devices.get_memory_growth("x"), ValueError, "'x' is no device of"),
        (lambda: devices.get_virtual_device_configuration(1), ValueError, "1 is no device of"),
        (
            lambda: devices.set_virtual_device_configuration(CPU, [LIMITED]),
            ValueError,
            "memory of CPUs cannot be limited",
        ),
        (
            lambda: devices.set_virtual_device_configuration(CPU, [None]),
            TypeError,
            "VirtualDeviceConfiguration, got None",
        ),
        (
            lambda: devices.set_virtual_device_configuration(CPU, []),
            ConfigError,
            "must be a whole number from 1",
        ),
        (lambda: devices.set_device_policy("loud"), ValueError, "no device policy 'loud'"),
        (
            lambda: hr.config.experimental_connect_to_host("grpc://x"),
            UnimplementedError,
            "no eager execution",
        ),
        (
            lambda: hr.config.experimental_connect_to_cluster({}),
            UnimplementedError,
            "open sessions on the target of an hr.dist.Cluster",
        ),
    ],
)
def test_what_is_refused_changes_nothing(call: Any, error: type[Exception], match: str) -> None:
    before = dict(vars(STATE))
    with pytest.raises(error, match=match):
        call()
    assert vars(STATE) == before
