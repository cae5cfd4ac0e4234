"""Sparse matrices, sums by segment, and results whose shapes depend on the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, whole

ROWS, COLUMNS, FILLED, WIDTH = 4096, 20_000, 32, 64


def _coordinates(rng: np.random.Generator, rows: int, columns: int, filled: int) -> Arrays:
    """Return a matrix with ``filled`` numbers in each row, in the order of rows and columns."""
    ids = np.sort(rng.integers(0, columns // filled, (rows, filled)), axis=1)
    ids = ids + np.arange(filled) * (columns // filled)
    where = np.stack([np.repeat(np.arange(rows), filled), ids.reshape(-1)], 1)
    return {"where": where.astype(np.int64), "values": normal(rng, rows * filled)}


def _product_dataflow(tf: Any, p: Any, x: Any) -> Any:
    matrix = tf.SparseTensor(x["where"], x["values"], [ROWS, COLUMNS])
    return tf.sparse_tensor_dense_matmul(matrix, p["w"])


def _product_torch(torch: Any, p: Any, x: Any) -> Any:
    starts = torch.arange(0, ROWS * FILLED + 1, FILLED)
    columns = x["where"][:, 1]
    matrix = torch.sparse_csr_tensor(starts, columns, x["values"], (ROWS, COLUMNS))
    return matrix @ p["w"]


def _product_jax(jax: Any, p: Any, x: Any) -> Any:
    rows = x["values"][:, None] * p["w"][x["where"][:, 1]]
    return rows.reshape(ROWS, FILLED, WIDTH).sum(1)


EXAMPLES, FEATURES, KNOWN = 1024, 100_000, 50


def _clicks(rng: np.random.Generator) -> Arrays:
    labels = whole(rng, 2, EXAMPLES, 1).astype(np.float32)
    return {**_coordinates(rng, EXAMPLES, FEATURES, KNOWN), "labels": labels}


def _logistic_dataflow(tf: Any, p: Any, x: Any) -> Any:
    matrix = tf.SparseTensor(x["where"], x["values"], [EXAMPLES, FEATURES])
    logits = tf.sparse_tensor_dense_matmul(matrix, p["w"]) + p["b"]
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=x["labels"], logits=logits)
    return tf.reduce_mean(losses)


def _logistic_torch(torch: Any, p: Any, x: Any) -> Any:
    ids = x["where"][:, 1].reshape(EXAMPLES, KNOWN)
    weights = x["values"].reshape(EXAMPLES, KNOWN)
    bag = torch.nn.functional.embedding_bag
    logits = bag(ids, p["w"], mode="sum", per_sample_weights=weights, sparse=True) + p["b"]
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, x["labels"])


def _logistic_jax(jax: Any, p: Any, x: Any) -> Any:
    rows = x["values"][:, None] * p["w"][x["where"][:, 1]]
    logits = rows.reshape(EXAMPLES, KNOWN, 1).sum(1) + p["b"]
    return (jax.nn.softplus(logits) - x["labels"] * logits).mean()


EDGES, NODES, FEATURES_OF_NODE = 200_000, 10_000, 16


def _edges(rng: np.random.Generator) -> Arrays:
    ids = whole(rng, NODES, 2, EDGES)
    return {"source": ids[0], "target": ids[1]}


def _messages_dataflow(tf: Any, p: Any, x: Any) -> Any:
    rows = tf.gather(p["nodes"], x["source"])
    return tf.unsorted_segment_sum(rows, x["target"], NODES)


def _messages_torch(torch: Any, p: Any, x: Any) -> Any:
    sums = torch.zeros(NODES, FEATURES_OF_NODE)
    return sums.index_add_(0, x["target"], p["nodes"][x["source"]])


def _messages_jax(jax: Any, p: Any, x: Any) -> Any:
    return jax.ops.segment_sum(p["nodes"][x["source"]], x["target"], NODES)


COUNT = 1_000_000


def _sorted_segments(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, COUNT), "ids": np.sort(whole(rng, NODES, COUNT))}


def _segments_dataflow(tf: Any, p: Any, x: Any) -> Any:
    ids = p["ids"]
    sums = tf.unsorted_segment_sum(p["x"], ids, NODES)
    counts = tf.unsorted_segment_sum(tf.ones_like(p["x"]), ids, NODES)
    return sums / tf.maximum(counts, 1.0)


def _segments_torch(torch: Any, p: Any, x: Any) -> Any:
    sums = torch.zeros(NODES).index_add_(0, p["ids"], p["x"])
    counts = torch.zeros(NODES).index_add_(0, p["ids"], torch.ones_like(p["x"]))
    return sums / counts.clamp_min(1.0)


def _segments_jax(jax: Any, p: Any, x: Any) -> Any:
    sums = jax.ops.segment_sum(p["x"], p["ids"], NODES)
    counts = jax.ops.segment_sum(jax.numpy.ones_like(p["x"]), p["ids"], NODES)
    return sums / jax.numpy.maximum(counts, 1.0)


def _numbers(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, COUNT)}


def _mask_dataflow(tf: Any, p: Any, x: Any) -> Any:
    kept = tf.boolean_mask(x["x"], x["x"] > 0.5)
    return tf.reduce_sum(tf.sqrt(kept) * 2.0 + 1.0)


def _mask_torch(torch: Any, p: Any, x: Any) -> Any:
    kept = x["x"][x["x"] > 0.5]
    return (kept.sqrt() * 2.0 + 1.0).sum()


def _unique_dataflow(tf: Any, p: Any, x: Any) -> Any:
    found, at = tf.unique(x["ids"])
    return tf.size(found), tf.reduce_max(at)


def _unique_torch(torch: Any, p: Any, x: Any) -> Any:
    found, at = torch.unique(x["ids"], return_inverse=True, sorted=False)
    return torch.tensor(found.numel()), at.max()


def _shares_dataflow(tf: Any, p: Any, x: Any) -> Any:
    matrix = tf.SparseTensor(x["where"], x["values"], [EXAMPLES, FEATURES])
    return tf.sparse_softmax(matrix).values, tf.sparse_reduce_max(matrix, 1)


def _shares_torch(torch: Any, p: Any, x: Any) -> Any:
    rows, values = x["where"][:, 0], x["values"]
    most = torch.zeros(EXAMPLES).scatter_reduce(0, rows, values, "amax", include_self=False)
    parts = torch.exp(values - most[rows])
    return parts / torch.zeros(EXAMPLES).index_add_(0, rows, parts)[rows], most


def _shares_jax(jax: Any, p: Any, x: Any) -> Any:
    rows, values = x["where"][:, 0], x["values"]
    most = jax.ops.segment_max(values, rows, EXAMPLES)
    parts = jax.numpy.exp(values - most[rows])
    return parts / jax.ops.segment_sum(parts, rows, EXAMPLES)[rows], most


CASES = (
    Case(
        "sparse-product",
        f"{ROWS} x {COLUMNS} with {FILLED} numbers a row, times {COLUMNS} x {WIDTH}",
        _product_dataflow,
        _product_torch,
        _product_jax,
        state=lambda rng: {"w": normal(rng, COLUMNS, WIDTH)},
        batch=lambda rng: _coordinates(rng, ROWS, COLUMNS, FILLED),
    ),
    Case(
        "sparse-logistic",
        f"logistic regression on {EXAMPLES} x {KNOWN} of {FEATURES} features, sgd",
        _logistic_dataflow,
        _logistic_torch,
        _logistic_jax,
        state=lambda _: {"w": np.zeros((FEATURES, 1), np.float32), "b": np.zeros(1, np.float32)},
        batch=_clicks,
        optimizer="sgd",
        rate=0.5,
        row_sparse=("w",),
        steps=50,
    ),
    Case(
        "messages",
        f"sums of {EDGES} gathered rows of {FEATURES_OF_NODE} into {NODES}, in no order",
        _messages_dataflow,
        _messages_torch,
        _messages_jax,
        state=lambda rng: {"nodes": normal(rng, NODES, FEATURES_OF_NODE)},
        batch=_edges,
    ),
    Case(
        "sparse-softmax",
        f"softmax and largest of the rows of {EXAMPLES} x {FEATURES} with {KNOWN} numbers a row",
        _shares_dataflow,
        _shares_torch,
        _shares_jax,
        batch=lambda rng: _coordinates(rng, EXAMPLES, FEATURES, KNOWN),
    ),
    Case(
        "segment-means",
        f"means of {COUNT} numbers over {NODES} sorted segments",
        _segments_dataflow,
        _segments_torch,
        _segments_jax,
        state=_sorted_segments,
        batches=1,
    ),
    Case(
        "boolean-mask",
        f"a mask over {COUNT} numbers, and a formula on what it keeps",
        _mask_dataflow,
        _mask_torch,
        batch=_numbers,
    ),
    Case(
        "unique",
        "the different ones among 100 000 of 20 000 integers",
        _unique_dataflow,
        _unique_torch,
        batch=lambda rng: {"ids": whole(rng, 20_000, 100_000)},
        # PyTorch numbers them in another order, but gives the same numbers.
        steps=10,
    ),
)
