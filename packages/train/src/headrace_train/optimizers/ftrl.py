"""FTRL-proximal: follow the regularized leader, with a rate for each element."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, check_bound


class FtrlOptimizer(ElementwiseOptimizer):
    """FTRL-proximal, for large linear models whose weights shall be mostly zero.

    With the slots ``accum`` and ``linear``, and ``p = -learning_rate_power``::

        shifted = gradient + 2 * l2_shrinkage * variable
        accum_new = accum + gradient**2
        linear = linear + shifted - (accum_new**p - accum**p) / learning_rate * variable
        accum = accum_new
        variable = (clip(linear, -l1, l1) - linear) / (accum**p / learning_rate + 2 * l2)

    A sparse gradient changes the rows that it names only, which here is no approximation, but for
    the shrinkage, which other rows then miss.

    References:
        H. B. McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013, algorithm
        1, https://doi.org/10.1145/2487575.2488200
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        learning_rate_power: Hyperparameter = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Hyperparameter = 0.0,
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            learning_rate_power: How the rate falls with the sum of squared gradients, at most 0; 0
                for a fixed rate.
            initial_accumulator_value: Where the slot ``accum`` starts, at least 0.
            l1_regularization_strength: How strongly weights are drawn to zero, at least 0.
            l2_regularization_strength: How strongly large weights are made smaller, at least 0.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built.
            accum_name: Follows the variable's name in that of the slot ``accum``; ``name`` if None.
            linear_name: Likewise for the slot ``linear``.
            l2_shrinkage_regularization_strength: A penalty of large weights that is part of the
                gradient of each step, at least 0.

        Raises:
            AttributeValueError: if a number is out of its bounds.
        """
        given: dict[str, Hyperparameter] = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for label, value in given.items():
            check_bound(name, label, value, lambda x: x >= 0, "at least 0")
        check_bound(name, "learning_rate_power", learning_rate_power, lambda x: x <= 0, "at most 0")
        given["learning_rate"] = learning_rate
        given["learning_rate_power"] = learning_rate_power
        super().__init__(use_locking, name, given)
        self._accum_name = accum_name or name
        self._linear_name = linear_name or name

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._filled_slot(variable, "accum", "initial_accumulator_value", self._accum_name)
            self._zeros_slot(variable, "linear", self._linear_name)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        dtype = grad.dtype
        rate = self._hyperparameter("learning_rate", dtype)
        shifted = grad
        if self._hyperparameters.number("l2_shrinkage_regularization_strength") != 0:
            shrinkage = self._hyperparameter("l2_shrinkage_regularization_strength", dtype)
            shifted = grad + 2.0 * shrinkage * old.value
        accum = old["accum"] + hr.square(grad)
        root = self._powered(accum)
        linear = old["linear"] + shifted - (root - self._powered(old["accum"])) / rate * old.value
        drawn = -linear
        if self._hyperparameters.number("l1_regularization_strength") != 0:
            l1 = self._hyperparameter("l1_regularization_strength", dtype)
            drawn = hr.maximum(hr.minimum(linear, l1), -l1) - linear
        l2 = self._hyperparameter("l2_regularization_strength", dtype)
        value = drawn / (root / rate + 2.0 * l2)
        return Step(value=value, slots={"accum": accum, "linear": linear})

    def _powered(self, accum: Tensor) -> Tensor:
        """Return ``accum ** -learning_rate_power``."""
        if self._hyperparameters.number("learning_rate_power") == -0.5:
            return hr.sqrt(accum)
        power: Tensor = hr.pow(accum, -self._hyperparameter("learning_rate_power", accum.dtype))
        return power
