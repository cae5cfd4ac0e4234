# Add tensors whose shapes do not broadcast.
# refused: building
# got: shapes [32, 10] and [32]
# expected: expected equal sizes or 1
# fix: hr.expand_dims and hr.reshape

import headrace as hr

x = hr.zeros([32, 10], name="x")
bias = hr.zeros([32], name="bias")
y = x + bias  # the mistake
