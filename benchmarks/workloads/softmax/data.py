"""The batches on which all participants train, and the loss by which they are compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEATURES = 784
CLASSES = 10
BATCH = 100
LEARNING_RATE = 0.5

# The batches do not fit into the caches next to the processor, as a real data set would not.
BATCHES = 250
PASSES_PER_ROUND = 4

Array = npt.NDArray[np.float32]


def examples(count: int, seed: int) -> tuple[Array, Array]:
    """Make images like handwritten digits, as far as training notices.

    One pixel in five is lit, half of them where their class has its strokes. One label in ten
    is wrong, so that the loss settles well above zero and still says something at the end.

    Returns:
        Images [count, 784] and one-hot labels [count, 10], both float32.
    """
    strokes = np.random.default_rng(0).random((CLASSES, FEATURES)) < 0.1
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, count)
    lit = strokes[classes] | (rng.random((count, FEATURES), dtype=np.float32) < 0.1)
    images = lit * rng.random((count, FEATURES), dtype=np.float32) * np.float32(0.5)
    wrong = rng.random(count) < 0.1
    labels = np.where(wrong, rng.integers(0, CLASSES, count), classes)
    return images.astype(np.float32), np.eye(CLASSES, dtype=np.float32)[labels]


def feeds() -> list[tuple[Array, Array]]:
    """Return the batches of one round, each with its images and its labels."""
    images, labels = examples(BATCHES * BATCH, seed=1)
    starts = range(0, BATCHES * BATCH, BATCH)
    once = [(images[i : i + BATCH], labels[i : i + BATCH]) for i in starts]
    return once * PASSES_PER_ROUND


def loss(weights: npt.ArrayLike, biases: npt.ArrayLike) -> float:
    """Return the mean cross-entropy of trained parameters on examples that nobody trained on."""
    images, labels = examples(2000, seed=2)
    logits = images @ np.asarray(weights, np.float64) + np.asarray(biases, np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return float(-(labels * log_probabilities).sum(axis=1).mean())
