"""Normalization, and losses."""

from __future__ import annotations

import numpy as np

import headrace as hr

from .libraries import F, torch
from .rows import fixed, normal, probabilities, row, signed, uniform

CLASSES = np.array([2, 0, 3])
TARGETS = np.array([[1, 2, 2], [3, 1, 0]], np.int32)
LENGTHS = [3, 2]


def _norm(x, mean, variance, offset, scale):
    return F.batch_norm(x, mean, variance, scale, offset, eps=0.01)


def _images(x):
    """Return channels in second place, where PyTorch has them."""
    return torch.movedim(x, -1, 1)


def _back(x):
    return torch.movedim(x, 1, -1)


def _ctc(x, blank):
    return F.ctc_loss(
        F.log_softmax(x, -1),
        torch.from_numpy(TARGETS.astype(np.int64) + (blank == 0)),
        torch.tensor([6, 5]),
        torch.tensor(LENGTHS),
        blank=blank,
        reduction="none",
    )


def _sparse_labels():
    places = [[i, j] for i, n in enumerate(LENGTHS) for j in range(n)]
    return hr.SparseTensor(
        np.array(places, np.int64),
        np.array([TARGETS[i, j] for i, j in places], np.int32),
        np.array([2, 3], np.int64),
    )


ROWS = [
    row("nn.bias_add", "jnp.add", normal(2, 3, 4), normal(4)),
    row(
        "nn.xw_plus_b",
        "F.linear",
        normal(3, 4),
        normal(4, 2),
        normal(2),
        theirs=lambda x, w, b: F.linear(x, w.T, b),
    ),
    row(
        "nn.relu_layer",
        "F.linear, F.relu",
        normal(3, 4),
        normal(4, 2),
        normal(2),
        theirs=lambda x, w, b: F.relu(F.linear(x, w.T, b)),
    ),
    row(
        "nn.batch_normalization",
        "F.batch_norm",
        normal(5, 3),
        fixed(normal(3)),
        fixed(uniform(0.5, 2, 3)),
        normal(3),
        normal(3),
        ours=lambda *xs: hr.nn.batch_normalization(*xs, 0.01),
        theirs=_norm,
    ),
    row(
        "nn.batch_norm_with_global_normalization",
        "F.batch_norm",
        normal(2, 2, 2, 3),
        fixed(normal(3)),
        fixed(uniform(0.5, 2, 3)),
        normal(3),
        normal(3),
        ours=lambda *xs: hr.nn.batch_norm_with_global_normalization(*xs, 0.01, True),
        theirs=lambda x, *rest: _back(_norm(_images(x), *rest)),
    ),
    row(
        "nn.fused_batch_norm",
        "F.batch_norm",
        normal(2, 3, 3, 2),
        normal(2),
        normal(2),
        ours=lambda x, scale, offset: hr.nn.fused_batch_norm(x, scale, offset)[0],
        theirs=lambda x, scale, offset: _back(
            F.batch_norm(_images(x), None, None, scale, offset, training=True, eps=0.001)
        ),
        mode="training",
    ),
    row(
        "nn.fused_batch_norm",
        "F.batch_norm",
        normal(2, 3, 3, 2),
        normal(2),
        normal(2),
        fixed(normal(2)),
        fixed(uniform(0.5, 2, 2)),
        ours=lambda *xs: hr.nn.fused_batch_norm(*xs, epsilon=0.01, is_training=False)[0],
        theirs=lambda x, scale, offset, mean, variance: _back(
            _norm(_images(x), mean, variance, offset, scale)
        ),
        mode="inference",
    ),
    row(
        "nn.layer_norm",
        "F.layer_norm",
        normal(3, 4),
        normal(4),
        normal(4),
        ours=lambda x, scale, offset: hr.nn.layer_norm(x, scale, offset, epsilon=1e-3),
        theirs=lambda x, scale, offset: F.layer_norm(x, (4,), scale, offset, 1e-3),
    ),
    row(
        "nn.local_response_normalization",
        "F.local_response_norm",
        normal(2, 2, 2, 6),
        ours=lambda x: hr.nn.local_response_normalization(x, 2, bias=1.5, alpha=0.3, beta=0.75),
        # PyTorch divides alpha by the number of channels in the window.
        theirs=lambda x: _back(F.local_response_norm(_images(x), 5, 0.3 * 5, 0.75, 1.5)),
    ),
    row(
        "nn.softmax_cross_entropy_with_logits_v2",
        "F.cross_entropy",
        probabilities(3, 4),
        normal(3, 4),
        theirs=lambda labels, x: F.cross_entropy(x, labels, reduction="none"),
    ),
    row(
        "nn.softmax_cross_entropy_with_logits",
        "F.cross_entropy",
        fixed(probabilities(3, 4)),
        normal(3, 4),
        ours=lambda labels, x: hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x),
        theirs=lambda labels, x: F.cross_entropy(x, labels, reduction="none"),
    ),
    row(
        "nn.sparse_softmax_cross_entropy_with_logits",
        "F.cross_entropy",
        normal(3, 4),
        ours=lambda x: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=CLASSES, logits=x),
        theirs=lambda x: F.cross_entropy(x, torch.from_numpy(CLASSES), reduction="none"),
    ),
    row(
        "nn.sigmoid_cross_entropy_with_logits",
        "F.binary_cross_entropy_with_logits",
        uniform(0.1, 0.9, 3, 4),
        signed(0.1, 2, 3, 4),
        ours=lambda y, x: hr.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        theirs=lambda y, x: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    ),
    row(
        "nn.weighted_cross_entropy_with_logits",
        "F.binary_cross_entropy_with_logits",
        fixed(uniform(0.1, 0.9, 3, 4)),
        signed(0.1, 2, 3, 4),
        ours=lambda y, x: hr.nn.weighted_cross_entropy_with_logits(
            labels=y, logits=x, pos_weight=1.7
        ),
        theirs=lambda y, x: F.binary_cross_entropy_with_logits(
            x, y, reduction="none", pos_weight=torch.tensor(1.7, dtype=x.dtype)
        ),
    ),
    row(
        "nn.log_poisson_loss",
        "F.poisson_nll_loss",
        fixed(uniform(0.5, 3, 3, 4)),
        normal(3, 4),
        theirs=lambda y, x: F.poisson_nll_loss(x, y, reduction="none"),
    ),
    row(
        "nn.ctc_loss",
        "F.ctc_loss",
        normal(6, 2, 5),
        ours=lambda x: hr.nn.ctc_loss(_sparse_labels(), x, [6, 5]),
        theirs=lambda x: _ctc(x, 4),
    ),
    row(
        "nn.ctc_loss_v2",
        "F.ctc_loss",
        normal(6, 2, 5),
        ours=lambda x: hr.nn.ctc_loss_v2(TARGETS + 1, x, LENGTHS, [6, 5], blank_index=0),
        theirs=lambda x: _ctc(x, 0),
    ),
]
