"""The kernels of a group: its passes, and small ones that follow one another in one kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace_cpu.for_backends import Space, Value
from headrace_cuda.fusion.maps import MapWriter
from headrace_cuda.fusion.passes import Kind, Pass
from headrace_cuda.fusion.reductions import JoinWriter, ReduceWriter
from headrace_cuda.fusion.rows import RowsWriter
from headrace_cuda.fusion.text import TYPES
from headrace_cuda.fusion.writer import THREADS, Parameters, Piece, Word
from headrace_cuda.program.platform import CudaSource, Grid

# Passes of up to so many blocks are done one after the other by one block of a kernel.
_FEW_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with what it is started with.

    Attributes:
        source: The kernel.
        grid: How many blocks there are.
        block: How many threads each has.
        words: Its parameters.
    """

    source: CudaSource
    grid: Grid
    block: Grid
    words: tuple[Word, ...]


def write_passes(
    passes: Sequence[tuple[Pass, int]], space: Space, homes: frozenset[Value], *, guarded: bool
) -> list[Launch]:
    """Return the kernels of a group's passes, in order.

    Args:
        passes: The passes, and into how many parts each is cut.
        space: The sizes.
        homes: The reductions that are kept in scratch memory.
        guarded: Whether variables stay as they are where a check has failed.
    """
    launches: list[Launch] = []
    parameters, together = Parameters(), list[Piece]()

    def finish() -> None:
        nonlocal parameters, together
        if together:
            launches.append(_launch(parameters, together))
        parameters, together = Parameters(), []

    for step, parts in passes:
        few = _count_blocks(step, space, parts) <= _FEW_BLOCKS
        for make in _makers(step, space, homes, parts, guarded):
            if not few:
                finish()
            together.append(make(parameters))
            if not few:
                finish()
    finish()
    return launches


def _count_blocks(step: Pass, space: Space, parts: int) -> int:
    """Return how many blocks a pass has at most; more than few where they have many threads."""
    pieces = [make(Parameters()) for make in _makers(step, space, frozenset(), parts, False)]
    if any(piece.threads != THREADS for piece in pieces):
        return _FEW_BLOCKS + 1
    return max(piece.blocks[0] * piece.blocks[1] for piece in pieces)


def _makers(
    step: Pass, space: Space, homes: frozenset[Value], parts: int, guarded: bool
) -> list[Callable[[Parameters], Piece]]:
    """Return what write the pieces of a pass."""
    if step.kind is Kind.MAP:
        return [lambda p: MapWriter(step, space, homes, p).write(guarded)]
    if step.kind is Kind.ROWS:
        return [lambda p: RowsWriter(step, space, homes, p).write()]
    makers: list[Callable[[Parameters], Piece]] = []
    makers.append(lambda p: ReduceWriter(step, space, homes, p, parts).write())
    if parts > 1:
        makers += [functools.partial(_joined, r.value, space, homes, parts) for r in step.roots]
    return makers


def _joined(
    value: Value, space: Space, homes: frozenset[Value], parts: int, parameters: Parameters
) -> Piece:
    return JoinWriter(value, space, homes, parameters, parts).write()


def _launch(parameters: Parameters, pieces: Sequence[Piece]) -> Launch:
    """Return the kernel of pieces; where there are several, one block does them in turn."""
    threads = pieces[0].threads
    codes = sorted({code for piece in pieces for code in piece.shared})
    body = [f"__shared__ {TYPES[code]} shared_{code}[{threads}];" for code in codes]
    if len(pieces) == 1:
        columns, rows = pieces[0].blocks
        body += ["const int block_x = blockIdx.x, block_y = blockIdx.y;", *pieces[0].lines]
        grid: Grid = (columns, rows, 1)
    else:
        grid = (1, 1, 1)
        # A compiler that takes parameters for alone reads them before a barrier.
        parameters.shares = True
        for number, piece in enumerate(pieces):
            columns, rows = piece.blocks
            # What one piece has left in memory another one reads.
            body += ["__syncthreads();"] if number else []
            body += [
                f"for (int block = 0; block < {columns * rows}; ++block) {{",
                f"    const int block_x = block % {columns}, block_y = block / {columns};",
                *(f"    {line}" for line in piece.lines),
                "}",
            ]
    lines = [f'extern "C" __global__ void KERNEL({parameters.text()}) {{']
    lines += [*(f"    {line}" for line in body), "}", ""]
    source = CudaSource.of("\n".join(lines))
    return Launch(source, grid, (threads, 1, 1), tuple(parameters.words))
