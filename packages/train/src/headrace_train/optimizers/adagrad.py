"""Adagrad: rates that fall with the sum of squared gradients."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, check_bound


class AdagradOptimizer(ElementwiseOptimizer):
    """Adagrad, with a rate for each element that falls with its gradients so far.

    With the slot ``accumulator``::

        accumulator = accumulator + gradient**2
        variable -= learning_rate * gradient / sqrt(accumulator)

    A sparse gradient changes the rows that it names only, which here is no approximation.

    References:
        J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
        Stochastic Optimization", JMLR 2011, https://jmlr.org/papers/v12/duchi11a.html
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            initial_accumulator_value: Where the slot starts, above 0.
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
        }
        super().__init__(use_locking, name, given)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._filled_slot(variable, "accumulator", "initial_accumulator_value")

    def _step(self, grad: Tensor, old: Elements) -> Step:
        accumulator = old["accumulator"] + hr.square(grad)
        rate = self._hyperparameter("learning_rate", grad.dtype)
        return Step(change=grad * rate / hr.sqrt(accumulator), slots={"accumulator": accumulator})
