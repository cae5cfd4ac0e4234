"""The ops that the runtime itself runs, on every device: they move values and order nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.runtime.devices.device import Device
from headrace.runtime.transfers.rendezvous import DEAD, SENT, Edge
from headrace.runtime.transfers.send_receive import Sender

# What hands values in to a plan, and out of it.
ARGUMENTS, RESULTS = ("Feed", "Parameter"), ("Fetch", "Return")
# A step call gets the step first; a blocking one also the function that takes its result.
StepCall = Callable[..., Any]


def const_value(op: Operation, device: Device) -> Any:
    """Return a constant as the device holds it."""
    return device.from_host(op.attrs["value"])


def feed_call(op: Operation, device: Device) -> StepCall:
    """Return the call that puts a fed value onto the device."""
    index = op.attrs["index"]
    from_host = device.from_host

    def call(step: Any) -> Any:
        return from_host(step.feeds[index])

    return call


def fetch_call(op: Operation, device: Device) -> StepCall:
    """Return the call that hands a value, or DEAD, to the caller of the step."""
    index = op.attrs["index"]
    to_host = device.to_host

    def call(step: Any, value: Any) -> None:
        step.fetches[index] = value if value is DEAD else to_host(value)

    return call


def parameter_call(op: Operation) -> StepCall:
    """Return the call that yields an argument of the function that runs."""
    index = op.attrs["index"]

    def call(step: Any) -> Any:
        return step.feeds[index]

    return call


def return_call(op: Operation) -> StepCall:
    """Return the call that hands a result, or DEAD, to what runs the function."""
    index = op.attrs["index"]

    def call(step: Any, value: Any) -> None:
        step.fetches[index] = value

    return call


def send_call(op: Operation, device: Device) -> StepCall:
    """Return the call that sends a value, or DEAD."""
    return Sender(Edge.of(op), device)


def unless_sent(send: StepCall) -> StepCall:
    """Return a call that sends a value, unless the region that made it has let it go already."""

    def call(step: Any, value: Any) -> None:
        if value is not SENT:
            send(step, value)

    return call


def switch(data: Any, pred: Any) -> tuple[Any, Any]:
    """Forward ``data`` to the output that ``pred`` picks."""
    return (DEAD, data) if bool(pred) else (data, DEAD)


def branch_index(device: Device, index: int) -> Any:
    """Return the index of a merge's living input as the device holds it."""
    return device.from_host(np.array(index, np.int32))
