"""Write ``distribution_table.json``: what programs of distributions yield in TensorFlow 1.15.

python3.7 generate_distribution_table.py
"""

import json
from pathlib import Path

import distribution_programs
import numpy as np
import tensorflow as tf


def made(program):
    """Return the results of a program as a list."""
    names = {**vars(distribution_programs), "tf": tf, "d": tf.distributions}
    found = eval(program, names)
    return found if isinstance(found, list) else [found]


def plain(value):
    """Return an array as JSON can hold it."""
    value = np.asarray(value)
    if value.dtype.kind == "f":
        return [float("%.9g" % x) for x in value.ravel()]
    return value.ravel().tolist()


def outcome(program):
    """Return what comes out of a program."""
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = made(program)
        return [
            {
                "dtype": tensor.dtype.name,
                "static": None if tensor.shape.ndims is None else tensor.shape.as_list(),
                "shape": list(np.shape(value)),
                "values": plain(value),
            }
            for tensor, value in zip(tensors, session.run(tensors))  # noqa: B905 - Python 3.7
        ]


def refusal(program):
    """Return the name of the exception that a program ends with."""
    try:
        outcome(program)
    except Exception as error:
        return type(error).__name__
    raise AssertionError("not refused: " + program)


def main():
    """Write the table."""
    table = {
        "source": "TensorFlow " + tf.__version__,
        "outcomes": {program: outcome(program) for program in distribution_programs.PROGRAMS},
        "refused": {program: refusal(program) for program in distribution_programs.REFUSED},
    }
    text = json.dumps(table, indent=0, sort_keys=True)
    Path(__file__).with_name("distribution_table.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
