# Give the learning rate as text.
# refused: building
# got: got '0.1'
# expected: a number, a floating scalar tensor
# fix: learning_rate must be

import headrace as hr

v = hr.Variable([1.0], name="v")
step = hr.train.GradientDescentOptimizer("0.1").minimize(hr.reduce_sum(v * v))  # the mistake
