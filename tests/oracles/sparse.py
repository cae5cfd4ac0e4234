"""Sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr

from .libraries import jnp, torch
from .rows import apart, normal, row

PLACES = np.array([[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]], np.int64)
SHAPE = (3, 4)


def _ours(values: Any) -> Any:
    return hr.SparseTensor(PLACES, values, np.array(SHAPE, np.int64))


def _theirs(values: Any) -> Any:
    return torch.sparse_coo_tensor(
        torch.from_numpy(PLACES.T.copy()), values, SHAPE, is_coalesced=True, check_invariants=True
    )


ROWS = [
    row(
        "sparse_tensor_dense_matmul",
        "torch.sparse.mm",
        normal(5),
        normal(4, 2),
        ours=lambda v, y: hr.sparse_tensor_dense_matmul(_ours(v), y),
        theirs=lambda v, y: torch.sparse.mm(_theirs(v), y),
    ),
    row(
        "sparse_tensor_to_dense",
        "torch.Tensor.to_dense",
        normal(5),
        ours=lambda v: hr.sparse_tensor_to_dense(_ours(v)),
        theirs=lambda v: _theirs(v).to_dense(),
    ),
    row(
        "sparse_reduce_sum",
        "torch.sparse.sum",
        normal(5),
        ours=lambda v: hr.sparse_reduce_sum(_ours(v), 1),
        theirs=lambda v: torch.sparse.sum(_theirs(v), 1).to_dense(),
    ),
    row(
        "sparse_softmax",
        "torch.sparse.softmax",
        normal(5),
        ours=lambda v: hr.sparse_softmax(_ours(v)).values,
        theirs=lambda v: torch.sparse.softmax(_theirs(v), 1).coalesce().values(),
    ),
    row(
        "sparse_transpose",
        "torch.transpose",
        normal(5),
        ours=lambda v: hr.sparse_tensor_to_dense(hr.sparse_transpose(_ours(v))),
        theirs=lambda v: torch.transpose(_theirs(v), 0, 1).to_dense(),
    ),
    row(
        "sparse_reduce_max",
        "jnp.max",
        apart(5),
        ours=lambda v: hr.sparse_reduce_max(_ours(v), 1),
        theirs=lambda v: jnp.max(jnp.full(SHAPE, -jnp.inf, v.dtype).at[tuple(PLACES.T)].set(v), 1),
    ),
    row(
        "sparse_to_dense",
        "jax.Array.at",
        normal(5),
        normal(),
        ours=lambda v, default: hr.sparse_to_dense(PLACES, SHAPE, v, default),
        theirs=lambda v, default: jnp.full(SHAPE, default).at[tuple(PLACES.T)].set(v),
    ),
    row(
        "sparse_add",
        "torch.add",
        normal(5),
        normal(3, 4),
        ours=lambda v, y: hr.sparse_add(_ours(v), y),
        theirs=lambda v, y: torch.add(y, _theirs(v)),
    ),
    row(
        "sparse_concat",
        "torch.cat",
        normal(5),
        normal(5),
        ours=lambda v, w: hr.sparse_tensor_to_dense(hr.sparse_concat(0, [_ours(v), _ours(w)])),
        theirs=lambda v, w: torch.cat([_theirs(v).to_dense(), _theirs(w).to_dense()]),
    ),
    row(
        "sparse_reshape",
        "torch.reshape",
        normal(5),
        ours=lambda v: hr.sparse_tensor_to_dense(hr.sparse_reshape(_ours(v), [2, 6])),
        theirs=lambda v: torch.reshape(_theirs(v).to_dense(), (2, 6)),
    ),
]
