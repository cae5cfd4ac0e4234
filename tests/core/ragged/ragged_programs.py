"""Programs of ragged tensors, for ``ragged_table.json``: each runs here and in TensorFlow 1.15.

``tf`` is the library, ``r``, ``f`` and ``s`` are matrices of int32, float32 and strings with ragged
rows, ``r3`` has two ragged axes, ``v`` ragged rows of vectors, and ``d`` is a tensor.
"""

from pathlib import Path

BEFORE = """
r = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
f = tf.cast(r, tf.float32) / 2.
s = tf.ragged.constant([["ab", "c"], ["", "xyz"]])
r3 = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
v = tf.RaggedTensor.from_row_lengths([[1, 2], [3, 4], [5, 6]], [2, 0, 1])
d = tf.constant([[1, 2], [3, 4]])
R = tf.RaggedTensor
"""
HERE = Path(__file__).parent
# One program in each line: those that yield a value, and those that end with an error.
PROGRAMS = (HERE / "programs.txt").read_text().splitlines()
REFUSED = (HERE / "refused.txt").read_text().splitlines()
