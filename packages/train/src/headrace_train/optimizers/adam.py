"""Adam: steps scaled by running estimates of the gradient's first two moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace_train.optimizers.optimizer import Hyperparameter, Optimizer, as_scalar


@final
class AdamOptimizer(Optimizer):
    """Adam, in the form in which TensorFlow 1 computes it.

    With the slots ``m`` and ``v``, which start at zero, in step ``t = 1, 2, ...``::

        rate = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t)
        m = m + (1 - beta1) * (gradient - m)
        v = v + (1 - beta2) * (gradient**2 - v)
        variable -= rate * m / (sqrt(v) + epsilon)

    This ``epsilon`` is the one that the paper calls epsilon hat. A sparse gradient stands for the
    dense one with zeros in all other rows, as in TensorFlow: ``m`` and ``v`` decay in every row,
    and every row of the variable changes.

    References:
        D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015,
        https://arxiv.org/abs/1412.6980
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-08,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            beta1: What ``m`` keeps from step to step, likewise.
            beta2: What ``v`` keeps from step to step, likewise.
            epsilon: Keeps the denominator from zero, likewise.
            use_locking: See ``Optimizer``.
            name: Prefix of what is built; the slots of a variable ``W`` are ``W/<name>/m`` and
                ``W/<name>/v``.
        """
        given = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
        }
        super().__init__(name, use_locking, given)
        self._powers: list[tuple[str, Variable]] = []
        self._rate: Tensor | None = None

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        first = min(variables, key=lambda v: v.op_name)
        # The powers of small floats would soon be wrong.
        widest = any(v.dtype == hr.float64 for v in variables)
        dtype = hr.float64 if widest else hr.float32
        self._powers = [
            (beta, self._slots.shared(first, f"{beta}_power", self._start_of(beta, dtype)))
            for beta in ("beta1", "beta2")
        ]
        for variable in variables:
            self._slots.zeros(variable, "m", "m")
            self._slots.zeros(variable, "v", "v")

    def _prepare(self, variables: Sequence[Variable]) -> None:
        (_, power1), (_, power2) = self._powers
        with hr.colocate_with(power1.handle), hr.name_scope("rate"):
            rate = self._hyperparameter("learning_rate", power1.dtype)
            self._rate = rate * hr.sqrt(1.0 - power2) / (1.0 - power1)

    def _apply_dense(self, gradient: Tensor, variable: Variable) -> Tensor:
        assert self._rate is not None
        dtype = gradient.dtype
        m, v = self._slots.of(variable, "m"), self._slots.of(variable, "v")
        new_m = m.assign_add((gradient - m) * self._complement("beta1", dtype))
        new_v = v.assign_add((hr.square(gradient) - v) * self._complement("beta2", dtype))
        denominator = hr.sqrt(new_v) + self._hyperparameter("epsilon", dtype)
        return hr.assign_sub(variable, new_m * hr.cast(self._rate, dtype) / denominator)

    def _finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        last = list(updates)
        for beta, power in self._powers:
            with hr.control_dependencies(updates), hr.colocate_with(power.handle):
                grown = power * self._hyperparameter(beta, power.dtype)
                last.append(power.assign(grown, name=f"grow_{beta}_power").op)
        return last

    def _start_of(self, beta: str, dtype: hr.DType) -> Callable[[], Tensor]:
        return lambda: as_scalar(self._current[beta], dtype)
