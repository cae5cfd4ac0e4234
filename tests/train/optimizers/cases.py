"""What is compared with TensorFlow 1.15: read by the tests, and by ``generate_tables``.

It runs on Python 3.7, and imports neither Headrace nor TensorFlow.
"""

import numpy as np

STEPS = 10
# After these steps the values are kept.
KEPT = (1, 3, 10)
DENSE_SHAPE = (3, 2)
ROWS = (5, 2)
# Some rows come twice or three times in one step, others never.
INDICES = [[0, 2, 0], [1], [3, 3, 3, 0], [2, 1], [0, 0], [1, 3], [2, 2, 1], [0], [3, 1, 0, 1], [2]]

# Class and arguments by name. STEP stands for the global step, which all cases count.
STEP = "global step"
OPTIMIZERS = {
    "descent": ("GradientDescentOptimizer", {"learning_rate": 0.3}),
    "momentum": ("MomentumOptimizer", {"learning_rate": 0.1, "momentum": 0.9}),
    "momentum, slow": ("MomentumOptimizer", {"learning_rate": 0.03, "momentum": 0.5}),
    "nesterov": (
        "MomentumOptimizer",
        {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True},
    ),
    "adam": ("AdamOptimizer", {}),
    "adam, all set": (
        "AdamOptimizer",
        {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
    ),
    "adam, no momentum": ("AdamOptimizer", {"learning_rate": 0.1, "beta1": 0.0}),
    "lazy adam": ("LazyAdamOptimizer", {"learning_rate": 0.1}),
    "lazy adam, all set": (
        "LazyAdamOptimizer",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
    ),
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.1}),
    "adagrad, from 1": (
        "AdagradOptimizer",
        {"learning_rate": 0.5, "initial_accumulator_value": 1.0},
    ),
    "adagrad da": ("AdagradDAOptimizer", {"learning_rate": 0.1, "global_step": STEP}),
    "adagrad da, l1": (
        "AdagradDAOptimizer",
        {"learning_rate": 0.5, "global_step": STEP, "l1_regularization_strength": 0.2},
    ),
    "adagrad da, all set": (
        "AdagradDAOptimizer",
        {
            "learning_rate": 0.3,
            "global_step": STEP,
            "initial_gradient_squared_accumulator_value": 0.5,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
        },
    ),
    "adadelta": ("AdadeltaOptimizer", {}),
    "adadelta, of the paper": ("AdadeltaOptimizer", {"learning_rate": 1.0, "epsilon": 1e-6}),
    "adadelta, all set": (
        "AdadeltaOptimizer",
        {"learning_rate": 0.5, "rho": 0.5, "epsilon": 1e-2},
    ),
    "rmsprop": ("RMSPropOptimizer", {"learning_rate": 0.1}),
    "rmsprop, all set": (
        "RMSPropOptimizer",
        {"learning_rate": 0.05, "decay": 0.8, "momentum": 0.9, "epsilon": 1e-3},
    ),
    "rmsprop, centered": ("RMSPropOptimizer", {"learning_rate": 0.1, "centered": True}),
    "rmsprop, centered, all set": (
        "RMSPropOptimizer",
        {"learning_rate": 0.05, "decay": 0.7, "momentum": 0.5, "epsilon": 1e-2, "centered": True},
    ),
    "ftrl": ("FtrlOptimizer", {"learning_rate": 0.1}),
    "ftrl, l1 and l2": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.5,
            "l1_regularization_strength": 0.3,
            "l2_regularization_strength": 0.1,
        },
    ),
    "ftrl, another power": (
        "FtrlOptimizer",
        {"learning_rate": 0.2, "learning_rate_power": -0.7, "initial_accumulator_value": 0.5},
    ),
    "ftrl, a fixed rate": ("FtrlOptimizer", {"learning_rate": 0.2, "learning_rate_power": 0.0}),
    "ftrl, from nothing": ("FtrlOptimizer", {"learning_rate": 0.2, "initial_accumulator_value": 0}),
    "ftrl, shrinkage": (
        "FtrlOptimizer",
        {"learning_rate": 0.2, "l2_shrinkage_regularization_strength": 0.4},
    ),
    "ftrl, all set": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.3,
            "learning_rate_power": -0.6,
            "initial_accumulator_value": 0.2,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.2,
            "accum_name": "sums",
            "linear_name": "line",
            "l2_shrinkage_regularization_strength": 0.1,
        },
    ),
    "proximal descent": ("ProximalGradientDescentOptimizer", {"learning_rate": 0.1}),
    "proximal descent, l1": (
        "ProximalGradientDescentOptimizer",
        {"learning_rate": 0.1, "l1_regularization_strength": 0.8},
    ),
    "proximal descent, all set": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": 0.2,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.3,
        },
    ),
    "proximal adagrad": ("ProximalAdagradOptimizer", {"learning_rate": 0.1}),
    "proximal adagrad, l1": (
        "ProximalAdagradOptimizer",
        {"learning_rate": 0.2, "l1_regularization_strength": 0.8},
    ),
    "proximal adagrad, all set": (
        "ProximalAdagradOptimizer",
        {
            "learning_rate": 0.2,
            "initial_accumulator_value": 0.5,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.3,
        },
    ),
    "adamw": ("AdamWOptimizer", {"weight_decay": 0.01}),
    "adamw, all set": (
        "AdamWOptimizer",
        {"weight_decay": 0.1, "learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
    ),
    "momentumw": (
        "MomentumWOptimizer",
        {"weight_decay": 0.05, "learning_rate": 0.1, "momentum": 0.9},
    ),
    "momentumw, nesterov": (
        "MomentumWOptimizer",
        {"weight_decay": 0.2, "learning_rate": 0.1, "momentum": 0.5, "use_nesterov": True},
    ),
    "lars": ("LARSOptimizer", {"learning_rate": 0.5}),
    "lars, all set": (
        "LARSOptimizer",
        {
            "learning_rate": 0.5,
            "momentum": 0.8,
            "weight_decay": 0.01,
            "eeta": 0.2,
            "epsilon": 1e-3,
            "use_nesterov": True,
        },
    ),
    "lars, skipped": ("LARSOptimizer", {"learning_rate": 0.1, "skip_list": ["x"]}),
}

NO_PENALTIES = {"l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0}

# Names and arguments of schedules, less learning rate and step.
SCHEDULE_STEPS = (0, 1, 2, 5, 9, 10, 11, 20, 25, 33, 70, 100)
SCHEDULES = [
    ("exponential_decay", {"decay_steps": 10, "decay_rate": 0.7}),
    ("exponential_decay", {"decay_steps": 10, "decay_rate": 0.7, "staircase": True}),
    ("natural_exp_decay", {"decay_steps": 10, "decay_rate": 0.7}),
    ("natural_exp_decay", {"decay_steps": 8, "decay_rate": 0.2, "staircase": True}),
    ("inverse_time_decay", {"decay_steps": 10, "decay_rate": 0.7}),
    ("inverse_time_decay", {"decay_steps": 3, "decay_rate": 2.0, "staircase": True}),
    ("polynomial_decay", {"decay_steps": 10}),
    ("polynomial_decay", {"decay_steps": 30, "end_learning_rate": 0.2, "power": 2.0}),
    ("polynomial_decay", {"decay_steps": 10, "power": 0.5, "cycle": True}),
    ("cosine_decay", {"decay_steps": 20}),
    ("cosine_decay", {"decay_steps": 50, "alpha": 0.3}),
    ("cosine_decay_restarts", {"first_decay_steps": 12}),
    ("cosine_decay_restarts", {"first_decay_steps": 12, "t_mul": 1.0, "m_mul": 0.7}),
    ("cosine_decay_restarts", {"first_decay_steps": 7, "t_mul": 1.5, "m_mul": 0.8, "alpha": 0.1}),
    ("linear_cosine_decay", {"decay_steps": 20}),
    (
        "linear_cosine_decay",
        {"decay_steps": 60, "num_periods": 3.0, "alpha": 0.2, "beta": 0.05},
    ),
    ("noisy_linear_cosine_decay", {"decay_steps": 20, "initial_variance": 0.0}),
    (
        "noisy_linear_cosine_decay",
        {
            "decay_steps": 60,
            "initial_variance": 0.0,
            "num_periods": 2.0,
            "alpha": 0.2,
            "beta": 0.05,
        },
    ),
]
PIECES = [([10], [0.5, 0.1]), ([5, 10, 25], [1.0, 0.5, 0.25, 0.125])]
RATE = 0.8

# Arguments of moving averages; with "steps" num_updates is the number of steps so far.
AVERAGES = {
    "plain": {"decay": 0.9},
    "debiased": {"decay": 0.9, "zero_debias": True},
    "early": {"decay": 0.99, "steps": True},
    "early, debiased": {"decay": 0.99, "steps": True, "zero_debias": True},
}


def starts(shape):
    """Return where variables start, float32: numbers that no dtype rounds."""
    return np.round(np.random.RandomState(1).normal(size=shape), 2).astype(np.float32)


def gradients(shape):
    """Return a gradient for each step, likewise."""
    random = np.random.RandomState(2)
    return [np.round(random.normal(size=shape), 2).astype(np.float32) for _ in range(STEPS)]


def slices(width):
    """Return the values of the rows that each step names."""
    random = np.random.RandomState(3)
    return [
        np.round(random.normal(size=(len(rows), width)), 2).astype(np.float32) for rows in INDICES
    ]
