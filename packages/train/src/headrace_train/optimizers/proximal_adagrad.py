"""Adagrad for losses with L1 and L2 penalties."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, check_bound
from headrace_train.optimizers.proximal import soft_threshold


class ProximalAdagradOptimizer(ElementwiseOptimizer):
    """Adagrad whose penalties are applied exactly, not by their gradients.

    With the slot ``accumulator``::

        accumulator = accumulator + gradient**2
        rate = learning_rate / sqrt(accumulator)
        variable = shrink(variable - rate * gradient, rate * l1) / (1 + rate * l2)

    where ``shrink(x, a)`` is ``sign(x) * max(abs(x) - a, 0)``. A sparse gradient changes the rows
    that it names only, as in TensorFlow: the penalties of other rows wait.

    References:
        J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
        Stochastic Optimization", JMLR 2011, https://jmlr.org/papers/v12/duchi11a.html
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            initial_accumulator_value: Where the slot starts, above 0.
            l1_regularization_strength: How strongly weights are drawn to zero, likewise.
            l2_regularization_strength: How strongly large weights are made smaller, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slot of a variable ``W`` is ``W/<name>``.

        Raises:
            AttributeValueError: if ``initial_accumulator_value`` is not above 0.
        """
        check_bound(
            name,
            "initial_accumulator_value",
            initial_accumulator_value,
            lambda value: value > 0,
            "above 0",
        )
        given = {
            "learning_rate": learning_rate,
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        super().__init__(use_locking, name, given)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._filled_slot(variable, "accumulator", "initial_accumulator_value")

    def _step(self, grad: Tensor, old: Elements) -> Step:
        accumulator = old["accumulator"] + hr.square(grad)
        rate = self._hyperparameter("learning_rate", grad.dtype) / hr.sqrt(accumulator)
        l2 = self._hyperparameter("l2_regularization_strength", grad.dtype)
        moved = soft_threshold(self._hyperparameters, old.value - grad * rate, rate)
        return Step(value=moved / (1.0 + rate * l2), slots={"accumulator": accumulator})
