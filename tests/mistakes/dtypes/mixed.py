# Add an integer tensor and a float tensor.
# refused: building
# got: y is float32
# expected: x is int32
# fix: hr.cast(..., hr.float32)

import headrace as hr

x = hr.zeros([2], hr.int32, name="x")
y = hr.zeros([2], hr.float32, name="y")
z = x + y  # the mistake
