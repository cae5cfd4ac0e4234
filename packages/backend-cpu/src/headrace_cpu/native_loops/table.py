"""Which operations have native loops: kernels that are asked before the plain ones."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace.extend.kernels import NodeView

KERNELS = KernelTable()
# Those of operations whose plain kernels are in ``kernels.rare``.
RARE_KERNELS = KernelTable()
_RARE = ("string_hash", "hash_index", "string_to_number")

# By module of native loops: the operations that it has them for, with the family of their plain
# kernels.
_FAMILIES: dict[str, dict[str, tuple[str, ...]]] = {
    "scans": {"cumulative": ("Cumsum", "Cumprod", "LinearRecurrence")},
    "sorting": {"sort": ("Sort", "TopK", "SearchSorted", "InTopK")},
    "segment_reductions": {
        "segment": (
            "UnsortedSegmentSum",
            "UnsortedSegmentProd",
            "UnsortedSegmentMax",
            "UnsortedSegmentMin",
        ),
        "sparse": ("SparseTensorDenseMatMul",),
        "state": (
            "ScatterAddVariable",
            "ScatterSubVariable",
            "ScatterMinVariable",
            "ScatterMaxVariable",
            "ScatterUpdateVariable",
        ),
    },
    "gather": {"gather": ("Gather", "GatherNd"), "rearrange": ("ReverseSequence",)},
    "argmax": {"reduce": ("ArgMax", "ArgMin")},
    "transpose": {"array": ("Transpose",)},
    "resize": {"image": ("Resize", "ResizeGrad")},
    "unique": {"unique": ("Unique",)},
    "histogram": {
        "histogram": ("HistogramFixedWidth", "BincountSize", "Bincount", "ConfusionCells"),
        "segment": ("SegmentCount",),
    },
    "scatter": {
        "gather": ("ScatterNd", "TensorScatter", "DynamicPartition"),
        "sparse": ("SparseToDense",),
    },
    "nonzero": {"gather": ("Where",)},
    "sparse_groups": {"sparse": ("SparseGroup",)},
    "sparse_order": {"sparse": ("SparseOrder",)},
    "hash_index": {"lookup": ("LookupTableFind",)},
    "string_hash": {"text_hash": ("StringToHashBucketFast", "StringToHashBucket")},
    "string_to_number": {"text_convert": ("StringToNumber",)},
}


def _factory(op: str, family: str, module: str) -> Callable[[NodeView], Callable[..., Any] | None]:
    def make(node: NodeView) -> Callable[..., Any] | None:
        # The plain executor is what others are compared with.
        if not node.options.compiled:
            return None
        jobs = importlib.import_module(f"headrace_cpu.native_loops.{module}").JOBS
        job = jobs[op](node.op)
        if job is None:
            return None
        # lazy: nodes are made where there are steps, tables where there are programs
        from headrace_cpu.native_loops.node import NativeLoopNode
        from headrace_cpu.program.settings import CompileSettings

        settings = CompileSettings.of(node.options)
        background = node.context.state.background
        return NativeLoopNode(op, job, _plain(node, family), settings, background)

    return make


def _plain(node: NodeView, family: str) -> Callable[..., Any]:
    """Return the plain kernel of a node."""
    table = importlib.import_module(f"headrace_cpu.kernels.{family}").KERNELS
    kernel = next(k for k in table if k.op == node.op.type and k.style in ("plain", "stateful"))
    first = np if kernel.style == "plain" else node.context
    return functools.partial(kernel.function, first, **node.op.attrs)


for _module, _families in _FAMILIES.items():
    for _family, _ops in _families.items():
        for _op in _ops:
            _table = RARE_KERNELS if _module in _RARE else KERNELS
            _table.specialized(_op)(_factory(_op, _family, _module))
