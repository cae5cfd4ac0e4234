"""The beta distribution."""

from __future__ import annotations

from typing import Any

from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_less, assert_positive
from headrace.ops.constant import ones
from headrace.ops.distributions import checks
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.distributions.scalar import ScalarDistribution
from headrace.ops.distributions.seeds import another_seed
from headrace.ops.elementwise import logical_and
from headrace.ops.sampling import random_gamma
from headrace.ops.shape_assertions import assert_same_float_dtype
from headrace.ops.special import betainc, digamma, lgamma
from headrace.ops.transcendental import log1p, xlogy


class Beta(ScalarDistribution):
    """The beta distribution, of values between 0 and 1.

    Its density is proportional to ``x^(concentration1 - 1) (1 - x)^(concentration0 - 1)``.
    """

    _shaped = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        """Make it.

        Args:
            concentration1: How much speaks for 1, positive and floating; broadcast with
                ``concentration0``.
            concentration0: How much speaks for 0, positive.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a mode that is not defined is NaN; it fails otherwise.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtypes differ, or are no floating ones.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            both = []
            for value, what in ((concentration1, "1"), (concentration0, "0")):
                made = convert_to_tensor(value, name=f"concentration{what}")
                both.append(_positive(made) if validate_args else made)
            assert_same_float_dtype(both)
            self._concentration1, self._concentration0 = both
            self._total_concentration: Any = self._concentration1 + self._concentration0
        super().__init__(both, scope, given)

    @property
    def concentration1(self) -> Tensor:
        """How much speaks for 1."""
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        """How much speaks for 0."""
        return self._concentration0

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both."""
        total: Tensor = self._total_concentration
        return total

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        one, zero = self._whole(self.concentration1), self._whole(self.concentration0)
        first = random_gamma([n], one, dtype=self.dtype, seed=seed)
        second = random_gamma([n], zero, dtype=self.dtype, seed=another_seed(seed, "beta"))
        return first / (first + second)

    def _valid(self, x: Any) -> Any:
        if not self.validate_args:
            return x
        low = assert_positive(x, message="sample must be positive")
        most = ones([], dtype=self.dtype)
        high = assert_less(x, most, message="sample must be less than `1`.")
        return checks.checked(x, [low, high])

    def _log_prob(self, value: Any) -> Tensor:
        x = self._valid(value)
        part = xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * log1p(-x)
        found: Tensor = part - _log_beta(self)
        return found

    def _cdf(self, value: Any) -> Tensor:
        return betainc(self.concentration1, self.concentration0, value)

    def _entropy(self) -> Tensor:
        one, zero, total = self.concentration1, self.concentration0, self.total_concentration
        parts = (one - 1.0) * digamma(one) + (zero - 1.0) * digamma(zero)
        return _log_beta(self) - parts + (total - 2.0) * digamma(total)

    def _mean(self) -> Tensor:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        few = "Mode undefined for concentration{} <= 1."
        return checks.defined(
            (one - 1.0) / (self.total_concentration - 2.0),
            logical_and(one > 1.0, zero > 1.0),
            nan=self.allow_nan_stats,
            checks=lambda: [
                checks.more_than_one(one, few.format(1)),
                checks.more_than_one(zero, few.format(0)),
            ],
        )


def _log_beta(of: Beta) -> Tensor:
    """Return the logarithm of the beta function, by which the density is divided."""
    both = lgamma(of.concentration1) + lgamma(of.concentration0)
    return both - lgamma(of.total_concentration)


def _positive(value: Tensor) -> Tensor:
    few = "Concentration parameter must be positive."
    return checks.checked(value, [assert_positive(value, message=few)])


@RegisterKL(Beta, Beta)
def _apart(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_beta_beta"):
        ones_ = digamma(a.concentration1) * (b.concentration1 - a.concentration1)
        zeros_ = digamma(a.concentration0) * (b.concentration0 - a.concentration0)
        totals = digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        return _log_beta(b) - _log_beta(a) - ones_ - zeros_ + totals
