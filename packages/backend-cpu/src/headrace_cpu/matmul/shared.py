"""One matrix multiplication by several calls of BLAS, on the threads that all kernels share.

OpenBLAS has threads of its own, which look for work for tens of milliseconds after each matmul,
on the cores that other kernels want: on two cores, what oneDNN and fused kernels did after a
matmul took twice as long as without it. So BLAS stays on its caller's thread, and each thread of
the pool calls it for a part of the result. The parts depend on the sizes and the number of threads
alone: equal runs give equal bits, whichever thread takes which part.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

import numpy as np

from headrace_cpu.matmul.blas import Blas, Matmul, Operands
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import launch
from headrace_cpu.program.instruction import NativeCall

# Below so many operations a second thread is not worth being woken.
_SERIAL_FLOPS = 1_000_000
# Parts begin at multiples of so many rows or columns: a cache line of float32.
_GRAIN = 16
# Words of the block before the parts, and of each part.
_HEAD, _PART = 13, 5


def pays(matmul: Matmul, blas: Blas, threads: int) -> bool:
    """Whether threads share a matmul; BLAS must be one that can be kept on its caller's."""
    return threads > 1 and blas.set_threads is not None and matmul.flops >= _SERIAL_FLOPS


def source(dtype: str) -> KernelSource:
    """Return the kernel in which each thread calls BLAS for its parts."""
    element = "float" if dtype == "float32" else "double"
    name = f"share_matmul_{dtype}"
    return KernelSource(name, _text(name, element), language="llvm")


def alone_source(dtype: str) -> KernelSource:
    """Return the kernel that calls BLAS once, as if there were one thread and one part."""
    element = "float" if dtype == "float32" else "double"
    name = f"call_matmul_{dtype}"
    text = _text(name, element)
    for asked, number in (("omp_get_thread_num", 0), ("omp_get_num_threads", 1)):
        text = text.replace(f"declare i32 @{asked}()\n", "")
        text = text.replace(f"call i32 @{asked}()", f"add i32 {number}, 0")
    return KernelSource(name, text, language="llvm")


def bind(
    kernel: int, blas: Blas, matmul: Matmul, operands: Operands, threads: int
) -> Callable[[], object]:
    """Return what computes a matmul on its operands, which are read anew at each call.

    Args:
        kernel: The address of what ``source`` became.
        blas: Computes the parts.
        matmul: The sizes.
        operands: The arguments; their memory is that of whoever calls the result.
        threads: How many parts there are, and threads at most.
    """
    words = words_of(blas, matmul, operands, threads)
    call = blas.alone(launch(kernel, address(words), threads))
    # The kernel knows the block by its address only.
    call.__dict__["words"] = words
    call.__dict__["native"] = NativeCall(kernel, (address(words),), threads, held=blas)
    return call


def words_of(blas: Blas, matmul: Matmul, operands: Operands, threads: int) -> Array:
    """Return the words of the block of a kernel; the arguments are as those of ``bind``."""
    p, o = matmul, operands
    by_columns, bounds = _cut(p, threads)
    size = ctypes.sizeof(p.scalar)
    step_a = 1 if p.transposed_a else p.inner
    step_b = p.inner if p.transposed_b else 1
    parts = []
    for first, last in itertools.pairwise(bounds):
        if by_columns:
            parts.append((p.rows, last - first, 0, first * step_b * size, first * size))
        else:
            parts.append(
                (last - first, p.columns, first * step_a * size, 0, first * p.columns * size)
            )
    function = ctypes.cast(blas.functions[p.dtype], ctypes.c_void_p).value
    places = [ctypes.addressof(each) for each in (o.a, o.b, o.c, o.alpha, o.beta)]
    transposed = (111 + p.transposed_a, 111 + p.transposed_b)
    head = [*places, function, len(parts), *transposed, p.inner, p.width_a, p.width_b, p.columns]
    return np.array([*head, *(word for part in parts for word in part)], np.int64)


def _cut(matmul: Matmul, parts: int) -> tuple[bool, list[int]]:
    """Return whether columns are divided, rather than rows, and where parts begin and end.

    The longer side is cut: every part packs all of the other side's matrix.
    """
    by_columns = matmul.columns >= matmul.rows
    length = matmul.columns if by_columns else matmul.rows
    grains = -(-length // _GRAIN)
    bounds = dict.fromkeys(min(length, grains * i // parts * _GRAIN) for i in range(parts + 1))
    return by_columns, list(bounds)


def _text(name: str, element: str) -> str:
    """Return the kernel in LLVM's assembly: a loop over parts, each a call of ``cblas_?gemm``.

    The first words of its block are the addresses of a, b, c, alpha and beta as they lie in the
    operands, then the function, the number of parts, and what is the same in all of them.
    """
    pointers = ("a_at", "b_at", "c_at", "alpha_at", "beta_at", "gemm")
    numbers = ("parts", "transposed_a", "transposed_b", "inner", "width_a", "width_b", "width_c")
    lines = []
    for index, word in enumerate((*pointers, *numbers)):
        lines.append(f"%{word}.p = getelementptr i64, ptr %words, i64 {index}")
        lines.append(f"%{word} = load {'ptr' if word in pointers else 'i64'}, ptr %{word}.p")
    lines += [f"%{matrix} = load ptr, ptr %{matrix}_at" for matrix in "abc"]
    lines += [f"%{scalar} = load {element}, ptr %{scalar}_at" for scalar in ("alpha", "beta")]
    lines += [f"%{flag}32 = trunc i64 %{flag} to i32" for flag in ("transposed_a", "transposed_b")]
    part = []
    for index, word in enumerate(("rows", "columns", "skip_a", "skip_b", "skip_c")):
        part.append(f"%{word}.p = getelementptr i64, ptr %part, i64 {index}")
        part.append(f"%{word} = load i64, ptr %{word}.p")
    part += [f"%{m}.part = getelementptr i8, ptr %{m}, i64 %skip_{m}" for m in "abc"]
    before, body = ("\n".join(f"  {line}" for line in each) for each in (lines, part))
    return f"""\
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define void @{name}(i64 %block) {{
entry:
  %words = inttoptr i64 %block to ptr
  %me32 = call i32 @omp_get_thread_num()
  %me = sext i32 %me32 to i64
  %all32 = call i32 @omp_get_num_threads()
  %all = sext i32 %all32 to i64
{before}
  br label %head
head:
  %t = phi i64 [ %me, %entry ], [ %next, %body ]
  %more = icmp slt i64 %t, %parts
  br i1 %more, label %body, label %done
body:
  %row = mul i64 %t, {_PART}
  %word = add i64 %row, {_HEAD}
  %part = getelementptr i64, ptr %words, i64 %word
{body}
  call void %gemm(i32 101, i32 %transposed_a32, i32 %transposed_b32,
    i64 %rows, i64 %columns, i64 %inner, {element} %alpha, ptr %a.part, i64 %width_a,
    ptr %b.part, i64 %width_b, {element} %beta, ptr %c.part, i64 %width_c)
  %next = add i64 %t, %all
  br label %head
done:
  ret void
}}
"""
