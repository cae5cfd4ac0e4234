"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from headrace.dtypes import int32
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.activation import softplus
from headrace.ops.assertions import assert_less_equal
from headrace.ops.constant import ones, ones_like
from headrace.ops.conversion import cast
from headrace.ops.cross_entropy import sigmoid_cross_entropy_with_logits
from headrace.ops.distributions import checks
from headrace.ops.distributions.chances import Chances
from headrace.ops.distributions.distribution import NOT_REPARAMETERIZED
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.distributions.scalar import ScalarDistribution
from headrace.ops.elementwise import less
from headrace.ops.identity import identity
from headrace.ops.random import random_uniform
from headrace.ops.transcendental import sigmoid


class Bernoulli(Chances, ScalarDistribution):
    """The Bernoulli distribution: 1 with a probability, and 0 otherwise."""

    _shaped = ("logits",)

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        """Make it, of one of two parameters.

        Args:
            logits: The log-odds of 1, floating.
            probs: The probability of 1.
            dtype: The dtype of samples.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            AttributeValueError: if both are given, or none.
            DTypeError: if it is no floating tensor.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._logits, self._probs = checks.logits_and_probs(
                logits, probs, several=False, validate_args=validate_args, name=scope
            )
        kind = NOT_REPARAMETERIZED
        super().__init__((self._logits, self._probs), scope, given, dtype=dtype, kind=kind)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(n), dtype=self.probs.dtype, seed=seed)
        found: Tensor = cast(less(drawn, self.probs), self.dtype)
        return found

    def _log_prob(self, value: Any) -> Tensor:
        if self.validate_args:
            value = checks.whole(value)
            most = ones([], dtype=value.dtype)
            over = assert_less_equal(value, most, message="Elements cannot exceed 1.")
            value = checks.checked(value, [over])
        event = cast(value, self.logits.dtype)
        labels = event * ones_like(self.logits)
        odds = self.logits * ones_like(event)
        return -sigmoid_cross_entropy_with_logits(labels=labels, logits=odds)

    def _entropy(self) -> Tensor:
        odds = self.logits
        return -odds * (sigmoid(odds) - 1.0) + softplus(-odds)

    def _mean(self) -> Tensor:
        return identity(self.probs)

    def _variance(self) -> Tensor:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        found: Tensor = cast(self.probs > 0.5, self.dtype)
        return found


@RegisterKL(Bernoulli, Bernoulli)
def _apart(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_bernoulli_bernoulli"):
        ones_ = softplus(-b.logits) - softplus(-a.logits)
        zeros_ = softplus(b.logits) - softplus(a.logits)
        return sigmoid(a.logits) * ones_ + sigmoid(-a.logits) * zeros_
