"""Kernels for a few rows times a matrix too large for the caches, written in LLVM's assembly.

Such a product takes as long as reading the matrix. A kernel that keeps rows of the result in
registers reads it in columns, a cache line or four from each of its rows: half of the memory's
speed. This one keeps a piece of some hundred columns of the result in the first cache, goes through
the matrix's rows, several at a time, and asks early for the next ones.

Measured on two cores with AVX-512, against oneDNN's primitive: [16, 9216] @ [9216, 4096] 8 to 9 ms
for 12, [16, 4096] @ [4096, 4096] 3.2 for 5, [4, 25088] @ [25088, 4096] 18 for 26; reading the
matrices alone takes 5, 1.5 and 13 ms.
"""

from __future__ import annotations

from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.build import KernelSource
from headrace_cpu.products.blas import Product

# Columns of a piece of the result: with 16 rows, it takes 16 KiB.
_PIECE = 256
_MOST_ROWS = 16
# A smaller matrix may be in the second caches.
_LEAST_BYTES = 8 << 20


def pays(product: Product, threads: int) -> bool:
    """Whether the kernel is quicker than others, with so many threads."""
    p = product
    if p.turned_a or p.turned_b or p.dtype != "float32" or not 2 < p.rows <= _MOST_ROWS:
        return False
    if p.columns % (_PIECE * threads) or p.inner % _depth():
        return False
    return 4 * p.inner * p.columns >= _LEAST_BYTES


def _depth() -> int:
    """Return how many rows of the matrix are multiplied at a time: they take half the registers."""
    return 8 if vector_bytes() == 64 else 4


def source(product: Product) -> KernelSource:
    """Return the kernel of a product for which it pays; OpenMP's threads share the columns.

    Its block has the addresses of a, b and c.
    """
    name = f"stream_{product.rows}x{product.inner}x{product.columns}"
    return KernelSource(name, _text(name, product), language="llvm")


def _text(name: str, p: Product) -> str:
    width = vector_bytes() // 4
    v, depth, step = f"<{width} x float>", _depth(), 2 * width
    load_rows = []
    for i in range(depth):
        load_rows += [
            f"%b{i}.i = add i64 %at, {i * p.columns}",
            f"%b{i}.p = getelementptr float, ptr %b, i64 %b{i}.i",
            f"%b{i}.q = getelementptr float, ptr %b{i}.p, i64 {width}",
            f"%b{i}.0 = load {v}, ptr %b{i}.p, align 4",
            f"%b{i}.1 = load {v}, ptr %b{i}.q, align 4",
            # Beyond the end this is an address that nobody reads.
            f"%b{i}.n = getelementptr float, ptr %b{i}.p, i64 {depth * p.columns}",
            f"%b{i}.m = getelementptr float, ptr %b{i}.q, i64 {depth * p.columns}",
            f"call void @llvm.prefetch.p0(ptr %b{i}.n, i32 0, i32 3, i32 1)",
            f"call void @llvm.prefetch.p0(ptr %b{i}.m, i32 0, i32 3, i32 1)",
        ]
    multiply = []
    for i in range(depth):
        multiply += [
            f"%a{i}.p = getelementptr float, ptr %left, i64 {i}",
            f"%a{i}.s = load float, ptr %a{i}.p, align 4",
            f"%a{i}.v = insertelement {v} poison, float %a{i}.s, i64 0",
            f"%a{i} = shufflevector {v} %a{i}.v, {v} poison, <{width} x i32> zeroinitializer",
        ]
        for j in range(2):
            multiply.append(
                f"%s{i + 1}.{j} = call {v} @llvm.fma.v{width}f32"
                f"({v} %a{i}, {v} %b{i}.{j}, {v} %s{i}.{j})"
            )
    rows, products = ("\n".join(f"  {line}" for line in each) for each in (load_rows, multiply))
    return f"""\
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {v} @llvm.fma.v{width}f32({v}, {v}, {v})

define void @{name}(i64 %block) {{
entry:
  %words = inttoptr i64 %block to ptr
  %b.at = getelementptr i64, ptr %words, i64 1
  %c.at = getelementptr i64, ptr %words, i64 2
  %a = load ptr, ptr %words
  %b = load ptr, ptr %b.at
  %c = load ptr, ptr %c.at
  %piece = alloca [{p.rows * _PIECE} x float], align 64
  %me32 = call i32 @omp_get_thread_num()
  %me = sext i32 %me32 to i64
  %all32 = call i32 @omp_get_num_threads()
  %all = sext i32 %all32 to i64
  %first.n = mul i64 %me, {p.columns // _PIECE}
  %first = sdiv i64 %first.n, %all
  %last.n = add i64 %first.n, {p.columns // _PIECE}
  %last = sdiv i64 %last.n, %all
  br label %pieces
pieces:
  %q = phi i64 [ %first, %entry ], [ %q.next, %piece.done ]
  %column = mul i64 %q, {_PIECE}
  %q.more = icmp slt i64 %q, %last
  br i1 %q.more, label %inner, label %done
inner:
  %k = phi i64 [ 0, %pieces ], [ %k.next, %inner.done ]
  %fresh = icmp eq i64 %k, 0
  %k.row = mul i64 %k, {p.columns}
  %k.at = add i64 %k.row, %column
  br label %columns
columns:
  %j = phi i64 [ 0, %inner ], [ %j.next, %columns.done ]
  %at = add i64 %k.at, %j
{rows}
  br label %rows
rows:
  %r = phi i64 [ 0, %columns ], [ %r.next, %rows ]
  %r.start = mul i64 %r, {p.inner}
  %r.left = add i64 %r.start, %k
  %left = getelementptr float, ptr %a, i64 %r.left
  %r.piece = mul i64 %r, {_PIECE}
  %r.at = add i64 %r.piece, %j
  %sum.p = getelementptr float, ptr %piece, i64 %r.at
  %sum.q = getelementptr float, ptr %sum.p, i64 {width}
  %old.0 = load {v}, ptr %sum.p, align 4
  %old.1 = load {v}, ptr %sum.q, align 4
  %s0.0 = select i1 %fresh, {v} zeroinitializer, {v} %old.0
  %s0.1 = select i1 %fresh, {v} zeroinitializer, {v} %old.1
{products}
  store {v} %s{depth}.0, ptr %sum.p, align 4
  store {v} %s{depth}.1, ptr %sum.q, align 4
  %r.next = add i64 %r, 1
  %r.more = icmp slt i64 %r.next, {p.rows}
  br i1 %r.more, label %rows, label %columns.done
columns.done:
  %j.next = add i64 %j, {step}
  %j.more = icmp slt i64 %j.next, {_PIECE}
  br i1 %j.more, label %columns, label %inner.done
inner.done:
  %k.next = add i64 %k, {depth}
  %k.more = icmp slt i64 %k.next, {p.inner}
  br i1 %k.more, label %inner, label %copy
copy:
  %x = phi i64 [ 0, %inner.done ], [ %x.next, %copy.done ]
  %x.piece = mul i64 %x, {_PIECE}
  %x.row = mul i64 %x, {p.columns}
  %x.out = add i64 %x.row, %column
  br label %copy.row
copy.row:
  %y = phi i64 [ 0, %copy ], [ %y.next, %copy.row ]
  %y.from = add i64 %x.piece, %y
  %y.to = add i64 %x.out, %y
  %from = getelementptr float, ptr %piece, i64 %y.from
  %to = getelementptr float, ptr %c, i64 %y.to
  %moved = load {v}, ptr %from, align 4
  store {v} %moved, ptr %to, align 4
  %y.next = add i64 %y, {width}
  %y.more = icmp slt i64 %y.next, {_PIECE}
  br i1 %y.more, label %copy.row, label %copy.done
copy.done:
  %x.next = add i64 %x, 1
  %x.more = icmp slt i64 %x.next, {p.rows}
  br i1 %x.more, label %copy, label %piece.done
piece.done:
  %q.next = add i64 %q, 1
  br label %pieces
done:
  ret void
}}
"""
