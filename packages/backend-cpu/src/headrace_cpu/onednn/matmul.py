"""Matrix multiplications: which of oneDNN's two ways, and their instructions.

The primitive adds a bias and applies an activation on the way. ``sgemm`` adds to what is there, and
is the faster one for ``transpose(a) @ b``, of which the gradients of weights are made, and for
vectors: at [9216, 16] @ [16, 4096] it took 13 ms where the primitive took 22, at [1, 2048] @ [2048,
2048] 0.5 ms and 1.5. What both do worse than BLAS is left to BLAS. The limits are measured on two
cores with AVX-512; where times are close, they matter little.

BLAS is measured in parts on the pool that oneDNN uses: with threads of its own it is no faster, and
takes the cores from what follows. Primitives that want a matrix packed would be a fifth quicker,
but packing it takes as long as using it two to five times, in every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import c_char, c_float, c_int64, c_void_p
from functools import partial
from typing import Any

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.onednn.library import BIAS, DST, SRC, WEIGHTS, Library
from headrace_cpu.onednn.memory import Descriptor, Layout, contiguous
from headrace_cpu.onednn.primitive import PostOp, Primitive, prepare
from headrace_cpu.program.instruction import Addresses, Bound, Instruction

# Below so many operations a second thread is not worth being woken.
_SERIAL_FLOPS = 2_000_000
# Below so many, what a call costs decides, and BLAS has the shortest.
_SMALL_FLOPS = 250_000
_SMALL_GRADIENT_FLOPS = 1_000_000
# With so few rows a matmul is one of a matrix and a vector, or as good as that.
_VECTORS, _FEW_ROWS, _FEW_ROWS_FLOPS = 2, 8, 1_000_000
# Results that fall out of the caches: the primitive took a quarter longer than BLAS for [400, 200]
# @ [200, 10000] and a fifth for [4096, 1024] @ [1024, 4096], and was quicker for [512, 512] @
# [512, 8192]. With the right matrix transposed it was quicker always.
_LARGE_RESULT, _LARGE_UNEVEN_RESULT, _EVEN = 8_000_000, 3_000_000, 64
# Few columns: our own kernels keep rows of the result in registers.
_NARROW = 32


@dataclass(frozen=True, slots=True)
class Matmul:
    """A matrix multiplication, of the shapes [*batch, rows, inner] and [*batch, inner, columns].

    Attributes:
        left: How the first lies, its transposition undone.
        right: How the second lies, its transposition undone.
        out: How the result lies.
        transpose_left: Whether the first lies transposed.
        transpose_right: Whether the second lies transposed.
    """

    left: Layout
    right: Layout
    out: Layout
    transpose_left: bool
    transpose_right: bool

    @property
    def rows(self) -> int:
        """Rows of each result."""
        return self.out.sizes[-2]

    @property
    def inner(self) -> int:
        """What is summed over."""
        return self.left.sizes[-1]

    @property
    def columns(self) -> int:
        """Columns of each result."""
        return self.out.sizes[-1]

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * math.prod(self.out.sizes) * self.inner

    @property
    def flat(self) -> bool:
        """Whether it is one matmul of two matrices."""
        return len(self.out.sizes) == 2

    @property
    def bias(self) -> Layout:
        """How a bias for each column lies."""
        sizes = (*(1,) * (len(self.out.sizes) - 1), self.columns)
        return Layout(sizes, contiguous(sizes))

    def threads(self, most: int) -> int:
        """Return how many threads it is worth."""
        return most if self.flops >= _SERIAL_FLOPS else 1


def matmul(
    left: Sequence[int],
    right: Sequence[int],
    out: Sequence[int],
    transpose_left: bool,
    transpose_right: bool,
) -> Matmul:
    """Return the matrix multiplication of the shapes of ``MatMul``."""
    if len(right) == 2 and len(left) > 2 and not transpose_left:
        # The same matrix for all rows of the batch.
        left = (math.prod(left[:-1]), left[-1])
        out = (math.prod(out[:-1]), out[-1])
    rank = len(out)
    return Matmul(
        _matrices(left, rank, transpose_left),
        _matrices(right, rank, transpose_right),
        _matrices(out, rank, transpose=False),
        transpose_left,
        transpose_right,
    )


def _matrices(shape: Sequence[int], rank: int, transpose: bool) -> Layout:
    sizes = (*(1,) * (rank - len(shape)), *shape)
    strides = contiguous(sizes)
    if not transpose:
        return Layout(sizes, strides)
    return Layout((*sizes[:-2], sizes[-1], sizes[-2]), (*strides[:-2], strides[-1], strides[-2]))


def better_as_primitive(shape: Matmul) -> bool:
    """Whether the primitive is quicker than BLAS."""
    if shape.flops < _SMALL_FLOPS:
        return False
    if not shape.flat:
        return True
    if shape.transpose_left or _narrow(shape) or shape.rows <= _VECTORS or _spills(shape):
        return False
    few = shape.transpose_right and shape.rows <= _FEW_ROWS
    return not few or shape.flops >= _FEW_ROWS_FLOPS


def better_as_sgemm(shape: Matmul) -> bool:
    """Whether ``sgemm`` is quicker than BLAS and the primitive."""
    if not shape.flat or _narrow(shape):
        return False
    if not shape.transpose_left and shape.rows > _VECTORS:
        return False
    return shape.flops >= _SMALL_GRADIENT_FLOPS


def _spills(shape: Matmul) -> bool:
    """Whether the result is too large for the way in which the primitive writes it."""
    most = _LARGE_UNEVEN_RESULT if shape.columns % _EVEN else _LARGE_RESULT
    return not shape.transpose_right and shape.rows * shape.columns >= most


def _narrow(shape: Matmul) -> bool:
    return shape.columns <= _NARROW and not shape.transpose_right


def multiplying(
    library: Library,
    shape: Matmul,
    threads: int,
    bias: bool = False,
    post_ops: tuple[PostOp, ...] = (),
) -> Primitive | None:
    """Return the primitive of a matmul, with a bias for each column."""

    def make(attributes: Any) -> Any:
        layouts = [shape.left, shape.right, shape.bias if bias else None, shape.out]
        held = [None if at is None else Descriptor.of(library, at) for at in layouts]
        return library.create(
            *("dnnl_matmul_primitive_desc_create", library.engine),
            *(None if each is None else each.handle for each in held),
            attributes,
        )

    numbers = (SRC, WEIGHTS, DST, BIAS) if bias else (SRC, WEIGHTS, DST)
    return prepare(library, threads, ("matmul", shape, bias), make, numbers, post_ops)


@dataclass(frozen=True, slots=True)
class Term:
    """A matmul of two tensors, one of those that are added up."""

    left: Tensor
    right: Tensor
    shape: Matmul


class SumOfMatmuls(Instruction):
    """Adds up matrix multiplications, in a new tensor or in a variable.

    Args:
        library: oneDNN.
        threads: How many threads compute it.
        ops: What it computes.
        terms: The matmuls.
        target: The tensor that is written, or the handle of the variable that is changed.
        in_place: Whether it is a variable's.
        scale: By what the matmuls are multiplied.
        factor: A tensor of one number, by which they are multiplied besides.
    """

    name = "add_matmuls"

    def __init__(
        self,
        library: Library,
        threads: int,
        ops: Sequence[Operation],
        terms: Sequence[Term],
        target: Tensor,
        *,
        in_place: bool = False,
        scale: float = 1.0,
        factor: Tensor | None = None,
    ) -> None:
        self.ops = tuple(ops)
        factors = [] if factor is None else [factor]
        operands = [t for term in terms for t in (term.left, term.right)]
        self.reads = tuple(dict.fromkeys([*operands, *factors]))
        self.writes = () if in_place else (target,)
        self.updates = (target,) if in_place else ()
        self._library = library
        self._terms = tuple(terms)
        self._target = target
        self._in_place = in_place
        self._scale, self._factor = scale, factor
        self._threads = max(term.shape.threads(threads) for term in terms)

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return sum(term.shape.flops for term in self._terms)

    def source(self) -> str:
        """Return what oneDNN computes it with."""
        return f"oneDNN sgemm, {len(self._terms)} times"

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        steps = [
            _Sgemm(term.shape, self._scale, 1.0 if self._in_place or place else 0.0)
            for place, term in enumerate(self._terms)
        ]
        places: dict[Tensor, list[c_void_p]] = {self._target: [step.out for step in steps]}
        for term, step in zip(self._terms, steps, strict=True):
            places.setdefault(term.left, []).append(step.left)
            places.setdefault(term.right, []).append(step.right)
        factor = None
        if self._factor is not None:
            factor = c_void_p()
            places.setdefault(self._factor, []).append(factor)
        point: dict[Tensor, Callable[[int], object]] = {}
        for tensor, holders in places.items():
            setter = _setter(holders)
            address = None if self._in_place and tensor is self._target else at.of(tensor)
            if address is None:
                point[tensor] = setter
            else:
                setter(address)
        run = _Run(self._library, self._threads, steps, self._scale, factor)
        return Bound(run, point)


def _setter(holders: Sequence[c_void_p]) -> Callable[[int], object]:
    def point(address: int) -> None:
        for holder in holders:
            holder.value = address

    return point


class _Sgemm:
    """The arguments of one call of ``sgemm``, which may change from step to step."""

    __slots__ = ("arguments", "left", "out", "right", "scale")

    def __init__(self, shape: Matmul, scale: float, keep: float) -> None:
        self.left, self.right, self.out = c_void_p(), c_void_p(), c_void_p()
        self.scale = c_float(scale)
        rows, columns, inner = shape.rows, shape.columns, shape.inner
        self.arguments = (
            c_char(b"T" if shape.transpose_left else b"N"),
            c_char(b"T" if shape.transpose_right else b"N"),
            *(c_int64(rows), c_int64(columns), c_int64(inner)),
            self.scale,
            *(self.left, c_int64(rows if shape.transpose_left else inner)),
            *(self.right, c_int64(inner if shape.transpose_right else columns)),
            c_float(keep),
            *(self.out, c_int64(columns)),
        )


class _Run:
    """Calls ``sgemm`` once for each matmul."""

    __slots__ = ("_calls", "_factor", "_library", "_scale", "_steps", "_threads")

    def __init__(
        self,
        library: Library,
        threads: int,
        steps: Sequence[_Sgemm],
        scale: float,
        factor: c_void_p | None,
    ) -> None:
        self._library, self._threads = library, threads
        self._calls = [partial(library.sgemm, *step.arguments) for step in steps]
        self._steps, self._scale, self._factor = tuple(steps), scale, factor

    def __call__(self) -> None:
        if self._factor is not None:
            scale = self._scale * c_float.from_address(self._factor.value or 0).value
            for step in self._steps:
                step.scale.value = scale
        # It divides its work when it is called: fewer threads are as well.
        threads = min(self._threads, self._library.get_threads())
        self._library.run(threads, self._calls)
