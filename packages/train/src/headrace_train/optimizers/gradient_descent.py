"""Gradient descent."""

from __future__ import annotations

from typing import final

from headrace import IndexedSlices, Tensor, Variable, assign_sub, scatter_sub
from headrace_train.optimizers.optimizer import Hyperparameter, Optimizer


@final
class GradientDescentOptimizer(Optimizer):
    """Plain gradient descent: ``variable -= learning_rate * gradient``.

    Rows that a sparse gradient does not name stay as they are, and are not touched.

    References:
        H. Robbins and S. Monro, "A Stochastic Approximation Method", The Annals of Mathematical
        Statistics, 1951, https://doi.org/10.1214/aoms/1177729586
    """

    _single_write = True

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
        super().__init__(name, use_locking, {"learning_rate": learning_rate})

    def _apply_dense(self, gradient: Tensor, variable: Variable) -> Tensor:
        change = gradient * self._hyperparameter("learning_rate", gradient.dtype)
        return assign_sub(variable, change)

    def _apply_sparse(self, gradient: IndexedSlices, variable: Variable) -> Tensor:
        change = gradient.values * self._hyperparameter("learning_rate", gradient.dtype)
        return scatter_sub(variable, gradient.indices, change)
