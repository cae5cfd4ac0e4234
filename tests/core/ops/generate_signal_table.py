"""Write ``signal_table.json``: what programs of signals, sets and others yield in TensorFlow 1.15.

PYTHONPATH=tests python3.7 tests/core/ops/generate_signal_table.py
"""

from pathlib import Path

import numpy as np
import recorded
import signal_programs
import tensorflow as tf


def plain(value):
    """Return an array as JSON can hold it."""
    value = np.asarray(value)
    if value.dtype.kind == "c":
        return [plain(value.real), plain(value.imag)]
    if value.dtype.kind == "O":
        return [text.decode() for text in value.ravel()]
    if value.dtype.kind == "f":
        return [round(float(x), 6) for x in value.ravel()]
    return value.ravel().tolist()


def outcome(program):
    """Return what comes out of a program."""
    names = {**vars(signal_programs), "tf": tf}
    return recorded.outcomes(lambda: eval(program, names), plain)


if __name__ == "__main__":
    recorded.write(Path(__file__).with_name("signal_table.json"), signal_programs, outcome)
