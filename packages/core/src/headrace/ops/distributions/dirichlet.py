"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from headrace.dtypes import int32
from headrace.errors import AttributeValueError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, shape
from headrace.ops.assertions import assert_less, assert_near, assert_positive
from headrace.ops.constant import ones
from headrace.ops.conversion import cast
from headrace.ops.diag import matrix_set_diag
from headrace.ops.distributions import checks
from headrace.ops.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.linalg import matmul
from headrace.ops.reduce import reduce_all, reduce_sum
from headrace.ops.sampling import random_gamma
from headrace.ops.shape_assertions import assert_rank_at_least
from headrace.ops.special import digamma, lbeta
from headrace.ops.transcendental import sqrt, xlogy


class Dirichlet(Distribution):
    """The Dirichlet distribution, of vectors of positive numbers that add up to 1.

    Its density is proportional to ``prod(x^(concentration - 1))``.
    """

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        """Make it.

        Args:
            concentration: [..., k] how much speaks for each element, positive and floating.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a mode that is not defined is NaN; it fails otherwise.
            name: The name of the scope.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            made = convert_to_tensor(concentration, name="concentration")
            self._concentration = _valid(made) if validate_args else made
            self._total_concentration = reduce_sum(self._concentration, -1)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=given,
            graph_parents=[self._concentration, self._total_concentration],
            name=scope,
        )

    @property
    def concentration(self) -> Tensor:
        """How much speaks for each element."""
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """The sum over the elements."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return self.total_concentration.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self.total_concentration)

    def _event_shape(self) -> Any:
        return self.concentration.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape(self.concentration)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _valid(self, x: Any) -> Any:
        if not self.validate_args:
            return x
        whole = "sample last-dimension must sum to `1`"
        return checks.checked(
            x,
            [
                assert_positive(x, message="samples must be positive"),
                assert_near(ones([], dtype=self.dtype), reduce_sum(x, -1), message=whole),
            ],
        )

    def _log_prob(self, value: Any) -> Tensor:
        x = self._valid(value)
        return reduce_sum(xlogy(self.concentration - 1.0, x), -1) - lbeta(self.concentration)

    def _entropy(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        total: Any = self.total_concentration
        parts = reduce_sum((self.concentration - 1.0) * digamma(self.concentration), -1)
        found: Tensor = lbeta(self.concentration) + (total - k) * digamma(total) - parts
        return found

    def _mean(self) -> Tensor:
        return self.concentration / expand_dims(self.total_concentration, -1)

    def _scaled_mean(self) -> tuple[Any, Any]:
        """Return the mean times the root of ``1 / (1 + total)``, and that root."""
        scale: Any = 1.0 / sqrt(1.0 + expand_dims(self.total_concentration, -1))
        return scale * self._mean(), scale

    def _covariance(self) -> Tensor:
        x, _ = self._scaled_mean()
        return matrix_set_diag(-matmul(expand_dims(x, -1), expand_dims(x, -2)), self._variance())

    def _variance(self) -> Tensor:
        x, scale = self._scaled_mean()
        found: Tensor = x * (scale - x)
        return found

    def _mode(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        a: Any = self.concentration
        few = "Mode undefined when any concentration <= 1"
        return checks.defined(
            (a - 1.0) / (expand_dims(self.total_concentration, -1) - k),
            reduce_all(a > 1.0, -1, keepdims=True),
            nan=self.allow_nan_stats,
            checks=lambda: [checks.more_than_one(a, few)],
        )


def _valid(value: Tensor) -> Tensor:
    """Return concentrations behind checks.

    Raises:
        AttributeValueError: if it is a scalar, or has fewer than two elements.
    """
    flat = "Concentration parameter must have >=1 dimensions."
    few = "Concentration parameter must have event_size >= 2."
    if value.shape.ndims == 0:
        raise AttributeValueError(flat)
    last = None if value.shape.ndims is None else value.shape.as_list()[-1]
    if last is not None and last < 2:
        raise AttributeValueError(few)
    one = convert_to_tensor(1, dtype=int32)
    return checks.checked(
        value,
        [
            assert_positive(value, message="Concentration parameter must be positive."),
            assert_rank_at_least(value, 1, message=flat),
            assert_less(one, shape(value)[-1], message=few),
        ],
    )


@RegisterKL(Dirichlet, Dirichlet)
def _apart(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_dirichlet_dirichlet"):
        whole = digamma(expand_dims(a.total_concentration, -1))
        parts = (a.concentration - b.concentration) * (digamma(a.concentration) - whole)
        return reduce_sum(parts, -1) - lbeta(a.concentration) + lbeta(b.concentration)
