"""Loss scales, and the fixed one."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import headrace as hr
from headrace import Graph, Operation, Tensor, Variable
from headrace.errors import AttributeValueError, UnimplementedError, shown
from headrace.extend.arguments import real
from headrace_train.tracked import Tracked

# The operation that changes a scale, and whether the gradients of the step are to be applied.
Update: TypeAlias = tuple[Operation, bool | Tensor]


class LossScale(Tracked):
    """What a loss is multiplied by before gradients are taken, which are then divided by it.

    In exact arithmetic that changes nothing. In float16, where numbers below 6e-8 are zero, it
    keeps small gradients from vanishing.

    Scales of one's own are subclasses with ``__call__``, ``update`` and ``get_config``.

    References:
        P. Micikevicius et al., Mixed precision training, ICLR 2018, section 3.2.
    """

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Graph], Variable] = {}

    def __call__(self) -> Tensor:
        """Return the scale: [], float32."""
        raise UnimplementedError(f"{type(self).__name__} has no __call__, which returns the scale")

    def update(self, grads: Any) -> Update:
        """Return an operation that changes the scale by what gradients a step had.

        Args:
            grads: Gradients, divided by the scale, in lists however nested; None is passed over.

        Returns:
            The operation, and whether the step should apply the gradients: [], bool.
        """
        raise UnimplementedError(f"{type(self).__name__} has no update, which changes the scale")

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make another such scale."""
        raise UnimplementedError(f"{type(self).__name__} has no get_config")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a scale of the arguments that ``get_config`` returned."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Variable:
        """Return a new variable of the scale in the default graph, which is not trained.

        Args:
            name: Its name.
            initial_value: Its value in the beginning.
            dtype: Its dtype, that of the value if None.

        Raises:
            AttributeValueError: if the scale has one of this name there.
        """
        key = (name, hr.get_default_graph().outermost)
        if key in self._weights:
            raise AttributeValueError(f"the loss scale has a variable {name!r} already")
        self._weights[key] = hr.Variable(initial_value, trainable=False, name=name, dtype=dtype)
        return self._weights[key]

    def _tracked(self) -> dict[str, Any]:
        here = hr.get_default_graph().outermost
        return {name: found for (name, graph), found in self._weights.items() if graph is here}


class FixedLossScale(LossScale):
    """A scale that stays as it is."""

    def __init__(self, loss_scale_value: float) -> None:
        """Make it.

        Args:
            loss_scale_value: The scale, at least 1. With one that is too large, gradients are
                infinite; one that is too small is of no use.

        Raises:
            AttributeValueError: if it is no number, or less than 1.
        """
        super().__init__()
        if not isinstance(loss_scale_value, int | float):
            raise AttributeValueError(
                f"loss_scale_value must be a Python int or float, got {shown(loss_scale_value)}"
            )
        if not loss_scale_value >= 1:
            raise AttributeValueError(
                f"loss_scale_value must be at least 1, got {shown(loss_scale_value)}"
            )
        self._loss_scale_value = real(loss_scale_value, "loss_scale_value")

    def __call__(self) -> Tensor:
        """Return the scale: [], float32."""
        return hr.convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> Update:
        """Return an operation that does nothing, and True.

        Args:
            grads: As for ``LossScale.update``.
        """
        del grads
        return hr.no_op(), True

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make another such scale."""
        return {"loss_scale_value": self._loss_scale_value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"


def checked_scale(given: Any, dynamic: type[LossScale]) -> LossScale:
    """Return the scale that a program asks for.

    Args:
        given: A number, ``"dynamic"``, or a scale.
        dynamic: The scale that ``"dynamic"`` stands for.

    Raises:
        AttributeValueError: if it is something else, or a number less than 1.
    """
    if isinstance(given, LossScale):
        return given
    if isinstance(given, int | float):
        return FixedLossScale(given)
    if isinstance(given, str) and given == "dynamic":
        return dynamic()
    raise AttributeValueError(
        "loss_scale must be a number, 'dynamic', or an hr.train.experimental.LossScale, got "
        f"{shown(given)}"
    )
