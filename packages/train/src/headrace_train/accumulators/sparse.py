"""Accumulators of row-sparse gradients."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import headrace as hr
from headrace import IndexedSlices, Operation, Shape, Tensor
from headrace.errors import DTypeError, shown
from headrace.extend.primitives import (
    sparse_accumulator_apply_gradient,
    sparse_accumulator_place_gradient,
    sparse_accumulator_take_gradient,
    sparse_accumulator_take_placed,
    sparse_conditional_accumulator,
)
from headrace_train.accumulators.base import ConditionalAccumulatorBase, as_int64, operation
from headrace_train.queues.arguments import handle
from headrace_train.queues.components import check_graph


class SparseGradient(NamedTuple):
    """What is taken from an accumulator of row-sparse gradients.

    Attributes:
        indices: [n], int64: the rows that gradients had.
        values: [n, ...], their means or sums.
        shape: [rank], int64: the shape as a dense tensor, -1 where it is not known.
    """

    indices: Tensor
    values: Tensor
    shape: Tensor


@final
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Gathers row-sparse gradients of several steps until there are enough of them.

    The mean of a row is that over the gradients that have it.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        """Make an accumulator in the default graph.

        Args:
            dtype: The dtype of the gradients.
            shape: The shape of their first axes as dense tensors, as far as fixed; unknown if None.
            shared_name: Its name in its container; the accumulator's own name if None.
            name: The accumulator's name; made unique.
            reduction_type: "MEAN" or "SUM", of each row.

        Raises:
            DTypeError: if the dtype is not floating.
            AttributeValueError: if ``reduction_type`` is neither.
        """
        ref = handle(
            sparse_conditional_accumulator,
            name,
            shared_name,
            dtype=hr.as_dtype(dtype),
            shape=Shape(shape),
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Return an operation that adds a gradient; arguments as for ``apply_grad``."""
        return self.apply_grad(
            grad.indices, grad.values, grad.dense_shape, local_step=local_step, name=name
        )

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that adds a gradient, unless its step is behind the accumulator's.

        Args:
            grad_indices: [n], which rows it has.
            grad_values: [n, ...], the rows.
            grad_shape: [rank], its shape as a dense tensor, if that is known.
            local_step: The step for which it was computed.
            name: The name of the operation.

        Raises:
            DTypeError: if it has another dtype.
        """
        rows, values, shape = self._checked(grad_indices, grad_values, grad_shape)
        step = as_int64(local_step)
        return operation(
            sparse_accumulator_apply_gradient(self._ref, step, rows, values, shape, name=name)
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> SparseGradient:
        """Return the mean or sum of the gradients, taken out; the step waits for enough of them.

        Args:
            num_required: How many it waits for; all that were added count.
            name: The name of the operation.
        """
        check_graph(self._ref, "accumulator")
        return SparseGradient(
            *sparse_accumulator_take_gradient(
                self._ref, num_required, self._dtype, self._shape, name=name
            )
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """Return what ``take_grad`` does, as ``IndexedSlices``."""
        taken = self.take_grad(num_required, name=name)
        return IndexedSlices(taken.values, taken.indices, taken.shape)

    def place_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        place: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that keeps a gradient under a number until ``take_placed``.

        Args:
            grad_indices: [n], which rows it has.
            grad_values: [n, ...], the rows.
            grad_shape: [rank], its shape as a dense tensor, if that is known.
            place: The number, as for ``ConditionalAccumulator.place_grad``.
            name: The name of the operation.

        Raises:
            DTypeError: if it has another dtype.
        """
        rows, values, shape = self._checked(grad_indices, grad_values, grad_shape)
        number = as_int64(place)
        return operation(
            sparse_accumulator_place_gradient(self._ref, number, rows, values, shape, name=name)
        )

    def take_placed(self, places: Any, name: str | None = None) -> IndexedSlices:
        """Return the means or sums of rows of the gradients of some numbers.

        Args:
            places: [n], the numbers, as for ``ConditionalAccumulator.take_placed``.
            name: The name of the operation.
        """
        check_graph(self._ref, "accumulator")
        taken = SparseGradient(
            *sparse_accumulator_take_placed(
                self._ref, as_int64(places), self._dtype, self._shape, name=name
            )
        )
        return IndexedSlices(taken.values, taken.indices, taken.shape)

    def _checked(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        check_graph(self._ref, "accumulator")
        values = hr.convert_to_tensor(grad_values)
        if values.dtype != self._dtype:
            raise DTypeError(
                f"a gradient for {self.name!r} must be {self._dtype}, got {shown(values)}"
            )
        shape = hr.constant([], hr.int64) if grad_shape is None else as_int64(grad_shape)
        return as_int64(grad_indices), values, shape
