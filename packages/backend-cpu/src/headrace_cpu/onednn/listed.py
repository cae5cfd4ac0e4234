"""Sums of products of lists' items, by oneDNN's ``sgemm``.

It took half the time of NumPy's BLAS for the products of which gradients of weights are made, and
adds each to the sum so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_char, c_float, c_int64, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.extend import KernelTable
from headrace.extend.kernels import ListValue, NodeView
from headrace_cpu.kernels.numeric import Array
from headrace_cpu.kernels.tensor_list import factors, sum_products
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import Share

if TYPE_CHECKING:
    from headrace_cpu.onednn.library import Library

KERNELS = KernelTable()


@KERNELS.specialized("TensorListSumProducts")
def sum_products_on_sgemm(node: NodeView) -> Callable[..., Any] | None:
    """Add up the products of items."""
    # The plain executor is what others are compared with.
    if not node.options.compiled or node.op.outputs[0].dtype.name != "float32":
        return None
    # lazy: few programs have such sums
    from headrace_cpu.onednn.library import load
    from headrace_cpu.program.settings import CompileSettings

    settings = CompileSettings.of(node.options)
    library = load() if settings.onednn else None
    shape = node.op.outputs[0].spec.shape.known
    if library is None or not all(shape):
        return None
    return _SumProducts(library, node.context, shape, settings.share())


class _SumProducts:
    """Computes a node. Outside of a compiled program it takes a share of the threads."""

    __slots__ = ("_context", "_library", "_shape", "_share")

    def __init__(
        self, library: Library, context: Any, shape: tuple[int, ...], share: Share
    ) -> None:
        self._library = library
        self._context = context
        self._shape = shape
        self._share = share

    def __call__(self, left: ListValue, right: ListValue) -> Array:
        threads = self._share.enter()
        try:
            return self._sum(left, right, threads)
        finally:
            self._share.leave()

    def within(self, wanted: Sequence[bool], *, shares: bool) -> Callable[..., Any]:
        """Return what computes the sum within a program, in place of this."""
        del wanted
        return self._inside if shares else self

    def _inside(self, left: ListValue, right: ListValue) -> Array:
        return self._sum(left, right, Share.allowed())

    def _sum(self, left: ListValue, right: ListValue, threads: int) -> Array:
        total = None
        for one, other in factors(self._context, left, right):
            a, b = np.ascontiguousarray(one), np.ascontiguousarray(other)
            keep = 0.0 if total is None else 1.0
            if total is None:
                total = np.empty(self._shape, np.float32)
            if len(a):
                self._library.run(
                    threads, [partial(self._library.sgemm, *_given(a, b, total, keep))]
                )
            elif not keep:
                total.fill(0)
        return sum_products(self._context, left, right) if total is None else total


def _given(a: Array, b: Array, total: Array, keep: float) -> tuple[Any, ...]:
    """Return the arguments that let ``sgemm`` make ``total`` of ``a.T @ b + keep * total``."""
    rows, columns = total.shape
    return (
        *(c_char(b"T"), c_char(b"N"), c_int64(rows), c_int64(columns), c_int64(len(a))),
        *(c_float(1.0), c_void_p(address(a)), c_int64(rows)),
        *(c_void_p(address(b)), c_int64(columns)),
        *(c_float(keep), c_void_p(address(total)), c_int64(columns)),
    )
