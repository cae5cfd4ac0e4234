"""Tables of what programs yield in TensorFlow 1.15; Python 3.7, as TensorFlow 1.15 wants."""

import json
from pathlib import Path

import numpy as np
import tensorflow as tf


def static_shape(tensor):
    """Return the shape that is known of a tensor as JSON can hold it."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def outcomes(results, plain):
    """Return what comes out of the tensors of a program.

    Args:
        results: Builds them: a list of tensors, or one tensor.
        plain: Makes what JSON can hold of the value of one.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        found = results()
        tensors = found if isinstance(found, list) else [found]
        return [
            {
                "dtype": tensor.dtype.name,
                "static": static_shape(tensor),
                "shape": list(np.shape(value)),
                "values": plain(value),
            }
            for tensor, value in zip(tensors, session.run(tensors))  # noqa: B905 - Python 3.7
        ]


def refusal(outcome, program):
    """Return the name of the exception that a program ends with."""
    try:
        outcome(program)
    except Exception as error:
        return type(error).__name__
    raise AssertionError("not refused: " + program)


def write(file, programs, outcome):
    """Write the table of some programs.

    Args:
        file: Where to.
        programs: The module that lists them: ``PROGRAMS``, and ``REFUSED`` those that end with an
            exception.
        outcome: Returns what comes out of one.
    """
    table = {
        "source": "TensorFlow " + tf.__version__,
        "outcomes": {program: outcome(program) for program in programs.PROGRAMS},
        "refused": {program: refusal(outcome, program) for program in programs.REFUSED},
    }
    Path(file).write_text(json.dumps(table, indent=0, sort_keys=True) + "\n")
