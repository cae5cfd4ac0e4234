"""Kernels for products with few columns, written in LLVM's assembly.

BLAS packs its operands and works on tiles of many columns: for a result of ten columns it is
slower than a loop that keeps some rows of the result in registers, loads a row of the right matrix
at a time, and multiplies it by one element of each row of the left one. Sizes are constants of the
kernel. Numba would not do: it neither keeps arrays in registers nor masks the last vector.

Measured on two cores with AVX-512, for the products of softmax regression at batch 100: see
``pays``.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.build import KernelSource
from headrace_cpu.products.blas import Product

# Words of a kernel's block: the addresses of a, b, c and alpha.
WORDS = 4
# Below so many operations, waking a second thread takes longer than it saves.
_SERIAL_FLOPS = 400_000


@dataclass(frozen=True, slots=True)
class Tile:
    """How a product with few columns is cut.

    Attributes:
        width: Elements of a vector.
        vectors: How many vectors a row of the result takes.
        rows: How many rows of the result are kept in registers.
    """

    width: int
    vectors: int
    rows: int


def tile_of(product: Product) -> Tile:
    """Return how a product is cut for this processor."""
    size = 4 if product.dtype == "float32" else 8
    width = vector_bytes() // size
    vectors = -(-product.columns // width)
    # A part of the registers is left for a row of b and the elements of a.
    registers = 24 if vector_bytes() == 64 else 12
    return Tile(width, vectors, min(12, max(1, registers // vectors), product.rows))


def pays(product: Product, most: int) -> bool:
    """Whether the kernel is quicker than BLAS, with so many threads at most.

    At batch 100 and ten columns, float32, one thread took 17.5 us where BLAS took 23.4 ([100, 784]
    @ [784, 10]) and 17 us where it took 18 (the product with [784, 100]); BLAS does not use a
    second thread for products of this size, and the kernel does. For three columns BLAS was
    quicker (9.7 us against 14), for 32 with one thread equal.
    """
    if product.turned_b or product.inner < 8 or not 20_000 <= product.flops <= 10**8:
        return False
    tile = tile_of(product)
    if 2 * product.columns < tile.width or tile.vectors > 2:
        return False
    shared = threads(product, most) > 1
    return shared or (tile.vectors == 1 and not product.turned_a)


def threads(product: Product, most: int) -> int:
    """Return how many threads a product is worth."""
    return most if product.flops >= _SERIAL_FLOPS else 1


def source(product: Product, *, accumulate: bool, parallel: bool) -> KernelSource:
    """Return the kernel of a product.

    Args:
        product: It; ``turned_b`` is not possible.
        accumulate: Whether ``alpha`` times the product is added to ``c``, which otherwise becomes
            the product.
        parallel: Whether OpenMP's threads share the rows.
    """
    writer = _Writer(product, tile_of(product), accumulate)
    kind = "add" if accumulate else "set"
    name = f"narrow_{kind}_{product.rows}x{product.inner}x{product.columns}"
    return KernelSource(name, writer.function(name, parallel), language="llvm")


class _Writer:
    def __init__(self, product: Product, tile: Tile, accumulate: bool) -> None:
        self._product = product
        self._tile = tile
        self._accumulate = accumulate
        self._element = "float" if product.dtype == "float32" else "double"
        self._short = "f32" if product.dtype == "float32" else "f64"
        self._vector = f"<{tile.width} x {self._element}>"
        self._suffix = f"v{tile.width}{self._short}"
        self._lines: list[str] = []
        self._count = 0

    def function(self, name: str, parallel: bool) -> str:
        """Return the text of the kernel."""
        p, t = self._product, self._tile
        whole, rest = divmod(p.rows, t.rows)
        self._entry(whole + bool(rest), parallel)
        self._do("head:")
        self._do("%u = phi i64 [ %first, %entry ], [ %next, %tail ]")
        self._do("%more = icmp slt i64 %u, %last")
        self._do("br i1 %more, label %body, label %done")
        self._do("body:")
        self._do(f"%row = mul i64 %u, {t.rows}")
        self._do(f"%short = icmp eq i64 %u, {whole}")
        self._do("br i1 %short, label %rest, label %whole")
        self._rows("whole", t.rows)
        if rest:
            self._rows("rest", rest)
        else:
            self._lines += ["rest:", "  unreachable"]
        self._do("tail:")
        self._do("%next = add i64 %u, 1")
        self._do("br label %head")
        self._lines += ["done:", "  ret void", "}"]
        return "\n".join(
            (*self._declarations(), f"define void @{name}(i64 %block) {{", *self._lines)
        )

    def _declarations(self) -> list[str]:
        v, mask = self._vector, f"<{self._tile.width} x i1>"
        return [
            "declare i32 @omp_get_thread_num()",
            "declare i32 @omp_get_num_threads()",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {v} @llvm.fma.{self._suffix}({v}, {v}, {v})",
            f"declare {v} @llvm.masked.load.{self._suffix}.p0(ptr, i32, {mask}, {v})",
            f"declare void @llvm.masked.store.{self._suffix}.p0({v}, ptr, i32, {mask})",
        ]

    def _do(self, text: str) -> None:
        self._lines.append(text if text.endswith(":") else f"  {text}")

    def _new(self, text: str) -> str:
        self._count += 1
        self._do(f"%t{self._count} = {text}")
        return f"%t{self._count}"

    def _entry(self, units: int, parallel: bool) -> None:
        """Load the block's words, and find the thread's part of the units."""
        self._do("entry:")
        self._do("%words = inttoptr i64 %block to ptr")
        for index, name in enumerate(("a", "b", "c", "alpha")):
            place = self._new(f"getelementptr i64, ptr %words, i64 {index}")
            self._do(f"%{name} = load ptr, ptr {place}")
        if self._accumulate:
            value = self._new(f"load {self._element}, ptr %alpha")
            self._do(f"%scale = {self._spread_text(value)}")
        if not parallel:
            self._do("%first = add i64 0, 0")
            self._do(f"%last = add i64 {units}, 0")
        else:
            me = self._new(f"sext i32 {self._new('call i32 @omp_get_thread_num()')} to i64")
            all_ = self._new(f"sext i32 {self._new('call i32 @omp_get_num_threads()')} to i64")
            self._do(f"%first = sdiv i64 {self._new(f'mul i64 {me}, {units}')}, {all_}")
            after = self._new(f"mul i64 {self._new(f'add i64 {me}, 1')}, {units}")
            self._do(f"%last = sdiv i64 {after}, {all_}")
        self._do("br label %head")

    def _spread_text(self, value: str) -> str:
        """Return the expression of a vector of equal elements."""
        v = self._vector
        one = self._new(f"insertelement {v} poison, {self._element} {value}, i64 0")
        zeros = f"<{self._tile.width} x i32> zeroinitializer"
        return f"shufflevector {v} {one}, {v} poison, {zeros}"

    def _rows(self, label: str, rows: int) -> None:
        """Write the loop that computes so many rows of the result, from ``%row`` on."""
        p, t = self._product, self._tile
        step_row, step_inner = (1, p.rows) if p.turned_a else (p.inner, 1)
        self._do(f"{label}:")
        start = self._new(f"mul i64 %row, {step_row}")
        left = self._new(f"getelementptr {self._element}, ptr %a, i64 {start}")
        places = [(r, v) for r in range(rows) for v in range(t.vectors)]
        self._do(f"br label %{label}.loop")
        self._do(f"{label}.loop:")
        k = f"%{label}.k"
        self._do(f"{k} = phi i64 [ 0, %{label} ], [ {k}.next, %{label}.loop ]")
        sums = {at: f"%{label}.s{at[0]}.{at[1]}" for at in places}
        for name in sums.values():
            self._do(
                f"{name} = phi {self._vector} [ zeroinitializer, %{label} ], "
                f"[ {name}.next, %{label}.loop ]"
            )
        right = self._new(f"mul i64 {k}, {p.columns}")
        row_b = [self._load("%b", right, v) for v in range(t.vectors)]
        column = self._new(f"mul i64 {k}, {step_inner}")
        if p.turned_a:
            self._prefetch(left, column, 2 * t.rows - 1)
        else:
            line = self._new(f"mul i64 {k}, {64 // (4 if self._element == 'float' else 8)}")
            self._prefetch(left, line, rows * p.inner)
        for r in range(rows):
            at = self._new(f"add i64 {column}, {r * step_row}")
            value = self._new(
                f"load {self._element}, ptr "
                + self._new(f"getelementptr {self._element}, ptr {left}, i64 {at}")
            )
            factor = self._new(self._spread_text(value))
            for v in range(t.vectors):
                self._do(f"{sums[r, v]}.next = " + self._fma(factor, row_b[v], sums[r, v]))
        self._do(f"{k}.next = add i64 {k}, 1")
        again = self._new(f"icmp slt i64 {k}.next, {p.inner}")
        self._do(f"br i1 {again}, label %{label}.loop, label %{label}.end")
        self._do(f"{label}.end:")
        out = self._new(f"mul i64 %row, {p.columns}")
        for r, v in places:
            place = self._new(f"add i64 {out}, {r * p.columns}")
            total = f"{sums[r, v]}.next"
            if self._accumulate:
                total = self._new(self._fma("%scale", total, self._load("%c", place, v)))
            self._store(total, "%c", place, v)
        self._do("br label %tail")

    def _prefetch(self, base: str, index: str, ahead: int) -> None:
        """Ask for the elements that the next rows of the result need.

        A turned matrix is read in steps of a whole row, mostly in another page of memory each, for
        which processors do not look ahead: without this, a matrix that is in no near cache takes
        twice the time. Of other matrices the next rows lie together, and a line of them is asked
        for in each turn: a tenth to a fifth quicker.
        """
        place = self._new(f"add i64 {index}, {ahead}")
        pointer = self._new(f"getelementptr {self._element}, ptr {base}, i64 {place}")
        self._do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def _fma(self, a: str, b: str, c: str) -> str:
        v = self._vector
        return f"call {v} @llvm.fma.{self._suffix}({v} {a}, {v} {b}, {v} {c})"

    def _reach(self, base: str, index: str, vector: int) -> tuple[str, str | None]:
        """Return the address of a row's vector, and its mask where the row ends in it."""
        t = self._tile
        place = self._new(f"add i64 {index}, {vector * t.width}")
        pointer = self._new(f"getelementptr {self._element}, ptr {base}, i64 {place}")
        left = self._product.columns - vector * t.width
        if left >= t.width:
            return pointer, None
        bits = ", ".join(f"i1 {'true' if i < left else 'false'}" for i in range(t.width))
        return pointer, f"<{t.width} x i1> <{bits}>"

    def _align(self) -> int:
        return 4 if self._element == "float" else 8

    def _load(self, base: str, index: str, vector: int) -> str:
        pointer, mask = self._reach(base, index, vector)
        v = self._vector
        if mask is None:
            return self._new(f"load {v}, ptr {pointer}, align {self._align()}")
        return self._new(
            f"call {v} @llvm.masked.load.{self._suffix}.p0(ptr {pointer}, i32 {self._align()}, "
            f"{mask}, {v} zeroinitializer)"
        )

    def _store(self, value: str, base: str, index: str, vector: int) -> None:
        pointer, mask = self._reach(base, index, vector)
        v = self._vector
        if mask is None:
            self._do(f"store {v} {value}, ptr {pointer}, align {self._align()}")
            return
        self._do(
            f"call void @llvm.masked.store.{self._suffix}.p0({v} {value}, ptr {pointer}, "
            f"i32 {self._align()}, {mask})"
        )
