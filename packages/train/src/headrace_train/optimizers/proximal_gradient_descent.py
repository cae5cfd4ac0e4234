"""Gradient descent for losses with L1 and L2 penalties."""

from __future__ import annotations

import headrace as hr
from headrace import Tensor
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter
from headrace_train.optimizers.proximal import soft_threshold


class ProximalGradientDescentOptimizer(ElementwiseOptimizer):
    """Gradient descent whose penalties are applied exactly, not by their gradients.

    ::

        moved = variable - learning_rate * gradient
        variable = shrink(moved, learning_rate * l1) / (1 + learning_rate * l2)

    where ``shrink(x, a)`` is ``sign(x) * max(abs(x) - a, 0)``: weights become zero, and stay so. A
    sparse gradient changes the rows that it names only, as in TensorFlow: the penalties of other
    rows wait.

    References:
        J. Duchi and Y. Singer, "Efficient Online and Batch Learning using Forward Backward
        Splitting", JMLR 2009, https://jmlr.org/papers/v10/duchi09a.html
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            l1_regularization_strength: How strongly weights are drawn to zero, likewise.
            l2_regularization_strength: How strongly large weights are made smaller, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built.
        """
        given = {
            "learning_rate": learning_rate,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        super().__init__(use_locking, name, given)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        rate = self._hyperparameter("learning_rate", grad.dtype)
        l2 = self._hyperparameter("l2_regularization_strength", grad.dtype)
        moved = soft_threshold(self._hyperparameters, old.value - grad * rate, rate)
        return Step(value=hr.divide(moved, 1.0 + l2 * rate))
