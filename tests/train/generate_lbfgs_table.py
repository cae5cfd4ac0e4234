"""Write ``lbfgs_table.json``: what SciPy's L-BFGS-B makes of the problems.

    pip install scipy autograd
    python tests/train/generate_lbfgs_table.py

SciPy gets the gradient from central differences of high order, computed apart from the count of
evaluations, so that each evaluation of the loss counts once, as it does in the optimizer.
"""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lbfgs_problems import PROBLEMS, Plain, Problem

_STEP = 1e-30


def evaluate(problem: Problem, b: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the loss and its gradient, by complex steps, which are exact to rounding."""
    gradient = np.empty_like(b)
    for i in range(b.size):
        moved = b.astype(complex)
        moved[i] += 1j * _STEP
        gradient[i] = np.imag(problem.loss(moved, Plain)) / _STEP
    return float(problem.loss(b, Plain)), gradient


def main() -> None:
    """Solve all problems and write the table."""
    import scipy
    from scipy.optimize import minimize

    table = {}
    for problem in PROBLEMS:
        found = minimize(
            lambda b, p=problem: evaluate(p, b),
            problem.start,
            jac=True,
            method="L-BFGS-B",
            options={"maxcor": 10, "gtol": 1e-5, "ftol": 2.2e-9, "maxiter": 1000, "maxfun": 2000},
        )
        table[problem.name] = {
            "loss": float(found.fun),
            "evaluations": int(found.nfev),
            "iterations": int(found.nit),
            "message": str(found.message),
        }
    table = {"made_by": f"scipy {scipy.__version__}, L-BFGS-B", "problems": table}
    path = pathlib.Path(__file__).with_name("lbfgs_table.json")
    path.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
