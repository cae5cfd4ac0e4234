# Join tensors that differ along another axis.
# refused: building
# got: shapes [2, 3] and [2, 4]
# expected: expected the same sizes
# fix: but along the axis that is joined

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.zeros([2, 4], name="y")
z = hr.concat([x, y], axis=0)  # the mistake
