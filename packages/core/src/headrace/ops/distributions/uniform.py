"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_less
from headrace.ops.constant import ones_like, zeros_like
from headrace.ops.distributions import checks
from headrace.ops.distributions.scalar import ScalarDistribution
from headrace.ops.elementwise import is_nan, logical_or, select, square
from headrace.ops.random import random_uniform
from headrace.ops.transcendental import log


class Uniform(ScalarDistribution):
    """The uniform distribution from ``low`` up to, and not with, ``high``."""

    _shaped = ("low", "high")
    _low: Tensor
    _high: Tensor

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        """Make it.

        Args:
            low: The least value, floating; broadcast with ``high``.
            high: The bound above, more than ``low``.
            validate_args: Whether parameters are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtypes differ, or are no floating ones.
        """
        given = {**locals()}
        empty = "uniform not defined when low >= high."
        with name_scope(name) as scope:
            self._low, self._high = checks.parameters(
                validate_args,
                lambda: [assert_less(low, high, message=empty)],
                low=low,
                high=high,
            )
        super().__init__((self._low, self._high), scope, given)

    @property
    def low(self) -> Tensor:
        """The least value."""
        return self._low

    @property
    def high(self) -> Tensor:
        """The bound above."""
        return self._high

    def range(self, name: str = "range") -> Tensor:
        """Return ``high - low``.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_uniform(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _prob(self, value: Any) -> Tensor:
        x = self._whole(value)
        outside = logical_or(x < self.low, x >= self.high)
        inside = ones_like(x) / self.range()
        return select(is_nan(x), x, select(outside, zeros_like(x), inside))

    def _cdf(self, value: Any) -> Tensor:
        x = self._whole(value)
        part = (x - self.low) / self.range()
        low = select(x < self.low, zeros_like(x), part)
        return select(x >= self.high, ones_like(x), low)

    def _quantile(self, value: Any) -> Tensor:
        found: Tensor = self.low + self.range() * value
        return found

    def _entropy(self) -> Tensor:
        return log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)
