"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_positive
from headrace.ops.complex import abs_, sign
from headrace.ops.distributions import checks
from headrace.ops.distributions.scalar import LocationScale
from headrace.ops.elementwise import maximum, minimum, select
from headrace.ops.random import random_uniform
from headrace.ops.transcendental import exp, log, log1p


class Laplace(LocationScale):
    """The Laplace distribution, two exponential ones back to back.

    Its density is ``exp(-|x - loc| / scale) / (2 scale)``.
    """

    _shaped = ("loc", "scale")

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        """Make it.

        Args:
            loc: The mean, floating; broadcast with ``scale``.
            scale: How wide it is, positive.
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
        kind = self.dtype.as_numpy_dtype
        # -1 would give an infinite sample.
        least = float(np.nextafter(kind(-1.0), kind(0.0)))
        shape = self._drawn_shape(n)
        drawn = random_uniform(shape, minval=least, maxval=1.0, dtype=self.dtype, seed=seed)
        found: Tensor = self.loc - self.scale * sign(drawn) * log1p(-abs_(drawn))
        return found

    def _log_prob(self, value: Any) -> Tensor:
        found: Tensor = -abs_(self._standard(value)) - (math.log(2.0) + log(self.scale))
        return found

    def _cdf(self, value: Any) -> Tensor:
        z = self._standard(value)
        found: Tensor = 0.5 + 0.5 * sign(z) * (1.0 - exp(-abs_(z)))
        return found

    def _log_cdf(self, value: Any) -> Tensor:
        return _log_below(self._standard(value))

    def _log_survival_function(self, value: Any) -> Tensor:
        return _log_below(-self._standard(value))

    def _entropy(self) -> Tensor:
        return self._whole(math.log(2.0) + 1.0 + log(self.scale))

    def _mean(self) -> Tensor:
        return self._whole(self.loc)

    def _mode(self) -> Tensor:
        return self._mean()

    def _stddev(self) -> Tensor:
        return self._whole(math.sqrt(2.0) * self.scale)


def _log_below(z: Any) -> Tensor:
    """Return the logarithm of the cdf where ``loc`` is 0 and ``scale`` 1."""
    left = minimum(z, 0.0) - math.log(2.0)
    right = log1p(-0.5 * exp(-maximum(z, 0.0)))
    return select(z < 0.0, left, right)
