"""Inputs that kernels read on the host: shapes, bounds of slices, and counts.

Their values decide how much memory an output takes, and the host must know that before it starts
any work. On a GPU, reading them there would make the host wait for all work before. So such
inputs are handed to kernels as host arrays: constants once, when the plan is made, and only what
is computed in the step is copied back while it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import PluginError

if TYPE_CHECKING:
    from headrace.plugins.registries import Kernel
    from headrace.runtime.plan import NodeView

# For each op the positions of such inputs.
HOST_INPUTS: dict[str, tuple[int, ...]] = {
    "BroadcastTo": (1,),
    "Conv2DBackpropFilter": (1,),
    "Conv2DBackpropInput": (0,),
    "Fill": (0,),
    "RandomStandardNormal": (0,),
    "RandomUniform": (0,),
    "RandomUniformInt": (0, 1, 2),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "StridedSlice": (1, 2, 3),
    "StridedSliceGrad": (0, 1, 2, 3),
    "SumToShape": (1,),
    "TruncatedNormal": (0,),
    "UnsortedSegmentSum": (2,),
}


def with_host_inputs(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield kernels, those of the ops above with these inputs as host arrays.

    Raises:
        PluginError: if a kernel of such an op is of a style that is not foreseen here.
    """
    for kernel in kernels:
        positions = HOST_INPUTS.get(kernel.op)
        if positions is None:
            yield kernel
        elif kernel.style in ("plain", "stateful"):
            factory = functools.partial(_bind, kernel, positions)
            yield replace(kernel, function=factory, style="specialized")
        else:
            raise PluginError(f"the kernel at {kernel.where} is {kernel.style}, not plain")


def _bind(kernel: Kernel, positions: tuple[int, ...], node: NodeView) -> Callable[..., Any]:
    """Return the call for one node."""
    first = node.device.xp if kernel.style == "plain" else node.context
    function = functools.partial(kernel.function, first, **node.op.attrs)
    known = {i: node.op.inputs[i].spec.value for i in positions}
    to_host = node.device.to_host

    def call(*values: Any) -> Any:
        given = list(values)
        for i in positions:
            constant = known[i]
            host = constant if constant is not None else np.asarray(to_host(given[i]))
            # A scalar, unlike an array of no dimensions, may meet arrays of the device.
            given[i] = host[()]
        return function(*given)

    return call
