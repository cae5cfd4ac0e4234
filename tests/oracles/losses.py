"""The functions of ``hr.losses``, which compute in float32 whatever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr

from .libraries import F, torch
from .rows import Row, apart, fixed, normal, row, uniform

CLASSES = np.array([2, 0, 3])


def loss(name: str, references: str, *inputs: Any, **rest: Any) -> Row:
    return row(f"losses.{name}", references, *inputs, single=True, **rest)


ROWS = [
    loss(
        "mean_squared_error",
        "F.mse_loss",
        normal(3, 4),
        normal(3, 4),
    ),
    loss("absolute_difference", "F.l1_loss", apart(3, 4), uniform(-0.1, 0.1, 3, 4)),
    loss(
        "huber_loss",
        "F.huber_loss",
        normal(3, 4),
        normal(3, 4),
        ours=lambda y, x: hr.losses.huber_loss(y, x, delta=0.7),
        theirs=lambda y, x: F.huber_loss(x, y, delta=0.7),
    ),
    loss(
        "log_loss",
        "F.binary_cross_entropy",
        fixed(uniform(0.1, 0.9, 3, 4)),
        uniform(0.1, 0.9, 3, 4),
        ours=lambda y, x: hr.losses.log_loss(y, x, epsilon=0.0),
        theirs=lambda y, x: F.binary_cross_entropy(x, y),
    ),
    loss(
        "sigmoid_cross_entropy",
        "F.binary_cross_entropy_with_logits",
        fixed(uniform(0.1, 0.9, 3, 4)),
        normal(3, 4),
        theirs=lambda y, x: F.binary_cross_entropy_with_logits(x, y),
    ),
    loss(
        "softmax_cross_entropy",
        "F.cross_entropy",
        normal(3, 4),
        ours=lambda x: hr.losses.softmax_cross_entropy(
            hr.one_hot(CLASSES, 4, dtype=x.dtype), x, label_smoothing=0.1
        ),
        theirs=lambda x: F.cross_entropy(x, torch.from_numpy(CLASSES), label_smoothing=0.1),
    ),
    loss(
        "sparse_softmax_cross_entropy",
        "F.cross_entropy",
        normal(3, 4),
        ours=lambda x: hr.losses.sparse_softmax_cross_entropy(CLASSES, x),
        theirs=lambda x: F.cross_entropy(x, torch.from_numpy(CLASSES)),
    ),
    loss(
        "hinge_loss",
        "F.hinge_embedding_loss",
        apart(3, 4),
        # With labels of -1 alone, PyTorch's loss is max(0, margin - x); ours max(0, 1 + x).
        ours=lambda x: hr.losses.hinge_loss(hr.zeros_like(x), x * 0.9),
        theirs=lambda x: F.hinge_embedding_loss(-x * 0.9, torch.full_like(x, -1)),
    ),
    loss(
        "cosine_distance",
        "F.cosine_similarity",
        normal(3, 4),
        normal(3, 4),
        ours=lambda x, y: hr.losses.cosine_distance(
            hr.nn.l2_normalize(x, 1), hr.nn.l2_normalize(y, 1), axis=1
        ),
        theirs=lambda x, y: torch.mean(1 - F.cosine_similarity(x, y)),
    ),
    loss(
        "mean_pairwise_squared_error",
        "torch.pdist",
        normal(2, 4),
        normal(2, 4),
        # Over the pairs of each row, of which PyTorch measures distances.
        theirs=lambda x, y: torch.sum(
            torch.stack([torch.mean(torch.pdist(d[:, None]) ** 2) for d in x - y])
        ),
    ),
    loss(
        "compute_weighted_loss",
        "torch.mean",
        normal(3, 4),
        uniform(0.5, 2, 3, 1),
        theirs=lambda x, w: torch.mean(x * w),
    ),
]
