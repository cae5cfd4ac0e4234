"""Dynamic loss scaling: a scale that finds by itself how large it may be."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import IndexedSlices, Operation, Tensor
from headrace.errors import AttributeValueError, shown
from headrace.extend.arguments import real, whole
from headrace_train.loss_scaling.scale import LossScale, Update


class DynamicLossScale(LossScale):
    """A scale that grows as long as gradients are finite.

    After so many steps in a row with finite gradients it is multiplied. A step with an infinite or
    undefined gradient is left out, and the scale is divided, down to 1.

    References:
        P. Micikevicius et al., Mixed precision training, ICLR 2018, section 3.2.
    """

    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        """Make it, with two variables in the default graph: the scale, and a count of steps.

        Args:
            initial_loss_scale: The scale in the beginning. One that is too large is found out
                sooner than one that is too small.
            increment_period: After how many steps with finite gradients it grows.
            multiplier: What it is multiplied by, and divided by.

        Raises:
            ArgumentTypeError: if something is no number.
            AttributeValueError: if a number is not above 0.
        """
        super().__init__()
        self._initial_loss_scale = real(initial_loss_scale, "initial_loss_scale")
        self._increment_period = whole(increment_period, "increment_period")
        self._multiplier = real(multiplier, "multiplier")
        for name in ("initial_loss_scale", "increment_period", "multiplier"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise AttributeValueError(f"{name} must be above 0, got {shown(value)}")
        self._scale = self._add_weight("current_loss_scale", self._initial_loss_scale, hr.float32)
        self._good_steps = self._add_weight("good_steps", 0, hr.int64)

    @property
    def initial_loss_scale(self) -> float:
        """The scale in the beginning."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After how many steps with finite gradients it grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """What it is multiplied by, and divided by."""
        return self._multiplier

    def __call__(self) -> Tensor:
        """Return the scale: [], float32."""
        return hr.convert_to_tensor(self._scale)

    def update(self, grads: Any) -> Update:
        """Return an operation that changes the scale by what gradients a step had.

        Args:
            grads: Gradients, divided by the scale, in lists however nested; None is passed over.

        Returns:
            The operation, and whether all gradients are finite: [], bool.
        """
        flat = [grad for grad in hr.nest.flatten(grads) if grad is not None]
        finite = hr.reduce_all([hr.reduce_all(hr.is_finite(_values(grad))) for grad in flat])
        grown = self._scale * self._multiplier
        is_due = self._good_steps + 1 >= self._increment_period

        def grow() -> Operation:
            # A scale that is as large as float32 can be stays.
            scale = hr.where(hr.is_finite(grown), grown, self._scale.value())
            return hr.group(self._scale.assign(scale), self._good_steps.assign(0))

        def shrink() -> Operation:
            less = hr.maximum(self._scale / self._multiplier, 1.0)
            return hr.group(self._scale.assign(less), self._good_steps.assign(0))

        def go_on() -> Operation:
            found: Operation = hr.cond(
                is_due, grow, lambda: hr.group(self._good_steps.assign_add(1))
            )
            return found

        update: Operation = hr.cond(finite, go_on, shrink)
        return update, finite

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make another such scale."""
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.get_config().items())
        return f"DynamicLossScale({given})"


def _values(grad: Any) -> Any:
    return grad.values if isinstance(grad, IndexedSlices) else grad
