"""Instructions of products: into a buffer of their own, or into a variable in place."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.native.assembly import COUNTER_WORDS, counter_in
from headrace_cpu.native.build import KernelSource, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch
from headrace_cpu.products import narrow, panels, shared, streamed
from headrace_cpu.products.blas import Blas, Operands, Product
from headrace_cpu.products.panels import Panels
from headrace_cpu.program.instruction import Addresses, Bound, Instruction


@dataclass(frozen=True, slots=True)
class Rate:
    """What a product is multiplied by before it is added to a variable.

    Attributes:
        factor: A number that is known.
        scalar: A tensor of one element that multiplies it, too.
    """

    factor: float = 1.0
    scalar: Tensor | None = None


# Words of a block, before what they are the addresses of.
_WORDS = 6


class _Way(Enum):
    """How a product is computed."""

    NARROW = "a kernel for few columns"
    STREAMED = "a kernel for few rows and a large matrix"
    PANELS = "a kernel for many columns"
    SHARED = "BLAS, by several threads of the pool"
    BLAS = "BLAS"


class ProductInstruction(Instruction):
    """Computes ``c = a @ b``, or adds it times a rate to a variable's buffer.

    In the latter form the product itself, such as the gradient of a matrix of weights, is never in
    memory: the variable is read and written once, and that is all.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        product: Product,
        operands: tuple[Tensor, Tensor],
        target: Tensor,
        *,
        blas: Blas,
        threads: int,
        rate: Rate | None = None,
        handed_out: bool = False,
    ) -> None:
        """Describe it.

        Args:
            ops: What it computes.
            product: The sizes.
            operands: The tensors ``a`` and ``b``.
            target: The result; with a rate, the handle of the variable that is added to.
            blas: Computes products.
            threads: How many threads it may use.
            rate: What the product is multiplied by before it is added; None to store it.
            handed_out: Whether the result goes to the caller, and may begin anywhere in memory.
        """
        self.ops = tuple(ops)
        self.product = product
        self.rate = rate
        scalar = () if rate is None or rate.scalar is None else (rate.scalar,)
        self.reads = tuple(dict.fromkeys((*operands, *scalar)))
        self.writes = (target,) if rate is None else ()
        self.updates = () if rate is None else (target,)
        self.name = "product" if rate is None else "add_product"
        self._operands = operands
        self._target = target
        self._blas = blas
        self._threads = threads
        self._kernel: int | None = None
        self._way = self._chosen(handed_out)
        if self._way is _Way.PANELS:
            self.scratch = self._panels.scratch(threads)

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self.product.flops

    def source(self) -> str:
        """Return what computes it."""
        if self._way is not _Way.SHARED and self._way is not _Way.BLAS:
            return self._source().text
        several = ", in parts on several threads" if self._way is _Way.SHARED else ""
        return f"cblas_gemm of {self._blas.path}{several}"

    def _chosen(self, handed_out: bool) -> _Way:
        product, threads = self.product, self._threads
        if narrow.pays(product, threads):
            return _Way.NARROW
        if self.rate is None and streamed.pays(product, threads):
            return _Way.STREAMED
        if self.rate is None and panels.pays(product) and not handed_out:
            return _Way.PANELS
        return _Way.SHARED if shared.pays(product, self._blas, threads) else _Way.BLAS

    @property
    def _blas_threads(self) -> int | None:
        """On how many threads BLAS computes all of it: its own are kept asleep, where it can be."""
        if self._way is not _Way.BLAS:
            return self._threads
        return 1 if self.product.wakes_threads else None

    @property
    def _panels(self) -> Panels:
        return Panels(self.product)

    def _source(self) -> KernelSource:
        if self._way is _Way.PANELS:
            return self._panels.source()
        if self._way is _Way.SHARED:
            return shared.source(self.product.dtype)
        if self._way is _Way.STREAMED:
            return streamed.source(self.product)
        parallel = narrow.threads(self.product, self._threads) > 1
        return narrow.source(self.product, accumulate=self.rate is not None, parallel=parallel)

    def prepare(self) -> None:
        """Compile the kernel, or the one that shares out calls of BLAS.

        Until then BLAS computes the product, on threads of its own.
        """
        if self._way is not _Way.BLAS and self._kernel is None:
            self._kernel = build([self._source()])[0]

    def bind(self, at: Addresses) -> Bound:
        """Return what computes it on buffers at ``at``."""
        places = _Places(self.product, self.rate)
        if self.scratch:
            places.set_scratch(at.scratch())
        # What the caller gets begins anywhere.
        anywhere = self.rate is None and at.of(self._target) is None
        point: dict[Tensor, Callable[[int], object]] = {}
        named = [(self._operands[0], 0), (self._operands[1], 1), (self._target, 2)]
        if self.rate is not None and self.rate.scalar is not None:
            named.append((self.rate.scalar, 3))
        for tensor, index in named:
            known = at.of(tensor)
            if known is not None:
                places.set(index, known)
            else:
                point[tensor] = _both(point.get(tensor), functools.partial(places.set, index))
        return Bound(self._call(places, anywhere), point)

    def _call(self, places: _Places, anywhere: bool) -> Callable[[], object]:
        streams = self._way is _Way.PANELS and self._panels.streams
        if self._kernel is None or (anywhere and streams):
            call = self._blas.bind(self.product, places.operands, self._blas_threads)
        elif self._way is _Way.SHARED:
            call = shared.bind(
                *(self._kernel, self._blas, self.product, places.operands, self._threads)
            )
        else:
            few = self._way is _Way.NARROW and narrow.threads(self.product, self._threads) == 1
            call = launch(self._kernel, places.block, 1 if few else self._threads)
        return places.kept(call) if places.plain else places.rated(call)


def _both(
    first: Callable[[int], object] | None, second: Callable[[int], object]
) -> Callable[[int], object]:
    """Return what takes an address for both; a tensor may be both operands."""
    if first is None:
        return second

    def take(place: int) -> None:
        first(place)
        second(place)

    return take


class _Places:
    """The addresses of a bound product, in one block that BLAS's arguments are views of.

    Attributes:
        block: Its address: words for a, b, c, alpha, scratch memory and a counter; then alpha and
            beta themselves, and the counter.
        operands: The arguments for BLAS.
        plain: Whether alpha is known.
    """

    def __init__(self, product: Product, rate: Rate | None) -> None:
        self._words = np.zeros(_WORDS + 2 + COUNTER_WORDS, np.int64)
        self.block = address(self._words)
        place = [self.block + 8 * i for i in range(len(self._words))]
        kind = product.scalar
        self._alpha = kind.from_address(place[_WORDS])
        beta = kind.from_address(place[_WORDS + 1])
        self._words[5] = counter_in(self.block, len(self._words))
        self._alpha.value = 1.0 if rate is None else rate.factor
        beta.value = 0.0 if rate is None else 1.0
        # Alpha's address, which kernels take.
        self._words[3] = place[_WORDS]
        a, b, c = (ctypes.c_void_p.from_address(p) for p in place[:3])
        self.operands = Operands(a, b, c, self._alpha, beta)
        self.plain = rate is None or rate.scalar is None
        self._factor = 1.0 if rate is None else rate.factor
        self._kind = kind
        self._scalar = 0

    def set(self, index: int, place: int) -> None:
        """Take the address of a, b, c (0 to 2) or of the scalar of the rate (3)."""
        if index == 3:
            self._scalar = place
        else:
            self._words[index] = place

    def set_scratch(self, place: int) -> None:
        """Take the address of the scratch memory."""
        self._words[4] = place

    def kept(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return the call itself, which keeps this block alive: ctypes' views of memory do not."""
        call.__dict__["places"] = self
        return call

    def rated(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return what reads the scalar of the rate first."""
        alpha, kind, factor = self._alpha, self._kind, self._factor

        def run() -> None:
            alpha.value = factor * kind.from_address(self._scalar).value
            call()

        return run
