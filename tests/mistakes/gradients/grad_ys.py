# Start gradients of another shape.
# refused: building
# got: shape [2]
# expected: float32[3]
# fix: expected the shape of y

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
g = hr.gradients(x * x, x, grad_ys=[hr.ones([2])])  # the mistake
