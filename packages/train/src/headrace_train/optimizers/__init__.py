"""Optimizers: ways to build the operations of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_train.optimizers.adadelta import AdadeltaOptimizer as AdadeltaOptimizer
    from headrace_train.optimizers.adagrad import AdagradOptimizer as AdagradOptimizer
    from headrace_train.optimizers.adagrad_da import AdagradDAOptimizer as AdagradDAOptimizer
    from headrace_train.optimizers.adam import AdamOptimizer as AdamOptimizer
    from headrace_train.optimizers.adam import LazyAdamOptimizer as LazyAdamOptimizer
    from headrace_train.optimizers.elementwise import Elements as Elements
    from headrace_train.optimizers.elementwise import ElementwiseOptimizer as ElementwiseOptimizer
    from headrace_train.optimizers.elementwise import Step as Step
    from headrace_train.optimizers.ftrl import FtrlOptimizer as FtrlOptimizer
    from headrace_train.optimizers.gradient_descent import (
        GradientDescentOptimizer as GradientDescentOptimizer,
    )
    from headrace_train.optimizers.lars import LARSOptimizer as LARSOptimizer
    from headrace_train.optimizers.lbfgs import LBFGSOptimizer as LBFGSOptimizer
    from headrace_train.optimizers.lbfgs import LBFGSStatus as LBFGSStatus
    from headrace_train.optimizers.lion import LionOptimizer as LionOptimizer
    from headrace_train.optimizers.momentum import MomentumOptimizer as MomentumOptimizer
    from headrace_train.optimizers.optimizer import Optimizer as Optimizer
    from headrace_train.optimizers.proximal_adagrad import (
        ProximalAdagradOptimizer as ProximalAdagradOptimizer,
    )
    from headrace_train.optimizers.proximal_gradient_descent import (
        ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    )
    from headrace_train.optimizers.rmsprop import RMSPropOptimizer as RMSPropOptimizer
    from headrace_train.optimizers.weight_decay import AdamWOptimizer as AdamWOptimizer
    from headrace_train.optimizers.weight_decay import (
        DecoupledWeightDecayExtension as DecoupledWeightDecayExtension,
    )
    from headrace_train.optimizers.weight_decay import MomentumWOptimizer as MomentumWOptimizer
    from headrace_train.optimizers.weight_decay import (
        extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
    )

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "adadelta": "AdadeltaOptimizer",
    "adagrad": "AdagradOptimizer",
    "adagrad_da": "AdagradDAOptimizer",
    "adam": "AdamOptimizer LazyAdamOptimizer",
    "elementwise": "Elements ElementwiseOptimizer Step",
    "ftrl": "FtrlOptimizer",
    "gradient_descent": "GradientDescentOptimizer",
    "lars": "LARSOptimizer",
    "lbfgs": "LBFGSOptimizer LBFGSStatus",
    "lion": "LionOptimizer",
    "momentum": "MomentumOptimizer",
    "optimizer": "Optimizer",
    "proximal_adagrad": "ProximalAdagradOptimizer",
    "proximal_gradient_descent": "ProximalGradientDescentOptimizer",
    "rmsprop": "RMSPropOptimizer",
    "weight_decay": """
        AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer
        extend_with_decoupled_weight_decay
    """,
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("train.optimizers", __name__, _FOUND_IN)
