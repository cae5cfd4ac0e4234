"""Networks over time: loops, scans, cells of the library, and steps built one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight

TIME, BATCH, UNITS = 50, 32, 128


def _gru_state(rng: np.random.Generator) -> Arrays:
    return {
        "gates": weight(rng, 2 * UNITS, 2 * UNITS),
        "candidate": weight(rng, 2 * UNITS, UNITS),
        "gates_bias": np.ones(2 * UNITS, np.float32),
        "candidate_bias": np.zeros(UNITS, np.float32),
    }


def _series(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, TIME, BATCH, UNITS), "target": normal(rng, BATCH, UNITS)}


def _gru_cell(tf: Any, p: Any, x: Any, h: Any) -> Any:
    both = tf.sigmoid(tf.matmul(tf.concat([x, h], 1), p["gates"]) + p["gates_bias"])
    reset, update = tf.split(both, 2, 1)
    candidate = tf.matmul(tf.concat([x, reset * h], 1), p["candidate"]) + p["candidate_bias"]
    return update * h + (1.0 - update) * tf.tanh(candidate)


def _gru_while(tf: Any, p: Any, x: Any) -> Any:
    start = tf.constant(0), tf.zeros([BATCH, UNITS])
    _, h = tf.while_loop(
        lambda t, h: t < TIME, lambda t, h: (t + 1, _gru_cell(tf, p, x["x"][t], h)), start
    )
    return tf.reduce_mean(tf.squared_difference(h, x["target"]))


def _gru_dynamic(tf: Any, p: Any, x: Any) -> Any:
    class Cell(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc, name-defined]
        @property
        def state_size(self) -> int:
            return UNITS

        @property
        def output_size(self) -> int:
            return UNITS

        def zero_state(self, batch_size: Any, dtype: Any) -> Any:
            return tf.zeros([BATCH, UNITS], dtype)

        def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
            new = _gru_cell(tf, p, inputs, state)
            return new, new

    _, h = tf.nn.dynamic_rnn(Cell(), x["x"], time_major=True, dtype=tf.float32)
    return tf.reduce_mean(tf.squared_difference(h, x["target"]))


def _gru_torch(torch: Any, p: Any, x: Any) -> Any:
    h = torch.zeros(BATCH, UNITS)
    for t in range(TIME):
        now = x["x"][t]
        both = torch.sigmoid(torch.addmm(p["gates_bias"], torch.cat([now, h], 1), p["gates"]))
        reset, update = both.chunk(2, 1)
        joined = torch.cat([now, reset * h], 1)
        candidate = torch.tanh(torch.addmm(p["candidate_bias"], joined, p["candidate"]))
        h = update * h + (1.0 - update) * candidate
    return ((h - x["target"]) ** 2).mean()


def _gru_jax(jax: Any, p: Any, x: Any) -> Any:
    jnp = jax.numpy

    def cell(h: Any, now: Any) -> Any:
        both = jnp.concatenate([now, h], 1) @ p["gates"] + p["gates_bias"]
        reset, update = jnp.split(jax.nn.sigmoid(both), 2, 1)
        joined = jnp.concatenate([now, reset * h], 1)
        candidate = jnp.tanh(joined @ p["candidate"] + p["candidate_bias"])
        return update * h + (1.0 - update) * candidate, None

    h, _ = jax.lax.scan(cell, jnp.zeros((BATCH, UNITS), jnp.float32), x["x"])
    return ((h - x["target"]) ** 2).mean()


def _gru(name: str, how: str, dataflow: Any) -> Case:
    return Case(
        name,
        f"GRU of {UNITS} units, {TIME} steps, batch {BATCH}, by {how}, sgd",
        dataflow,
        _gru_torch,
        _gru_jax,
        state=_gru_state,
        batch=_series,
        optimizer="sgd",
        rate=0.1,
        steps=5,
    )


def _lstm_state(rng: np.random.Generator) -> Arrays:
    return {"w": weight(rng, 2 * UNITS, 4 * UNITS), "b": np.zeros(4 * UNITS, np.float32)}


def _lstm_scan(tf: Any, p: Any, x: Any) -> Any:
    def cell(state: Any, now: Any) -> Any:
        h, c = state
        gates = tf.matmul(tf.concat([now, h], 1), p["w"]) + p["b"]
        write, candidate, keep, show = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(candidate)
        return tf.tanh(c) * tf.sigmoid(show), c

    zeros = tf.zeros([BATCH, UNITS])
    outputs, _ = tf.scan(cell, x["x"], (zeros, zeros))
    return tf.reduce_mean(tf.squared_difference(outputs[-1], x["target"]))


def _lstm_torch(torch: Any, p: Any, x: Any) -> Any:
    # The library's LSTM: its order of gates is write, keep, candidate, show.
    write, candidate, keep, show = (part for part in p["w"].chunk(4, 1))
    w = torch.cat([write, keep, candidate, show], 1).T
    write, candidate, keep, show = (part for part in p["b"].chunk(4))
    b = torch.cat([write, keep + 1.0, candidate, show])
    zeros = torch.zeros(1, BATCH, UNITS)
    flat = [w[:, :UNITS].contiguous(), w[:, UNITS:].contiguous(), b, torch.zeros_like(b)]
    lstm = torch.lstm
    outputs, _, _ = lstm(x["x"], (zeros, zeros), flat, True, 1, 0.0, True, False, False)
    return ((outputs[-1] - x["target"]) ** 2).mean()


def _lstm_jax(jax: Any, p: Any, x: Any) -> Any:
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def cell(state: Any, now: Any) -> Any:
        h, c = state
        gates = jnp.concatenate([now, h], 1) @ p["w"] + p["b"]
        write, candidate, keep, show = jnp.split(gates, 4, 1)
        c = c * sigmoid(keep + 1.0) + sigmoid(write) * jnp.tanh(candidate)
        return (jnp.tanh(c) * sigmoid(show), c), None

    zeros = jnp.zeros((BATCH, UNITS), jnp.float32)
    (h, _), _ = jax.lax.scan(cell, (zeros, zeros), x["x"])
    return ((h - x["target"]) ** 2).mean()


UNROLLED = 20


def _rnn_batch(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, UNROLLED, BATCH, UNITS), "target": normal(rng, BATCH, UNITS)}


def _rnn(library: Any, product: Any, zeros: Any, p: Any, x: Any) -> Any:
    h = zeros
    for t in range(UNROLLED):
        h = library.tanh(product(x["x"][t], p["w"]) + product(h, p["u"]) + p["b"])
    return h


def _rnn_dataflow(tf: Any, p: Any, x: Any) -> Any:
    h = _rnn(tf, tf.matmul, tf.zeros([BATCH, UNITS]), p, x)
    return tf.reduce_mean(tf.squared_difference(h, x["target"]))


def _rnn_torch(torch: Any, p: Any, x: Any) -> Any:
    h = _rnn(torch, torch.mm, torch.zeros(BATCH, UNITS), p, x)
    return ((h - x["target"]) ** 2).mean()


def _rnn_jax(jax: Any, p: Any, x: Any) -> Any:
    jnp = jax.numpy
    h = _rnn(jnp, jnp.matmul, jnp.zeros((BATCH, UNITS), jnp.float32), p, x)
    return ((h - x["target"]) ** 2).mean()


SOURCE, TARGET, SMALL = 40, 20, 64


def _decoder_state(rng: np.random.Generator) -> Arrays:
    return {"query": weight(rng, SMALL, SMALL), "join": weight(rng, 2 * SMALL, SMALL)}


def _decoder_batch(rng: np.random.Generator) -> Arrays:
    return {"memory": normal(rng, BATCH, SOURCE, SMALL), "target": normal(rng, BATCH, SMALL)}


def _decoder_dataflow(tf: Any, p: Any, x: Any) -> Any:
    memory = x["memory"]

    def body(t: Any, h: Any) -> Any:
        query = tf.matmul(h, p["query"])
        scores = tf.reduce_sum(memory * tf.expand_dims(query, 1), axis=2)
        shares = tf.nn.softmax(scores * SMALL**-0.5)
        context = tf.reduce_sum(memory * tf.expand_dims(shares, 2), axis=1)
        return t + 1, tf.tanh(tf.matmul(tf.concat([h, context], 1), p["join"]))

    start = tf.constant(0), tf.ones([BATCH, SMALL])
    _, h = tf.while_loop(lambda t, h: t < TARGET, body, start)
    return tf.reduce_mean(tf.squared_difference(h, x["target"]))


def _decoder_torch(torch: Any, p: Any, x: Any) -> Any:
    h, memory = torch.ones(BATCH, SMALL), x["memory"]
    for _ in range(TARGET):
        scores = torch.bmm(memory, (h @ p["query"])[:, :, None])[:, :, 0]
        shares = torch.softmax(scores * SMALL**-0.5, 1)
        context = torch.bmm(shares[:, None], memory)[:, 0]
        h = torch.tanh(torch.cat([h, context], 1) @ p["join"])
    return ((h - x["target"]) ** 2).mean()


def _decoder_jax(jax: Any, p: Any, x: Any) -> Any:
    jnp, memory = jax.numpy, x["memory"]

    def body(h: Any, _: Any) -> Any:
        scores = jnp.einsum("bsu,bu->bs", memory, h @ p["query"])
        shares = jax.nn.softmax(scores * SMALL**-0.5, 1)
        context = jnp.einsum("bs,bsu->bu", shares, memory)
        return jnp.tanh(jnp.concatenate([h, context], 1) @ p["join"]), None

    h, _ = jax.lax.scan(body, jnp.ones((BATCH, SMALL), jnp.float32), None, length=TARGET)
    return ((h - x["target"]) ** 2).mean()


LETTERS, TAGS, LINES = 30, 12, 16


def _tags_dataflow(tf: Any, p: Any, x: Any) -> Any:
    def step(held: Any, now: Any) -> Any:
        paths = held[0][:, :, None] + p["steps"][None]
        return tf.reduce_max(paths, 1) + now, tf.argmax(paths, 1, output_type=tf.int32)

    start = tf.zeros([LINES, TAGS]), tf.zeros([LINES, TAGS], tf.int32)
    return tf.scan(step, x["scores"], start)


def _tags_torch(torch: Any, p: Any, x: Any) -> Any:
    best, kept = torch.zeros(LINES, TAGS), []
    for now in x["scores"]:
        most = (best[:, :, None] + p["steps"][None]).max(1)
        best = most.values + now
        kept.append((best, most.indices))
    return tuple(torch.stack(parts) for parts in zip(*kept, strict=True))


def _tags_jax(jax: Any, p: Any, x: Any) -> Any:
    def step(best: Any, now: Any) -> Any:
        paths = best[:, :, None] + p["steps"][None]
        best = paths.max(1) + now
        return best, (best, paths.argmax(1))

    start = jax.numpy.zeros((LINES, TAGS), "float32")
    return jax.lax.scan(step, start, x["scores"])[1]


CASES = (
    _gru("gru-while", "while_loop", _gru_while),
    _gru("gru-dynamic-rnn", "dynamic_rnn", _gru_dynamic),
    Case(
        "lstm-scan",
        f"LSTM of {UNITS} units, {TIME} steps, batch {BATCH}, by scan, sgd",
        _lstm_scan,
        _lstm_torch,
        _lstm_jax,
        state=_lstm_state,
        batch=_series,
        optimizer="sgd",
        rate=0.1,
        steps=5,
    ),
    Case(
        "rnn-unrolled",
        f"network of {UNITS} tanh units, {UNROLLED} steps built one by one, batch {BATCH}, sgd",
        _rnn_dataflow,
        _rnn_torch,
        _rnn_jax,
        state=lambda rng: {
            "w": weight(rng, UNITS, UNITS),
            "u": weight(rng, UNITS, UNITS),
            "b": np.zeros(UNITS, np.float32),
        },
        batch=_rnn_batch,
        optimizer="sgd",
        rate=0.1,
    ),
    Case(
        "attention-decoder",
        f"{TARGET} steps of attention over {SOURCE} states of {SMALL}, batch {BATCH}, "
        "by while_loop, sgd",
        _decoder_dataflow,
        _decoder_torch,
        _decoder_jax,
        state=_decoder_state,
        batch=_decoder_batch,
        optimizer="sgd",
        rate=0.1,
        steps=10,
    ),
    Case(
        "best-tags",
        f"scores and choices of {TAGS} tags along {LETTERS} letters, {LINES} at once, by scan",
        _tags_dataflow,
        _tags_torch,
        _tags_jax,
        state=lambda rng: {"steps": normal(rng, TAGS, TAGS)},
        batch=lambda rng: {"scores": normal(rng, LETTERS, LINES, TAGS)},
        steps=10,
    ),
)
