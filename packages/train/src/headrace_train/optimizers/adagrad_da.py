"""Adagrad by dual averaging: weights computed anew from the sums of all gradients so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.checks import checked_counter
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, check_bound
from headrace_train.optimizers.proximal import soft_threshold


class AdagradDAOptimizer(ElementwiseOptimizer):
    """Adagrad by dual averaging, for linear models whose weights shall be mostly zero.

    With the slots ``gradient_accumulator`` (g) and ``gradient_squared_accumulator`` (q), in step
    ``t = global_step + 1``::

        g = g + gradient
        q = q + gradient**2
        variable = -learning_rate * shrink(g, l1 * t) / (l2 * t * learning_rate + sqrt(q))

    where ``shrink(x, a)`` is ``sign(x) * max(abs(x) - a, 0)``. The new value does not depend on the
    old one: a variable forgets how it was initialized. A sparse gradient changes the rows that it
    names only.

    References:
        J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
        Stochastic Optimization", JMLR 2011, https://jmlr.org/papers/v12/duchi11a.html
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            global_step: The number of steps so far: an integer scalar variable or tensor, which
                the program must count.
            initial_gradient_squared_accumulator_value: Where that slot starts, above 0.
            l1_regularization_strength: How strongly weights are drawn to zero, likewise.
            l2_regularization_strength: How strongly large weights are made smaller, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slots of a variable ``W`` are ``W/<name>`` and
                ``W/<name>_1``.

        Raises:
            AttributeValueError: if the initial value is not above 0.
            DTypeError: if ``global_step`` is no integer scalar.
        """
        check_bound(
            name,
            "initial_gradient_squared_accumulator_value",
            initial_gradient_squared_accumulator_value,
            lambda value: value > 0,
            "above 0",
        )
        given = {
            "learning_rate": learning_rate,
            "initial_gradient_squared_accumulator_value": (
                initial_gradient_squared_accumulator_value
            ),
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        super().__init__(use_locking, name, given)
        self._global_step = checked_counter(global_step)
        self._steps: Tensor | None = None

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "gradient_accumulator", self._name)
            self._filled_slot(
                variable,
                "gradient_squared_accumulator",
                "initial_gradient_squared_accumulator_value",
            )

    def _prepare(self) -> None:
        self._steps = self._global_step + 1

    def _step(self, grad: Tensor, old: Elements) -> Step:
        assert self._steps is not None
        dtype = grad.dtype
        steps = hr.cast(self._steps, dtype)
        rate = self._hyperparameter("learning_rate", dtype)
        total = old["gradient_accumulator"] + grad
        squares = old["gradient_squared_accumulator"] + hr.square(grad)
        shrunken = soft_threshold(self._hyperparameters, total, steps)
        l2 = self._hyperparameter("l2_regularization_strength", dtype)
        return Step(
            value=-rate * shrunken / (l2 * rate * steps + hr.sqrt(squares)),
            slots={"gradient_accumulator": total, "gradient_squared_accumulator": squares},
        )
