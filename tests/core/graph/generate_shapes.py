"""Write the table of what TensorFlow's shapes and dimensions give: ``shapes.json``.

Run with TensorFlow 1.15: ``python tests/core/graph/generate_shapes.py``. The expressions stand in
``shape_expressions.txt``; the table holds what each gives, as text, or the families of its error.
"""

import json
import os
import pathlib

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def result(text):
    """Return what an expression gives, as text."""
    names = {"S": tf.TensorShape, "D": tf.Dimension, "x": tf.placeholder(tf.float32, [None, 3])}
    try:
        value = eval(text, {"tf": tf, **names})
    except Exception as error:
        family = [f.__name__ for f in (IndexError, ValueError, TypeError) if isinstance(error, f)]
        return {"error": family or [type(error).__name__]}
    return {"value": repr(value)}


def main():
    """Write the table."""
    lines = (HERE / "shape_expressions.txt").read_text().splitlines()
    table = {line: result(line) for line in lines if line}
    (HERE / "shapes.json").write_text(json.dumps(table, indent=0) + "\n")


if __name__ == "__main__":
    main()
