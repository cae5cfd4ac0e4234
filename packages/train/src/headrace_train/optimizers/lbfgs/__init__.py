"""Limited-memory BFGS: a quasi-Newton method whose line search runs in the graph."""

from __future__ import annotations

from headrace_train.optimizers.lbfgs.optimizer import LBFGSOptimizer as LBFGSOptimizer
from headrace_train.optimizers.lbfgs.optimizer import LBFGSStatus as LBFGSStatus

__all__ = ["LBFGSOptimizer", "LBFGSStatus"]
