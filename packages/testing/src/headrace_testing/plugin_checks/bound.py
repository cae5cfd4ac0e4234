"""Calling one kernel by itself, whatever other kernels its op has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from headrace import Operation
from headrace.extend.devices import DeviceName
from headrace.extend.kernels import Kernel, KernelContext, NodeView
from headrace.extend.plugins import host
from headrace.extend.state import SessionState
from headrace_testing.inputs import NDArray


def open_device(kind: str) -> Any:
    """Open the first device of a kind."""
    found = host().devices.get(kind)
    assert found is not None
    return found.factory(DeviceName("localhost", 0, kind, 0))


def bound(kernel: Kernel, op: Operation, device: Any) -> Callable[..., Any] | None:
    """Return what computes a node with one kernel; None where the kernel refuses it, or waits."""
    attrs = dict(op.attrs)
    context = KernelContext(device, SessionState(), op.name, op.attrs, [t.spec for t in op.inputs])
    if kernel.style == "blocking":
        return None
    if kernel.style == "specialized":
        made: Callable[..., Any] | None = kernel.function(NodeView(op, device, context))
        return made
    first = device.xp if kernel.style == "plain" else context
    call = functools.partial(kernel.function, first, **attrs)
    return lambda *values: call(*op.schema.group(list(values), op.arity))


def results_of(
    call: Callable[..., Any], arrays: Sequence[Any], op: Operation, device: Any
) -> list[NDArray]:
    """Call a kernel as a step does, and return its results as arrays."""
    with device.activate() or nullcontext():
        found = call(*arrays)
    listed = list(found) if isinstance(found, tuple | list) and len(op.outputs) != 1 else [found]
    if isinstance(found, tuple) and len(op.outputs) == 1:
        listed = list(found)
    return [
        np.asarray(value, object if tensor.dtype.kind == "string" else None)
        for value, tensor in zip(listed, op.outputs, strict=True)
    ]
