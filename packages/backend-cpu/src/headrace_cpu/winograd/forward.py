"""The kernel of a convolution by Winograd's algorithm, and of its gradient to the activations.

All threads transform the filter together. Then each takes blocks of tiles, small enough for a near
cache, and goes all the way with a block: transforms the tiles, multiplies them for each of the
positions in a tile, transforms the products back, adds bias and addend, and stores. Nothing but
activations, filter and results is read from or written to far memory.

Outside of the activations there are zeros: the addresses of such pixels point to a row of zeros,
and those of results that are not wanted to a row that nobody reads. So there is one path for all
tiles.
"""

from __future__ import annotations

from typing import ClassVar

from headrace.extend.records import dataclass
from headrace_cpu.native.assembly import Index, Vector
from headrace_cpu.winograd.kernel import TiledKernel, TileWriter
from headrace_cpu.winograd.tiling import LANES, PANEL, Tiling
from headrace_cpu.winograd.transforms import OUT, both_ways

# Rows of a product that are kept in registers: 16 or 24 of AVX-512's 32, 12 of AVX's 16.
_ROWS = (12, 8) if LANES == 16 else (6, 4)
# Tiles of a block. The transformed filter is read once for each: where it is no longer in a near
# cache, more tiles must share it.
_NEAR_TILES, _FAR_TILES = 48, 96
_NEAR_FILTER = 128 * 128


@dataclass(frozen=True, slots=True)
class Forward(TiledKernel):
    """What a kernel computes.

    Attributes:
        tiling: The convolution.
        transposed: Whether the filter is that of the convolution whose activations' gradient this
            is: input and output channels change places, and it is rotated by half a circle.
        bias: Whether a bias is added.
        addend: Whether activations like the result are added.
        relu: Whether negative results become 0.
    """

    words: ClassVar = ("activations", "filter", "out", "bias", "addend", "scratch")

    tiling: Tiling
    transposed: bool = False
    bias: bool = False
    addend: bool = False
    relu: bool = False

    @property
    def rows(self) -> int:
        """Rows of a product that are kept in registers."""
        few = min(_FAR_TILES, -(-self.tiling.tiles // 2))
        return min(_ROWS, key=lambda rows: (-(-few // rows) * rows, -rows))

    @property
    def groups(self) -> int:
        """Groups of rows: a thread takes some of them."""
        return -(-self.tiling.tiles // self.rows)

    @property
    def block(self) -> int:
        """Tiles that a thread takes through all stages at once, at most."""
        t = self.tiling
        near = t.activations.channels * t.out.channels <= _NEAR_FILTER
        most = (_NEAR_TILES if near else _FAR_TILES) // self.rows
        # Two threads, as the most common number, shall have blocks of the same size.
        half = -(-self.groups // 2)
        return -(-half // -(-half // most)) * self.rows

    @property
    def name(self) -> str:
        """What the kernel is called."""
        return f"winograd_{'to_activations' if self.transposed else 'forward'}_{self.sizes}"

    def text(self) -> str:
        """Return the module that defines the kernel."""
        return _Writer(self).text()

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        filters = self.tiling.scheme.positions * self.filter_step
        return 4 * (filters + threads * self.block_elements)


class _Writer(TileWriter):
    def __init__(self, kernel: Forward) -> None:
        super().__init__(kernel)
        self._kernel = kernel
        self._filter = self._at["scratch"]

    def text(self) -> str:
        """Return the module."""
        code, kernel = self._code, self._kernel
        me, first, last = code.part(self._given // LANES)
        zeros = code.at(
            self._filter, me * kernel.block_elements + self._scheme.positions * kernel.filter_step
        )
        nowhere = code.at(zeros, self._taken)
        tiles = code.at(nowhere, self._given)
        products = code.at(tiles, self._scheme.positions * kernel.tile_step)
        with code.loop(0, self._taken, LANES) as c:
            code.store(code.zero(), zeros, c.index)
        self._transform_filter(first, last)
        code.barrier()
        _, first, last = code.part(kernel.groups)
        step = kernel.block // kernel.rows
        with code.loop(first, last, step) as unit:
            begin = unit.index * kernel.rows
            groups = (last - unit.index).least(step)
            # The last group may have more rows than there are tiles: the last tile again.
            block = begin, groups * kernel.rows
            self._pixels.transform(block, self._at["activations"], zeros, tiles, kernel.tile_step)
            self._multiply(groups, tiles, products)
            count = (begin * -1 + self._tiling.tiles).least(groups * kernel.rows)
            self._transform_back(begin, count, products, nowhere)
        return code.text(kernel.name)

    def _transform_filter(self, first: Index, last: Index) -> None:
        """Transform the filter of some vectors of output channels, into panels of columns."""
        code = self._code
        with code.loop(first, last) as chunk, code.loop(0, self._taken) as c:
            square = [
                [self._element(i, j, chunk.index, c.index) for j in range(self._scheme.filter_size)]
                for i in range(self._scheme.filter_size)
            ]
            panel, half = chunk.index // 2, chunk.index % 2
            place = (panel * self._taken + c.index) * PANEL + half * LANES
            for position, value in enumerate(both_ways(self._scheme.filter, square)):
                code.store(value, self._filter, place + position * self._kernel.filter_step)

    def _element(self, i: int, j: int, chunk: Index, c: Index) -> Vector:
        """Load an element of the filter for an input channel and a vector of output channels."""
        code, taken, given = self._code, self._taken, self._given
        number = i * self._scheme.filter_size + j
        if not self._kernel.transposed:
            place = c * given + chunk * LANES + number * taken * given
            return code.load(self._at["filter"], place)
        number = self._scheme.filter_size**2 - 1 - number
        place = chunk * (LANES * taken) + c + number * taken * given
        return code.collect(code.at(self._at["filter"], place), taken)

    def _multiply(self, groups: Index, tiles: str, products: str) -> None:
        """Multiply, for each position, the block's tiles by the filter."""
        code, kernel, taken, given = self._code, self._kernel, self._taken, self._given
        rows = kernel.rows
        with code.loop(0, self._scheme.positions) as p, code.loop(0, given // PANEL) as panel:
            right = code.at(
                self._filter, p.index * kernel.filter_step + panel.index * (PANEL * taken)
            )
            with code.loop(0, groups) as group:
                left = code.at(tiles, p.index * kernel.tile_step + group.index * (rows * taken))
                # Half of the next panel, which comes from a far cache when there are many channels:
                # without asking for it, 512 took a third longer.
                ahead = code.at(right, group.index % 2 * (taken * LANES) + taken * PANEL)
                with code.loop(0, taken, values=[code.zero()] * (2 * rows)) as k:
                    code.prefetch(ahead, k.index * LANES)
                    row = [code.load(right, k.index * PANEL + h * LANES) for h in range(2)]
                    here = code.at(left, k.index)
                    for r in range(rows):
                        one = code.spread(here, r * taken)
                        k.after += [code.fma(one, row[h], k.values[2 * r + h]) for h in range(2)]
                place = p.index * kernel.product_step + group.index * (rows * given)
                out = code.at(products, place + panel.index * PANEL)
                for r in range(rows):
                    for h in range(2):
                        code.store(k.after[2 * r + h], out, r * given + h * LANES)

    def _transform_back(self, begin: Index, count: Index, products: str, nowhere: str) -> None:
        code, kernel = self._code, self._kernel
        with code.loop(0, count) as t:
            tile = begin + t.index
            places = self._pixels.of_out(tile, self._at["out"], nowhere)
            addends = (
                self._pixels.of_out(tile, self._at["addend"], nowhere) if kernel.addend else places
            )
            with code.loop(0, self._given, LANES) as c:
                start = t.index * self._given + c.index
                square = [
                    [
                        code.load(
                            products, start + (i * self._scheme.side + j) * kernel.product_step
                        )
                        for j in range(self._scheme.side)
                    ]
                    for i in range(self._scheme.side)
                ]
                done = both_ways(self._scheme.results, square)
                bias = code.load(self._at["bias"], c.index) if kernel.bias else None
                for i in range(OUT):
                    for j in range(OUT):
                        value = done[i * OUT + j]
                        if bias is not None:
                            value = value + bias
                        if kernel.addend:
                            value = value + code.load(addends[i][j], c.index)
                        if kernel.relu:
                            value = code.relu(value)
                        code.store(value, places[i][j], c.index)
