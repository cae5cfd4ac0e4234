"""What distributions of categories have in common."""

from __future__ import annotations

from headrace.graph.tensor import Tensor


class Chances:
    """A distribution that is known by probabilities, or by their logarithms."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        """Unnormalized logarithms of probabilities; of one probability, its log-odds."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._probs
