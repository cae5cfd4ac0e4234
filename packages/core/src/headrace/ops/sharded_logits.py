"""Scores of all classes from weights in shards, each multiplied where it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import colocate_with, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat
from headrace.ops.embedding import shards_of
from headrace.ops.gather import gather
from headrace.ops.linalg import matmul
from headrace.shapes import Shape


def sharded_logits(
    inputs: Any,
    weights: Any,
    biases: Any = None,
    partition_strategy: str = "div",
    name: str | None = None,
) -> Tensor:
    """Compute the logits of a full softmax over weights in shards.

    Each product, and in gradients each product with the transposed shard, is computed on the
    device of the shard. So the inputs and the logits travel, and the weights do not.

    Args:
        inputs: [batch, dim], floating.
        weights: [classes, dim], or a list of shards, as ``sampled_softmax_loss`` takes them.
        biases: [classes], or a list of as many shards; None for no biases.
        partition_strategy: How shards divide the classes, as for ``embedding_lookup``: "div" or
            "mod".
        name: The name of the operations.

    Returns:
        [batch, classes], the dtype of ``inputs``.

    Raises:
        AttributeValueError: if there are no shards, or the strategy is unknown.
        ShapeError: if with "mod" the rows of the shards are not known, or are not those of a table
            divided so.

    References:
        M. Abadi et al., TensorFlow: a system for large-scale machine learning, OSDI 2016, section
        6.4.
    """
    shards = shards_of(weights)
    if weights is None or not shards:
        raise AttributeValueError("sharded_logits needs weights, or a list of their shards")
    if partition_strategy not in ("mod", "div"):
        raise AttributeValueError(
            f"partition_strategy must be 'mod' or 'div', got {shown(partition_strategy)}"
        )
    with name_scope(name, "sharded_logits"):
        hidden = convert_to_tensor(inputs)
        tables = [t if hasattr(t, "op") else convert_to_tensor(t) for t in shards]
        offsets = [] if biases is None else shards_of(biases)
        together = len(offsets) == len(tables)
        parts = []
        for i, table in enumerate(tables):
            with colocate_with(table):
                part = matmul(hidden, table, transpose_b=True)
                parts.append(part + offsets[i] if together else part)
        logits = parts[0] if len(parts) == 1 else concat(parts, 1)
        if partition_strategy == "mod" and len(parts) > 1:
            logits = gather(logits, _columns(tables), axis=1)
        if offsets and not together:
            if len(offsets) > 1:
                raise ShapeError(
                    f"biases must be whole or in {len(tables)} shards as the weights are, got "
                    f"{len(offsets)}"
                )
            logits = logits + offsets[0]
        return logits


def _columns(tables: list[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return for each class its column in what the shards yield side by side, by "mod"."""
    count = len(tables)
    sizes = [Shape(t.shape)[0] for t in tables]
    known = [size for size in sizes if size is not None]
    total = sum(known)
    if len(known) < count or known != [(total - i + count - 1) // count for i in range(count)]:
        raise ShapeError(
            "with partition_strategy 'mod' the first shards have one row more where the classes "
            f"do not divide evenly; these have {sizes}"
        )
    begins = np.cumsum([0, *known[:-1]])
    classes = np.arange(total)
    columns: np.ndarray[Any, np.dtype[np.int64]] = begins[classes % count] + classes // count
    return columns
