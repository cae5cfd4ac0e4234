"""The kernel that transposes matrices: filters and images for what wants other layouts."""

from __future__ import annotations

from headrace_cuda.program.platform import CudaSource, Function

_TILE, _ROWS = 32, 8

# A block takes a tile of the matrix through shared memory, so that threads that are neighbours read
# neighbours, and write neighbours. A row of a tile has one more element than it needs: a column of
# it then lies in as many banks of shared memory.
TRANSPOSE = CudaSource.of(
    f"""\
extern "C" __global__ void KERNEL(const float *from, float *to, long long rows,
                                  long long columns) {{
    __shared__ float tile[{_TILE}][{_TILE + 1}];
    const long long across = (columns + {_TILE - 1}) / {_TILE};
    const long long down = (rows + {_TILE - 1}) / {_TILE};
    const long long left = blockIdx.x % across * {_TILE};
    const long long top = blockIdx.x / across % down * {_TILE};
    const long long skipped = blockIdx.x / across / down * rows * columns;
    for (unsigned i = threadIdx.y; i < {_TILE}; i += {_ROWS}) {{
        if (top + i < rows && left + threadIdx.x < columns) {{
            tile[i][threadIdx.x] = from[skipped + (top + i) * columns + left + threadIdx.x];
        }}
    }}
    __syncthreads();
    for (unsigned i = threadIdx.y; i < {_TILE}; i += {_ROWS}) {{
        if (left + i < columns && top + threadIdx.x < rows) {{
            to[skipped + (left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
        }}
    }}
}}
"""
)


def transpose(
    function: Function, source: int, target: int, rows: int, columns: int, batch: int = 1
) -> None:
    """Start the kernel: [batch, rows, columns] becomes [batch, columns, rows].

    Args:
        function: ``TRANSPOSE``, loaded.
        source: The address of the matrices, float32.
        target: The address of what is written.
        rows: Of each matrix.
        columns: Of each matrix.
        batch: How many there are.
    """
    tiles = batch * -(-rows // _TILE) * -(-columns // _TILE)
    function((tiles, 1, 1), (_TILE, _ROWS, 1), source, target, rows, columns)
