"""Weight decay that is no part of the gradient, for any element-wise optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace import Operation, Tensor, Variable
from headrace.errors import AttributeValueError, shown
from headrace.extend.arguments import items
from headrace_train.optimizers.adam import AdamOptimizer
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter, Hyperparameters
from headrace_train.optimizers.momentum import MomentumOptimizer
from headrace_train.optimizers.optimizer import Optimizer


class DecoupledWeightDecayExtension(ElementwiseOptimizer):
    """What makes of an optimizer one that first shrinks weights, by ``weight_decay * weight``.

    The first base of a class, before an ``ElementwiseOptimizer``. In an update::

        variable -= weight_decay * variable
        ... the update of the optimizer, with gradients from before the step

    The decay is not multiplied by the learning rate: a schedule for one should be applied to the
    other, too. Of a row-sparse gradient the named rows decay only.

    References:
        I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019,
        https://arxiv.org/abs/1711.05101
    """

    # The changes of decayed weights do not add up.
    _adds_up = False

    def __init__(self, weight_decay: Hyperparameter, **kwargs: Any) -> None:
        """Set how fast weights decay.

        Args:
            weight_decay: The part of a weight that it loses in each step: a number, a scalar
                tensor, or a function that returns one.
            **kwargs: Arguments of the optimizer.
        """
        super().__init__(**kwargs)
        self._decay = Hyperparameters(self._name, {"weight_decay": weight_decay})
        self._decayed: set[Variable] | None = None

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        decay_var_list: Iterable[Variable] | None = None,
        *,
        memory_budget: Any = None,
    ) -> Operation:
        """Return an operation that makes one step of training; see ``Optimizer.minimize``.

        Args:
            loss: See ``Optimizer.minimize``, as for all but ``decay_var_list``.
            global_step: Likewise.
            var_list: Likewise.
            gate_gradients: Likewise.
            aggregation_method: Likewise.
            colocate_gradients_with_ops: Likewise.
            name: Likewise.
            grad_loss: Likewise.
            decay_var_list: The variables that decay; all that change if None.
            memory_budget: See ``Optimizer.minimize``.
        """
        gradients = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
            memory_budget=memory_budget,
        )
        return self.apply_gradients(
            gradients, global_step=global_step, name=name, decay_var_list=decay_var_list
        )

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
        decay_var_list: Iterable[Variable] | None = None,
    ) -> Operation:
        """Return an operation that applies gradients; see ``Optimizer.apply_gradients``.

        Args:
            grads_and_vars: See ``Optimizer.apply_gradients``, as for all but the last argument.
            global_step: Likewise.
            name: Likewise.
            decay_var_list: The variables that decay; all that change if None.
        """
        self._decayed = set(items(decay_var_list or (), "decay_var_list")) or None
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _prepare(self) -> None:
        self._decay.refresh()
        super()._prepare()

    def _step(self, grad: Tensor, old: Elements) -> Step:
        if self._decayed is not None and old.variable not in self._decayed:
            return super()._step(grad, old)
        decay = self._decay.tensor("weight_decay", grad.dtype) * old.value
        step = super()._step(grad, old.with_value(old.value - decay))
        if step.change is None:
            return step
        return Step(change=decay + step.change, slots=step.slots)

    def _idle_step(self, grad: Tensor, old: Elements) -> Step:
        return super()._step(grad, old)


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """Return a class of optimizers with decoupled weight decay.

    Args:
        base_optimizer: A subclass of ``ElementwiseOptimizer``, as all optimizers of ``hr.train``
            are but for ``MovingAverageOptimizer``.

    Returns:
        A class whose first argument is ``weight_decay``, and those of ``base_optimizer`` by name;
        see ``DecoupledWeightDecayExtension``.

    Raises:
        AttributeValueError: if it is no such class.
    """
    if not isinstance(base_optimizer, type) or not issubclass(base_optimizer, ElementwiseOptimizer):
        raise AttributeValueError(
            "weight decay is for subclasses of hr.train.ElementwiseOptimizer, got "
            f"{shown(base_optimizer)}"
        )
    bases = (DecoupledWeightDecayExtension, base_optimizer)
    name = f"{base_optimizer.__name__}WithDecoupledWeightDecay"
    return type(name, bases, {"__doc__": f"{base_optimizer.__name__}, with weight decay."})


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Gradient descent with momentum and decoupled weight decay, which the paper calls SGDW."""

    def __init__(
        self,
        weight_decay: Hyperparameter,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        """Set the hyperparameters.

        Args:
            weight_decay: The part of a weight that it loses in each step.
            learning_rate: See ``MomentumOptimizer``.
            momentum: Likewise.
            use_locking: Likewise.
            name: Likewise.
            use_nesterov: Likewise.
        """
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decoupled weight decay.

    A row-sparse gradient moves all rows, as that of ``AdamOptimizer`` does; the named ones decay.
    """

    def __init__(
        self,
        weight_decay: Hyperparameter,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-08,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        """Set the hyperparameters.

        Args:
            weight_decay: The part of a weight that it loses in each step.
            learning_rate: See ``AdamOptimizer``.
            beta1: Likewise.
            beta2: Likewise.
            epsilon: Likewise.
            use_locking: Likewise.
            name: Likewise.
        """
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
