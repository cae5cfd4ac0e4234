"""What the kernels of Winograd's algorithm have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from headrace_cpu.native.assembly import Assembly
from headrace_cpu.native.source import KernelSource
from headrace_cpu.winograd.tiling import LANES, Pixels, Tiling


class TiledKernel(ABC):
    """A kernel that takes blocks of tiles through all stages.

    Positions lie a cache line further apart than they must: at multiples of a page they would
    compete for the same places in the cache.

    Attributes:
        tiling: The convolution.
        words: What the words of the kernel's block are the addresses of; scratch memory is last.
    """

    __slots__ = ()
    tiling: Tiling
    words: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def block(self) -> int:
        """Tiles that a thread takes through all stages at once, at most."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the kernel is called."""

    @abstractmethod
    def text(self) -> str:
        """Return the module that defines the kernel."""

    def source(self) -> KernelSource:
        """Return the kernel."""
        return KernelSource(self.name, self.text(), language="llvm")

    @property
    def sizes(self) -> str:
        """The sizes of the activations, and the channels of the result."""
        i, o = self.tiling.activations, self.tiling.out
        return f"{i.batch}x{i.height}x{i.width}x{i.channels}_{o.channels}"

    @property
    def flops(self) -> int:
        """Floating-point operations of the direct way."""
        return self.tiling.flops

    @property
    def title(self) -> str:
        """What it is."""
        tiles, scheme = self.tiling.tiles, self.tiling.scheme
        return f"Winograd {scheme.name}, {min(self.block, tiles)} of {tiles} tiles at once"

    @property
    def filter_step(self) -> int:
        """Elements from one position of the transformed filter, or its gradient, to the next."""
        return self.tiling.activations.channels * self.tiling.out.channels + LANES

    @property
    def tile_step(self) -> int:
        """Elements from one position of a block's transformed tiles to the next."""
        return self.block * self.tiling.activations.channels + LANES

    @property
    def product_step(self) -> int:
        """Elements from one position of a block's products, or their gradients, to the next."""
        return self.block * self.tiling.out.channels + LANES

    @property
    def block_elements(self) -> int:
        """Elements of memory for a block, and of a row of activations and one of results."""
        channels = self.tiling.activations.channels + self.tiling.out.channels
        return channels + self.tiling.scheme.positions * (self.tile_step + self.product_step)


class TileWriter:
    """Writes one kernel."""

    def __init__(self, kernel: TiledKernel) -> None:
        self._tiling = kernel.tiling
        self._scheme = kernel.tiling.scheme
        self._taken = kernel.tiling.activations.channels
        self._given = kernel.tiling.out.channels
        self._code = code = Assembly("float", LANES)
        self._pixels = Pixels(code, kernel.tiling)
        self._at = code.words(kernel.words)
