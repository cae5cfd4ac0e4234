"""Adam: steps scaled by running estimates of the gradient's first two moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as hr
from headrace import DType, Operation, Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter


class _Hyperparameter:
    """What classes that are derived read as a tensor; what they set on themselves comes first."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: AdamOptimizer | None, kind: type[AdamOptimizer]) -> Any:
        return self if optimizer is None else optimizer._hyperparameter(self._name, hr.float32)  # noqa: SLF001 - its own


class AdamOptimizer(ElementwiseOptimizer):
    """Adam, in the form in which TensorFlow 1 computes it.

    With the slots ``m`` and ``v``, which start at zero, in step ``t = 1, 2, ...``::

        rate = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t)
        m = m + (1 - beta1) * (gradient - m)
        v = v + (1 - beta2) * (gradient**2 - v)
        variable -= rate * m / (sqrt(v) + epsilon)

    This ``epsilon`` is the one that the paper calls epsilon hat. A sparse gradient stands for the
    dense one with zeros in all other rows, as in TensorFlow: ``m`` and ``v`` decay in every row,
    and every row of the variable changes. ``LazyAdamOptimizer`` changes the named rows only.

    References:
        D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015,
        https://arxiv.org/abs/1412.6980
    """

    _idle_rows_move = True

    _lr_t = _Hyperparameter("learning_rate")
    _beta1_t = _Hyperparameter("beta1")
    _beta2_t = _Hyperparameter("beta2")
    _epsilon_t = _Hyperparameter("epsilon")

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
            name: Prefix of what is built; the slots of a variable ``W`` are ``W/<name>`` and
                ``W/<name>_1``.
        """
        given = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
        }
        super().__init__(use_locking, name, given)
        self._powers: list[tuple[str, Variable]] = []
        self._rate: Tensor | None = None

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda v: v.op_name)
        # The powers of small floats would soon be wrong.
        widest = any(v.dtype == hr.float64 for v in var_list)
        dtype = hr.float64 if widest else hr.float32
        self._powers = [
            (
                beta,
                self._create_non_slot_variable(self._start_of(beta, dtype), f"{beta}_power", first),
            )
            for beta in ("beta1", "beta2")
        ]
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _prepare(self) -> None:
        (_, power1), (_, power2) = self._powers
        with hr.colocate_with(power1.handle), hr.name_scope("rate"):
            rate = self._hyperparameter("learning_rate", power1.dtype)
            self._rate = rate * hr.sqrt(1.0 - power2) / (1.0 - power1)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        assert self._rate is not None
        dtype = grad.dtype
        m = old["m"] + (grad - old["m"]) * self._hyperparameters.complement("beta1", dtype)
        square = hr.square(grad)
        v = old["v"] + (square - old["v"]) * self._hyperparameters.complement("beta2", dtype)
        denominator = hr.sqrt(v) + self._hyperparameter("epsilon", dtype)
        return Step(change=m * hr.cast(self._rate, dtype) / denominator, slots={"m": m, "v": v})

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        last = list(update_ops)
        for beta, power in self._powers:
            with hr.control_dependencies(update_ops), hr.colocate_with(power.handle):
                grown = power * self._hyperparameter(beta, power.dtype)
                last.append(power.assign(grown, name=f"grow_{beta}_power").op)
        return hr.group(*last, name=name_scope)

    def _get_beta_accumulators(self) -> tuple[Variable | None, Variable | None]:
        """Return the variables of ``beta1**t`` and ``beta2**t``; None before there are some."""
        return (
            self._get_non_slot_variable("beta1_power"),
            self._get_non_slot_variable("beta2_power"),
        )

    def _start_of(self, beta: str, dtype: DType) -> Callable[[], Tensor]:
        return lambda: self._hyperparameters.start(beta, dtype)


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that leaves rows alone which a row-sparse gradient does not name.

    ``m``, ``v`` and the variable change in the named rows only, by the same equations, so that a
    step costs what its rows cost. A row that is named rarely keeps the moments of long ago. Dense
    gradients are applied as by ``AdamOptimizer``.
    """

    _idle_rows_move = False
