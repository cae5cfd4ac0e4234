"""A plugin with a device that has memory of its own, as a GPU has; its arrays are NumPy's."""

from __future__ import annotations

import contextlib

import numpy as np

from headrace.extend import hookimpl

headrace_api = 1


class FarDevice:
    xp = np

    def __init__(self, name):
        self.name = name

    def from_host(self, array):
        return array.copy()

    def to_host(self, array):
        return np.array(array)

    def activate(self):
        return contextlib.nullcontext()

    def synchronize(self):
        pass

    def describe(self):
        return {}


@hookimpl
def headrace_register_devices(registry):
    registry.add("far", count=lambda: 1, factory=FarDevice, priority=100)


@hookimpl
def headrace_register_kernels(registry):
    from headrace_cpu.kernels import ARRAY_KERNELS, PREPARED_KERNELS, STATE_KERNELS

    registry.add("far", [*ARRAY_KERNELS, *PREPARED_KERNELS, *STATE_KERNELS])
