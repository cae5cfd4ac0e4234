"""Write ``ragged_table.json``: what programs of ragged tensors yield in TensorFlow 1.15.

PYTHONPATH=tests python3.7 tests/core/ragged/generate_ragged_table.py
"""

from pathlib import Path

import numpy as np
import ragged_programs
import recorded
import tensorflow as tf


def plain(value):
    """Return a value as JSON can hold it."""
    if hasattr(value, "to_list"):
        return plain_list(value.to_list())
    return plain_list(np.asarray(value).tolist())


def plain_list(value):
    """Return nested lists with numbers rounded, and strings and complex numbers taken apart."""
    if isinstance(value, list):
        return [plain_list(item) for item in value]
    if isinstance(value, complex):
        return [round(value.real, 5), round(value.imag, 5)]
    if isinstance(value, float):
        return repr(value) if value != value or abs(value) > 1e30 else round(value, 5)
    return value.decode() if isinstance(value, bytes) else value


def outcome(program):
    """Return what comes out of a program."""
    names = {"tf": tf}
    with tf.Graph().as_default(), tf.Session() as session:
        exec(ragged_programs.BEFORE, names)
        result = eval(program, names)
        value = session.run(result)
        splits = getattr(result, "row_splits", None)
        return {
            "dtype": result.dtype.name,
            "static": recorded.static_shape(result),
            "ragged_rank": getattr(result, "ragged_rank", 0),
            "splits": None if splits is None else splits.dtype.name,
            "values": plain(value),
        }


if __name__ == "__main__":
    recorded.write(Path(__file__).with_name("ragged_table.json"), ragged_programs, outcome)
