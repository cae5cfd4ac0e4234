# Assign to an element of a tensor.
# refused: building
# got: 'x:0'
# expected: cannot be assigned to
# fix: hr.Variable

import headrace as hr

x = hr.zeros([3], name="x")
x[0] = 1.0  # the mistake
