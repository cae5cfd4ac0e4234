"""Gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import headrace as hr
from headrace import IndexedSlices, Operation, Tensor, Variable
from headrace_train.optimizers.optimizer import Hyperparameter, Optimizer

_SLOT = "momentum"


@final
class MomentumOptimizer(Optimizer):
    """Gradient descent that keeps going in the direction of earlier steps.

    With the slot ``accumulation``, which starts at zero::

        accumulation = momentum * accumulation + gradient
        variable -= learning_rate * accumulation

    and with ``use_nesterov``::

        variable -= learning_rate * (gradient + momentum * accumulation)

    A sparse gradient changes variable and slot in the rows that it names only, as in TensorFlow:
    the accumulation of other rows waits.

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
            momentum: What is kept of the accumulation from step to step, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slot of a variable ``W`` is ``W/<name>``.
            use_nesterov: Whether to look ahead by one step, as Nesterov's method does.
        """
        super().__init__(name, use_locking, {"learning_rate": learning_rate, "momentum": momentum})
        self._use_nesterov = use_nesterov

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            self._slots.zeros(variable, _SLOT)

    def _apply_dense(self, gradient: Tensor, variable: Variable) -> Tensor:
        slot = self._slots.of(variable, _SLOT)
        momentum = self._hyperparameter("momentum", gradient.dtype)
        accumulation = slot.assign(slot * momentum + gradient)
        change = self._change(gradient, accumulation, momentum)
        return hr.assign_sub(variable, change)

    def _apply_sparse(self, gradient: IndexedSlices, variable: Variable) -> Operation:
        slot = self._slots.of(variable, _SLOT)
        momentum = self._hyperparameter("momentum", gradient.dtype)
        # Each row once, with the sum over all entries of it.
        rows, entries = hr.unique(gradient.indices)
        summed = hr.unsorted_segment_sum(gradient.values, entries, hr.size(rows))
        accumulation = hr.gather(slot.value(), rows) * momentum + summed
        changed = hr.gather(variable.value(), rows) - self._change(summed, accumulation, momentum)
        return hr.group(
            hr.scatter_update(slot, rows, accumulation), hr.scatter_update(variable, rows, changed)
        )

    def _change(self, gradient: Tensor, accumulation: Tensor, momentum: Tensor) -> Tensor:
        direction = gradient + accumulation * momentum if self._use_nesterov else accumulation
        return direction * self._hyperparameter("learning_rate", gradient.dtype)
