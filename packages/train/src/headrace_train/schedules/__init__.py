"""Schedules: learning rates that depend on the step."""

from __future__ import annotations

from headrace_train.schedules.cosine import cosine_decay as cosine_decay
from headrace_train.schedules.cosine import cosine_decay_restarts as cosine_decay_restarts
from headrace_train.schedules.cosine import linear_cosine_decay as linear_cosine_decay
from headrace_train.schedules.cosine import noisy_linear_cosine_decay as noisy_linear_cosine_decay
from headrace_train.schedules.exponential import exponential_decay as exponential_decay
from headrace_train.schedules.exponential import natural_exp_decay as natural_exp_decay
from headrace_train.schedules.inverse_time import inverse_time_decay as inverse_time_decay
from headrace_train.schedules.piecewise import piecewise_constant as piecewise_constant
from headrace_train.schedules.piecewise import piecewise_constant_decay as piecewise_constant_decay
from headrace_train.schedules.polynomial import polynomial_decay as polynomial_decay
from headrace_train.schedules.warmup import linear_warmup as linear_warmup

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "linear_warmup",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]
