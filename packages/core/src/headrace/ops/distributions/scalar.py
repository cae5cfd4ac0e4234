"""Distributions of scalars whose parameters broadcast."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.dtypes import int32
from headrace.graph.convert import convert_to_tensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_dynamic_shape, shape
from headrace.ops.constant import ones, zeros
from headrace.ops.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from headrace.ops.joining import concat
from headrace.shapes import broadcast_static_shape


class ScalarDistribution(Distribution):
    """A distribution of scalars; its batch is what its parameters broadcast to."""

    # The parameters that ``param_shapes`` tells of.
    _shaped: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        batch: Sequence[Tensor],
        name: str,
        given: Mapping[str, Any],
        *,
        dtype: Any = None,
        kind: ReparameterizationType = FULLY_REPARAMETERIZED,
    ) -> None:
        """State what holds of it.

        Args:
            batch: The parameters, of the same dtype.
            name: Its scope.
            given: What it was made with, by name.
            dtype: The dtype of samples; that of the parameters if None.
            kind: Whether samples have gradients.
        """
        self._batch = tuple(batch)
        super().__init__(
            dtype=batch[0].dtype if dtype is None else dtype,
            reparameterization_type=kind,
            validate_args=given["validate_args"],
            allow_nan_stats=given["allow_nan_stats"],
            parameters=given,
            graph_parents=batch,
            name=name,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        if not cls._shaped:
            return super()._param_shapes(sample_shape)
        dims = convert_to_tensor(sample_shape, dtype=int32)
        return dict.fromkeys(cls._shaped, dims)

    def _batch_shape(self) -> Any:
        shapes: Any = [each.shape for each in self._batch]
        return functools.reduce(broadcast_static_shape, shapes)

    def _batch_shape_tensor(self) -> Tensor:
        dims: Any = [shape(each) for each in self._batch]
        found: Tensor = functools.reduce(broadcast_dynamic_shape, dims)
        return found

    def _event_shape(self) -> list[int]:
        return []

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor([], dtype=int32)

    def _drawn_shape(self, n: Any) -> Tensor:
        """Return the shape of so many samples."""
        return concat([[n], self.batch_shape_tensor()], 0)

    def _whole(self, value: Any) -> Tensor:
        """Return a statistic in the shape of the batch."""
        found: Tensor = value * ones(self.batch_shape_tensor(), dtype=value.dtype)
        return found

    def _nothing(self) -> Tensor:
        """Return zeros in the shape of the batch."""
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)


class LocationScale(ScalarDistribution):
    """A distribution of scalars that is a standard one, made wider and moved."""

    _loc: Tensor
    _scale: Tensor

    @property
    def loc(self) -> Tensor:
        """Where its middle is."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """How wide it is."""
        return self._scale

    def _standard(self, x: Any) -> Any:
        """Return values as the standard distribution has them."""
        return (x - self.loc) / self.scale
