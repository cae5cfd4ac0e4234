"""The multinomial distribution, and the one whose probabilities are a Dirichlet sample."""

from __future__ import annotations

from typing import Any

from headrace.dtypes import int32
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, reshape, shape
from headrace.ops.assertions import assert_equal, assert_positive
from headrace.ops.constant import ones, range, sequence_mask
from headrace.ops.conversion import cast
from headrace.ops.diag import matrix_set_diag
from headrace.ops.distributions import checks
from headrace.ops.distributions.chances import Chances
from headrace.ops.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from headrace.ops.distributions.seeds import another_seed
from headrace.ops.elementwise import maximum
from headrace.ops.identity import identity
from headrace.ops.joining import concat
from headrace.ops.linalg import matmul
from headrace.ops.nn import log_softmax
from headrace.ops.reduce import reduce_max, reduce_sum
from headrace.ops.sampling import multinomial, random_gamma
from headrace.ops.segment import unsorted_segment_sum
from headrace.ops.special import lbeta, lgamma
from headrace.ops.transcendental import log, sqrt


class _Counts(Distribution):
    """What both have in common: values are numbers of draws, [..., k], of a total."""

    _total_count: Any
    # Has the shape of the batch, and then of the event.
    _whole: Any

    @property
    def total_count(self) -> Tensor:
        """How many draws there are."""
        total: Tensor = self._total_count
        return total

    def _batch_shape(self) -> Any:
        return self._whole.shape.with_rank_at_least(1)[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self._whole)[:-1]

    def _event_shape(self) -> Any:
        return self._whole.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape(self._whole)[-1:]

    def _valid(self, counts: Any, message: str) -> Any:
        if not self.validate_args:
            return counts
        counts = checks.whole(counts)
        total = reduce_sum(counts, -1)
        known = cast(self._total_count, total.dtype)
        return checks.checked(counts, [assert_equal(known, total, message=message)])

    def _log_combinations(self, counts: Any) -> Any:
        """Return the logarithm of how many orders of draws have these numbers."""
        return lgamma(cast(self._total_count, self.dtype) + 1.0) - reduce_sum(
            lgamma(counts + 1.0), -1
        )

    def _counted(self, logits: Any, seed: int | None) -> Tensor:
        """Return the numbers of draws of each category.

        Args:
            logits: [n, batch..., k], unnormalized.
            seed: Of the draws.
        """
        dims = shape(logits)
        k = dims[-1]
        rows: Any = reshape(logits, [-1, k])
        totals = cast(self._total_count, int32) * ones(dims[:-1], dtype=int32)
        totals = reshape(totals, [-1])
        # All rows draw as often as the one with the most draws; what is too much counts as nothing.
        most = maximum(reduce_max(totals), 0)
        drawn = multinomial(rows, most, seed=seed, output_dtype=int32)
        counted = cast(sequence_mask(totals, most), self.dtype)
        number = shape(rows)[0]
        place = drawn + expand_dims(range(number), -1) * k
        found = unsorted_segment_sum(reshape(counted, [-1]), reshape(place, [-1]), number * k)
        return reshape(found, dims)


class Multinomial(Chances, _Counts):
    """The multinomial distribution: how often each category comes in so many draws."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        """Make it, of one of two parameters.

        Args:
            total_count: [...] the number of draws, floating.
            logits: [..., k] unnormalized logarithms of probabilities, floating.
            probs: [..., k] probabilities.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            AttributeValueError: if both are given, or none.
            DTypeError: if a parameter is no floating tensor.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._total_count = convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = checks.whole(self._total_count)
            self._logits, self._probs = checks.logits_and_probs(
                logits, probs, several=True, validate_args=validate_args, name=scope
            )
            self._whole = expand_dims(self._total_count, -1) * self._probs
        super().__init__(
            dtype=self._probs.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=given,
            graph_parents=[self._total_count, self._logits, self._probs],
            name=scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        dims = concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return self._counted(self.logits * ones(dims, dtype=self.dtype), seed)

    def _log_prob(self, value: Any) -> Tensor:
        counts = self._valid(value, "counts must sum to `self.total_count`")
        likely = reduce_sum(counts * log_softmax(self.logits), -1)
        found: Tensor = likely + self._log_combinations(counts)
        return found

    def _mean(self) -> Tensor:
        return identity(self._whole)

    def _variance(self) -> Tensor:
        found: Tensor = self._whole - self._whole * self.probs
        return found

    def _covariance(self) -> Tensor:
        likely = self.probs * ones(shape(self._whole), dtype=self.dtype)
        both = matmul(expand_dims(self._whole, -1), expand_dims(likely, -2))
        return matrix_set_diag(-both, self._variance())


class DirichletMultinomial(_Counts):
    """How often each category comes in so many draws, with probabilities of a Dirichlet sample.

    All draws of one value have the same probabilities.
    """

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        """Make it.

        Args:
            total_count: [...] the number of draws, floating or integer.
            concentration: [..., k] how much speaks for each category, positive and floating.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            AttributeValueError: if there are fewer than two categories.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            self._total_count = convert_to_tensor(total_count, name="total_count")
            made = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                self._total_count = checks.whole(self._total_count)
                few = "Concentration parameter must be positive."
                made = checks.checked(checks.categories(made), [assert_positive(made, message=few)])
            self._concentration: Any = made
            self._total_concentration = reduce_sum(made, -1)
            self._whole = self._each_count() * made
        super().__init__(
            dtype=made.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=given,
            graph_parents=[self._total_count, made],
            name=scope,
        )

    @property
    def concentration(self) -> Tensor:
        """How much speaks for each category."""
        found: Tensor = self._concentration
        return found

    @property
    def total_concentration(self) -> Tensor:
        """The sum over the categories."""
        return self._total_concentration

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        dims = concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        parameter = self._concentration * ones(dims, dtype=self.dtype)
        drawn = random_gamma([n], parameter, dtype=self.dtype, seed=seed)
        return self._counted(log(drawn), another_seed(seed, "dirichlet_multinomial"))

    def _log_prob(self, value: Any) -> Tensor:
        counts = self._valid(value, "counts last-dimension must sum to `self.total_count`")
        ordered = lbeta(self._concentration + counts) - lbeta(self._concentration)
        found: Tensor = ordered + self._log_combinations(counts)
        return found

    def _mean(self) -> Tensor:
        found: Tensor = self._whole / expand_dims(self._total_concentration, -1)
        return found

    def _each_count(self) -> Any:
        """Return the number of draws for each category, [..., 1], as the concentration is counted.

        Numbers that have an axis of 1 for the categories stay.
        """
        total = cast(self._total_count, self._concentration.dtype)
        dims, rank = total.shape, self._concentration.shape.ndims
        if rank is not None and dims.ndims == rank > 1 and dims.as_list()[-1] == 1:
            return total
        return expand_dims(total, -1)

    def _scaled_mean(self) -> tuple[Any, Any, Any]:
        """Return the mean times a factor, the factor, and the number of draws.

        The square of the factor is how much wider a draw is than of a multinomial distribution.
        """
        a: Any = expand_dims(self._total_concentration, -1)
        count = self._each_count()
        scale = sqrt((1.0 + a / count) / (1.0 + a))
        return scale * self._mean(), scale, count

    def _covariance(self) -> Tensor:
        x, _, _ = self._scaled_mean()
        both = matmul(expand_dims(x, -1), expand_dims(x, -2))
        return matrix_set_diag(-both, self._variance())

    def _variance(self) -> Tensor:
        x, scale, count = self._scaled_mean()
        found: Tensor = x * (count * scale - x)
        return found
