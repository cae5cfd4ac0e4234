"""How a convolution is cut into blocks that stay in the cache, and into parts for threads."""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.windows.geometry import Geometry

# What a block of windows with its part of the result may take: about the second-level cache.
_BLOCK_BYTES = 1 << 20
# A chunk of this many elements of a window is deep enough for a product of matrices.
_DEEP = 384
# Fewer rows than this leave BLAS little to do with each part of the filter that it packs.
_FEW_ROWS = 256
# All the threads' sums of gradients of one filter may take this much; larger ones are cut instead.
_PARTIAL_BYTES = 8 << 20
_FEW_FILTERS = 64
_LINE = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """Blocks of a convolution or of one of its gradients.

    Attributes:
        per_chunk: Rows of the filter that are multiplied at a time.
        block_rows: Windows in a block.
        blocks: How many blocks there are.
        room: Bytes of a block, for each thread.
        row_splits: Parts of the windows whose sums are made apart.
        filter_splits: Parts of the filters.
    """

    per_chunk: int
    block_rows: int
    blocks: int
    room: int
    row_splits: int = 1
    filter_splits: int = 1


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def plan(shape: Geometry, size: int, threads: int, rows: int, *, copies: bool = True) -> Plan:
    """Return the blocks of ``rows`` windows.

    Args:
        shape: The convolution.
        size: Bytes of an element.
        threads: How many threads take blocks.
        rows: How many windows there are.
        copies: Whether windows are copied.
    """
    breadth = shape.window[1] * shape.channels
    chunks = _ceil(shape.window[0], max(1, _ceil(_DEEP, breadth)))
    per_chunk = _ceil(shape.window[0], chunks)
    depth = per_chunk * breadth
    fit = _BLOCK_BYTES // (size * (depth + shape.filters))
    wanted = max(_FEW_ROWS, fit)
    blocks = max(1, _ceil(rows, wanted))
    # Every thread gets as many blocks as every other.
    blocks = min(rows, _ceil(blocks, threads) * threads)
    block_rows = _ceil(rows, blocks)
    room = _ceil(block_rows * depth * size, _LINE) * _LINE if copies else 0
    return Plan(per_chunk, block_rows, blocks, room)


def plan_to_filter(shape: Geometry, size: int, threads: int) -> Plan:
    """Return the blocks and parts of the gradient for the filter.

    Windows are cut into a part for each thread while their sums are small; otherwise the filters
    are, and each thread copies all windows.
    """
    filter_splits = 1
    if shape.depth * shape.filters * size * threads > _PARTIAL_BYTES:
        filter_splits = min(threads, max(1, shape.filters // _FEW_FILTERS))
    row_splits = min(shape.rows, _ceil(threads, filter_splits))
    part = _ceil(shape.rows, row_splits)
    found = plan(shape, size, 1, part, copies=not shape.is_matmul)
    return Plan(
        found.per_chunk, found.block_rows, found.blocks, found.room, row_splits, filter_splits
    )
