"""Reductions, running sums, orders, and statistics."""

from __future__ import annotations

import numpy as np

import headrace as hr

from .libraries import F, jnn, jnp, jsp, lax, torch
from .rows import apart, normal, row, signed, uniform

ROWS = [
    row("reduce_sum", "jnp.sum", normal(3, 4)),
    row(
        "reduce_sum",
        "jnp.sum",
        normal(2, 3, 4),
        ours=lambda x: hr.reduce_sum(x, [0, -1], keepdims=True),
        theirs=lambda x: jnp.sum(x, (0, -1), keepdims=True),
        mode="two axes",
    ),
    row(
        "reduce_mean",
        "jnp.mean",
        normal(2, 3, 4),
        ours=lambda x: hr.reduce_mean(x, 1),
        theirs=lambda x: jnp.mean(x, 1),
    ),
    row(
        "reduce_prod",
        "jnp.prod",
        signed(0.5, 2, 3, 4),
        ours=lambda x: hr.reduce_prod(x, 1),
        theirs=lambda x: jnp.prod(x, 1),
    ),
    row(
        "reduce_max",
        "jnp.max",
        apart(3, 4),
        ours=lambda x: hr.reduce_max(x, 0),
        theirs=lambda x: jnp.max(x, 0),
    ),
    row("reduce_min", "jnp.min", apart(3, 4)),
    row(
        "reduce_logsumexp",
        "jsp.logsumexp",
        normal(3, 4),
        ours=lambda x: hr.reduce_logsumexp(x, -1),
        theirs=lambda x: jsp.logsumexp(x, -1),
    ),
    row(
        "reduce_euclidean_norm",
        "jnp.linalg.norm",
        normal(3, 4),
        ours=lambda x: hr.reduce_euclidean_norm(x, 1),
        theirs=lambda x: jnp.linalg.norm(x, axis=1),
    ),
    row(
        "reduce_std",
        "jnp.std",
        normal(3, 4),
        ours=lambda x: hr.reduce_std(x, 0),
        theirs=lambda x: jnp.std(x, 0),
    ),
    row(
        "reduce_variance",
        "jnp.var",
        normal(3, 4),
        ours=lambda x: hr.reduce_variance(x, 1),
        theirs=lambda x: jnp.var(x, 1),
    ),
    row("norm", "jnp.linalg.norm", normal(3, 4)),
    *[
        row(
            "norm",
            "jnp.linalg.norm",
            apart(3, 4),
            ours=lambda x, order=order: hr.norm(x, order, axis=1),
            theirs=lambda x, order=order: jnp.linalg.norm(x, order, axis=1),
            mode=f"order {order}",
        )
        for order in (1, 3, np.inf)
    ],
    row(
        "cumsum",
        "jnp.cumsum",
        normal(3, 4),
        ours=lambda x: hr.cumsum(x, axis=1),
        theirs=lambda x: jnp.cumsum(x, 1),
    ),
    row(
        "cumsum",
        "lax.cumsum",
        normal(3, 4),
        ours=lambda x: hr.cumsum(x, axis=0, exclusive=True, reverse=True),
        theirs=lambda x: lax.cumsum(x, 0, reverse=True) - x,
        mode="exclusive, reverse",
    ),
    row(
        "cumprod",
        "lax.cumprod",
        signed(0.5, 2, 3, 4),
        ours=lambda x: hr.cumprod(x, axis=1, reverse=True),
        theirs=lambda x: lax.cumprod(x, 1, reverse=True),
    ),
    row(
        "cumulative_logsumexp",
        "lax.cumlogsumexp",
        normal(3, 4),
        ours=lambda x: hr.math.cumulative_logsumexp(x, axis=1),
        theirs=lambda x: lax.cumlogsumexp(x, 1),
    ),
    row("sort", "jnp.sort", apart(3, 4)),
    row(
        "sort",
        "jnp.sort",
        apart(3, 4),
        ours=lambda x: hr.sort(x, axis=0, direction="DESCENDING"),
        theirs=lambda x: jnp.sort(x, 0, descending=True),
        mode="descending",
    ),
    row(
        "nn.top_k",
        "lax.top_k",
        apart(3, 5),
        ours=lambda x: hr.nn.top_k(x, 2)[0],
        theirs=lambda x: lax.top_k(x, 2)[0],
    ),
    row(
        "nn.moments",
        "jnp.mean, jnp.var",
        normal(2, 3, 4),
        ours=lambda x: hr.nn.moments(x, [0, 1]),
        theirs=lambda x: (jnp.mean(x, (0, 1)), jnp.var(x, (0, 1))),
    ),
    row(
        "nn.weighted_moments",
        "jnp.average",
        normal(3, 4),
        uniform(0.2, 1, 3, 4),
        ours=lambda x, w: hr.nn.weighted_moments(x, [0], w),
        theirs=lambda x, w: (
            jnp.average(x, 0, w),
            jnp.average(jnp.square(x - jnp.average(x, 0, w)), 0, w),
        ),
    ),
    row(
        "nn.sufficient_statistics",
        "jnp.sum",
        normal(3, 4),
        normal(),
        ours=lambda x, s: hr.nn.sufficient_statistics(x, [0], shift=s)[1:3],
        theirs=lambda x, s: (jnp.sum(x - s, 0), jnp.sum(jnp.square(x - s), 0)),
    ),
    row(
        "nn.normalize_moments",
        "jnp.mean, jnp.var",
        normal(3, 4),
        ours=lambda x: hr.nn.normalize_moments(
            hr.ones_like(x[0, 0]) * 3.0,
            hr.reduce_sum(x, 0),
            hr.reduce_sum(hr.square(x), 0),
            None,
        ),
        theirs=lambda x: (jnp.mean(x, 0), jnp.var(x, 0)),
    ),
    row("nn.l2_loss", "jnp.vdot", normal(3, 4), theirs=lambda x: jnp.vdot(x, x) / 2),
    row(
        "nn.l2_normalize",
        "F.normalize",
        normal(3, 4),
        ours=lambda x: hr.nn.l2_normalize(x, axis=1),
        theirs=lambda x: F.normalize(x, dim=1),
    ),
    row("nn.softmax", "jnn.softmax", normal(3, 4)),
    row(
        "nn.softmax",
        "jnn.softmax",
        normal(3, 4),
        ours=lambda x: hr.nn.softmax(x, axis=0),
        theirs=lambda x: jnn.softmax(x, 0),
        mode="first axis",
    ),
    row("nn.log_softmax", "jnn.log_softmax", normal(3, 4)),
    row(
        "bincount",
        "torch.Tensor.index_add",
        normal(6),
        ours=lambda w: hr.bincount(np.array([0, 3, 1, 1, 0, 4], np.int32), weights=w),
        theirs=lambda w: torch.zeros(5, dtype=w.dtype).index_add(
            0, torch.tensor([0, 3, 1, 1, 0, 4]), w
        ),
    ),
]
