# Apply gradients that are all None.
# refused: building
# got: no gradient reaches any of the variables v
# expected: does the loss depend on them
# fix: by differentiable operations

import headrace as hr

v = hr.Variable([1.0], name="v")
step = hr.train.GradientDescentOptimizer(0.1).apply_gradients([(None, v)])  # the mistake
