"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.assertions import assert_positive
from headrace.ops.complex import abs_
from headrace.ops.constant import fill
from headrace.ops.distributions import checks
from headrace.ops.distributions.scalar import LocationScale
from headrace.ops.distributions.seeds import another_seed
from headrace.ops.elementwise import select, square
from headrace.ops.identity import identity
from headrace.ops.random import random_normal
from headrace.ops.sampling import random_gamma
from headrace.ops.special import betainc, digamma, lgamma
from headrace.ops.transcendental import log, log1p, rsqrt


class StudentT(LocationScale):
    """Student's t distribution: a normal sample by the root of a chi-squared one's mean.

    Its density is proportional to ``(1 + ((x - loc) / scale)^2 / df)^(-(df + 1) / 2)``.
    """

    _shaped = ("df", "loc", "scale")
    _df: Tensor

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        """Make it.

        Args:
            df: The degrees of freedom, positive and floating; all parameters broadcast.
            loc: The middle.
            scale: How wide it is; its sign does not count.
            validate_args: Whether parameters are checked in each step.
            allow_nan_stats: Whether a mean or variance that is not defined is NaN; it fails
                otherwise.
            name: The name of the scope.

        Raises:
            DTypeError: if the dtypes differ, or are no floating ones.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._df, self._loc, self._scale = checks.parameters(
                validate_args, lambda: [assert_positive(df)], df=df, loc=loc, scale=scale
            )
        super().__init__((self._df, self._loc, self._scale), scope, given)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self._df

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        normal = random_normal(self._drawn_shape(n), dtype=self.dtype, seed=seed)
        df = self._whole(self.df)
        other = another_seed(seed, "student_t")
        squares = random_gamma([n], 0.5 * df, 0.5, self.dtype, other)
        return normal * rsqrt(squares / df) * self.scale + self.loc

    def _log_prob(self, value: Any) -> Tensor:
        df = self.df
        y = self._standard(value)
        roots = 0.5 * log(df) + 0.5 * math.log(math.pi)
        gammas = lgamma(0.5 * df) - lgamma(0.5 * (df + 1.0))
        whole = log(abs_(self.scale)) + roots + gammas
        found: Tensor = -0.5 * (df + 1.0) * log1p(square(y) / df) - whole
        return found

    def _cdf(self, value: Any) -> Tensor:
        y = (value - self.loc) / abs_(self.scale)
        tail = 0.5 * betainc(0.5 * self.df, 0.5, self.df / (square(y) + self.df))
        return select(y < 0.0, tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1.0)
        beta = lgamma(half) + 0.5 * math.log(math.pi) - lgamma(more)
        width = log(abs_(self.scale)) + 0.5 * log(self.df)
        return self._whole(width + beta + more * (digamma(more) - digamma(half)))

    def _defined(self, value: Tensor, what: str) -> Tensor:
        few = f"{what} not defined for components of df <= 1"
        return checks.defined(
            value,
            self.df > 1.0,
            nan=self.allow_nan_stats,
            checks=lambda: [checks.more_than_one(self.df, few)],
        )

    def _mean(self) -> Tensor:
        return self._defined(self._whole(self.loc), "mean")

    def _variance(self) -> Tensor:
        df = self._whole(self.df)
        finite = df > 2.0
        spread = square(self.scale) * df / select(finite, df - 2.0, 1.0)
        infinite = fill(self.batch_shape_tensor(), np.array(np.inf, self.dtype.as_numpy_dtype))
        return self._defined(select(finite, spread, infinite), "variance")

    def _mode(self) -> Tensor:
        return identity(self.loc)
