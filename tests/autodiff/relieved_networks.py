"""Networks of many kinds, for tests of gradients that compute part of the forward pass again."""

from __future__ import annotations

import random

import numpy as np

import headrace as hr

BATCH = 4


def weights(*shape, seed=0, dtype=hr.float64):
    rng = np.random.default_rng([seed, *shape])
    scale = 1 / np.sqrt(max(1, np.prod(shape[:-1])))
    return hr.Variable(hr.constant((rng.normal(size=shape) * scale).astype(dtype.numpy)))


def mlp(x):
    h = x
    for i in range(6):
        h = hr.tanh(hr.matmul(h, weights(8, 8, seed=i)) + weights(8, seed=i))
    return hr.reduce_mean(h * h)


def skips(x):
    """Values that later layers take past several others."""
    h, early = x, []
    for i in range(6):
        early.append(h)
        h = hr.nn.relu(hr.matmul(h, weights(8, 8, seed=i))) + early[i // 2]
    return hr.reduce_sum(hr.square(h + early[1] * early[3]))


def shared(x):
    """One variable in every layer, and a cast of it."""
    w = weights(8, 8)
    rounded = hr.cast(hr.cast(w, hr.float32), hr.float64)
    h = x
    for _ in range(5):
        h = hr.sigmoid(hr.matmul(h, w)) * hr.matmul(x, rounded)
    return hr.reduce_sum(h)


def convolutions(x):
    h = hr.reshape(x, [BATCH, 2, 2, 2])
    for i in range(4):
        h = hr.nn.relu(hr.nn.conv2d(h, weights(3, 3, 2, 2, seed=i), strides=1, padding="SAME"))
    h = hr.nn.max_pool(h, 2, 1, "SAME")
    return hr.reduce_sum(h * h)


def batch_norm(x):
    h = x
    for i in range(4):
        h = hr.matmul(h, weights(8, 8, seed=i))
        mean, variance = hr.nn.moments(h, [0])
        moving = hr.Variable(hr.zeros([8], hr.float64), trainable=False)
        scale, offset = weights(8, seed=i), weights(8, seed=i + 9)
        with hr.control_dependencies([moving.assign(0.9 * moving + 0.1 * mean)]):
            h = hr.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3)
        h = hr.nn.relu(h)
    return hr.reduce_sum(h)


def dropout(x):
    h = x
    for i in range(4):
        h = hr.nn.dropout(hr.tanh(hr.matmul(h, weights(8, 8, seed=i))), rate=0.4, seed=i + 1)
    return hr.reduce_sum(h * h)


def loops(x):
    """A recurrence in a loop, behind and before other layers, twice."""
    h = x
    for i in range(2):
        w = weights(8, 8, seed=i)
        h = hr.tanh(hr.matmul(h, weights(8, 8, seed=i + 5)))
        _, h = hr.while_loop(
            lambda k, s: k < 3, lambda k, s, w=w: (k + 1, hr.tanh(hr.matmul(s, w))), [0, h]
        )
    return hr.reduce_sum(h * h)


def lstm(x):
    sequence = hr.reshape(x, [BATCH, 4, 2])
    cell = hr.nn.rnn_cell.LSTMCell(3, dtype=hr.float64)
    outputs, _ = hr.nn.dynamic_rnn(cell, hr.sin(sequence), dtype=hr.float64)
    return hr.reduce_sum(hr.square(hr.sin(outputs)))


def branches(x):
    h = x
    for i in range(3):
        w = weights(8, 8, seed=i)
        h = hr.tanh(hr.matmul(h, w))
        h = hr.cond(hr.reduce_sum(h) > 0, lambda h=h: hr.sin(h) * 2, lambda h=h: hr.exp(-h * h))
    return hr.reduce_sum(h)


def random_loops(x):
    """A loop that draws numbers: it runs once, since it would draw others."""
    h = hr.tanh(hr.matmul(x, weights(8, 8)))
    _, h = hr.while_loop(
        lambda k, s: k < 3,
        lambda k, s: (k + 1, hr.sin(s * hr.random_uniform([8], dtype=hr.float64, seed=3))),
        [0, h],
    )
    return hr.reduce_sum(hr.square(hr.tanh(hr.matmul(h, weights(8, 8, seed=4)))))


def rows(x):
    table = weights(10, 8)
    h = hr.nn.embedding_lookup(table, hr.constant([1, 3, 3, 7]))
    for i in range(3):
        h = hr.tanh(hr.matmul(h + x, weights(8, 8, seed=i)))
    return hr.reduce_sum(h)


def custom(x):
    @hr.custom_gradient
    def cube(h):
        return h * h * h, lambda g: g * 3 * h * h

    h = x
    for i in range(3):
        h = cube(hr.tanh(hr.matmul(h, weights(8, 8, seed=i))))
    return hr.reduce_sum(h)


def at_random(seed):
    """Return a network whose operations and edges a seed chooses, dead branches among them."""

    def network(x):
        chance = random.Random(seed)
        made = [x]
        for i in range(chance.randint(8, 30)):
            a, b = chance.choice(made[-4:]), chance.choice(made)
            made.append(_STEPS[chance.randrange(len(_STEPS))](a, b, i))
        return hr.reduce_sum(hr.tanh(hr.add_n(made[-3:])))

    return network


def _normalized(a, b, i):
    mean, variance = hr.nn.moments(a, [0])
    return (a - mean) * hr.rsqrt(variance + 0.1)


def _swapped(a, b, i):
    halves = hr.split(hr.concat([a, b], 1), 2, 1)
    return hr.concat(halves[::-1], 0)[:BATCH]


def _switched(a, b, i):
    no, yes = hr.switch(a, hr.reduce_sum(a) > 0)
    return hr.merge([hr.sin(no), hr.tanh(yes)])[0]


_STEPS = (
    lambda a, b, i: hr.matmul(a, weights(8, 8, seed=i)),
    lambda a, b, i: hr.tanh(a),
    lambda a, b, i: hr.tanh(a * b),
    lambda a, b, i: hr.sin(a) + b,
    lambda a, b, i: hr.nn.softmax(a),
    lambda a, b, i: hr.nn.dropout(a, rate=0.3, seed=i + 1),
    _normalized,
    _swapped,
    _switched,
)

NETWORKS = {
    f.__name__: f
    for f in (
        *(mlp, skips, shared, convolutions, batch_norm, dropout, loops, lstm, branches),
        *(random_loops, rows, custom),
    )
}
