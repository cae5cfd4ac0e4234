"""The language model of all participants: one layer of LSTM, and the softmax over its words."""

from __future__ import annotations

from typing import Any

CLASSES = 40_000
UNITS = 128
BATCH = 16
STEPS = 10
SAMPLED = 512
RATE = 0.1
# A bound of first values that lets the first loss be that of equal chances.
SCALE = 0.05

FULL = "full softmax"
# In place of all classes, those of the words and some that are drawn.
SAMPLES = "512 sampled"
KINDS = (FULL, SAMPLES)
WORDS = BATCH * STEPS


def words(rng: Any) -> Any:
    """Return [BATCH, STEPS + 1], int64: random words, of which low numbers are frequent.

    Args:
        rng: A NumPy generator.
    """
    uniform = rng.random((BATCH, STEPS + 1))
    # Log-uniform, as the classes are that are sampled.
    return ((CLASSES + 1) ** uniform - 1).astype("int64").clip(0, CLASSES - 1)
