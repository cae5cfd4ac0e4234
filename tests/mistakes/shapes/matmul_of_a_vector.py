# Multiply a matrix and a vector.
# refused: building
# got: got shape [4]
# expected: at least 2 dimensions
# fix: hr.linalg.matvec

import headrace as hr

w = hr.zeros([3, 4], name="w")
v = hr.zeros([4], name="v")
y = hr.matmul(w, v)  # the mistake
