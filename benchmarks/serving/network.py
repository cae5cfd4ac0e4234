"""The network that is served: two dense layers, in NumPy and as a signature of Headrace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

INPUTS, HIDDEN, OUTPUTS = 64, 256, 10


def weights() -> list[Any]:
    """Return the same weights in every process."""
    rng = np.random.default_rng(0)
    shapes = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,)]
    return [rng.normal(0, 0.1, shape).astype(np.float32) for shape in shapes]


def rows(seed: int, count: int) -> Any:
    """Return inputs [count, INPUTS]."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 17, (count, INPUTS)).astype(np.float32)


def in_numpy(x: Any, layers: list[Any]) -> Any:
    """Return the logits of rows."""
    w1, b1, w2, b2 = layers
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2


@contextmanager
def signature() -> Iterator[Any]:
    """Yield the network as a signature of a session."""
    import headrace as hr

    x = hr.placeholder(hr.float32, [None, INPUTS])
    w1, b1, w2, b2 = (hr.Variable(value) for value in weights())
    logits = hr.matmul(hr.nn.relu(hr.matmul(x, w1) + b1), w2) + b2
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        yield hr.serve.signature_of(session, {"x": x}, {"logits": logits})
