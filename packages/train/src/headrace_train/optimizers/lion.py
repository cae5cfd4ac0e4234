"""Lion: steps of one size, in the direction of an interpolated momentum."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter


class LionOptimizer(ElementwiseOptimizer):
    """Lion, which keeps one slot where Adam keeps two.

    With the slot ``m``, which starts at zero::

        direction = sign(beta1 * m + (1 - beta1) * gradient)
        variable -= learning_rate * (direction + weight_decay * variable)
        m = beta2 * m + (1 - beta2) * gradient

    All steps are ``learning_rate`` long, so it wants a third to a tenth of Adam's rate. A sparse
    gradient stands for the dense one with zeros in all other rows: every row moves, and decays.

    References:
        X. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, algorithm 2,
        https://arxiv.org/abs/2302.06675
    """

    _idle_rows_move = True

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.0001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.99,
        weight_decay: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "Lion",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            beta1: The weight of ``m`` in the direction of a step, likewise.
            beta2: What ``m`` keeps from step to step, likewise.
            weight_decay: How strongly weights are drawn to zero, likewise; it is multiplied by the
                rate.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slot of a variable ``W`` is ``W/<name>``.
        """
        given = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
        }
        super().__init__(use_locking, name, given)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        dtype = grad.dtype
        m = old["m"]
        blend = m + (grad - m) * self._hyperparameters.complement("beta1", dtype)
        direction = hr.sign(blend)
        if self._hyperparameters.number("weight_decay") != 0:
            direction = direction + self._hyperparameter("weight_decay", dtype) * old.value
        return Step(
            change=direction * self._hyperparameter("learning_rate", dtype),
            slots={"m": m + (grad - m) * self._hyperparameters.complement("beta2", dtype)},
        )
