"""How activations are cut into tiles, and where the pixels of a tile are."""

from __future__ import annotations

from dataclasses import replace

from headrace.extend.records import dataclass
from headrace_cpu.native.assembly import Assembly, Index, vector_bytes
from headrace_cpu.winograd.transforms import OUT, Scheme, both_ways

LANES = vector_bytes() // 4
# Columns of a product that are kept in registers at once, and beside one another in memory.
PANEL = 2 * LANES


@dataclass(frozen=True, slots=True)
class Activations:
    """Activations [batch, height, width, channels], C-contiguous, of float32."""

    batch: int
    height: int
    width: int
    channels: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """A convolution with stride 1, cut into tiles.

    Attributes:
        scheme: The transforms for the size of its filter.
        activations: What is convolved.
        out: The result.
        top: Rows of zeros above the activations.
        left: Columns of zeros left of them.
    """

    scheme: Scheme
    activations: Activations
    out: Activations
    top: int
    left: int

    @property
    def down(self) -> int:
        """Tiles in a column."""
        return -(-self.out.height // OUT)

    @property
    def across(self) -> int:
        """Tiles in a row."""
        return -(-self.out.width // OUT)

    @property
    def tiles(self) -> int:
        """Tiles in all."""
        return self.out.batch * self.down * self.across

    @property
    def flops(self) -> int:
        """Operations of the direct way."""
        out = self.out.batch * self.out.height * self.out.width * self.out.channels
        return 2 * out * self.scheme.filter_size**2 * self.activations.channels

    @property
    def back(self) -> Tiling:
        """The convolution that yields the gradient of the activations from that of the result."""
        reach = self.scheme.filter_size - 1
        top, left = reach - self.top, reach - self.left
        return replace(self, activations=self.out, out=self.activations, top=top, left=left)


class Pixels:
    """Writes the addresses of a tile's pixels.

    Args:
        code: The kernel that is written.
        tiling: What it computes.
    """

    def __init__(self, code: Assembly, tiling: Tiling) -> None:
        self._code = code
        self._tiling = tiling

    def of_activations(self, tile: Index, base: str, outside: str) -> list[list[str]]:
        """Return the addresses of the pixels that a tile takes in.

        Args:
            tile: The number of the tile.
            base: The address of the activations.
            outside: The address that stands for all pixels outside of them.
        """
        t = self._tiling
        return self._square(tile, t.scheme.side, t.activations, (t.top, t.left), base, outside)

    def of_out(self, tile: Index, base: str, outside: str) -> list[list[str]]:
        """Return the addresses of the pixels that a tile results in, likewise."""
        return self._square(tile, OUT, self._tiling.out, (0, 0), base, outside)

    def _square(
        self,
        tile: Index,
        side: int,
        activations: Activations,
        before: tuple[int, int],
        base: str,
        outside: str,
    ) -> list[list[str]]:
        code, t = self._code, self._tiling
        image, rest = tile // (t.down * t.across), tile % (t.down * t.across)
        row = rest // t.across * OUT - before[0]
        column = rest % t.across * OUT - before[1]
        columns = [column + j for j in range(side)]
        fits = [each.within(activations.width) for each in columns]
        square = []
        for i in range(side):
            there = (row + i).within(activations.height)
            start = (image * activations.height + (row + i)) * activations.width
            places = [code.at(base, (start + each) * activations.channels) for each in columns]
            square.append(
                [
                    code.choose(code.both(there, fit), place, outside)
                    for fit, place in zip(fits, places, strict=True)
                ]
            )
        return square

    def transform(
        self, tiles: tuple[Index, Index], base: str, outside: str, to: str, step: int
    ) -> None:
        """Transform tiles of the activations, into [position, tile, channel].

        Args:
            tiles: The first, and how many. Numbers that are too large stand for the last tile.
            base: The address of the activations.
            outside: The address of a row of zeros.
            to: Where the transformed tiles go.
            step: Elements from one position to the next.
        """
        code, channels = self._code, self._tiling.activations.channels
        begin, count = tiles
        with code.loop(0, count) as t:
            tile = (begin + t.index).least(self._tiling.tiles - 1)
            pixels = self.of_activations(tile, base, outside)
            with code.loop(0, channels, LANES) as c:
                square = [[code.load(place, c.index) for place in row] for row in pixels]
                place = t.index * channels + c.index
                for position, value in enumerate(both_ways(self._tiling.scheme.inputs, square)):
                    code.store(value, to, place + position * step)
