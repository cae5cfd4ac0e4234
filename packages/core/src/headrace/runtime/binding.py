"""Binding: finding the kernel of an operation, and making of it the call that a plan uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace.errors import NoKernelError
from headrace.graph.operation import Operation
from headrace.placement.place import kernel_dtype
from headrace.plugins.registries import Kernel, KernelRegistry
from headrace.records import dataclass
from headrace.runtime import builtin
from headrace.runtime.device import Device
from headrace.runtime.plan import Mode
from headrace.runtime.state import KernelContext, SessionState

Call = tuple[Mode, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the factory of a specialized kernel gets to see of a plan node.

    Attributes:
        op: The operation, with attributes and the specs of its inputs and outputs.
        device: The device.
        context: What stateful kernels get.
    """

    op: Operation
    device: Device
    context: KernelContext


def bind(op: Operation, device: Device, kernels: KernelRegistry, state: SessionState) -> Call:
    """Return how an operation is called, and what computes it.

    Raises:
        NoKernelError: if the device has no kernel for it.
    """
    if op.type in _BUILTIN_CALLS:
        return _BUILTIN_CALLS[op.type](op, device)
    kind = op.device_name.kind or ""
    for kernel in kernels.candidates(op.type, kind, kernel_dtype(op)):
        bound = _bind_kernel(kernel, op, device, state)
        if bound is not None:
            return bound
    raise NoKernelError(
        f"device {op.device_name} has no kernel for {op.type}({kernel_dtype(op)}), needed by "
        f"{op.name!r}\n  at {op.site}"
    )


def is_blocking(op: Operation, kernels: KernelRegistry) -> bool:
    """Whether an operation may wait for something outside its step."""
    if op.type == "Recv":
        return True
    found = kernels.candidates(op.type, op.device_name.kind or "", kernel_dtype(op))
    return bool(found) and found[0].style == "blocking"


def _bind_kernel(kernel: Kernel, op: Operation, device: Device, state: SessionState) -> Call | None:
    attrs = dict(op.attrs)
    if kernel.style == "plain":
        function = functools.partial(kernel.function, device.xp, **attrs)
        return Mode.PLAIN, _grouped(op, function)
    context = KernelContext(device, state, op.name, op.attrs, [t.spec for t in op.inputs])
    if kernel.style == "stateful":
        return Mode.PLAIN, _grouped(op, functools.partial(kernel.function, context, **attrs))
    if kernel.style == "blocking":
        call = functools.partial(kernel.function, context, **attrs)
        return Mode.BLOCKING, _grouped(op, call, lead=2)
    special = kernel.function(NodeView(op, device, context))
    return None if special is None else (Mode.PLAIN, special)


def _grouped(op: Operation, call: Callable[..., Any], lead: int = 0) -> Callable[..., Any]:
    """Return ``call`` taking flat values where its op takes lists or leaves inputs out."""
    plain = all(not p.variadic for p in op.schema.inputs) and 0 not in op.arity
    if plain:
        return call
    group, arity = op.schema.group, op.arity

    def grouped(*values: Any) -> Any:
        return call(*values[:lead], *group(values[lead:], arity))

    return grouped


_BUILTIN_CALLS: dict[str, Callable[[Operation, Device], tuple[Mode, Callable[..., Any]]]] = {
    "NoOp": lambda op, device: (Mode.PLAIN, tuple),
    "Const": lambda op, device: (
        Mode.PLAIN,
        functools.partial(_itself, builtin.const_value(op, device)),
    ),
    "Feed": lambda op, device: (Mode.STEP, builtin.feed_call(op, device)),
    "Fetch": lambda op, device: (Mode.SEND, builtin.fetch_call(op, device)),
    "Parameter": lambda op, device: (Mode.STEP, builtin.parameter_call(op)),
    "Return": lambda op, device: (Mode.SEND, builtin.return_call(op)),
    "Send": lambda op, device: (Mode.SEND, builtin.send_call(op, device)),
    "Recv": lambda op, device: (Mode.BLOCKING, builtin.recv_call(op, device)),
    "Switch": lambda op, device: (Mode.PLAIN, builtin.switch),
    "Merge": lambda op, device: (Mode.MERGE, functools.partial(builtin.branch_index, device)),
}


def activated(device: Device, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call`` running while ``device`` is active."""

    def run(*values: Any) -> Any:
        context = device.activate()
        assert context is not None
        with context:
            return call(*values)

    return run


def _itself(value: Any) -> Any:
    return value
