"""Inputs that kernels read on the host: shapes, bounds of slices, and counts.

Their values decide how much memory an output takes, and the host must know that before it starts
any work. On a GPU, reading them there would make the host wait for all work before. So the inputs
that an op declares as ``host_inputs`` are handed to its kernels as host arrays, of whatever style
the kernels are: constants once, when the plan is made, and only what is computed in the step is
copied back while it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.runtime.devices.device import Device


def on_host(
    op: Operation, device: Device, call: Callable[..., Any], lead: int = 0
) -> Callable[..., Any]:
    """Return the call of a node with the inputs that its op wants on the host as host arrays.

    Args:
        op: The node.
        device: Its device.
        call: Takes the values of the node's flat inputs, as arrays of the device.
        lead: How many arguments come before them.
    """
    if device.xp is np:
        return call
    places = op.schema.flat_places(op.arity, lambda param: param.on_host)
    if not places:
        return call
    known = [(i + lead, op.inputs[i].spec.value) for i in places]
    to_host = device.to_host

    def with_hosts(*values: Any) -> Any:
        given = list(values)
        for i, constant in known:
            host = constant if constant is not None else np.asarray(to_host(given[i]))
            # A scalar, unlike an array of no dimensions, may meet arrays of the device.
            given[i] = host[()]
        return call(*given)

    return with_hosts
