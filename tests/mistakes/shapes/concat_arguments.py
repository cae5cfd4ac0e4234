# Give the axis of concat first, as in old programs.
# refused: building
# got: got [<Tensor 'x:0'
# expected: axis must be one integer
# fix: the tensors come first: hr.concat(values, axis)

import headrace as hr

x = hr.zeros([2, 3], name="x")
z = hr.concat(0, [x, x])  # the mistake
