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
    from headrace.runtime.binding import NodeView

# For each op the positions of such inputs.
HOST_INPUTS: dict[str, tuple[int, ...]] = {
    "AvgPoolGrad": (0,),
    "BroadcastShape": (0, 1),
    "BroadcastTo": (1,),
    "CTCBeamSearchDecoder": (0, 1),
    "CTCGreedyDecoder": (0, 1),
    "CTCLabels": (0, 1, 2, 3, 4),
    "CTCLoss": (1, 2, 3),
    "CTCLossCurvature": (2, 3, 4),
    "ConfusionCells": (2,),
    "Conv2DBackpropFilter": (1,),
    "Conv2DBackpropInput": (0,),
    "Conv3DBackpropFilter": (1,),
    "Conv3DBackpropInput": (0,),
    "EditDistance": (0, 1, 2, 3, 4, 5),
    "ExtractPatchesGrad": (0,),
    "Fill": (0,),
    "HistogramFixedWidth": (1, 2),
    "HistogramFixedWidthBins": (1, 2),
    "InTopK": (2,),
    "LinSpace": (2,),
    "MirrorPad": (1,),
    "MirrorPadGrad": (1,),
    "OneHot": (3,),
    "Pad": (1,),
    "Multinomial": (1,),
    "RandomGamma": (0,),
    "RandomPermutation": (0,),
    "RandomPoisson": (0,),
    "RandomStandardNormal": (0,),
    "StatelessMultinomial": (1, 2),
    "StatelessRandomNormal": (0, 1),
    "StatelessRandomUniform": (0, 1),
    "StatelessRandomUniformInt": (0, 1, 2, 3),
    "StatelessTruncatedNormal": (0, 1),
    "RandomUniform": (0,),
    "RandomUniformInt": (0, 1, 2),
    "Range": (0, 1, 2),
    "ReductionOrder": (0, 1),
    "Reshape": (1,),
    "Resize": (1,),
    "ResizeGrad": (1,),
    "Reverse": (1,),
    "Roll": (1, 2),
    "ScatterNd": (2,),
    "Slice": (1, 2),
    "SparseFillEmptyRows": (1,),
    "SparseGroup": (1,),
    "SparseOrder": (1,),
    "SparseReshape": (1, 2),
    "SparseSlice": (1, 2, 3),
    "SparseTensorDenseMatMul": (2,),
    "SparseToDense": (1,),
    "SparseUnion": (1, 3),
    "SplitBy": (1,),
    "StridedSlice": (1, 2, 3),
    "StridedSliceAssign": (1, 2, 3),
    "StridedSliceGrad": (0, 1, 2, 3),
    "SumToShape": (1,),
    "Tile": (1,),
    "TileGrad": (1, 2),
    "TopK": (1,),
    "TransposeBy": (1,),
    "TruncatedNormal": (0,),
    "UnravelIndex": (1,),
    "UnsortedSegmentMax": (2,),
    "UnsortedSegmentMin": (2,),
    "UnsortedSegmentProd": (2,),
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
