"""Embeddings: rows that are read and updated, one large table or many small ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight, whole

ROWS, WIDTH, EXAMPLES, WORDS = 50_000, 128, 512, 17


def _texts(rng: np.random.Generator) -> Arrays:
    return {"ids": whole(rng, ROWS, EXAMPLES, WORDS), "target": normal(rng, EXAMPLES, WIDTH)}


def _table(rng: np.random.Generator) -> Arrays:
    return {"table": normal(rng, ROWS, WIDTH), "w": weight(rng, WIDTH, WIDTH)}


def _mean_dataflow(tf: Any, p: Any, x: Any) -> Any:
    rows = tf.nn.embedding_lookup(p["table"], x["ids"])
    found = tf.matmul(tf.reduce_mean(rows, axis=1), p["w"])
    return tf.reduce_mean(tf.reduce_sum(tf.squared_difference(found, x["target"]), axis=1))


def _mean_torch(torch: Any, p: Any, x: Any, sparse: bool = True) -> Any:
    pooled = torch.nn.functional.embedding_bag(x["ids"], p["table"], mode="mean", sparse=sparse)
    return ((pooled @ p["w"] - x["target"]) ** 2).sum(1).mean()


def _mean_torch_dense(torch: Any, p: Any, x: Any) -> Any:
    return _mean_torch(torch, p, x, sparse=False)


def _mean_jax(jax: Any, p: Any, x: Any) -> Any:
    pooled = p["table"][x["ids"]].mean(1)
    return ((pooled @ p["w"] - x["target"]) ** 2).sum(1).mean()


def _pooled(optimizer: str, rate: float) -> Case:
    rows = optimizer in ("sgd", "adagrad")
    return Case(
        f"embedding-{optimizer}",
        f"means of {EXAMPLES} x {WORDS} rows of {ROWS} x {WIDTH}, a product, {optimizer}",
        _mean_dataflow,
        # PyTorch's other optimizers leave rows alone that TensorFlow's move.
        _mean_torch if rows else _mean_torch_dense,
        _mean_jax,
        state=_table,
        batch=_texts,
        optimizer=optimizer,
        rate=rate,
        row_sparse=("table",) if rows else (),
        steps=10 if rows else 4,
    )


TABLES, TABLE_ROWS, TABLE_WIDTH = 20, 10_000, 16


def _many_tables(rng: np.random.Generator) -> Arrays:
    made = {f"t{n}": normal(rng, TABLE_ROWS, TABLE_WIDTH) for n in range(TABLES)}
    return {
        **made,
        "w": weight(rng, TABLES * TABLE_WIDTH, 64),
        "v": weight(rng, 64, 1),
    }


def _visits(rng: np.random.Generator) -> Arrays:
    return {
        "ids": whole(rng, TABLE_ROWS, TABLES, EXAMPLES),
        "clicked": whole(rng, 2, EXAMPLES, 1).astype(np.float32),
    }


def _recommend_dataflow(tf: Any, p: Any, x: Any) -> Any:
    rows = [tf.nn.embedding_lookup(p[f"t{n}"], x["ids"][n]) for n in range(TABLES)]
    hidden = tf.nn.relu(tf.matmul(tf.concat(rows, 1), p["w"]))
    logits = tf.matmul(hidden, p["v"])
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=x["clicked"], logits=logits)
    return tf.reduce_mean(losses)


def _recommend_torch(torch: Any, p: Any, x: Any) -> Any:
    look = torch.nn.functional.embedding
    rows = [look(x["ids"][n], p[f"t{n}"], sparse=True) for n in range(TABLES)]
    logits = torch.relu(torch.cat(rows, 1) @ p["w"]) @ p["v"]
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, x["clicked"])


def _recommend_jax(jax: Any, p: Any, x: Any) -> Any:
    rows = [p[f"t{n}"][x["ids"][n]] for n in range(TABLES)]
    logits = jax.nn.relu(jax.numpy.concatenate(rows, 1) @ p["w"]) @ p["v"]
    return (jax.nn.softplus(logits) - x["clicked"] * logits).mean()


CLASSES, SAMPLED, BATCH, UNITS = 50_000, 512, 256, 64


def _classes(rng: np.random.Generator) -> Arrays:
    return {
        "w": normal(rng, CLASSES, UNITS, scale=0.1),
        "b": np.zeros(CLASSES, np.float32),
        "hidden": weight(rng, UNITS, UNITS),
    }


def _labelled(rng: np.random.Generator) -> Arrays:
    # No sampled class is a label: what becomes of such hits is another setting in each library.
    return {
        "x": normal(rng, BATCH, UNITS),
        "labels": whole(rng, CLASSES // 2, BATCH, 1).astype(np.int64),
        "sampled": (CLASSES // 2 + whole(rng, CLASSES // 2, SAMPLED)).astype(np.int64),
    }


# Each candidate counts as expected this often.
_EXPECTED = 0.01


def _candidates_dataflow(kind: str) -> Any:
    def program(tf: Any, p: Any, x: Any) -> Any:
        expected = tf.fill([BATCH, 1], _EXPECTED), tf.fill([SAMPLED], _EXPECTED)
        losses = getattr(tf.nn, f"{kind}_loss")(
            p["w"],
            p["b"],
            x["labels"],
            tf.tanh(tf.matmul(x["x"], p["hidden"])),
            SAMPLED,
            CLASSES,
            sampled_values=(x["sampled"], *expected),
            remove_accidental_hits=False,
        )
        return tf.reduce_mean(losses)

    return program


def _logits(tanh: Any, look: Any, p: Any, x: Any) -> tuple[Any, Any]:
    """Return logits of the labels [batch, 1] and of the candidates [batch, sampled]."""
    hidden = tanh(x["x"] @ p["hidden"])
    labels, sampled = x["labels"].reshape(-1), x["sampled"]
    ours = (hidden * look(p["w"], labels)).sum(1) + look(p["b"], labels)
    others = hidden @ look(p["w"], sampled).T + look(p["b"], sampled)
    shift = float(np.log(_EXPECTED))
    return ours[:, None] - shift, others - shift


def _look_torch(torch: Any) -> Any:
    def look(table: Any, ids: Any) -> Any:
        if table.dim() == 1:
            return table[ids]
        return torch.nn.functional.embedding(ids, table, sparse=True)

    return look


def _sampled_torch(torch: Any, p: Any, x: Any) -> Any:
    ours, others = _logits(torch.tanh, _look_torch(torch), p, x)
    return (torch.logsumexp(torch.cat([ours, others], 1), 1) - ours[:, 0]).mean()


def _sampled_jax(jax: Any, p: Any, x: Any) -> Any:
    ours, others = _logits(jax.numpy.tanh, lambda t, i: t[i], p, x)
    both = jax.numpy.concatenate([ours, others], 1)
    return (jax.nn.logsumexp(both, 1) - ours[:, 0]).mean()


def _nce_torch(torch: Any, p: Any, x: Any) -> Any:
    ours, others = _logits(torch.tanh, _look_torch(torch), p, x)
    plus = torch.nn.functional.softplus
    return (plus(-ours).sum(1) + plus(others).sum(1)).mean()


def _nce_jax(jax: Any, p: Any, x: Any) -> Any:
    ours, others = _logits(jax.numpy.tanh, lambda t, i: t[i], p, x)
    return (jax.nn.softplus(-ours).sum(1) + jax.nn.softplus(others).sum(1)).mean()


def _candidates(name: str, kind: str, torch: Any, jax: Any, rate: float) -> Case:
    return Case(
        name,
        f"{SAMPLED} sampled of {CLASSES} classes, batch {BATCH}, {UNITS} units, sgd",
        _candidates_dataflow(kind),
        torch,
        jax,
        state=_classes,
        batch=_labelled,
        optimizer="sgd",
        rate=rate,
        row_sparse=("w",),
    )


CASES = (
    _pooled("sgd", 0.01),
    _pooled("adagrad", 0.05),
    _pooled("adam", 0.001),
    Case(
        "many-tables",
        f"{EXAMPLES} rows of each of {TABLES} tables {TABLE_ROWS} x {TABLE_WIDTH}, two layers, sgd",
        _recommend_dataflow,
        _recommend_torch,
        _recommend_jax,
        state=_many_tables,
        batch=_visits,
        optimizer="sgd",
        rate=0.1,
        row_sparse=tuple(f"t{n}" for n in range(TABLES)),
    ),
    _candidates("sampled-softmax", "sampled_softmax", _sampled_torch, _sampled_jax, 0.1),
    _candidates("nce", "nce", _nce_torch, _nce_jax, 0.01),
)
