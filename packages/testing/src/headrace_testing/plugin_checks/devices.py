"""Checks of a device: what goes there comes back, in every dtype, shape and layout."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

import headrace as hr
from headrace import DType, Graph, Session, placeholder
from headrace import device as device_scope
from headrace.errors import HeadraceError, NoKernelError
from headrace.extend.ops import ALL_DTYPES
from headrace_testing.checks.forward import check_forward
from headrace_testing.checks.layouts import reversed_in_memory, strided
from headrace_testing.failure import ConformanceError, SkipCheck
from headrace_testing.inputs import NDArray, strings, uniform
from headrace_testing.plugin_checks.bound import open_device
from headrace_testing.plugin_checks.kernels import same_bits
from headrace_testing.plugin_checks.offers import OfferedDevice
from headrace_testing.sample import Sample

SHAPES = ((), (0,), (5,), (3, 4), (2, 0, 3), (2, 3, 4))


def check_count(device: OfferedDevice) -> None:
    """Count the devices: a number, and a reason where it is 0."""
    try:
        count = device.count()
    except Exception as error:
        raise _fault(device, f"count() raises {type(error).__name__}: {error}") from error
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise _fault(device, f"count() returns {count!r}, expected how many there are")
    if count == 0 and not device.why_none():
        raise _fault(device, "count() is 0 and why_none() does not say why")


def check_transfers(device: OfferedDevice) -> None:
    """Send arrays to the device and back: the same bits, dtypes and shapes."""
    opened = _open(device)
    held = [d for d in ALL_DTYPES if d.kind not in ("resource", "list", "quantized")]
    for dtype in held if device.dtypes is None else [d for d in held if d.name in device.dtypes]:
        for shape in SHAPES:
            maker = strings(shape) if dtype.kind == "string" else uniform(shape, -3, 3)
            array = maker.make(dtype, (1,))
            for label, arrange in (
                ("contiguous", np.copy),
                ("strided", strided),
                ("reversed", reversed_in_memory),
                ("Fortran-ordered", np.asfortranarray if array.ndim else np.copy),
                ("read-only", _locked),
            ):
                _check_one(device, opened, dtype, label, np.asarray(arrange(array)))


def check_sessions(device: OfferedDevice) -> None:
    """Let two sessions keep variables of one name on the device, and step in turn."""
    if device.count() < 1:
        raise SkipCheck(f"there is no {device.kind}: {device.why_none()}")
    with Graph().as_default() as graph, device_scope(f"{device.kind}:0"):
        x = placeholder(hr.float32, [3])
        value = hr.identity(x)
    with Session(graph=graph) as one, Session(graph=graph) as two:
        for step in range(3):
            for session, start in ((one, 1.0), (two, 5.0)):
                fed = np.full(3, start + step, np.float32)
                try:
                    got = np.asarray(session.run(value, {x: fed}))
                except HeadraceError as error:
                    raise SkipCheck(f"{device.kind} has no kernel of Identity: {error}") from None
                if not same_bits(got, fed):
                    raise _fault(device, f"two sessions mix: expected {fed}, got {got}")


def check_samples(device: OfferedDevice) -> None:
    """Run samples of core's ops on the device, as far as it has kernels for them."""
    # lazy: the samples of core take longer to load than the rest of the kit
    from headrace_testing.samples import SAMPLES

    if device.count() < 1:
        raise SkipCheck(f"there is no {device.kind}: {device.why_none()}")
    ran = 0
    for rows in SAMPLES.values():
        listed = [row for row in rows if isinstance(row, Sample)]
        for row in {row.op: row for row in reversed(listed)}.values():
            try:
                check_forward(row, f"{device.kind}:0")
            except SkipCheck:
                continue
            except ConformanceError as error:
                # An expression may need other ops for several inputs than for one.
                if isinstance(error.__cause__, NoKernelError):
                    continue
                raise
            ran += 1
    if not ran:
        raise SkipCheck(f"{device.kind} has no kernel of an op of core that has samples")


def check_interface(device: OfferedDevice) -> None:
    """Open a device: a name, an array module, contexts, and facts for the doctor."""
    opened = _open(device)
    for attribute in ("name", "xp", "from_host", "to_host", "activate", "synchronize", "describe"):
        if not hasattr(opened, attribute):
            raise _fault(device, f"it has no {attribute}; see headrace.extend.Device")
    if opened.name.kind != device.kind:
        raise _fault(device, f"it is called {opened.name}, expected the name that it was given")
    with opened.activate() or nullcontext():
        opened.synchronize()
    if not isinstance(opened.describe(), dict):
        raise _fault(device, "describe() returns no dict")


def _check_one(
    device: OfferedDevice, opened: Any, dtype: DType, label: str, array: NDArray
) -> None:
    kept = array.copy()
    what = f"{label} {dtype}{list(array.shape)}"
    try:
        with opened.activate() or nullcontext():
            there = opened.from_host(array)
            back = opened.to_host(there)
    except Exception as error:
        raise _fault(device, f"a {what} array fails: {type(error).__name__}: {error}") from error
    if not isinstance(back, np.ndarray):
        raise _fault(device, f"to_host of a {what} array returns {type(back).__name__}")
    if back.dtype != kept.dtype:
        raise _fault(device, f"a {what} array comes back as {back.dtype}")
    if back.shape != kept.shape:
        raise _fault(device, f"a {what} array comes back with shape {list(back.shape)}")
    if not same_bits(np.ascontiguousarray(back).reshape(kept.shape), kept):
        raise _fault(device, f"a {what} array comes back with other values")
    if not same_bits(np.array(array), kept):
        raise _fault(device, f"from_host changes a {what} array")


def _open(device: OfferedDevice) -> Any:
    if device.count() < 1:
        raise SkipCheck(f"there is no {device.kind}: {device.why_none()}")
    try:
        return open_device(device.kind)
    except Exception as error:
        raise _fault(device, f"it does not open: {type(error).__name__}: {error}") from error


def _fault(device: OfferedDevice, text: str) -> ConformanceError:
    return ConformanceError(f"device {device.kind!r}: {text}")


def _locked(array: NDArray) -> NDArray:
    kept = array.copy()
    kept.flags.writeable = False
    return kept
