"""An optimizer that keeps averages of what another one trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import headrace as hr
from headrace import Operation, Variable
from headrace.errors import (
    AttributeValueError,
    FailedPreconditionError,
    GraphError,
    shown,
)
from headrace.extend.arguments import items, mapping
from headrace_train.averages.exponential import ExponentialMovingAverage
from headrace_train.optimizers.checks import Gradient
from headrace_train.optimizers.optimizer import Optimizer
from headrace_train.saver import Saver


class MovingAverageOptimizer(Optimizer):
    """Trains with another optimizer, and keeps moving averages of the variables that it changes.

    The averages are saved under the names of their variables by ``swapping_saver``, so that
    programs that evaluate a model restore them with an ordinary ``Saver``.

    References:
        B. Polyak and A. Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM
        Journal on Control and Optimization, 1992, https://doi.org/10.1137/0330046
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: Any = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        """Choose what trains.

        Args:
            opt: The optimizer.
            average_decay: What averages keep from step to step; see ``ExponentialMovingAverage``.
            num_updates: The number of steps so far; see ``ExponentialMovingAverage``.
            sequential_update: Whether averages are of the values after the step. Otherwise they
                are updated at the same time, from values before or after it.

        Raises:
            AttributeValueError: if ``opt`` is no optimizer.
        """
        if not isinstance(opt, Optimizer):
            raise AttributeValueError(f"opt must be an optimizer, got {shown(opt)}")
        super().__init__(False, opt.get_name())
        self._optimizer = opt
        self._average = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential = sequential_update
        self._averaged: dict[Variable, Variable] = {}

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Gradient | None, Any]]:
        """Return pairs of gradient and variable.

        Args:
            *args: Arguments of ``Optimizer.compute_gradients``.
            **kwargs: Likewise.
        """
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that changes variables by gradients, and updates their averages.

        Args:
            grads_and_vars: See ``Optimizer.apply_gradients``, as for all arguments.
            global_step: Likewise.
            name: Likewise.
        """
        pairs = items(grads_and_vars, "grads_and_vars")
        step = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [v for g, v in pairs if g is not None]
        with hr.control_dependencies([step] if self._sequential else []):
            averages = self._average.apply(variables)
        for variable in variables:
            average = self._average.average(variable)
            assert average is not None
            self._averaged[variable] = average
        return hr.group(step, averages, name="train_with_avg")

    def swapping_saver(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        name: str = "swapping_saver",
        **kwargs: Any,
    ) -> Saver:
        """Return a saver that saves averages under the names of their variables, and vice versa.

        What it restores goes back to where it came from, so it is the saver for training.

        Args:
            var_list: What to save, as for ``Saver``; all variables that the graph has now if None.
            name: Prefix of the saver's operations.
            **kwargs: Further arguments of ``Saver``.

        Raises:
            FailedPreconditionError: if there are no averages yet.
            GraphError: if ``var_list`` has a variable but not its average, or the other way round.
        """
        if not self._averaged:
            raise FailedPreconditionError(
                "there are no averages to save: call minimize or apply_gradients before "
                "swapping_saver"
            )
        if var_list is None:
            var_list = hr.global_variables()
        if isinstance(var_list, Mapping):
            names = mapping(var_list, "var_list")
        else:
            names = {variable.op_name: variable for variable in var_list}
        label = {variable: key for key, variable in names.items()}
        for variable, average in self._averaged.items():
            if (variable in label) != (average in label):
                missing = average if variable in label else variable
                raise GraphError(
                    f"swapping_saver: {missing.op_name!r} is not among the variables to save, but "
                    "what it is swapped with is"
                )
            if variable in label:
                names[label[variable]], names[label[average]] = average, variable
        return Saver(names, name=name, **kwargs)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return a slot of the optimizer that trains.

        Args:
            var: See ``Optimizer.get_slot``.
            name: Likewise.
        """
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots of the optimizer that trains."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """Return the variables of state of the optimizer that trains, in the default graph."""
        return self._optimizer.variables()
