"""A backend in a few lines of NumPy, so that core is tested without any other package."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace.extend import KernelTable, hookimpl
from headrace.ops.indexing import decode
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.runtime.state.containers import VariableCell

KERNELS = KernelTable()
GATES: dict[str, threading.Event] = {}

for _type, _function in {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Neg": np.negative,
    "Square": np.square,
    "Equal": np.equal,
    "Greater": np.greater,
    "MatMul": lambda a, b, transpose_a, transpose_b: np.matmul(
        a.T if transpose_a else a, b.T if transpose_b else b
    ),
    "Identity": lambda x: x,
    "Cast": lambda x, dtype: np.asarray(x).astype(dtype.numpy),
    "Reshape": np.reshape,
    "Fill": lambda dims, value: np.full(tuple(dims), value),
    "ReduceSum": lambda x, axis, keepdims: np.sum(x, axis, dtype=x.dtype, keepdims=keepdims),
    "Shape": lambda x, out_type: np.array(x.shape, out_type.numpy),
    "Rank": lambda x: np.array(x.ndim, np.int32),
    "StridedSlice": lambda x, begin, end, strides, entries, open_begin, open_end: x[
        decode(begin, end, strides, entries, open_begin, open_end)
    ],
    "Stack": lambda values, axis: np.stack(values, axis),
}.items():

    def _kernel(xp, *values, _function=_function, **attrs):
        return _function(*values, **attrs)

    KERNELS.plain(_type)(_kernel)


@KERNELS.stateful("VarHandle")
def _handle(ctx, *, dtype, shape, container, shared_name):
    return ctx.container(container).get_or_create(
        shared_name, VariableCell, lambda: VariableCell(shared_name, dtype, shape)
    )


@KERNELS.stateful("ReadVariable")
def _read(ctx, cell):
    return cell.read()


@KERNELS.stateful("AssignVariable")
def _assign(ctx, cell, value, *, validate_shape):
    stored = np.array(value)
    stored.flags.writeable = False
    return cell.assign(stored)


@KERNELS.stateful("AssignAddVariable")
def _assign_add(ctx, cell, value):
    return cell.update(lambda old: old + value)


@KERNELS.blocking("QueueDequeue")
def _dequeue(ctx, step, done, queue, *, component_types, shapes):
    """Wait until the test opens the gate; on cancellation answer with the reason."""
    answered = threading.Lock()

    def answer(value):
        if answered.acquire(blocking=False):
            step.cancellation.discard(key)
            done(value)

    key = step.cancellation.add(answer)
    threading.Thread(target=lambda: queue.gate.wait() and answer([np.float32(7)])).start()


class Gate:
    def __init__(self) -> None:
        self.gate = threading.Event()

    def reset(self) -> None:
        self.gate.clear()


@KERNELS.stateful("FIFOQueue")
def _queue(ctx, *, capacity, component_types, shapes, container, shared_name):
    gate = ctx.container(container).get_or_create(shared_name, Gate, Gate)
    GATES[shared_name] = gate.gate
    return gate


class HostDevice:
    """A device whose arrays are NumPy's."""

    xp = np

    def __init__(self, name) -> None:
        self.name = name

    def from_host(self, array):
        return array

    def to_host(self, array):
        return array

    def activate(self):
        return None

    def synchronize(self) -> None:
        pass

    def describe(self):
        return {}


class FakeEntry:
    """An entry point that yields an object instead of importing a module."""

    def __init__(self, name: str, plugin: object) -> None:
        self.name = name
        self.value = f"{name}_module"
        self._plugin = plugin
        self.dist = SimpleNamespace(metadata={"Name": f"dist-{name}", "Version": "1.0"})

    def load(self) -> object:
        if isinstance(self._plugin, BaseException):
            raise self._plugin
        return self._plugin


class MiniBackend:
    """Two cpu devices, and a slow kind of device with one kernel."""

    @hookimpl
    def headrace_register_devices(self, registry):
        registry.add("cpu", count=lambda: 2, factory=HostDevice)
        registry.add("toy", count=lambda: 1, factory=HostDevice, priority=-5)
        registry.add("ghost", count=lambda: 0, factory=HostDevice, why_none=lambda: "it left")

    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", KERNELS)
        registry.add("toy", [k for k in KERNELS if k.op == "Add"])


@pytest.fixture
def mini_kernels():
    return KERNELS


@pytest.fixture
def fake_entry():
    return FakeEntry


@pytest.fixture
def host_device():
    return HostDevice


@pytest.fixture
def mini(monkeypatch):
    """Make the mini backend the only plugin of the process."""
    plugins = PluginHost([FakeEntry("mini", MiniBackend())])
    monkeypatch.setattr(host_module, "_HOST", plugins)
    return plugins


@pytest.fixture
def gates():
    return GATES


@pytest.fixture(autouse=True)
def _own_graph(graph: hr.Graph) -> None:
    """Give every test a graph of its own."""
