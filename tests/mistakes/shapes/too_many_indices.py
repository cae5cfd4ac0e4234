# Index a matrix with three numbers.
# refused: building
# got: 3 indices
# expected: a tensor of shape [2, 3]
# fix: expected at most 2

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = x[0, 1, 2]  # the mistake
