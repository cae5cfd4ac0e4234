"""LARS: a rate for each layer, by the ratio of the norms of weights and gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace.extend.arguments import items
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, check_bound


class LARSOptimizer(ElementwiseOptimizer):
    """Momentum with layer-wise adaptive rates, for large batches.

    With the slot ``momentum``, which starts at zero, and Euclidean norms over the whole variable::

        trust = eeta * norm(variable) / (norm(gradient) + weight_decay * norm(variable) + epsilon)
        change = learning_rate * trust * (gradient + weight_decay * variable)
        momentum_slot = momentum * momentum_slot + change
        variable -= momentum_slot

    and with ``use_nesterov`` ``variable -= change + momentum * momentum_slot``. Where one of the
    norms is zero, ``trust`` is 1. Norms need a pass over variable and gradient before that of the
    update. As in TensorFlow, a row-sparse gradient is applied as by ``MomentumOptimizer``, to the
    rows that it names, with neither norms nor decay.

    References:
        Y. You, I. Gitman and B. Ginsburg, "Large Batch Training of Convolutional Networks", 2017,
        algorithm 1, https://arxiv.org/abs/1708.03888
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter = 0.9,
        weight_decay: Hyperparameter = 0.0001,
        eeta: Hyperparameter = 0.001,
        epsilon: Hyperparameter = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Iterable[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            momentum: What the slot keeps from step to step, likewise, at least 0.
            weight_decay: How strongly weights are drawn to zero, likewise, at least 0.
            eeta: The paper's trust coefficient, likewise.
            epsilon: Keeps the denominator from zero, likewise.
            name: Prefix of what is built; the slot of a variable ``W`` is ``W/<name>``.
            skip_list: Variables whose name contains one of these get neither norms nor decay.
            use_nesterov: Whether to look ahead by one step, as Nesterov's method does.

        Raises:
            AttributeValueError: if ``momentum`` or ``weight_decay`` is negative.
        """
        check_bound(name, "momentum", momentum, lambda x: x >= 0, "at least 0")
        check_bound(name, "weight_decay", weight_decay, lambda x: x >= 0, "at least 0")
        given = {
            "learning_rate": learning_rate,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "eeta": eeta,
            "epsilon": epsilon,
        }
        super().__init__(False, name, given)
        self._skip_list = [] if skip_list is None else items(skip_list, "skip_list")
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        old = self._elements(var)
        rate = self._hyperparameter("learning_rate", grad.dtype)
        if not any(part in var.name for part in self._skip_list):
            decay = self._hyperparameter("weight_decay", grad.dtype)
            rate = rate * self._trust(grad, old.value, decay)
            grad = grad + decay * old.value
        return self._write(var, self._moved(grad * rate, old, hr.ones([], grad.dtype)))

    def _step(self, grad: Tensor, old: Elements) -> Step:
        return self._moved(grad, old, self._hyperparameter("learning_rate", grad.dtype))

    def _moved(self, change: Tensor, old: Elements, rate: Tensor) -> Step:
        momentum = self._hyperparameter("momentum", change.dtype)
        kept = old["momentum"] * momentum + change
        direction = change + kept * momentum if self._use_nesterov else kept
        return Step(change=direction * rate, slots={"momentum": kept})

    def _trust(self, grad: Tensor, value: Tensor, decay: Tensor) -> Tensor:
        weights, slope = (hr.sqrt(hr.reduce_sum(hr.square(x))) for x in (value, grad))
        epsilon = self._hyperparameter("epsilon", grad.dtype)
        ratio = self._hyperparameter("eeta", grad.dtype) * weights
        known = hr.logical_and(weights > 0, slope > 0)
        # What is not chosen must not divide by zero.
        below = hr.where(known, slope + decay * weights + epsilon, hr.ones_like(slope))
        trust: Tensor = hr.where(known, ratio / below, hr.ones_like(slope))
        return trust
