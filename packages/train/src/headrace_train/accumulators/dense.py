"""Accumulators of dense gradients."""

from __future__ import annotations

from typing import Any, final

import headrace as hr
from headrace import Operation, Shape, Tensor
from headrace.errors import ShapeError, shown
from headrace.extend.primitives import (
    accumulator_apply_gradient,
    accumulator_place_gradient,
    accumulator_take_gradient,
    accumulator_take_placed,
    conditional_accumulator,
)
from headrace_train.accumulators.base import ConditionalAccumulatorBase, as_int64, operation
from headrace_train.queues.arguments import handle
from headrace_train.queues.components import check_graph


@final
class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Gathers dense gradients of several steps until there are enough of them."""

    _step_label = "ResourceAccumulatorSetGlobalStep"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        """Make an accumulator in the default graph.

        Args:
            dtype: The dtype of the gradients.
            shape: Their shape, as far as fixed; unknown if None.
            shared_name: Its name in its container; the accumulator's own name if None.
            name: The accumulator's name; made unique.
            reduction_type: "MEAN" or "SUM", of the gradients that are taken.

        Raises:
            DTypeError: if the dtype is not floating.
            AttributeValueError: if ``reduction_type`` is neither.
        """
        ref = handle(
            conditional_accumulator,
            name,
            shared_name,
            dtype=hr.as_dtype(dtype),
            shape=Shape(shape),
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Return an operation that adds a gradient, unless its step is behind the accumulator's.

        Args:
            grad: The gradient.
            local_step: The step for which it was computed.
            name: The name of the operation.

        Raises:
            DTypeError: if it has another dtype.
            ShapeError: if it has another shape.
        """
        gradient = self._checked(grad)
        step = as_int64(local_step)
        label = "ResourceAccumulatorApplyGradient" if name is None else name
        return operation(accumulator_apply_gradient(self._ref, step, gradient, name=label))

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Return the mean or sum of the gradients, taken out; the step waits for enough of them.

        Args:
            num_required: How many it waits for; all that were added count.
            name: The name of the operation.
        """
        check_graph(self._ref, "accumulator")
        label = "ResourceAccumulatorTakeGradient" if name is None else name
        return accumulator_take_gradient(
            self._ref, num_required, self._dtype, self._shape, name=label
        )

    def place_grad(self, grad: Any, place: Any, name: str | None = None) -> Operation:
        """Return an operation that keeps a gradient under a number until ``take_placed``.

        What is kept so counts for neither ``num_accumulated`` nor ``take_grad``.

        Args:
            grad: The gradient.
            place: The number, which no other gradient may have; dropped if it is not above those
                that were taken.
            name: The name of the operation.

        Raises:
            DTypeError: if it has another dtype.
            ShapeError: if it has another shape.
        """
        gradient = self._checked(grad)
        return operation(
            accumulator_place_gradient(self._ref, as_int64(place), gradient, name=name)
        )

    def take_placed(self, places: Any, name: str | None = None) -> Tensor:
        """Return the mean or sum of the gradients of some numbers; the step waits for all of them.

        They are added up in the order of the numbers, in whatever order they came.

        Args:
            places: [n], the numbers, at least one. Gradients of other numbers below are dropped.
            name: The name of the operation.
        """
        check_graph(self._ref, "accumulator")
        return accumulator_take_placed(
            self._ref, as_int64(places), self._dtype, self._shape, name=name
        )

    def _checked(self, grad: Any) -> Tensor:
        check_graph(self._ref, "accumulator")
        gradient = hr.convert_to_tensor(grad, self._dtype)
        if not self._shape.is_compatible_with(gradient.spec.shape):
            raise ShapeError(
                f"a gradient for {self.name!r} must have shape {self._shape}, got {shown(gradient)}"
            )
        return gradient
