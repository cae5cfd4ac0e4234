"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_positive
from headrace.ops.distributions import checks
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.distributions.normal_functions import log_ndtr, ndtr
from headrace.ops.distributions.scalar import LocationScale
from headrace.ops.elementwise import logical_or, select, square, squared_difference
from headrace.ops.random import random_normal
from headrace.ops.special import ndtri
from headrace.ops.transcendental import log


class Normal(LocationScale):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``.

    Its density is ``exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))``.
    """

    _shaped = ("loc", "scale")

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        """Make it.

        Args:
            loc: The mean, floating; broadcast with ``scale``.
            scale: The standard deviation, positive.
            validate_args: Whether parameters are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtypes differ, or are no floating ones.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._loc, self._scale = checks.parameters(
                validate_args, lambda: [assert_positive(scale)], loc=loc, scale=scale
            )
        super().__init__((self._loc, self._scale), scope, given)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_normal(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, value: Any) -> Tensor:
        whole = 0.5 * math.log(2.0 * math.pi) + log(self.scale)
        found: Tensor = -0.5 * square(self._standard(value)) - whole
        return found

    def _log_cdf(self, value: Any) -> Tensor:
        return log_ndtr(self._standard(value))

    def _cdf(self, value: Any) -> Tensor:
        return ndtr(self._standard(value))

    def _log_survival_function(self, value: Any) -> Tensor:
        return log_ndtr(-self._standard(value))

    def _survival_function(self, value: Any) -> Tensor:
        return ndtr(-self._standard(value))

    def _quantile(self, value: Any) -> Tensor:
        probability: Any = convert_to_tensor(value)
        # The derivative is infinite at the ends, from which no gradient comes.
        least, most = probability <= 0.0, probability >= 1.0
        inner = select(logical_or(least, most), 0.5, probability)
        beyond = select(most, math.inf, ndtri(inner))
        return select(least, -math.inf, beyond) * self.scale + self.loc

    def _entropy(self) -> Tensor:
        return self._whole(0.5 * math.log(2.0 * math.pi * math.e) + log(self.scale))

    def _mean(self) -> Tensor:
        return self._whole(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _stddev(self) -> Tensor:
        return self._whole(self.scale)


@RegisterKL(Normal, Normal)
def _apart(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_normal_normal"):
        ratio = square(a.scale) / square(b.scale)
        shift = squared_difference(a.loc, b.loc) / (2.0 * square(b.scale))
        return shift + 0.5 * (ratio - 1.0 - log(ratio))
