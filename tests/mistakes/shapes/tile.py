# Tile a matrix along three axes.
# refused: building
# got: 3 multiples
# expected: shape [2, 3]
# fix: one for each axis

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.tile(x, [1, 2, 2])  # the mistake
