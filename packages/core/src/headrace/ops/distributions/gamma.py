"""The gamma distribution, and the exponential one, which is one of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_positive
from headrace.ops.constant import ones
from headrace.ops.distributions import checks
from headrace.ops.distributions.distribution import given_to
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.distributions.scalar import ScalarDistribution
from headrace.ops.elementwise import square
from headrace.ops.random import random_uniform
from headrace.ops.sampling import random_gamma
from headrace.ops.special import digamma, igamma, lgamma
from headrace.ops.transcendental import log, sqrt, xlogy


class Gamma(ScalarDistribution):
    """The gamma distribution.

    Its density is ``x^(concentration - 1) exp(-x rate) rate^concentration /
    gamma(concentration)`` for positive x.
    """

    _shaped: ClassVar[tuple[str, ...]] = ("concentration", "rate")
    _concentration: Tensor
    _rate: Tensor

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        """Make it.

        Args:
            concentration: The shape of the density, positive and floating; broadcast with ``rate``.
            rate: The inverse of the scale, positive.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a mode that is not defined is NaN; it fails otherwise.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtypes differ, or are no floating ones.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._concentration, self._rate = checks.parameters(
                validate_args,
                lambda: [assert_positive(concentration), assert_positive(rate)],
                concentration=concentration,
                rate=rate,
            )
        super().__init__((self._concentration, self._rate), scope, given)

    @property
    def concentration(self) -> Tensor:
        """The shape of the density."""
        return self._concentration

    @property
    def rate(self) -> Tensor:
        """The inverse of the scale."""
        return self._rate

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return random_gamma([n], self.concentration, self.rate, self.dtype, seed)

    def _valid(self, x: Any) -> Any:
        return checks.checked(x, [assert_positive(x)]) if self.validate_args else x

    def _log_prob(self, value: Any) -> Tensor:
        x = self._valid(value)
        whole = lgamma(self.concentration) - self.concentration * log(self.rate)
        found: Tensor = xlogy(self.concentration - 1.0, x) - self.rate * x - whole
        return found

    def _cdf(self, value: Any) -> Tensor:
        return igamma(self.concentration, self.rate * self._valid(value))

    def _entropy(self) -> Tensor:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / square(self.rate)

    def _stddev(self) -> Tensor:
        return sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        a = self.concentration
        few = "mode not defined when any concentration <= 1"
        return checks.defined(
            (a - 1.0) / self.rate,
            a > 1.0,
            nan=self.allow_nan_stats,
            checks=lambda: [checks.more_than_one(a, few)],
        )


class Exponential(Gamma):
    """The exponential distribution, with the density ``rate exp(-rate x)`` for positive x."""

    _shaped = ("rate",)

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        """Make it.

        Args:
            rate: The inverse of the mean, positive and floating.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a mode that is not defined is NaN; it fails otherwise.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtype is no floating one.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            speed = convert_to_tensor(rate, name="rate")
            shape = ones([], dtype=speed.dtype)
        super().__init__(shape, speed, validate_args, allow_nan_stats, scope)
        self._parameters = given_to(given)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        # 0 would give an infinite sample.
        least = float(np.finfo(self.dtype.as_numpy_dtype).tiny)
        shape = self._drawn_shape(n)
        drawn = random_uniform(shape, minval=least, maxval=1.0, dtype=self.dtype, seed=seed)
        return -log(drawn) / self.rate

    def _log_survival_function(self, value: Any) -> Tensor:
        found: Tensor = -self.rate * value
        return found


@RegisterKL(Gamma, Gamma)
def _apart(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_gamma_gamma"):
        shapes = (a.concentration - b.concentration) * digamma(a.concentration)
        norms = lgamma(b.concentration) - lgamma(a.concentration)
        rates = b.concentration * (log(a.rate) - log(b.rate))
        return shapes + norms + rates + a.concentration * (b.rate / a.rate - 1.0)
