"""An optimizer that scales the loss for another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import headrace as hr
from headrace import IndexedSlices, Operation, Tensor, Variable
from headrace.errors import AttributeValueError, shown
from headrace.extend.arguments import items
from headrace_train.loss_scaling.dynamic import DynamicLossScale
from headrace_train.loss_scaling.scale import checked_scale
from headrace_train.optimizers.optimizer import GradientsAndVariables, Optimizer
from headrace_train.tracked import Tracked


class MixedPrecisionLossScaleOptimizer(Optimizer, Tracked):
    """Lets another optimizer minimize a scaled loss, with gradients that are scaled back.

    With a ``DynamicLossScale``, a step with gradients that are not finite changes no variable, and
    does not count. Slots belong to the optimizer inside.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        """Wrap an optimizer.

        Args:
            opt: The optimizer.
            loss_scale: An ``hr.train.experimental.LossScale``, a number for a fixed one, or
                ``"dynamic"``.

        Raises:
            AttributeValueError: if ``opt`` is no optimizer, or ``loss_scale`` something else.
        """
        if not isinstance(opt, Optimizer):
            raise AttributeValueError(f"opt must be an hr.train.Optimizer, got {shown(opt)}")
        super().__init__(opt._use_locking, opt.get_name())  # noqa: SLF001 - of its own base class
        self._optimizer = opt
        self._loss_scale = checked_scale(loss_scale, DynamicLossScale)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
        *,
        memory_budget: Any = None,
    ) -> GradientsAndVariables:
        """Return pairs of gradient and variable; computed with the scaled loss, and scaled back.

        Args:
            loss: As for ``Optimizer.compute_gradients``.
            var_list: As there.
            gate_gradients: As there.
            aggregation_method: As there.
            colocate_gradients_with_ops: As there.
            grad_loss: As there.
            memory_budget: As there.

        Returns:
            A pair for each variable, with None where the loss does not depend on it.
        """
        scale = self._loss_scale()
        relief = {} if memory_budget is None else {"memory_budget": memory_budget}
        pairs = self._optimizer.compute_gradients(
            loss=(lambda: loss() * scale) if callable(loss) else hr.convert_to_tensor(loss) * scale,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
            **relief,
        )
        back = 1 / self._loss_scale()
        return [(None if g is None else _times(g, back), variable) for g, variable in pairs]

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that changes variables by gradients, if all of them are finite.

        Args:
            grads_and_vars: Pairs as from ``compute_gradients``.
            global_step: An integer variable to increment where the gradients were applied.
            name: Name of the operation.
        """
        if not isinstance(self._loss_scale, DynamicLossScale):
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        pairs = items(grads_and_vars, "grads_and_vars")
        name = self.get_name() if name is None else name
        update, should_apply = self._loss_scale.update([grad for grad, _ in pairs])

        def apply() -> Operation:
            return self._optimizer.apply_gradients(pairs, global_step, f"{name}-wrapped")

        return hr.group(hr.cond(should_apply, apply, hr.no_op), update, name=name)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return a slot of the optimizer inside.

        Args:
            var: A variable.
            name: One of ``get_slot_names()``.
        """
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots of the optimizer inside."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """Return the variables of the state of the optimizer inside."""
        return self._optimizer.variables()

    def _tracked(self) -> dict[str, Any]:
        return {"base_optimizer": self._optimizer, "loss_scale": self._loss_scale}


def _times(grad: Any, factor: Tensor) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(_times(grad.values, factor), grad.indices, grad.dense_shape)
    # That of a variable in float16 stays so, as the variable does.
    return hr.cast(grad * factor, grad.dtype)
