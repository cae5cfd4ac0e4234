"""Gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter


class MomentumOptimizer(ElementwiseOptimizer):
    """Gradient descent that keeps going in the direction of earlier steps.

    With the slot ``momentum``, which starts at zero::

        momentum_slot = momentum * momentum_slot + gradient
        variable -= learning_rate * momentum_slot

    and with ``use_nesterov``::

        variable -= learning_rate * (gradient + momentum * momentum_slot)

    A sparse gradient changes variable and slot in the rows that it names only, as in TensorFlow:
    the momentum of other rows waits.

    References:
        B. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR
        Computational Mathematics and Mathematical Physics, 1964,
        https://doi.org/10.1016/0041-5553(64)90137-5

        I. Sutskever, J. Martens, G. Dahl and G. Hinton, "On the importance of initialization and
        momentum in deep learning", ICML 2013, https://proceedings.mlr.press/v28/sutskever13.html
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            momentum: What is kept of the slot from step to step, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slot of a variable ``W`` is ``W/<name>``.
            use_nesterov: Whether to look ahead by one step, as Nesterov's method does.
        """
        super().__init__(use_locking, name, {"learning_rate": learning_rate, "momentum": momentum})
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        momentum = self._hyperparameter("momentum", grad.dtype)
        kept = old["momentum"] * momentum + grad
        direction = grad + kept * momentum if self._use_nesterov else kept
        rate = self._hyperparameter("learning_rate", grad.dtype)
        return Step(change=direction * rate, slots={"momentum": kept})
