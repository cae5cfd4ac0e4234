"""The kernel of the gradient of a filter by Winograd's algorithm.

It is the gradient of the forward algorithm, step by step: for each position in a tile, the
transformed tiles times the gradients of the products, summed over all tiles, then transformed back
to the filter. Each thread sums over tiles of its own; the sums of the threads are added at the end.
"""

from __future__ import annotations

from typing import ClassVar

from headrace.extend.records import dataclass
from headrace_cpu.native.assembly import Index
from headrace_cpu.winograd.kernel import TiledKernel, TileWriter
from headrace_cpu.winograd.tiling import LANES, PANEL, Tiling
from headrace_cpu.winograd.transforms import both_ways

# Rows of a product that are kept in registers; input channels come in multiples of it.
_ROWS = 8 if LANES == 16 else 4
# Tiles of a block: the sums, which may lie in a far cache, are read and written once for each.
_TILES = 96


@dataclass(frozen=True, slots=True)
class Gradient(TiledKernel):
    """What a kernel computes: the gradient of the filter of a convolution.

    Attributes:
        tiling: The convolution.
    """

    words: ClassVar = ("activations", "gradient", "filter", "scratch")

    tiling: Tiling

    @property
    def block(self) -> int:
        """Tiles that a thread takes through all stages at once, at most."""
        # Two threads, as the most common number, shall have blocks of the same size.
        half = -(-self.tiling.tiles // 2)
        return -(-half // -(-half // _TILES))

    @property
    def name(self) -> str:
        """What the kernel is called."""
        return f"winograd_to_filter_{self.sizes}"

    @property
    def own(self) -> int:
        """Elements of scratch memory that each thread has for itself."""
        return self.tiling.scheme.positions * self.filter_step + self.block_elements

    def text(self) -> str:
        """Return the module that defines the kernel."""
        return _Writer(self).text()

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        return 4 * threads * self.own


class _Writer(TileWriter):
    def __init__(self, kernel: Gradient) -> None:
        super().__init__(kernel)
        self._kernel = kernel

    def text(self) -> str:
        """Return the module."""
        code, kernel = self._code, self._kernel
        me, first, last = code.part(self._tiling.tiles)
        sums = code.at(self._at["scratch"], me * kernel.own)
        tiles = code.at(sums, self._scheme.positions * kernel.filter_step)
        products = code.at(tiles, self._scheme.positions * kernel.tile_step)
        zeros = code.at(products, self._scheme.positions * kernel.product_step)
        with code.loop(0, self._scheme.positions * kernel.filter_step, LANES) as i:
            code.store(code.zero(), sums, i.index)
        with code.loop(0, self._taken + self._given, LANES) as i:
            code.store(code.zero(), zeros, i.index)
        with code.loop(first, last, kernel.block) as unit:
            begin, count = unit.index, (last - unit.index).least(kernel.block)
            activations = self._at["activations"]
            self._pixels.transform((begin, count), activations, zeros, tiles, kernel.tile_step)
            self._transform_gradient(begin, count, zeros, products)
            self._multiply(count, tiles, products, sums)
        code.barrier()
        self._transform_back()
        return code.text(kernel.name)

    def _transform_gradient(self, begin: Index, count: Index, zeros: str, products: str) -> None:
        """Transform the gradient of the result, into panels of columns."""
        code, kernel = self._code, self._kernel
        with code.loop(0, count) as t:
            pixels = self._pixels.of_out(begin + t.index, self._at["gradient"], zeros)
            with code.loop(0, self._given // LANES) as chunk:
                c = chunk.index * LANES
                square = [[code.load(place, c) for place in row] for row in pixels]
                panel, half = chunk.index // 2, chunk.index % 2
                place = (panel * kernel.block + t.index) * PANEL + half * LANES
                for p, value in enumerate(both_ways(self._scheme.results_back, square)):
                    code.store(value, products, place + p * kernel.product_step)

    def _multiply(self, count: Index, tiles: str, products: str, sums: str) -> None:
        """Add to the sums, for each position, the block's tiles times the products' gradients."""
        code, kernel, taken, given = self._code, self._kernel, self._taken, self._given
        with code.loop(0, self._scheme.positions) as p, code.loop(0, given // PANEL) as panel:
            right = code.at(
                products, p.index * kernel.product_step + panel.index * (PANEL * kernel.block)
            )
            with code.loop(0, taken, _ROWS) as c:
                left = code.at(tiles, p.index * kernel.tile_step + c.index)
                place = p.index * kernel.filter_step + c.index * given
                out = code.at(sums, place + panel.index * PANEL)
                for r in range(_ROWS):
                    for h in range(2):
                        code.prefetch(out, r * given + h * LANES)
                with code.loop(0, count, values=[code.zero()] * (2 * _ROWS)) as t:
                    row = [code.load(right, t.index * PANEL + h * LANES) for h in range(2)]
                    here = code.at(left, t.index * taken)
                    for r in range(_ROWS):
                        one = code.spread(here, r)
                        t.after += [code.fma(one, row[h], t.values[2 * r + h]) for h in range(2)]
                for r in range(_ROWS):
                    for h in range(2):
                        at = r * given + h * LANES
                        code.store(code.load(out, at) + t.after[2 * r + h], out, at)

    def _transform_back(self) -> None:
        """Add the sums of all threads, and transform them to the gradient of the filter."""
        code, kernel, taken, given = self._code, self._kernel, self._taken, self._given
        _, first, last = code.part(taken)
        with code.loop(first, last) as c, code.loop(0, given, LANES) as k:
            place = c.index * given + k.index
            zeros = [code.zero()] * self._scheme.positions
            with code.loop(0, code.team(), values=zeros) as thread:
                there = code.at(self._at["scratch"], thread.index * kernel.own)
                for p, value in enumerate(thread.values):
                    each = code.load(there, place + p * kernel.filter_step)
                    thread.after.append(value + each)
            side = self._scheme.side
            totals = [thread.after[i * side : (i + 1) * side] for i in range(side)]
            for number, value in enumerate(both_ways(self._scheme.filter_back, totals)):
                code.store(value, self._at["filter"], place + number * taken * given)
