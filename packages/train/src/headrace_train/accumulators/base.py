"""The base class of accumulators of dense and of row-sparse gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import headrace as hr
from headrace import DType, Operation, Shape, Tensor
from headrace.extend.primitives import accumulator_num_accumulated, accumulator_set_global_step
from headrace_train.queues.components import check_graph


class ConditionalAccumulatorBase:
    """Gathers gradients of several steps until there are enough of them.

    It counts steps. A gradient that was computed for an earlier step than its own is dropped;
    taking what was gathered begins the next step.
    """

    # What the operation is called that sets the step, as in TensorFlow.
    _step_label: ClassVar[str] = "AccumulatorSetGlobalStep"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        """Make an accumulator of a handle; programs make one of the classes.

        Args:
            dtype: The dtype of the gradients.
            shape: Their shape, as far as fixed; unknown if None.
            accumulator_ref: The handle to the accumulator.
        """
        self._dtype = hr.as_dtype(dtype)
        self._shape = Shape(shape)
        self._ref = accumulator_ref

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle to the accumulator."""
        return self._ref

    @property
    def name(self) -> str:
        """The last part of the name of the accumulator's operation."""
        return self._ref.op.name.rpartition("/")[2]

    @property
    def dtype(self) -> DType:
        """The dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Return how many gradients were added since some were last taken, as an int32 scalar."""
        check_graph(self._ref, "accumulator")
        label = f"{self.name}_NumAccumulated" if name is None else name
        return accumulator_num_accumulated(self._ref, name=label)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Return an operation that sets the accumulator's step.

        Args:
            new_global_step: The step: an integer, a scalar tensor or a variable.
            name: The name of the operation.
        """
        check_graph(self._ref, "accumulator")
        step = as_int64(new_global_step)
        label = self._step_label if name is None else name
        return operation(accumulator_set_global_step(self._ref, step, name=label))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._ref.op.name!r} of {self._dtype}{self._shape}>"


def as_int64(value: Any) -> Tensor:
    """Return steps, indices or sizes as a tensor."""
    made: Tensor = hr.cast(hr.convert_to_tensor(value), hr.int64)
    return made


def operation(built: Any) -> Operation:
    """Return what an op without outputs built."""
    assert isinstance(built, Operation)
    return built
