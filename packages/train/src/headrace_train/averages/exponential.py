"""Exponential moving averages of variables over the steps of training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace.errors import DTypeError, shown
from headrace.extend.arguments import items
from headrace_train.optimizers.hyperparameters import as_scalar
from headrace_train.optimizers.slots import make_beside, scope_prefix


@final
class ExponentialMovingAverage:
    """Averages of variables and tensors, in which older values count less and less.

    Trained weights are often better averaged than as they are after the last step. Each update is::

        average -= (1 - decay) * (average - value)

    References:
        B. Polyak and A. Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM
        Journal on Control and Optimization, 1992, https://doi.org/10.1137/0330046
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        """Set how fast older values fade.

        Args:
            decay: A number or floating scalar tensor, near 1, such as 0.999. Others are taken as
                they are: averages move away from values above 1.
            num_updates: The number of steps so far, a number or scalar tensor: averages follow
                faster in early steps, with ``min(decay, (1 + n) / (10 + n))``.
            zero_debias: Whether averages of tensors, which start at zero, are divided by what
                they would be of ones.
            name: Follows the name of what is averaged in those of averages.
        """
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Variable | Tensor, Variable] = {}

    @property
    def name(self) -> str:
        """The name that averages have."""
        return self._name

    def apply(self, var_list: Iterable[Variable | Tensor] | None = None) -> Operation:
        """Return an operation that updates the averages, made by the first call.

        Args:
            var_list: What to average, floating; the trainable variables if None. The average of a
                tensor of unknown shape gets the shape that it has when the average is initialized.

        Raises:
            DTypeError: if something is not floating, or no variable or tensor.
        """
        sources = hr.trainable_variables() if var_list is None else items(var_list, "var_list")
        for source in sources:
            dtype = getattr(source, "dtype", None)
            if not isinstance(dtype, hr.DType) or not dtype.is_floating:
                raise DTypeError(
                    f"averages are of floating variables and tensors, got {shown(source)}"
                )
        for source in sources:
            if source not in self._averages:
                self._averages[source] = self._made(source)
                if isinstance(source, Variable):
                    hr.add_to_collection(hr.GraphKeys.MOVING_AVERAGE_VARIABLES, source)
        with hr.name_scope(self._name) as scope:
            updates = [self._update(source, self._averages[source]) for source in sources]
            return hr.group(*updates, name=scope)

    def average(self, var: Variable | Tensor) -> Variable | None:
        """Return the average of a variable or tensor, None where none is kept."""
        return self._averages.get(var)

    def average_name(self, var: Variable | Tensor) -> str:
        """Return the name of the average of a variable or tensor, by which checkpoints know it.

        Args:
            var: The variable or tensor. Where no average of it is kept, the name is the one that it
                would have in the name scope in force.
        """
        known = self._averages.get(var)
        if known is not None:
            return known.op_name
        name = f"{_name_of(var)}/{self._name}"
        return hr.get_default_graph().unique_name(name, mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Variable] | None = None
    ) -> dict[str, Variable]:
        """Return what to restore a checkpoint into, so that variables get their averages.

        Args:
            moving_avg_variables: The variables that get them; the trainable and averaged ones if
                None.

        Returns:
            Variables by the names under which a ``Saver`` finds their values.
        """
        if moving_avg_variables is None:
            chosen = dict.fromkeys([*hr.trainable_variables(), *hr.moving_average_variables()])
        else:
            chosen = dict.fromkeys(items(moving_avg_variables, "moving_avg_variables"))
        names = {self.average_name(v): v for v in chosen}
        left = [v for v in hr.global_variables() if v not in chosen and v.op_name not in names]
        return names | {v.op_name: v for v in left}

    def _made(self, source: Variable | Tensor) -> Variable:
        if isinstance(source, Variable):
            return make_beside(source, self._name, source.initialized_value)
        known = source.shape.is_fully_defined()
        name = source.graph.unique_full_name(f"{scope_prefix()}{source.op.name}/{self._name}")
        with hr.name_scope(""):
            return Variable(
                lambda: hr.zeros(source.spec.shape if known else hr.shape(source), source.dtype),
                trainable=False,
                validate_shape=known,
                name=f"{name}/",
            )

    def _update(self, source: Variable | Tensor, average: Variable) -> Tensor:
        value = source.value() if isinstance(source, Variable) else source
        dtype = average.dtype
        decay = as_scalar(self._decay, dtype)
        if self._num_updates is not None:
            steps = hr.cast(self._num_updates, dtype)
            decay = hr.minimum(decay, (1.0 + steps) / (10.0 + steps))
        with hr.colocate_with(average.handle):
            if isinstance(source, Tensor) and self._zero_debias:
                return self._debiased(average, value, decay)
            result = average.assign_sub((average.value() - value) * (1.0 - decay))
        assert isinstance(result, Tensor)
        return result

    def _debiased(self, average: Variable, value: Tensor, decay: Tensor) -> Tensor:
        """Update an average that started at zero, divided by what it would be of ones."""
        known = average.shape.is_fully_defined()
        with hr.variable_scope(average.op_name):
            biased = hr.get_variable(
                _unused("biased"),
                initializer=hr.zeros_like(average.initial_value),
                trainable=False,
                validate_shape=known,
            )
            count = hr.get_variable(
                _unused("local_step"), initializer=hr.zeros([], average.dtype), trainable=False
            )
        new = biased.assign_sub((biased.value() - value) * (1.0 - decay))
        total = 1.0 - decay ** count.assign_add(1.0)
        result: Tensor = average.assign(new / total)
        return result


def _name_of(source: Variable | Tensor) -> str:
    return source.op_name if isinstance(source, Variable) else source.op.name


def _unused(name: str) -> str:
    """Return the name of a new variable of the variable scope in force."""
    scope = hr.get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op_name for v in scope.global_variables()}
    free, number = name, 0
    while f"{scope.name}/{free}" in taken:
        number += 1
        free = f"{name}_{number}"
    return free
