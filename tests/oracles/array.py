"""Functions that move elements: shapes, joins, slices, paddings, diagonals, blocks."""

from __future__ import annotations

import numpy as np

import headrace as hr

from .libraries import F, jnp, lax, torch
from .rows import normal, row


def _batches(x, block):
    """Return the two-dimensional blocks of ``x`` as batches, by transposition."""
    n, height, width, channels = x.shape
    parts = x.reshape(n, height // block, block, width // block, block, channels)
    moved = jnp.transpose(parts, (2, 4, 0, 1, 3, 5))
    return moved.reshape(n * block * block, height // block, width // block, channels)


def _images(x, block):
    """Undo ``_batches``."""
    n, height, width, channels = x.shape
    parts = x.reshape(block, block, n // block**2, height, width, channels)
    moved = jnp.transpose(parts, (2, 3, 0, 4, 1, 5))
    return moved.reshape(n // block**2, height * block, width * block, channels)


ROWS = [
    row(
        "reshape",
        "jnp.reshape",
        normal(3, 4),
        ours=lambda x: hr.reshape(x, [2, -1]),
        theirs=lambda x: jnp.reshape(x, (2, -1)),
    ),
    row("transpose", "jnp.transpose", normal(3, 4)),
    row(
        "transpose",
        "jnp.transpose",
        normal(2, 3, 4),
        ours=lambda x: hr.transpose(x, [2, 0, 1]),
        theirs=lambda x: jnp.transpose(x, (2, 0, 1)),
        mode="permutation",
    ),
    row("matrix_transpose", "jnp.matrix_transpose", normal(2, 3, 4)),
    row("linalg.adjoint", "jnp.matrix_transpose", normal(2, 3, 4)),
    row(
        "expand_dims",
        "jnp.expand_dims",
        normal(3, 4),
        ours=lambda x: hr.expand_dims(x, 1),
        theirs=lambda x: jnp.expand_dims(x, 1),
    ),
    row("squeeze", "jnp.squeeze", normal(3, 1, 4, 1)),
    row(
        "broadcast_to",
        "jnp.broadcast_to",
        normal(3, 1),
        ours=lambda x: hr.broadcast_to(x, [2, 3, 4]),
        theirs=lambda x: jnp.broadcast_to(x, (2, 3, 4)),
    ),
    row(
        "fill",
        "jnp.full",
        normal(),
        ours=lambda x: hr.fill([2, 3], x),
        theirs=lambda x: jnp.full((2, 3), x),
    ),
    row(
        "lin_space",
        "jnp.linspace",
        normal(),
        normal(),
        ours=lambda x, y: hr.lin_space(x, y, 5),
        theirs=lambda x, y: jnp.linspace(x, y, 5),
    ),
    row(
        "concat",
        "jnp.concatenate",
        normal(3, 2),
        normal(3, 4),
        ours=lambda x, y: hr.concat([x, y], 1),
        theirs=lambda x, y: jnp.concatenate([x, y], 1),
    ),
    row(
        "stack",
        "jnp.stack",
        normal(3, 4),
        normal(3, 4),
        ours=lambda x, y: hr.stack([x, y], axis=1),
        theirs=lambda x, y: jnp.stack([x, y], 1),
    ),
    row(
        "parallel_stack",
        "jnp.stack",
        normal(3, 4),
        normal(3, 4),
        ours=lambda x, y: hr.parallel_stack([x, y]),
        theirs=lambda x, y: jnp.stack([x, y]),
    ),
    row(
        "unstack",
        "jnp.unstack",
        normal(3, 4),
        ours=lambda x: hr.unstack(x, axis=1)[:3],
        theirs=lambda x: jnp.unstack(x, axis=1)[:3],
    ),
    row(
        "split",
        "jnp.split",
        normal(3, 6),
        ours=lambda x: hr.split(x, [1, 3, 2], axis=1),
        theirs=lambda x: jnp.split(x, (1, 4), axis=1),
    ),
    row(
        "tile",
        "jnp.tile",
        normal(2, 3),
        ours=lambda x: hr.tile(x, [2, 3]),
        theirs=lambda x: jnp.tile(x, (2, 3)),
    ),
    row(
        "repeat",
        "jnp.repeat",
        normal(3, 4),
        ours=lambda x: hr.repeat(x, [2, 0, 3], axis=0),
        theirs=lambda x: jnp.repeat(x, np.array([2, 0, 3]), axis=0),
    ),
    *[
        row(
            "pad",
            "jnp.pad",
            normal(3, 4),
            ours=lambda x, mode=mode: hr.pad(x, [[1, 2], [0, 2]], mode=mode.upper()),
            theirs=lambda x, mode=mode: jnp.pad(x, ((1, 2), (0, 2)), mode=mode),
            mode=mode,
        )
        for mode in ("constant", "reflect", "symmetric")
    ],
    row(
        "reverse",
        "jnp.flip",
        normal(3, 4),
        ours=lambda x: hr.reverse(x, [0, -1]),
        theirs=lambda x: jnp.flip(x, (0, -1)),
    ),
    row(
        "reverse_sequence",
        "jnp.take_along_axis",
        normal(2, 4, 3),
        ours=lambda x: hr.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0),
        theirs=lambda x: jnp.take_along_axis(
            x, np.array([[1, 0, 2, 3], [2, 1, 0, 3]])[:, :, None], 1
        ),
    ),
    row(
        "roll",
        "jnp.roll",
        normal(3, 4),
        ours=lambda x: hr.roll(x, [1, -2], [0, 1]),
        theirs=lambda x: jnp.roll(x, (1, -2), (0, 1)),
    ),
    row("meshgrid", "jnp.meshgrid", normal(3), normal(4)),
    row(
        "slice",
        "lax.slice",
        normal(3, 4),
        ours=lambda x: hr.slice(x, [1, 0], [2, 3]),
        theirs=lambda x: lax.slice(x, (1, 0), (3, 3)),
    ),
    row(
        "strided_slice",
        "lax.slice",
        normal(4, 6),
        ours=lambda x: hr.strided_slice(x, [1, 0], [4, 5], [2, 2]),
        theirs=lambda x: lax.slice(x, (1, 0), (4, 5), (2, 2)),
    ),
    row(
        "Tensor.__getitem__",
        "jax.Array.__getitem__",
        normal(3, 4, 5),
        ours=lambda x: x[1:, ..., ::-2, None],
        theirs=lambda x: x[1:, ..., ::-2, None],
    ),
    row(
        "diag",
        "jnp.diag",
        normal(4),
    ),
    row("diag_part", "jnp.diagonal", normal(4, 4)),
    row("linalg.diag", "torch.diag_embed", normal(2, 3)),
    row(
        "linalg.diag_part",
        "torch.diagonal",
        normal(2, 3, 4),
        theirs=lambda x: torch.diagonal(x, dim1=-2, dim2=-1),
    ),
    row(
        "linalg.set_diag",
        "torch.diagonal_scatter",
        normal(2, 3, 4),
        normal(2, 3),
        theirs=lambda x, y: torch.diagonal_scatter(x, y, dim1=-2, dim2=-1),
    ),
    row(
        "matrix_band_part",
        "jnp.tril",
        normal(3, 4),
        ours=lambda x: hr.matrix_band_part(x, -1, 0),
    ),
    row(
        "matrix_band_part",
        "jnp.tril, jnp.triu",
        normal(2, 4, 5),
        ours=lambda x: hr.matrix_band_part(x, 1, 2),
        theirs=lambda x: jnp.triu(jnp.tril(x, 2), -1),
        mode="band",
    ),
    row(
        "space_to_depth",
        "F.pixel_unshuffle",
        normal(2, 4, 6, 1),
        ours=lambda x: hr.space_to_depth(x, 2),
        theirs=lambda x: F.pixel_unshuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
    ),
    row(
        "depth_to_space",
        "F.pixel_shuffle",
        normal(2, 2, 3, 4),
        ours=lambda x: hr.depth_to_space(x, 2),
        theirs=lambda x: F.pixel_shuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
    ),
    row(
        "space_to_batch",
        "jnp.pad, jnp.transpose",
        normal(1, 4, 5, 2),
        ours=lambda x: hr.space_to_batch(x, [[0, 0], [1, 0]], 2),
        theirs=lambda x: _batches(jnp.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0))), 2),
    ),
    row(
        "batch_to_space",
        "jnp.transpose",
        normal(4, 2, 3, 2),
        ours=lambda x: hr.batch_to_space(x, [[0, 0], [1, 0]], 2),
        theirs=lambda x: _images(x, 2)[:, :, 1:],
    ),
    row(
        "space_to_batch_nd",
        "jnp.transpose",
        normal(1, 4, 6, 2),
        ours=lambda x: hr.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]),
        theirs=lambda x: _batches(x, 2),
    ),
    row(
        "batch_to_space_nd",
        "jnp.transpose",
        normal(4, 2, 3, 2),
        ours=lambda x: hr.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]]),
        theirs=lambda x: _images(x, 2),
    ),
    row(
        "one_hot",
        "jnp.where",
        normal(),
        normal(),
        ours=lambda on, off: hr.one_hot([1, 0, 3], 4, on, off),
        theirs=lambda on, off: jnp.where(np.eye(4, dtype=bool)[[1, 0, 3]], on, off),
    ),
]
