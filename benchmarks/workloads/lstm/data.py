"""The texts on which all participants train, and the loss by which they are compared.

The model is the small one of Zaremba et al., "Recurrent neural network regularization" (2014):
embedding, two LSTM layers with a forget bias of 1, and logits over the vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

VOCABULARY = 10_000
UNITS = 200
LAYERS = 2
BATCH = 20
STEPS = 20
LEARNING_RATE = 1.0
FORGET_BIAS = 1.0
# Small enough to be at work from the first step on: this is half of the program.
MAX_NORM = 0.1

BATCHES = 10
LEAD_IN = 2

Array = npt.NDArray[np.float32]
Words = npt.NDArray[np.int32]


class Parameters(NamedTuple):
    """What is trained, in the shapes that all participants share.

    A layer's kernel maps inputs and then the last output, [2 * UNITS], to its four gates
    [4 * UNITS]: what is written, the candidate, what is kept, and what is shown.
    """

    embedding: Any
    kernels: list[Any]
    biases: list[Any]
    projection: Any
    projection_bias: Any

    def flat(self) -> list[Any]:
        """Return all in one list."""
        ends = [self.projection, self.projection_bias]
        return [self.embedding, *self.kernels, *self.biases, *ends]


def parameters() -> Parameters:
    """Return the first values."""
    rng = np.random.default_rng(0)

    def uniform(*shape: int) -> Array:
        return rng.random(shape, np.float32) * np.float32(0.2) - np.float32(0.1)

    return Parameters(
        uniform(VOCABULARY, UNITS),
        [uniform(2 * UNITS, 4 * UNITS) for _ in range(LAYERS)],
        [np.zeros(4 * UNITS, np.float32) for _ in range(LAYERS)],
        uniform(UNITS, VOCABULARY),
        np.zeros(VOCABULARY, np.float32),
    )


def feeds() -> list[tuple[Words, Words]]:
    """Return the batches of one round: words and the words to be guessed, [BATCH, STEPS] int32.

    No word is twice in a batch. Libraries that keep the gradient of the embedding row by row
    have then the same global norm as those that add rows up.
    """
    rng = np.random.default_rng(1)
    made = []
    for _ in range(BATCHES):
        words = rng.choice(VOCABULARY, BATCH * STEPS, replace=False).reshape(BATCH, STEPS)
        # A word follows from the one before, so that there is something to be learnt.
        made.append((words.astype(np.int32), ((words * 7) % 100).astype(np.int32)))
    return made


def loss(trained: Parameters) -> float:
    """Return the mean cross-entropy of trained parameters on words that nobody trained on."""
    values = Parameters(
        np.asarray(trained.embedding, np.float64),
        [np.asarray(kernel, np.float64) for kernel in trained.kernels],
        [np.asarray(bias, np.float64) for bias in trained.biases],
        np.asarray(trained.projection, np.float64),
        np.asarray(trained.projection_bias, np.float64),
    )
    rng = np.random.default_rng(2)
    words = rng.integers(0, VOCABULARY, (BATCH, STEPS))
    targets = (words * 7) % 100
    state = [(np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS))) for _ in range(LAYERS)]
    total = 0.0
    for at in range(STEPS):
        x = values.embedding[words[:, at]]
        for layer in range(LAYERS):
            x, cell = _step(x, *state[layer], values.kernels[layer], values.biases[layer])
            state[layer] = (x, cell)
        logits = x @ values.projection + values.projection_bias
        logits -= logits.max(axis=1, keepdims=True)
        log_sums = np.log(np.exp(logits).sum(axis=1))
        total += float((log_sums - logits[np.arange(BATCH), targets[:, at]]).mean())
    return total / STEPS


def _step(x: Any, output: Any, cell: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    """Return the next output and cell of one layer."""
    gates = np.concatenate([x, output], axis=1) @ kernel + bias
    write, candidate, keep, show = np.split(gates, 4, axis=1)
    cell = cell * _sigmoid(keep + FORGET_BIAS) + _sigmoid(write) * np.tanh(candidate)
    return np.tanh(cell) * _sigmoid(show), cell


def _sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))
