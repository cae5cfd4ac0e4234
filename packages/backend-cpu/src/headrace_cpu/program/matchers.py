"""The table of implementations: who may compute which operations, in which order, instead of whom.

Fused kernels come after all of them and take what is left (``fusion.group``); what they leave is
computed by the plain kernels, operation by operation.

Most programs have products, and what multiplies comes with the table. Of all else it states the
types, and a module is imported when a region has an operation for it: no first step waits for what
other programs need.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from headrace_cpu.matmul import match as matmul
from headrace_cpu.matmul import match_short as short
from headrace_cpu.matmul import match_thin as thin
from headrace_cpu.onednn.match_matmul import make_matmul, make_sum, wants_matmul, wants_sum
from headrace_cpu.program.matching import Matcher, Need


def _later(target: str) -> Callable[..., Any]:
    """Return what calls a function of a module of the package, and imports that when called."""
    module, _, name = target.partition(":")

    @functools.cache
    def found() -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(import_module(f"headrace_cpu.{module}"), name)
        return made

    return lambda *given: found()(*given)


# Types that several want.
_CONVOLUTIONS = ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")
_MATRICES = (
    *("Cholesky", "MatrixDeterminant", "MatrixInverse", "MatrixSolve"),
    "MatrixTriangularSolve",
)
_FOLDS = tuple(f"UnsortedSegment{fold}" for fold in ("Sum", "Prod", "Max", "Min"))

MATCHERS = (
    # Shapes for which there are kernels of our own, before oneDNN, which would take some of them.
    Matcher(
        name="uneven update",
        priority=100,
        types=matmul.UPDATES,
        wants=matmul.wants_update,
        make=matmul.make_uneven_update,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="thin matmul",
        priority=95,
        types=matmul.MATMULS,
        wants=thin.wants,
        make=thin.make,
        needs=(Need.THREADS, Need.VECTORS),
    ),
    Matcher(
        name="uneven matmul",
        priority=90,
        types=matmul.MATMULS,
        wants=matmul.wants_matmul,
        make=matmul.make_uneven_matmul,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="winograd",
        priority=80,
        types=_CONVOLUTIONS,
        wants=_later("winograd.match:wants"),
        make=_later("winograd.match:make"),
        needs=(Need.THREADS, Need.VECTORS),
        fallback=("onednn convolution", "windows"),
    ),
    Matcher(
        name="short matmul",
        priority=70,
        types=matmul.MATMULS,
        wants=short.wants,
        make=short.make,
        needs=(Need.THREADS, Need.VECTORS),
        fallback=("onednn matmul", "blas matmul"),
    ),
    Matcher(
        name="onednn convolution",
        priority=60,
        types=(*_CONVOLUTIONS, "Conv3D", "Conv3DBackpropFilter", "Conv3DBackpropInput"),
        wants=_later("onednn.match_convolution:wants_convolution"),
        make=_later("onednn.match_convolution:make_convolution"),
        needs=(Need.ONEDNN,),
    ),
    Matcher(
        name="onednn sum",
        priority=50,
        types=matmul.MATMULS,
        wants=wants_sum,
        make=make_sum,
        needs=(Need.ONEDNN,),
    ),
    Matcher(
        name="onednn matmul",
        priority=40,
        types=matmul.MATMULS,
        wants=wants_matmul,
        make=make_matmul,
        needs=(Need.ONEDNN,),
    ),
    Matcher(
        name="small matrices",
        priority=36,
        types=_MATRICES,
        wants=_later("native_loops.small_matrices:wants"),
        make=_later("native_loops.small_matrices:make"),
    ),
    Matcher(
        name="lapack",
        priority=35,
        types=(*_MATRICES, "LogMatrixDeterminant", "Qr", "SelfAdjointEig", "Svd"),
        wants=_later("lapack.match:wants"),
        make=_later("lapack.match:make"),
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="products",
        priority=34,
        types=matmul.MATMULS,
        wants=matmul.wants_products,
        make=_later("lapack.match:make_products"),
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="picked fold",
        priority=33,
        types=_FOLDS,
        wants=_later("native_loops.gather_reduce:wants"),
        make=_later("native_loops.gather_reduce:make"),
    ),
    Matcher(
        name="windows",
        priority=30,
        types=(*_CONVOLUTIONS, "AvgPool", "AvgPoolGrad", "MaxPool", "MaxPoolGrad"),
        wants=_later("windows.match:wants"),
        make=_later("windows.match:make"),
    ),
    Matcher(
        name="blas update",
        priority=20,
        types=matmul.UPDATES,
        wants=matmul.wants_update,
        make=matmul.make_update,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="blas matmul",
        priority=10,
        types=matmul.MATMULS,
        wants=matmul.wants_matmul,
        make=matmul.make_matmul,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="native loop",
        priority=5,
        types=(
            *_FOLDS,
            *("ArgMax", "ArgMin", "Cumprod", "Cumsum", "Gather", "GatherNd", "ScatterNd"),
            *(f"Scatter{change}Variable" for change in ("Add", "Sub", "Min", "Max", "Update")),
            *("SparseTensorDenseMatMul", "Unique"),
        ),
        wants=_later("native_loops.instruction:wants"),
        make=_later("native_loops.plans:make"),
    ),
    # After all whose instructions read parts.
    Matcher(
        name="part",
        priority=4,
        types=("Reverse", "Slice", "StridedSlice"),
        wants=_later("native_loops.strided_copy:wants"),
        make=_later("native_loops.strided_copy:make"),
    ),
)
