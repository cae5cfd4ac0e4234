"""A kind of devices: ``/device:ledger:0`` computes with NumPy, and counts what is moved to it."""

import os
import threading

import numpy as np

from headrace.extend import hookimpl


class LedgerDevice:
    """A device is a name, a module of arrays, and ways to and from the memory of the host.

    Attributes:
        name: The full name.
        xp: The module whose arrays live on the device. Here it is NumPy, and the device's memory
            is the host's; a driver of real hardware has an array module like NumPy of its own.
    """

    def __init__(self, name):
        self.name = name
        self.xp = np
        self._lock = threading.Lock()
        self._moved = {"to the device": 0, "to the host": 0}

    def from_host(self, array):
        """Return an array of the device with the contents of a host array."""
        self._count("to the device", array)
        return np.array(array)

    def to_host(self, array):
        """Return a host array with the contents of one of the device."""
        array = np.asarray(array)
        self._count("to the host", array)
        return array

    def activate(self):
        """Return the context in which kernels of a step run: no warnings of NaN and infinity."""
        return np.errstate(all="ignore")

    def synchronize(self):
        """Wait until all work is done: NumPy's is, when its functions return."""

    def describe(self):
        """Return facts for ``python -m headrace doctor``."""
        with self._lock:
            return {f"bytes moved {way}": count for way, count in self._moved.items()}

    def _count(self, way, array):
        # Steps run concurrently.
        with self._lock:
            self._moved[way] += array.nbytes


# How many there are, and why there are none. Nothing may touch hardware before one is opened.
def count():
    return int(os.environ.get("LEDGER_DEVICES", "1"))


# With a priority below the cpu's, operations come here only where a program asks for it. Arrays
# of other dtypes, such as strings, are never placed on it.
@hookimpl
def headrace_register_devices(registry):
    registry.add(
        "ledger",
        count=count,
        factory=LedgerDevice,
        priority=-1,
        why_none=lambda: "LEDGER_DEVICES is 0",
        dtypes=["float32", "float64", "int32", "int64", "bool"],
    )


# Kernels that work for any module like NumPy are there already. Tables of kernels of its own would
# come before them, added with ``registry.add("ledger", KERNELS)``.
@hookimpl
def headrace_register_kernels(registry):
    registry.use_array_kernels("ledger")
