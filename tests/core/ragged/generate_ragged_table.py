"""Write ``ragged_table.json``: what programs of ragged tensors yield in TensorFlow 1.15.

python3.7 generate_ragged_table.py
"""

import json
from pathlib import Path

import numpy as np
import ragged_programs
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


def made(program):
    """Return the result of a program."""
    names = {"tf": tf}
    exec(ragged_programs.BEFORE, names)
    return eval(program, names)


def outcome(program):
    """Return what comes out of a program."""
    with tf.Graph().as_default(), tf.Session() as session:
        result = made(program)
        value = session.run(result)
        splits = getattr(result, "row_splits", None)
        return {
            "dtype": result.dtype.name,
            "static": None if result.shape.ndims is None else result.shape.as_list(),
            "ragged_rank": getattr(result, "ragged_rank", 0),
            "splits": None if splits is None else splits.dtype.name,
            "values": plain(value),
        }


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
        "outcomes": {program: outcome(program) for program in ragged_programs.PROGRAMS},
        "refused": {program: refusal(program) for program in ragged_programs.REFUSED},
    }
    text = json.dumps(table, indent=0, sort_keys=True)
    Path(__file__).with_name("ragged_table.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
