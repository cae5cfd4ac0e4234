# Pad a matrix as if it had three axes.
# refused: building
# got: got shape [3, 2]
# expected: for each axis of [2, 3]
# fix: must be a pair of integers

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.pad(x, [[1, 1], [2, 2], [0, 0]])  # the mistake
