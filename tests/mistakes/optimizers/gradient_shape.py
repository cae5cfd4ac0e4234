# Apply a gradient of another shape.
# refused: building
# got: has shape [3]
# expected: expected [2]
# fix: the gradient of 'v'

import headrace as hr

v = hr.Variable([1.0, 2.0], name="v")
step = hr.train.GradientDescentOptimizer(0.1).apply_gradients([(hr.zeros([3]), v)])  # the mistake
