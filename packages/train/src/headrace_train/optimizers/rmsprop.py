"""RMSProp: gradients divided by a running mean of their size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.optimizers.elementwise import Elements, ElementwiseOptimizer, Step
from headrace_train.optimizers.hyperparameters import Hyperparameter
from headrace_train.optimizers.slots import ones_of


class RMSPropOptimizer(ElementwiseOptimizer):
    """RMSProp, with momentum, and centered on the mean gradient where asked for.

    With the slots ``rms``, which starts at one, and ``momentum``, which starts at zero::

        rms = rms + (1 - decay) * (gradient**2 - rms)
        momentum_slot = momentum * momentum_slot + learning_rate * gradient / sqrt(rms + epsilon)
        variable -= momentum_slot

    With ``centered`` a third slot, ``mg``, starts at zero, and the variance takes the place of the
    mean square::

        mg = mg + (1 - decay) * (gradient - mg)
        ... learning_rate * gradient / sqrt(rms - mg**2 + epsilon)

    A sparse gradient changes the rows that it names only, as in TensorFlow: mean and momentum of
    other rows wait.

    References:
        T. Tieleman and G. Hinton, "Lecture 6.5, rmsprop", Coursera: Neural Networks for Machine
        Learning, 2012, https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf

        A. Graves, "Generating Sequences With Recurrent Neural Networks", 2013 (centered),
        https://arxiv.org/abs/1308.0850
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        """Set the hyperparameters.

        Args:
            learning_rate: A number, a scalar tensor, or a function that returns one.
            decay: What the running means keep from step to step, likewise.
            momentum: What the slot ``momentum`` keeps from step to step, likewise.
            epsilon: Keeps the denominator from zero, likewise.
            use_locking: See ``Optimizer``.
            centered: Whether to divide by the standard deviation instead of the root mean square.
            name: Prefix of what is built; the slots of a variable ``W`` are ``W/<name>``,
                ``W/<name>_1`` and ``W/<name>_2``.
        """
        given = {
            "learning_rate": learning_rate,
            "decay": decay,
            "momentum": momentum,
            "epsilon": epsilon,
        }
        super().__init__(use_locking, name, given)
        self._centered = centered

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._get_or_make_slot(variable, partial(ones_of, variable), "rms", self._name)
            if self._centered:
                self._zeros_slot(variable, "mg", self._name)
            self._zeros_slot(variable, "momentum", self._name)

    def _step(self, grad: Tensor, old: Elements) -> Step:
        dtype = grad.dtype
        rest = self._hyperparameters.complement("decay", dtype)
        slots = {"rms": old["rms"] + (hr.square(grad) - old["rms"]) * rest}
        square = slots["rms"]
        if self._centered:
            slots["mg"] = old["mg"] + (grad - old["mg"]) * rest
            square = square - hr.square(slots["mg"])
        root = hr.sqrt(square + self._hyperparameter("epsilon", dtype))
        step = grad * self._hyperparameter("learning_rate", dtype) / root
        slots["momentum"] = old["momentum"] * self._hyperparameter("momentum", dtype) + step
        return Step(change=slots["momentum"], slots=slots)
