"""The plugin, the device, and the tables of kernels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.extend import OPS
from headrace.extend.devices import HostDevice
from headrace.plugins.host import host
from headrace_cpu.device import CpuDevice
from headrace_cpu.kernels import (
    ARRAY_KERNELS,
    CPU_KERNELS,
    HOST_KERNELS,
    PREPARED_KERNELS,
    STATE_KERNELS,
)
from headrace_cpu.kernels.rare import KERNELS as RARE_KERNELS
from headrace_cpu.plugin import headrace_diagnose
from tests.children import run_program

OWN = [
    schema.type
    for schema in OPS
    if schema.function.__module__.startswith("headrace.")
    and not schema.builtin
    and schema.type != "Placeholder"
]


@pytest.mark.parametrize("op", OWN)
def test_every_op_of_core_has_a_kernel(op):
    assert host().kernels.dtypes_of(op, "cpu") == ["any"]


def test_tables_tell_apart_what_other_devices_can_use():
    assert {k.style for k in ARRAY_KERNELS} == {"plain"}
    assert {k.style for k in STATE_KERNELS} == {"stateful"}
    assert {k.style for k in PREPARED_KERNELS} == {"specialized"}
    assert {"Lu", "Print"} <= {k.op for k in HOST_KERNELS}
    assert {"QueueSize", "StringJoin"} <= {k.op for k in RARE_KERNELS}
    # One that prepares something for a node may leave it to the kernel of all nodes.
    kinds = [(k.op, k.style) for k in (*CPU_KERNELS, *RARE_KERNELS)]
    assert len(set(kinds)) == len(kinds)


def test_plugin_is_light_to_import():
    heavy = ["llvmlite", "headrace_cpu.kernels"]
    code = f"import sys, headrace_cpu.plugin; print(*(m in sys.modules for m in {heavy}))"
    done = run_program(code)
    assert done.stdout.split() == ["False", "False"]


def test_number_of_devices_is_a_setting(monkeypatch):
    monkeypatch.setenv("HEADRACE_CPU_DEVICES", "3")
    assert host().devices.get("cpu").count() == 3


def test_moves_are_the_identity():
    device = CpuDevice(DeviceName("localhost", 0, "cpu", 0))
    array = np.arange(3)
    assert device.from_host(array) is array
    assert device.to_host(array) is array
    scalar = device.to_host(np.float32(2))
    assert isinstance(scalar, np.ndarray)
    assert scalar.dtype == np.float32
    device.synchronize()
    assert device.describe()["cores"]


def test_diagnosis_names_the_libraries():
    facts = headrace_diagnose()
    assert facts["title"] == "cpu"
    assert facts["numpy"] == np.__version__
    assert isinstance(facts["blas"], str)
    assert isinstance(facts["problems"], list)


def test_floating_point_exceptions_are_results_and_not_warnings():
    x = hr.placeholder(hr.float32, [2])
    fetches = [hr.log(x), 1.0 / x, hr.exp(x * 1e30), hr.cast(x / 0.0, hr.int32), hr.sqrt(x)]
    with warnings.catch_warnings(), hr.Session() as session:
        warnings.simplefilter("error")
        logs, inverses, exps, _, roots = session.run(fetches, {x: [0.0, -1.0]})
    np.testing.assert_array_equal(logs, [-np.inf, np.nan])
    np.testing.assert_array_equal(inverses, [np.inf, -1])
    np.testing.assert_array_equal(exps, [1, 0])
    np.testing.assert_array_equal(roots, [0, np.nan])


def test_what_a_device_says_to_be_of_the_host_moves_nowhere():
    device = CpuDevice(DeviceName.parse("/job:localhost/task:0/device:cpu:0"))
    assert isinstance(device, HostDevice)
    assert device.on_host
    for array in (np.zeros((2, 3)).T, np.array(1), np.array([b"a"], object), np.zeros(0, bool)):
        assert device.from_host(array) is array
        assert device.to_host(array) is array
