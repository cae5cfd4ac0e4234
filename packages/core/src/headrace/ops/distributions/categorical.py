"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from headrace.dtypes import int32, int64
from headrace.errors import DTypeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import expand_dims, reshape, shape, transpose
from headrace.ops.constant import ones, ones_like, sequence_mask, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.cross_entropy import sparse_softmax_cross_entropy_with_logits
from headrace.ops.distributions import checks
from headrace.ops.distributions.chances import Chances
from headrace.ops.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from headrace.ops.distributions.divergence import RegisterKL
from headrace.ops.elementwise import select
from headrace.ops.extremes import argmax
from headrace.ops.joining import concat
from headrace.ops.nn import log_softmax, softmax
from headrace.ops.reduce import reduce_sum
from headrace.ops.sampling import multinomial


class Categorical(Chances, Distribution):
    """The categorical distribution, of the numbers of categories from 0 on."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        """Make it, of one of two parameters.

        Args:
            logits: [..., categories] unnormalized logarithms of probabilities, floating.
            probs: [..., categories] probabilities.
            dtype: The dtype of samples.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN.
            name: The name of the scope.

        Raises:
            AttributeValueError: if both are given, or none, or it is a scalar.
            DTypeError: if it is no floating tensor.
        """
        given = {**locals()}
        with name_scope(name) as scope:
            odds, likely = checks.logits_and_probs(
                logits, probs, several=True, validate_args=validate_args, name=scope
            )
            if validate_args:
                odds = checks.categories(odds)
            self._dims = odds.shape.with_rank_at_least(1)
            last = self._dims.as_list()[-1] if self._dims.ndims is not None else None
            counted: Any = shape(odds)[-1] if last is None else last
            self._event_size = convert_to_tensor(counted, dtype=int32, name="event_size")
            self._logits, self._probs = odds, likely
        super().__init__(
            dtype=dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=given,
            graph_parents=[odds, likely],
            name=scope,
        )

    @property
    def event_size(self) -> Tensor:
        """How many categories there are, an int32."""
        return self._event_size

    def _batch_shape(self) -> Any:
        return self._dims[:-1] if self._dims.ndims is not None else None

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self.logits)[:-1]

    def _event_shape(self) -> list[int]:
        return []

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor([], dtype=int32)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        flat = self.logits
        if flat.shape.ndims != 2:
            flat = reshape(flat, [-1, self.event_size])
        kind = int64 if self.dtype.size > 4 else int32
        drawn = transpose(multinomial(flat, n, seed=seed, output_dtype=kind))
        shaped = reshape(drawn, concat([[n], self.batch_shape_tensor()], 0))
        found: Tensor = cast(shaped, self.dtype)
        return found

    def _broadcast(self, value: Any, params: Tensor) -> tuple[Tensor, Any]:
        """Return values and parameters of each of them.

        Raises:
            DTypeError: if values are neither whole numbers nor floating.
        """
        event = convert_to_tensor(value)
        if event.dtype.is_floating:
            event = cast(event, int32)
        elif not event.dtype.is_integer:
            raise DTypeError(
                f"`value` should have integer `dtype` or `self.dtype` ({self.dtype.name}), got "
                f"{event.dtype.name}"
            )
        batch = params.shape[:-1] if params.shape.ndims is not None else TensorShape(None)
        known = batch.is_fully_defined() and event.shape.is_fully_defined()
        if known and batch == event.shape:
            return event, params
        whole: Any = params * ones_like(expand_dims(event, -1), dtype=params.dtype)
        event = event * ones(shape(whole)[:-1], dtype=event.dtype)
        if whole.shape.ndims is not None:
            event.set_shape(whole.shape[:-1])
        return event, whole

    def _valid(self, value: Any) -> Any:
        return checks.whole(value, int32) if self.validate_args else value

    def _cdf(self, value: Any) -> Tensor:
        event, likely = self._broadcast(self._valid(value), self.probs)
        before = sequence_mask(event, self.event_size)
        return reduce_sum(select(before, likely, zeros_like(likely)), -1)

    def _log_prob(self, value: Any) -> Tensor:
        event, odds = self._broadcast(self._valid(value), self.logits)
        return -sparse_softmax_cross_entropy_with_logits(labels=event, logits=odds)

    def _entropy(self) -> Tensor:
        return -reduce_sum(log_softmax(self.logits) * self.probs, -1)

    def _mode(self) -> Tensor:
        found: Tensor = cast(argmax(self.logits, axis=-1), self.dtype)
        found.set_shape(self.batch_shape)
        return found


@RegisterKL(Categorical, Categorical)
def _apart(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    with name_scope(name or "kl_categorical_categorical"):
        ratios = log_softmax(a.logits) - log_softmax(b.logits)
        return reduce_sum(softmax(a.logits) * ratios, -1)
