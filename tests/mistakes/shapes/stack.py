# Stack tensors of different shapes.
# refused: building
# got: [3]
# expected: [2]
# fix: are incompatible

import headrace as hr

x = hr.zeros([2], name="x")
y = hr.zeros([3], name="y")
z = hr.stack([x, y])  # the mistake
