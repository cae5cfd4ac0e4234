"""Instructions of matmuls: into a buffer of their own, or into a variable in place."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.matmul import double, narrow, panels, shared, streamed
from headrace_cpu.matmul.blas import Blas, Matmul, Operands
from headrace_cpu.matmul.double import Double
from headrace_cpu.matmul.panels import Panels
from headrace_cpu.native.assembly import COUNTER_WORDS, counter_in
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction, NativeCall

if TYPE_CHECKING:
    from headrace_cpu.matmul.deep import Deep
    from headrace_cpu.matmul.outer import Outer


def pays_deep(matmul: Matmul, threads: int) -> bool:
    """Whether the kernel for small results of many rows is quicker than others."""
    if not matmul.deep:
        return False
    from headrace_cpu.matmul import deep  # lazy: few products are deep

    return deep.pays(matmul, threads)


def pays_outer(matmul: Matmul) -> bool:
    """Whether the kernel for large results of few rows is quicker than others."""
    if not matmul.wide:
        return False
    from headrace_cpu.matmul import outer  # lazy: few results are that large

    return outer.pays(matmul)


@dataclass(frozen=True, slots=True)
class Rate:
    """What a matmul is multiplied by before it is added to a variable.

    Attributes:
        factor: A number that is known.
        scalar: A tensor of one element that multiplies it, too.
    """

    factor: float = 1.0
    scalar: Tensor | None = None


# Words of a block: addresses of a, b and c, of alpha, of scratch memory and of a counter, which
# kernels take; then the address of the rate's scalar, alpha and beta themselves, and the counter.
_ALPHA_PLACE, _SCRATCH, _COUNTER, _SCALAR, _ALPHA, _BETA = range(3, 9)


class _Way(Enum):
    """How a matmul is computed."""

    NARROW = "a kernel for few columns"
    STREAMED = "a kernel for few rows and a large matrix"
    PANELS = "a kernel for many columns"
    DEEP = "a kernel for a small result of much"
    OUTER = "a kernel for a large result of few rows"
    DOUBLE = "a kernel for float64"
    SHARED = "BLAS, by several threads of the pool"
    BLAS = "BLAS"


class MatmulInstruction(Instruction):
    """Computes ``c = a @ b``, or adds it times a rate to a variable's buffer.

    In the latter form the matmul itself, such as the gradient of a matrix of weights, is never in
    memory: the variable is read and written once, and that is all.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        matmul: Matmul,
        operands: tuple[Tensor, Tensor],
        target: Tensor,
        *,
        blas: Blas,
        threads: int,
        rate: Rate | None = None,
        handed_out: bool = False,
        repeated: bool = False,
    ) -> None:
        """Describe it.

        Args:
            ops: What it computes.
            matmul: The sizes.
            operands: The tensors ``a`` and ``b``.
            target: The result; with a rate, the handle of the variable that is added to.
            blas: Computes matmuls.
            threads: How many threads it may use.
            rate: What the matmul is multiplied by before it is added; None to store it.
            handed_out: Whether the result goes to the caller, and may begin anywhere in memory.
            repeated: Whether a loop may run it at one go, where BLAS is called without Python.
        """
        self.ops = tuple(ops)
        self.matmul = matmul
        self.rate = rate
        scalar = () if rate is None or rate.scalar is None else (rate.scalar,)
        self.reads = tuple(dict.fromkeys((*operands, *scalar)))
        self.writes = (target,) if rate is None else ()
        self.updates = () if rate is None else (target,)
        self.name = "matmul" if rate is None else "add_matmul"
        self._operands = operands
        self._target = target
        self._blas = blas
        self._threads = threads
        self._kernel: int | None = None
        # What calls BLAS.
        self._caller: int | None = None
        self._repeated = repeated
        self._way = self._chosen(handed_out)
        if self._way is _Way.PANELS:
            self.scratch = self._panels.scratch(threads)
        elif self._way is _Way.DEEP:
            self.scratch = self._deep.scratch
        elif self._way is _Way.OUTER:
            self.scratch = self._outer.scratch(threads)
        elif self._way is _Way.DOUBLE:
            self.scratch = self._double.scratch(self._double.threads(threads))

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self.matmul.flops

    def source(self) -> str:
        """Return what computes it."""
        if self._way is not _Way.SHARED and self._way is not _Way.BLAS:
            return self._source().text
        several = ", in parts on several threads" if self._way is _Way.SHARED else ""
        return f"cblas_gemm of {self._blas.path}{several}"

    def _chosen(self, handed_out: bool) -> _Way:
        matmul, threads = self.matmul, self._threads
        if narrow.pays(matmul):
            return _Way.NARROW
        if self.rate is None and streamed.pays(matmul, threads):
            return _Way.STREAMED
        if self.rate is None and panels.pays(matmul) and not handed_out:
            return _Way.PANELS
        if pays_outer(matmul):
            return _Way.OUTER
        if pays_deep(matmul, threads):
            return _Way.DEEP
        if double.pays(matmul):
            return _Way.DOUBLE
        return _Way.SHARED if shared.pays(matmul, self._blas, threads) else _Way.BLAS

    @property
    def _blas_threads(self) -> int | None:
        """On how many threads BLAS computes all of it: its own are kept asleep, where it can be."""
        if self._way is not _Way.BLAS:
            return self._threads
        return 1 if self.matmul.wakes_threads else None

    @property
    def _panels(self) -> Panels:
        return Panels(self.matmul)

    @property
    def _deep(self) -> Deep:
        from headrace_cpu.matmul.deep import Deep, worth  # lazy: few products are deep

        return Deep(self.matmul, self.rate is not None, worth(self.matmul, self._threads))

    @property
    def _outer(self) -> Outer:
        from headrace_cpu.matmul.outer import Outer  # lazy: few results are that large

        return Outer(self.matmul, self.rate is not None)

    @property
    def _double(self) -> Double:
        return Double(self.matmul, self.rate is not None)

    def _source(self) -> KernelSource:
        if self._way is _Way.PANELS:
            return self._panels.source()
        if self._way is _Way.DEEP:
            return self._deep.source()
        if self._way is _Way.OUTER:
            return self._outer.source()
        if self._way is _Way.DOUBLE:
            return self._double.source()
        if self._way is _Way.SHARED:
            return shared.source(self.matmul.dtype)
        if self._way is _Way.STREAMED:
            return streamed.source(self.matmul)
        parallel = narrow.threads(self.matmul, self._threads) > 1
        return narrow.source(self.matmul, accumulate=self.rate is not None, parallel=parallel)

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernel, or the one that shares out calls of BLAS.

        Until it is compiled BLAS computes the matmul, on threads of its own.
        """
        if self._way is _Way.BLAS:
            wanted = self._repeated and self._caller is None
            return [shared.alone_source(self.matmul.dtype)] if wanted else []
        return [self._source()] if self._kernel is None else []

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernel."""
        for place in addresses:
            if self._way is _Way.BLAS:
                self._caller = place
            else:
                self._kernel = place

    def bind(self, at: Addresses) -> Bound:
        """Return what computes it on buffers at ``at``."""
        block = _MatmulBlock(self.matmul, self.rate, at)
        if self.scratch:
            block.bind_scratch(_SCRATCH)
        # What the caller gets begins anywhere.
        anywhere = self.rate is None and at.of(self._target) is None
        for word, tensor in enumerate((*self._operands, self._target)):
            block.bind(tensor, word)
        if self.rate is not None and self.rate.scalar is not None:
            block.bind(self.rate.scalar, _SCALAR)
        tensors = (*self.reads, *self.writes, *self.updates)
        return bound(self._call(block, anywhere), [block], tensors, at)

    def _call(self, block: _MatmulBlock, anywhere: bool) -> Callable[[], object]:
        streams = self._way is _Way.PANELS and self._panels.streams
        if self._kernel is None or (anywhere and streams):
            call = self._blas.bind(self.matmul, block.operands, self._blas_threads)
            if self._caller is not None:
                words = shared.words_of(self._blas, self.matmul, block.operands, 1)
                held = None if self._blas_threads is None else self._blas
                native = NativeCall(self._caller, (address(words),), held=held)
                call.__dict__.update(words=words, native=native)
        elif self._way is _Way.SHARED:
            call = shared.bind(
                *(self._kernel, self._blas, self.matmul, block.operands, self._threads)
            )
        else:
            threads = self._threads
            if self._way is _Way.NARROW:
                threads = 1 if narrow.threads(self.matmul, threads) == 1 else threads
            elif self._way is _Way.DEEP:
                threads = self._deep.parts
            elif self._way is _Way.DOUBLE:
                threads = self._double.threads(threads)
            call = block.launch(self._kernel, threads)
        rated = self.rate is not None and self.rate.scalar is not None
        return block.kept(block.rated(call) if rated else call)


class _MatmulBlock(Block):
    """The block of a bound matmul, of which BLAS's arguments are views.

    Attributes:
        operands: The arguments for BLAS.
    """

    def __init__(self, matmul: Matmul, rate: Rate | None, at: Addresses) -> None:
        super().__init__(_BETA + 1 + COUNTER_WORDS, at)
        kind = matmul.scalar
        place = [self.address + 8 * i for i in range(_BETA + 1)]
        alpha, beta = kind.from_address(place[_ALPHA]), kind.from_address(place[_BETA])
        self._factor = 1.0 if rate is None else rate.factor
        alpha.value = self._factor
        beta.value = 0.0 if rate is None else 1.0
        self.words[_ALPHA_PLACE] = place[_ALPHA]
        self.words[_COUNTER] = counter_in(self.address, len(self.words))
        a, b, c = (ctypes.c_void_p.from_address(p) for p in place[:3])
        self.operands = Operands(a, b, c, alpha, beta)
        self._scalar = ctypes.c_void_p.from_address(place[_SCALAR])

    def rated(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call that reads the scalar of the rate first."""
        alpha, factor, scalar = self.operands.alpha, self._factor, self._scalar
        read = type(alpha).from_address

        def run() -> None:
            alpha.value = factor * read(scalar.value or 0).value
            call()

        return run
