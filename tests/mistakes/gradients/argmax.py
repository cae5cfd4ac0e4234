# Differentiate through a function without a derivative.
# refused: building
# got: no gradient reaches any of the variables v
# expected: does the loss depend on them
# fix: by differentiable operations

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
v = hr.Variable([1.0, 2.0, 3.0], name="v")
choice = hr.cast(hr.argmax(v * x), hr.float32)
step = hr.train.GradientDescentOptimizer(0.1).minimize(choice)  # the mistake
