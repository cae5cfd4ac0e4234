"""Choosing elements by indices, and adding them up by segments."""

from __future__ import annotations

import numpy as np

import headrace as hr

from .libraries import F, jnp, jops, torch
from .rows import apart, normal, row, signed

ROWS_OF = np.array([2, 0, 2, 1])
PLACES = np.array([[0, 1], [2, 3], [2, 3], [1, 0]])
SORTED = np.array([0, 0, 1, 3, 3])
SHUFFLED = np.array([3, 0, 1, 0, 3])
COUNTS = np.array([2, 1, 1, 2])  # of both, 1 where there is none
MASK = np.array([[True, False, True], [False, True, True]])


def _scatter(method):
    """Return what writes updates to ``PLACES`` of an array, in JAX."""
    where = (np.array([0, 2, 1]), np.array([1, 3, 0]))
    return lambda x, updates: getattr(x.at[where], method)(updates)


DISTINCT = np.array([[0, 1], [2, 3], [1, 0]])

ROWS = [
    row(
        "gather",
        "jnp.take",
        normal(3, 4),
        ours=lambda x: hr.gather(x, ROWS_OF),
        theirs=lambda x: jnp.take(x, ROWS_OF, axis=0),
    ),
    row(
        "gather",
        "jnp.take",
        normal(2, 3, 4),
        ours=lambda x: hr.gather(x, ROWS_OF, axis=1),
        theirs=lambda x: jnp.take(x, ROWS_OF, axis=1),
        mode="second axis",
    ),
    row(
        "batch_gather",
        "jnp.take_along_axis",
        normal(2, 4),
        ours=lambda x: hr.batch_gather(x, [[3, 0, 3], [1, 1, 2]]),
        theirs=lambda x: jnp.take_along_axis(x, np.array([[3, 0, 3], [1, 1, 2]]), 1),
    ),
    row(
        "gather_nd",
        "jax.Array.__getitem__",
        normal(3, 4, 2),
        ours=lambda x: hr.gather_nd(x, PLACES),
        theirs=lambda x: x[tuple(PLACES.T)],
    ),
    row(
        "scatter_nd",
        "jax.Array.at",
        normal(4),
        ours=lambda u: hr.scatter_nd(PLACES, u, np.array([3, 4], np.int64)),
        theirs=lambda u: jnp.zeros((3, 4), u.dtype).at[tuple(PLACES.T)].add(u),
    ),
    *[
        row(
            f"tensor_scatter_{ours}",
            "jax.Array.at",
            normal(3, 4),
            normal(3),
            ours=lambda x, u, ours=ours: getattr(hr, f"tensor_scatter_{ours}")(x, DISTINCT, u),
            theirs=_scatter(theirs),
        )
        for ours, theirs in {"add": "add", "sub": "subtract", "update": "set"}.items()
    ],
    row(
        "boolean_mask",
        "jax.Array.__getitem__",
        normal(2, 3, 4),
        ours=lambda x: hr.boolean_mask(x, MASK),
        theirs=lambda x: x[MASK],
    ),
    row(
        "dynamic_partition",
        "jax.Array.__getitem__",
        normal(5, 2),
        ours=lambda x: hr.dynamic_partition(x, np.array([1, 0, 1, 1, 0], np.int32), 2),
        theirs=lambda x: [x[np.array([1, 4])], x[np.array([0, 2, 3])]],
    ),
    row(
        "dynamic_stitch",
        "jax.Array.at",
        normal(2, 3),
        normal(3, 3),
        ours=lambda x, y: hr.dynamic_stitch([[4, 1], [0, 2, 3]], [x, y]),
        theirs=lambda x, y: (
            jnp.zeros((5, 3), x.dtype).at[np.array([4, 1])].set(x).at[np.array([0, 2, 3])].set(y)
        ),
    ),
    row(
        "parallel_stitch",
        "jax.Array.at",
        normal(2, 3),
        normal(3, 3),
        ours=lambda x, y: hr.parallel_stitch([[4, 1], [0, 2, 3]], [x, y]),
        theirs=lambda x, y: (
            jnp.zeros((5, 3), x.dtype).at[np.array([4, 1])].set(x).at[np.array([0, 2, 3])].set(y)
        ),
    ),
    row(
        "nn.embedding_lookup",
        "F.embedding",
        normal(3, 4),
        ours=lambda x: hr.nn.embedding_lookup(x, ROWS_OF),
        theirs=lambda x: F.embedding(torch.from_numpy(ROWS_OF), x),
    ),
    row(
        "nn.embedding_lookup",
        "F.embedding",
        normal(2, 4),
        normal(1, 4),
        ours=lambda x, y: hr.nn.embedding_lookup([x, y], ROWS_OF, partition_strategy="div"),
        theirs=lambda x, y: F.embedding(torch.from_numpy(ROWS_OF), torch.cat([x, y])),
        mode="sharded",
    ),
    *[
        row(
            "nn.embedding_lookup_sparse",
            "F.embedding_bag",
            normal(3, 4),
            ours=lambda x, how=how: hr.nn.embedding_lookup_sparse(x, _ids(), None, combiner=how),
            theirs=lambda x, how=how: F.embedding_bag(
                torch.from_numpy(ROWS_OF), x, torch.tensor([0, 3]), mode=how
            ),
            mode=how,
        )
        for how in ("sum", "mean")
    ],
    row(
        "nn.safe_embedding_lookup_sparse",
        "F.embedding_bag",
        normal(3, 4),
        ours=lambda x: hr.nn.safe_embedding_lookup_sparse(x, _ids(), combiner="mean"),
        theirs=lambda x: F.embedding_bag(
            torch.from_numpy(ROWS_OF), x, torch.tensor([0, 3]), mode="mean"
        ),
    ),
    # The references of maxima and minima have infinities where there is no row, ours the lowest
    # number: hence segments without gaps.
    *[
        row(
            f"{kind}segment_{how}",
            f"jops.segment_{how}",
            apart(5, 2),
            ours=lambda x, kind=kind, how=how: (
                getattr(hr, f"segment_{how}")(x, [0, 0, 1, 2, 2])
                if not kind
                else getattr(hr, f"unsorted_segment_{how}")(x, [2, 0, 1, 0, 2], 3)
            ),
            theirs=lambda x, kind=kind, how=how: getattr(jops, f"segment_{how}")(
                x, np.array([2, 0, 1, 0, 2] if kind else [0, 0, 1, 2, 2]), 3
            ),
        )
        for kind in ("", "unsorted_")
        for how in ("sum", "max", "min")
    ],
    row(
        "segment_prod",
        "torch.segment_reduce",
        signed(0.5, 2, 5, 2),
        ours=lambda x: hr.segment_prod(x, [0, 0, 1, 2, 2]),
        theirs=lambda x: torch.segment_reduce(x, "prod", lengths=torch.tensor([2, 1, 2])),
    ),
    row(
        "unsorted_segment_prod",
        "torch.scatter_reduce",
        signed(0.5, 2, 5),
        ours=lambda x: hr.unsorted_segment_prod(x, SHUFFLED, 4),
        theirs=lambda x: torch.scatter_reduce(
            torch.ones(4, dtype=x.dtype), 0, torch.from_numpy(SHUFFLED), x, "prod"
        ),
    ),
    row(
        "segment_mean",
        "jops.segment_sum",
        normal(5, 2),
        ours=lambda x: hr.segment_mean(x, SORTED),
        theirs=lambda x: jops.segment_sum(x, SORTED, 4) / COUNTS[:, None].astype(x.dtype),
    ),
    row(
        "unsorted_segment_mean",
        "jops.segment_sum",
        normal(5, 2),
        ours=lambda x: hr.unsorted_segment_mean(x, SHUFFLED, 4),
        theirs=lambda x: jops.segment_sum(x, SHUFFLED, 4) / COUNTS[:, None].astype(x.dtype),
    ),
    row(
        "unsorted_segment_sqrt_n",
        "jops.segment_sum",
        normal(5, 2),
        ours=lambda x: hr.unsorted_segment_sqrt_n(x, SHUFFLED, 4),
        theirs=lambda x: (
            jops.segment_sum(x, SHUFFLED, 4) / np.sqrt(COUNTS)[:, None].astype(x.dtype)
        ),
    ),
    *[
        row(
            f"sparse.segment_{how}",
            "jops.segment_sum",
            normal(3, 2),
            ours=lambda x, how=how: getattr(hr.sparse, f"segment_{how}")(
                x, [2, 0, 2, 1, 1], SORTED
            ),
            theirs=lambda x, power=power: (
                jops.segment_sum(x[np.array([2, 0, 2, 1, 1])], SORTED, 4)
                / (COUNTS[:, None] ** power).astype(x.dtype)
            ),
        )
        for how, power in {"sum": 0.0, "mean": 1.0, "sqrt_n": 0.5}.items()
    ],
]


def _ids():
    """Return rows 2, 0, 2 for the first bag and 1 for the second."""
    return hr.SparseTensor(
        np.array([[0, 0], [0, 1], [0, 2], [1, 0]], np.int64), ROWS_OF, np.array([2, 3], np.int64)
    )
