"""Gradient descent."""

from __future__ import annotations

from headrace import Tensor
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter


class GradientDescentOptimizer(ElementwiseOptimizer):
    """Plain gradient descent: ``variable -= learning_rate * gradient``.

    Rows that a sparse gradient does not name stay as they are, and are not touched.

    References:
        H. Robbins and S. Monro, "A Stochastic Approximation Method", The Annals of Mathematical
        Statistics, 1951, https://doi.org/10.1214/aoms/1177729586
    """

    _single_write = True
    _adds_up = True

    def __init__(
        self,
        learning_rate: Hyperparameter,
        use_locking: bool = False,
        name: str = "GradientDescent",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            use_locking: Allowed for the sake of TensorFlow's programs; each update is one atomic
                write either way.
            name: Prefix of what is built.
        """
        super().__init__(use_locking, name, {"learning_rate": learning_rate})

    def _step(self, grad: Tensor, old: Elements) -> Step:
        return Step(change=grad * self._hyperparameter("learning_rate", grad.dtype))
