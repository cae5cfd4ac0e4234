"""Binding: finding the kernel of an operation, and making of it the call that a plan uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import errors
from headrace.errors import HeadraceError, NoKernelError, PluginError, shown
from headrace.graph.operation import Operation
from headrace.interrupts import uninterrupted
from headrace.placement.place import kernel_dtype
from headrace.plugins.error_attribution import described, line_of_error, noted
from headrace.plugins.kernel_checks import Guard, is_foreign
from headrace.plugins.ownership import CORE, Provider, package_of
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.tables import Kernel
from headrace.records import dataclass
from headrace.runtime import builtin
from headrace.runtime.devices.device import Device
from headrace.runtime.devices.host_inputs import on_host
from headrace.runtime.execution.called_function import CalledFunction
from headrace.runtime.execution.plan import Mode
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.planning.guarded_blocking import GuardedBlocking
from headrace.runtime.state.session_state import KernelContext, SessionState
from headrace.runtime.transfers.rendezvous import Edge
from headrace.runtime.transfers.send_receive import Receiver

# Returns what runs a function that a kernel calls, on the device ``home`` of the node.
Call = Callable[..., CalledFunction]


@dataclass(frozen=True, slots=True)
class Bound:
    """What computes an operation.

    Attributes:
        mode: How it is called.
        call: What is called.
        provider: Who provides it.
    """

    mode: Mode
    call: Callable[..., Any]
    provider: Provider = CORE


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the factory of a specialized kernel gets to see of a plan node.

    Attributes:
        op: The operation, with attributes and the specs of its inputs and outputs.
        device: The device.
        context: What stateful kernels get.
        options: How the session plans and runs its steps.
    """

    op: Operation
    device: Device
    context: KernelContext
    options: Options = DEFAULT_OPTIONS


def bind(
    op: Operation,
    device: Device,
    kernels: KernelRegistry,
    state: SessionState,
    options: Options = DEFAULT_OPTIONS,
    call: Call | None = None,
) -> Bound:
    """Return how an operation is called, and what computes it.

    Raises:
        NoKernelError: if the device has no kernel for it.
    """
    if op.type in _BUILTIN_CALLS:
        return Bound(*_BUILTIN_CALLS[op.type](op, device))
    kind = op.device_name.kind or ""
    for kernel in kernels.candidates(op.type, kind, kernel_dtype(op)):
        bound = _bind_kernel(kernel, op, device, kernels, state, options, call)
        if bound is not None:
            return bound
    raise NoKernelError(
        f"device {op.device_name} has no kernel for {op.type}({kernel_dtype(op)}), needed by "
        f"{op.name!r}\n  at {op.site}"
    )


def bind_preferred(
    op: Operation,
    device: Device,
    kernels: KernelRegistry,
    state: SessionState,
    options: Options = DEFAULT_OPTIONS,
    call: Call | None = None,
) -> Bound | None:
    """Return what computes an operation whatever its device could compile for it.

    That is the best kernel where ``KernelRegistry.prefers`` it. A factory that refuses gives the
    operation back.

    Returns:
        None where the device may compile the operation.
    """
    if op.type in _BUILTIN_CALLS:
        return None
    kind, dtype = op.device_name.kind or "", kernel_dtype(op)
    package = package_of(type(device).__module__)
    if not kernels.prefers(op.type, kind, dtype, package):
        return None
    for kernel in kernels.candidates(op.type, kind, dtype):
        if not kernels.is_preferred(kernel, kind, package):
            return None
        bound = _bind_kernel(kernel, op, device, kernels, state, options, call)
        if bound is not None:
            return bound
    return None


def is_blocking(op: Operation, kernels: KernelRegistry) -> bool:
    """Whether an operation may wait for something outside its step."""
    if op.type == "Recv" or op.schema.calls_out:
        return True
    found = kernels.candidates(op.type, op.device_name.kind or "", kernel_dtype(op))
    return bool(found) and found[0].style == "blocking"


def _bind_kernel(
    kernel: Kernel,
    op: Operation,
    device: Device,
    kernels: KernelRegistry,
    state: SessionState,
    options: Options,
    call_function: Call | None,
) -> Bound | None:
    """Return the call of a node with a kernel, None where the kernel refuses it.

    A kernel that is not the code of one of our own packages is guarded.
    """
    attrs = dict(op.attrs)
    provider = kernels.provider((op.type, op.device_name.kind or ""), kernel)
    specs = [t.spec for t in op.inputs]
    given = options.of(op.device_name.kind or "")
    nest = None
    if call_function is not None:
        nest = functools.partial(call_function, home=op.device_name)
    context = KernelContext(device, state, op.name, op.attrs, specs, op.type, op.site, given, nest)
    lead = 0
    if kernel.style == "plain":
        call = _grouped(op, functools.partial(kernel.function, device.xp, **attrs))
    elif kernel.style == "stateful":
        call = _grouped(op, functools.partial(kernel.function, context, **attrs))
    elif kernel.style == "blocking":
        lead = 2
        call = _grouped(op, functools.partial(kernel.function, context, **attrs), lead)
    else:
        special = _specialized(kernel, NodeView(op, device, context, options), provider)
        if special is None:
            return None
        call = special
    if is_foreign(kernel):
        guard = Guard(op, kernel, provider, call, None if device.xp is np else device.to_host)
        call = GuardedBlocking(guard, call) if lead else guard
    if kernel.answers:
        call = uninterrupted(call)
    mode = Mode.BLOCKING if lead else Mode.CALLS_OUT if op.schema.calls_out else Mode.PLAIN
    return Bound(mode, on_host(op, device, call, lead), provider)


def _specialized(kernel: Kernel, node: NodeView, provider: Provider) -> Callable[..., Any] | None:
    """Return what the factory of a specialized kernel makes for a node.

    Raises:
        PluginError: if it fails, or makes what cannot be called.
    """
    op = node.op
    try:
        made = kernel.function(node)
    except HeadraceError as error:
        if not provider.own:
            noted(error, kernel.function, provider)
        raise
    except Exception as error:
        text = f"failed: {described(error)}, at {line_of_error(error, kernel.function)}"
        raise _factory_error(kernel, op, provider, text) from error
    if made is not None and not callable(made):
        text = f"returned {shown(made, 60)}, and must return a function, or None to refuse the node"
        raise _factory_error(kernel, op, provider, text)
    return made  # type: ignore[no-any-return]


def _factory_error(kernel: Kernel, op: Operation, provider: Provider, text: str) -> HeadraceError:
    lines = [
        f"the kernel factory of {provider} at {kernel.where} {text}",
        f"  for {op.type} {op.name!r}",
        f"  at {op.site}",
    ]
    return errors.located(PluginError, lines)


def _grouped(op: Operation, call: Callable[..., Any], lead: int = 0) -> Callable[..., Any]:
    """Return ``call`` taking flat values where its op takes lists or leaves inputs out."""
    plain = all(not p.variadic for p in op.schema.inputs) and 0 not in op.arity
    if plain:
        return call
    inputs, arity = op.schema.inputs, op.arity
    given = len(arity) - arity.count(0)
    if not lead and not any(p.variadic for p in inputs) and 0 not in arity[:given]:
        # What is left out comes last, as with the shape that missing items of a list have.
        function = call.func if isinstance(call, functools.partial) else call
        defaults = getattr(function, "__defaults__", None) or ()
        if len(defaults) >= len(arity) - given and all(v is None for v in defaults):
            return call
        left_out = (None,) * (len(arity) - given)
        return lambda *values: call(*values, *left_out)
    if not lead and len(inputs) == 1 and inputs[0].variadic:
        return lambda *values: call(list(values))
    # Where in the flat values each argument is: a place, a slice for lists, None if left out.
    places: list[int | slice | None] = [*range(lead)]
    start = lead
    for param, count in zip(inputs, arity, strict=True):
        one = start if count else None
        places.append(slice(start, start + count) if param.variadic else one)
        start += count

    def grouped(*values: Any) -> Any:
        return call(
            *[
                values[at] if type(at) is int else None if at is None else list(values[at])
                for at in places
            ]
        )

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
    "Recv": lambda op, device: (Mode.BLOCKING, Receiver(Edge.of(op), device)),
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
