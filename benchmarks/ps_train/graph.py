"""The model in words that Headrace and TensorFlow 1 share.

The rows of both tables are divided among the servers. Embeddings are looked up where they are, and
so is the full softmax multiplied; its gradients are computed there, too. What is sampled is
gathered by the worker. The LSTM's weights are on the first server, and it runs on the worker.
"""

from __future__ import annotations

from typing import Any

from benchmarks.ps_train.sizes import (
    BATCH,
    CLASSES,
    FULL,
    RATE,
    SAMPLED,
    SCALE,
    STEPS,
    UNITS,
    WORDS,
)


def train_step(tf: Any, kind: str, servers: int, worker: int) -> tuple[Any, Any, Any]:
    """Build the model.

    Args:
        tf: Headrace, or TensorFlow's names of version 1.
        kind: Which softmax.
        servers: How many parameter servers there are.
        worker: The number of the worker that runs it.

    Returns:
        The words to feed, [BATCH, STEPS + 1]; the operation of a step; and the loss.
    """
    embeddings = _table(tf, "embeddings", [UNITS], servers)
    weights = _table(tf, "weights", [UNITS], servers)
    biases = _table(tf, "biases", [], servers)
    first = tf.random_uniform_initializer(-SCALE, SCALE, seed=1)
    with tf.device("/job:ps/task:0"):
        kernel = tf.get_variable("kernel", [2 * UNITS, 4 * UNITS], initializer=first)
        bias = tf.get_variable("bias", [4 * UNITS], initializer=tf.zeros_initializer())
    with tf.device(f"/job:worker/task:{worker}"):
        fed = tf.placeholder(tf.int64, [BATCH, STEPS + 1])
        inputs = tf.nn.embedding_lookup(embeddings, fed[:, :-1], partition_strategy="div")
        labels = tf.reshape(fed[:, 1:], [WORDS])
        hidden = tf.reshape(_outputs(tf, inputs, kernel, bias), [WORDS, UNITS])
        if kind == FULL:
            logits = tf.concat(_logits(tf, hidden, weights, biases), 1)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        else:
            losses = tf.nn.sampled_softmax_loss(
                weights,
                biases,
                tf.expand_dims(labels, 1),
                hidden,
                SAMPLED,
                CLASSES,
                partition_strategy="div",
            )
        loss = tf.reduce_mean(losses)
        optimizer = tf.train.GradientDescentOptimizer(RATE)
        return fed, optimizer.minimize(loss, colocate_gradients_with_ops=True), loss


def _table(tf: Any, name: str, row: list[int], servers: int) -> list[Any]:
    """Return the parts of a table with a row for each class, one on each server."""
    first = tf.random_uniform_initializer(-SCALE, SCALE, seed=1)
    # As "div" divides them.
    counts = [CLASSES // servers + (part < CLASSES % servers) for part in range(servers)]
    parts = []
    for part, count in enumerate(counts):
        with tf.device(f"/job:ps/task:{part}"):
            parts.append(tf.get_variable(f"{name}_{part}", [count, *row], initializer=first))
    return parts


def _logits(tf: Any, hidden: Any, weights: list[Any], biases: list[Any]) -> list[Any]:
    parts = []
    for part, (matrix, bias) in enumerate(zip(weights, biases, strict=True)):
        with tf.device(f"/job:ps/task:{part}"):
            parts.append(tf.matmul(hidden, matrix, transpose_b=True) + bias)
    return parts


def _outputs(tf: Any, inputs: Any, kernel: Any, bias: Any) -> Any:
    """Return [BATCH, STEPS, UNITS]: what an LSTM gives for each input."""
    state = output = tf.zeros([BATCH, UNITS])
    # Once, and not in each step.
    matrix, offset = tf.identity(kernel), tf.identity(bias)
    outputs = []
    for step in range(STEPS):
        gates = tf.matmul(tf.concat([inputs[:, step], output], 1), matrix) + offset
        taken, fresh, kept, shown = tf.split(gates, 4, 1)
        state = tf.sigmoid(kept + 1.0) * state + tf.sigmoid(taken) * tf.tanh(fresh)
        output = tf.sigmoid(shown) * tf.tanh(state)
        outputs.append(output)
    return tf.stack(outputs, 1)
