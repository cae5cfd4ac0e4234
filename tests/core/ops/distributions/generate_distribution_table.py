"""Write ``distribution_table.json``: what programs of distributions yield in TensorFlow 1.15.

PYTHONPATH=tests python3.7 tests/core/ops/distributions/generate_distribution_table.py
"""

from pathlib import Path

import distribution_programs
import numpy as np
import recorded
import tensorflow as tf


def plain(value):
    """Return an array as JSON can hold it."""
    value = np.asarray(value)
    if value.dtype.kind == "f":
        return [float("%.9g" % x) for x in value.ravel()]
    return value.ravel().tolist()


def outcome(program):
    """Return what comes out of a program."""
    names = {**vars(distribution_programs), "tf": tf, "d": tf.distributions}
    return recorded.outcomes(lambda: eval(program, names), plain)


if __name__ == "__main__":
    file = Path(__file__).with_name("distribution_table.json")
    recorded.write(file, distribution_programs, outcome)
