"""The table of implementations: who may compute which operations, in which order, instead of whom.

Fused kernels come after all of them and take what is left (``fusion.group``); what they leave is
computed by the plain kernels, operation by operation.
"""

from __future__ import annotations

from headrace_cpu.lapack import match as lapack
from headrace_cpu.matmul import match as matmul
from headrace_cpu.matmul import match_short as short
from headrace_cpu.matmul import match_thin as thin
from headrace_cpu.onednn.match_convolution import CONVOLUTIONS, make_convolution, wants_convolution
from headrace_cpu.onednn.match_matmul import make_matmul, make_sum, wants_matmul, wants_sum
from headrace_cpu.program.matching import Matcher, Need
from headrace_cpu.sweeps import bound, matrices, parts, picked, plans
from headrace_cpu.windows import match as windows
from headrace_cpu.winograd import match as winograd

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
        types=winograd.CONVOLUTIONS,
        wants=winograd.wants,
        make=winograd.make,
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
        types=CONVOLUTIONS,
        wants=wants_convolution,
        make=make_convolution,
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
        types=frozenset(matrices.METHODS),
        wants=matrices.wants,
        make=matrices.make,
    ),
    Matcher(
        name="lapack",
        priority=35,
        types=lapack.TAKEN,
        wants=lapack.wants,
        make=lapack.make,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="products",
        priority=34,
        types=matmul.MATMULS,
        wants=lapack.wants_products,
        make=lapack.make_products,
        needs=(Need.BLAS,),
    ),
    Matcher(
        name="picked fold",
        priority=33,
        types=picked.FOLDS,
        wants=picked.wants,
        make=picked.make,
    ),
    Matcher(
        name="windows",
        priority=30,
        types=windows.WINDOWS,
        wants=windows.wants,
        make=windows.make,
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
        name="sweep",
        priority=5,
        types=frozenset(plans.PLANS),
        wants=bound.wants,
        make=plans.make,
    ),
    # After all whose instructions read parts.
    Matcher(
        name="part",
        priority=4,
        types=parts.TYPES,
        wants=parts.wants,
        make=parts.make,
    ),
)
