"""Adadelta: steps as long as recent steps were, in units of the parameter."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter


class AdadeltaOptimizer(ElementwiseOptimizer):
    """Adadelta, which compares running means of squared steps and squared gradients.

    With the slots ``accum`` and ``accum_update``, which start at zero::

        accum = rho * accum + (1 - rho) * gradient**2
        update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * gradient
        accum_update = rho * accum_update + (1 - rho) * update**2
        variable -= learning_rate * update

    The paper's rate is 1. A sparse gradient changes the rows that it names only, as in TensorFlow:
    the running means of other rows wait.

    References:
        M. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012,
        https://arxiv.org/abs/1212.5701
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-08,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            rho: What the running means keep from step to step, likewise.
            epsilon: Keeps both means from zero, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slots of a variable ``W`` are ``W/<name>`` and
                ``W/<name>_1``.
        """
        given = {"learning_rate": learning_rate, "rho": rho, "epsilon": epsilon}
        super().__init__(use_locking, name, given)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "accum", self._name)
            self._zeros_slot(variable, "accum_update", self._name)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        dtype = grad.dtype
        rho = self._hyperparameter("rho", dtype)
        rest = self._hyperparameters.complement("rho", dtype)
        epsilon = self._hyperparameter("epsilon", dtype)
        accum = old["accum"] * rho + hr.square(grad) * rest
        update = hr.sqrt(old["accum_update"] + epsilon) / hr.sqrt(accum + epsilon) * grad
        accum_update = old["accum_update"] * rho + hr.square(update) * rest
        return Step(
            change=update * self._hyperparameter("learning_rate", dtype),
            slots={"accum": accum, "accum_update": accum_update},
        )
